"""Gather rows out of mapped files and decoded chunks.

Where the rows of a request are is looked up for some of them, each a piece of
memory; rows that follow each other are one piece. Then these are copied, or
converted, into the batch, without the GIL. A row may lie in several chunks,
its tiles, or have fill values.
"""
cimport numpy as cnp
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.pyport cimport PY_SSIZE_T_MAX
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc

from fuel.kernels.chunk_slots cimport Clock, Slots, meet
from fuel.kernels.converter cimport Conversion, conversion_of
from fuel.kernels.file_states cimport FileStates
from fuel.kernels.guard cimport Span, guarded
from fuel.kernels.part_table cimport (
    Kind, Part, PartTable, Table, block_of, part_of)
from fuel.kernels.pieces cimport (
    WINDOW, Cursor, Request, Window, add, advance, go_to, length_of_run,
    put_pieces, row_at)

import numpy

cnp.import_array()

# Values in a table of addresses: of a chunk that is not in the file, and of
# one that cannot be where the file says it is.
MISSING = -1
OUTSIDE = -2

cdef enum:
    MISSING_CHUNK = -1
    OUTSIDE_CHUNK = -2
    # Long rows of batches that a core's cache does not hold take up to a
    # fifth less time by the C library's copy than line by line.
    LONG_ROW = 24576
    LARGE_BATCH = 4 << 20


cdef const cnp.npy_intp *numbers_of(cnp.ndarray array) except NULL:
    """Return what is in an array of numbers; refuse others."""
    if (cnp.PyArray_TYPE(array) != cnp.NPY_INTP
            or cnp.PyArray_NDIM(array) != 1
            or not cnp.PyArray_IS_C_CONTIGUOUS(array)
            or not cnp.PyArray_ISNOTSWAPPED(array)):
        raise ValueError('rows must be a contiguous 1-d array of intp')
    return <const cnp.npy_intp *>cnp.PyArray_DATA(array)


cdef Py_ssize_t total_of(const cnp.npy_intp *lengths, Py_ssize_t count,
                         Py_ssize_t most) except -1:
    """Return the rows of all ranges."""
    cdef Py_ssize_t place, total = 0
    for place in range(count):
        if not 0 <= lengths[place] <= most - total:
            raise ValueError(
                f'range {place} has {lengths[place]} rows: there is room for '
                f'{most - total}')
        total += lengths[place]
    return total


cdef int check(PartTable table, rows, cnp.ndarray out, Py_ssize_t begin,
               end, Request *request) except -1:
    """Refuse what the kernel could read or write outside of."""
    cdef Py_ssize_t count, stop
    request.rows = request.lengths = NULL
    request.first = 0
    if not isinstance(rows, tuple):
        request.rows = numbers_of(rows)
        count = len(rows)
    elif isinstance(rows[0], numpy.ndarray):
        starts, lengths = rows
        request.rows = numbers_of(starts)
        request.lengths = numbers_of(lengths)
        count = len(starts)
        if count != len(lengths):
            raise ValueError(f'{count} ranges with {len(lengths)} lengths')
        count = total_of(request.lengths, count,
                         cnp.PyArray_NBYTES(out) // table.row_nbytes)
    else:
        request.first, stop = rows
        count = stop - request.first
        if request.first < 0 or count < 0 or stop > table.num_rows:
            raise IndexError(
                f'rows must lie in 0 to {table.num_rows - 1}, got '
                f'{request.first} to {stop - 1}')
    if (not cnp.PyArray_IS_C_CONTIGUOUS(out)
            or not cnp.PyArray_ISWRITEABLE(out)
            or cnp.PyArray_NBYTES(out) != count * table.row_nbytes):
        raise ValueError(
            f'{count} rows of {table.row_nbytes} bytes do not fit an array '
            f'of {out.nbytes} bytes (or it is not plain)')
    stop = count if end is None else end
    if not 0 <= begin <= stop <= count:
        raise ValueError(f'rows {begin} to {stop} of {count}')
    request.count = stop
    return 0


cdef int refuse_row(Py_ssize_t row, PartTable table) except -1:
    raise IndexError(
        f'rows must lie in 0 to {table.num_rows - 1}, got {row}')


cdef Py_ssize_t needed_nbytes(const Part *part, Py_ssize_t block) noexcept:
    """Return how many bytes a chunk of a part needs to hold its rows."""
    cdef Py_ssize_t rows = (part + 1).first + part.shift
    rows = min(part.block_rows, rows - block * part.block_rows)
    if rows > (PY_SSIZE_T_MAX - part.offset) // part.kind.stride:
        return PY_SSIZE_T_MAX
    return part.offset + rows * part.kind.stride


cdef class Rows:
    """Rows of one source of some files: base of the classes below.

    `table`: where they lie.
    `addresses`: shape (chunks,), dtype int64; where each chunk starts;
        `MISSING` for one that was never written, `OUTSIDE` for one that the
        file cannot hold.
    `addresses`: a copy. `OUTSIDE` also for chunks that end outside of the
        file.
    `declines`: whether every batch is left to the caller. Defaults to False.
    """

    def __init__(self, PartTable table not None, addresses):
        self.addresses = numpy.array(addresses, numpy.int64)
        self.addresses.flags.writeable = False
        if cnp.PyArray_SIZE(self.addresses) < table.num_chunks:
            raise ValueError(f'{table.num_chunks} chunks, but a table of '
                             f'{len(self.addresses)}')
        self.places = <int64_t *>cnp.PyArray_DATA(self.addresses)
        self.table = table
        self.states = FileStates([])

    def watch(self, FileStates states not None):
        """Let rows of files that were changed be declined."""
        if states.num_files != self.table.num_files:
            raise ValueError(f'{self.table.num_files} files, but the states '
                             f'of {states.num_files}')
        self.states = states

    cdef unsigned char *none_used(self) except NULL:
        """Return what is to be freed: for each file, whether it was used."""
        cdef unsigned char *used = <unsigned char *>calloc(
            self.table.num_files + 1, 1)
        if used == NULL:
            raise MemoryError
        return used

    cdef int begin(self, Window *window, char *out, Py_ssize_t count,
                   const Conversion *conversion) except -1:
        """Describe where pieces go, of how many rows, and as what."""
        window.count = 0
        window.row_nbytes = self.table.row_nbytes
        window.by_lines = (self.table.row_nbytes < LONG_ROW
                           or count * self.table.row_nbytes < LARGE_BATCH)
        window.conversion = conversion
        window.out = out
        window.out_row_nbytes = (self.table.row_nbytes // conversion.itemsize
                                 * conversion.out_itemsize)
        return 0

    cdef bint copy_plain(self, const Request *request, char *out,
                         const Conversion *conversion) except -1:
        """Copy rows; return False if something is out of the ordinary.

        Then what was copied is worth nothing.
        """
        return False

    def __reduce__(self):
        raise TypeError('rows of an open file cannot be pickled')


cdef enum:
    DONE
    WRONG_ROW
    WRONG_CHUNK


cdef struct MappedJob:
    Window window
    const Request *request
    Py_ssize_t begin
    const Table *table
    # Of each file, where its map would begin if addresses began with it.
    const char **bases
    unsigned char *used
    const int64_t *places
    # Result of the job, and the row or chunk that it ended at.
    int state
    Py_ssize_t where


cdef void copy_mapped(void *argument) noexcept nogil:
    """Copy row after row, up to one that is not there."""
    cdef MappedJob *job = <MappedJob *>argument
    cdef const Request *request = job.request
    cdef const Part *part = job.table.parts
    cdef const Kind *kind
    cdef const char *base
    cdef Cursor cursor
    cdef Py_ssize_t row, block, inside, chunk, tile, rows
    cdef int64_t start
    go_to(request, &cursor, job.begin)
    while cursor.place < request.count:
        row = row_at(request, &cursor)
        if row < 0 or row >= job.table.num_rows:
            job.state, job.where = WRONG_ROW, row
            return
        part = part_of(job.table, row, part)
        kind = part.kind
        base = job.bases[part.file]
        job.used[part.file] = True
        rows = part[1].first - row
        row += part.shift
        block = block_of(part, row)
        inside = row - block * part.block_rows
        rows = length_of_run(request, &cursor,
                             min(rows, part.block_rows - inside))
        inside = inside * kind.stride + part.offset
        for tile in range(kind.num_tiles):
            chunk = part.first_chunk + block * kind.num_tiles + tile
            start = job.places[chunk]
            if start >= 0:
                add(&job.window, base + start + inside, cursor.place, rows,
                    tile, kind)
            elif start == MISSING_CHUNK:
                add(&job.window, NULL, cursor.place, rows, tile, kind)
            else:
                job.state, job.where = WRONG_CHUNK, chunk
                return
        advance(request, &cursor, rows)
    put_pieces(&job.window)


cdef class MappedRows(Rows):
    """Rows in mapped files.

    `table`, `addresses`: as for `Rows`.
    `maps`: for each file the address of its first byte, and its memory.
    """

    cdef list views
    cdef const char **bases
    cdef Span *spans
    cdef int64_t *starts
    cdef Py_ssize_t num_spans

    def __cinit__(self):
        self.bases = NULL
        self.spans = NULL
        self.starts = NULL

    def __dealloc__(self):
        free(self.bases)
        free(self.spans)
        free(self.starts)

    def __init__(self, PartTable table not None, addresses,
                 list maps not None):
        Rows.__init__(self, table, addresses)
        if len(maps) != table.num_files:
            raise ValueError(f'{table.num_files} files, but {len(maps)} maps')
        self.views = []
        self.keep_maps(maps)
        self.bound_addresses()

    cdef int keep_maps(self, list maps) except -1:
        cdef const unsigned char[::1] view
        cdef Span *span
        cdef Py_ssize_t place
        free(self.bases)
        free(self.spans)
        free(self.starts)
        self.num_spans = len(maps)
        self.bases = <const char **>malloc((len(maps) + 1) * sizeof(char *))
        self.spans = <Span *>malloc((len(maps) + 1) * sizeof(Span))
        self.starts = <int64_t *>malloc((len(maps) + 1) * sizeof(int64_t))
        if self.bases == NULL or self.spans == NULL or self.starts == NULL:
            raise MemoryError
        for place in range(self.num_spans):
            self.starts[place], memory = maps[place]
            view = memory
            self.views.append(view)
            span = self.spans + place
            span.low = span.high = NULL
            if view.shape[0]:
                span.low = <const char *>&view[0]
                span.high = span.low + view.shape[0]
            self.bases[place] = span.low - self.starts[place]
        return 0

    cdef int bound_addresses(self) except -1:
        """Mark chunks that are not whole in their file."""
        cdef const Part *part
        cdef Py_ssize_t place, block, chunk, tile, needed, size
        cdef Py_ssize_t last
        for place in range(self.table.num_parts):
            part = self.table.parts + place
            if part.first == part[1].first:
                continue
            size = (self.spans[part.file].high - self.spans[part.file].low)
            last = (part[1].first + part.shift - 1) // part.block_rows
            for block in range(
                    (part.first + part.shift) // part.block_rows, last + 1):
                # Of the last chunk, what holds no rows may be missing.
                needed = needed_nbytes(part, block)
                for tile in range(part.kind.num_tiles):
                    chunk = (part.first_chunk + block * part.kind.num_tiles
                             + tile)
                    if self.places[chunk] != MISSING_CHUNK and (
                            self.places[chunk] < self.starts[part.file]
                            or needed > size
                            or self.places[chunk] - self.starts[part.file]
                            > size - needed):
                        self.places[chunk] = OUTSIDE_CHUNK
        return 0

    cdef bint run(self, MappedJob *job, const Request *request, char *out,
                  const Conversion *conversion) except -1:
        """Copy rows; return whether the maps could be read, and the files
        are what they were."""
        cdef bint intact
        self.begin(&job.window, out, request.count, conversion)
        job.request = request
        job.table = &self.table.table
        job.bases = self.bases
        job.places = self.places
        job.state = DONE
        job.used = self.none_used()
        with nogil:
            intact = guarded(copy_mapped, job, self.spans, self.num_spans)
        intact = intact and self.states.are_current(job.used)
        free(job.used)
        return intact

    cdef bint copy_plain(self, const Request *request, char *out,
                         const Conversion *conversion) except -1:
        cdef MappedJob job
        job.begin = 0
        return (self.run(&job, request, out, conversion)
                and job.state == DONE)

    def copy(self, rows, cnp.ndarray out not None, Py_ssize_t begin=0,
             end=None):
        """Copy rows into a batch.

        `rows`: shape (batch,), dtype intp; which rows. Or a tuple: the first
            one and the one after the last, or the first ones of ranges and
            how many rows each has.
        `begin`, `end`: the part of the batch to copy. Default to all of it.
        Returns: False if a map could not be read: its file was cut, or the
            disk failed; and if a file was changed.
        """
        cdef Request request
        cdef MappedJob job
        check(self.table, rows, out, begin, end, &request)
        job.begin = begin
        intact = self.run(
            &job, &request, <char *>cnp.PyArray_DATA(out), conversion_of(None))
        if job.state == WRONG_CHUNK:
            raise LookupError(job.where)
        if job.state == WRONG_ROW:
            refuse_row(job.where, self.table)
        return intact


cdef class DecodedRows(Rows):
    """Rows of decoded chunks.

    `table`, `addresses`: as for `Rows`.
    `slots`: the chunks that are remembered.
    `clock`: tells when a chunk was used.
    """

    cdef Slots slots
    cdef Clock clock

    def __init__(self, PartTable table not None, addresses,
                 Slots slots not None, Clock clock not None):
        Rows.__init__(self, table, addresses)
        if slots.num_chunks < cnp.PyArray_SIZE(self.addresses):
            raise ValueError(f'{len(self.addresses)} chunks, but '
                             f'{slots.num_chunks} slots')
        self.slots = slots
        self.clock = clock
        self.check_slots()

    cdef int check_slots(self) except -1:
        """Refuse slots that are too small for the rows."""
        cdef const Part *part
        cdef Py_ssize_t place, block, first, chunk, needed, last
        for place in range(self.table.num_parts):
            part = self.table.parts + place
            if part.first == part[1].first:
                continue
            last = (part[1].first + part.shift - 1) // part.block_rows
            for block in range(
                    (part.first + part.shift) // part.block_rows, last + 1):
                needed = needed_nbytes(part, block)
                first = part.first_chunk + block * part.kind.num_tiles
                for chunk in range(first, first + part.kind.num_tiles):
                    if self.slots.sizes[chunk] < needed:
                        raise ValueError(
                            f'chunk {chunk} needs {needed} bytes, and its '
                            f'slot has {self.slots.sizes[chunk]}')
        return 0

    cdef bint copy_plain(self, const Request *request, char *out,
                         const Conversion *conversion) except -1:
        cdef Window window
        cdef unsigned char *used = self.none_used()
        try:
            self.begin(&window, out, request.count, conversion)
            return (self.run(&window, request, used, None)
                    and self.states.are_current(used))
        finally:
            free(used)

    cdef bint run(self, Window *window, const Request *request,
                  unsigned char *used, dict absent) except -1:
        """Copy rows of remembered chunks, and list those that are absent.

        Without `absent`, return False at the first one.
        """
        # Whoever forgets a chunk meanwhile must not write into it.
        cdef PyObject *held[WINDOW]
        cdef Py_ssize_t num_held = 0
        cdef Cursor cursor
        cdef const Part *part = self.table.parts
        cdef const Kind *kind
        cdef Py_ssize_t row, block, inside, chunk, tile, rows
        cdef Py_ssize_t last = -1
        cdef const char *source = NULL
        cdef PyObject *decoded = NULL
        self.clock.time += 1
        go_to(request, &cursor, 0)
        try:
            while cursor.place < request.count:
                row = row_at(request, &cursor)
                if row < 0 or row >= self.table.num_rows:
                    if absent is None:
                        return False
                    refuse_row(row, self.table)
                part = part_of(&self.table.table, row, part)
                kind = part.kind
                used[part.file] = True
                rows = part[1].first - row
                row += part.shift
                block = block_of(part, row)
                inside = row - block * part.block_rows
                rows = length_of_run(request, &cursor,
                                     min(rows, part.block_rows - inside))
                inside = inside * kind.stride + part.offset
                for tile in range(kind.num_tiles):
                    if window.count == WINDOW or num_held == WINDOW:
                        with nogil:
                            put_pieces(window)
                        release(held, &num_held)
                        last = -1
                    chunk = part.first_chunk + block * kind.num_tiles + tile
                    if chunk != last:
                        last = chunk
                        self.slots.used[chunk] = self.clock.time
                        decoded = PyList_GET_ITEM(self.slots.chunks, chunk)
                        if <object>decoded is not None:
                            Py_INCREF(<object>decoded)
                            held[num_held] = decoded
                            num_held += 1
                    source = NULL
                    if <object>decoded is not None:
                        source = (<const char *>cnp.PyArray_DATA(
                            <cnp.ndarray>decoded) + inside)
                    elif self.places[chunk] != MISSING_CHUNK:
                        if absent is None:
                            return False
                        absent.setdefault(chunk, []).append(
                            (cursor.place, rows, row - part.shift))
                        continue
                    add(window, source, cursor.place, rows, tile, kind)
                advance(request, &cursor, rows)
            with nogil:
                put_pieces(window)
        finally:
            release(held, &num_held)
        return True

    def copy(self, rows, cnp.ndarray out not None):
        """Copy rows of the chunks that are remembered into a batch.

        `rows`: as for `MappedRows.copy`.
        Returns: chunks that were not remembered, and the pieces of the batch
            that lie in them: place in the batch, number of rows, first row.
        Returns: whether the files that the rows lie in are what they were.
        """
        cdef Request request
        cdef Window window
        cdef dict absent = {}
        cdef unsigned char *used
        check(self.table, rows, out, 0, None, &request)
        self.begin(&window, <char *>cnp.PyArray_DATA(out), request.count,
                   conversion_of(None))
        used = self.none_used()
        try:
            self.run(&window, &request, used, absent)
            return list(absent.items()), self.states.are_current(used)
        finally:
            free(used)

    def copy_chunk(self, Py_ssize_t chunk, cnp.ndarray decoded not None,
                   list pieces not None, cnp.ndarray out not None):
        """Copy rows of one decoded chunk into a batch.

        `pieces`: what `copy` returned for it.
        """
        cdef Window window
        cdef const Part *part = self.table.parts
        cdef Py_ssize_t place, rows, row, block, tile, count
        cdef const char *start = <const char *>cnp.PyArray_DATA(decoded)
        if (not cnp.PyArray_IS_C_CONTIGUOUS(out)
                or not cnp.PyArray_ISWRITEABLE(out)):
            raise ValueError('rows are copied into a plain array')
        count = cnp.PyArray_NBYTES(out) // max(1, self.table.row_nbytes)
        self.slots.check(chunk, decoded)
        self.begin(&window, <char *>cnp.PyArray_DATA(out), count,
                   conversion_of(None))
        for place, rows, row in pieces:
            if place < 0 or rows < 1 or rows > count or place > count - rows:
                raise IndexError(f'place {place} of {count}')
            if row < 0 or row >= self.table.num_rows:
                refuse_row(row, self.table)
            part = part_of(&self.table.table, row, part)
            block = block_of(part, row + part.shift)
            tile = (chunk - part.first_chunk - block * part.kind.num_tiles)
            if (tile < 0 or tile >= part.kind.num_tiles
                    or rows > part[1].first - row or rows > (block + 1)
                    * part.block_rows - part.shift - row):
                raise IndexError(f'place {place} is in another chunk')
            row += part.shift - block * part.block_rows
            add(&window, start + row * part.kind.stride + part.offset, place,
                rows, tile, part.kind)
        with nogil:
            put_pieces(&window)

    def expect(self, cnp.ndarray rows not None, Py_ssize_t most,
               int64_t soon):
        """Note that some rows will soon be needed.

        `rows`: shape (batch,), dtype intp.
        `most`: bytes of chunks; if there are more, nothing is noted.
        Returns: of how many bytes the chunks are that the rows lie in.
        Returns: those that are not in their slots.
        """
        cdef const cnp.npy_intp *wanted = numbers_of(rows)
        cdef const Part *part = self.table.parts
        cdef Py_ssize_t place, row, chunk, tile, count = 0, nbytes = 0
        cdef Slots slots = self.slots
        slots.num_calls += 1
        for place in range(cnp.PyArray_SIZE(rows)):
            row = wanted[place]
            if row < 0 or row >= self.table.num_rows:
                refuse_row(row, self.table)
            part = part_of(&self.table.table, row, part)
            chunk = (part.first_chunk + block_of(part, row + part.shift)
                     * part.kind.num_tiles)
            for tile in range(chunk, chunk + part.kind.num_tiles):
                if meet(slots, tile) and self.places[tile] >= 0:
                    slots.found[count] = tile
                    count += 1
                    nbytes += slots.sizes[tile]
        absent = []
        if nbytes <= most:
            for place in range(count):
                slots.used[slots.found[place]] = soon
                if slots.get(slots.found[place]) is None:
                    absent.append(slots.found[place])
        return nbytes, absent


cdef void release(PyObject **held, Py_ssize_t *count) noexcept:
    cdef Py_ssize_t place
    for place in range(count[0]):
        Py_DECREF(<object>held[place])
    count[0] = 0
