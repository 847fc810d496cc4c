"""Gather rows out of arrays, mapped files and decoded chunks.

Where the rows of a request are is looked up for some of them, each a piece of
memory; rows that follow each other are one piece. Then these are copied, or
converted, into the batch, without the GIL. A row may lie in several chunks,
its tiles, or have fill values.
"""
cimport numpy as cnp
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from fuel.kernels.chunk_slots cimport Clock, Slots
from fuel.kernels.converter cimport Conversion, conversion_of
from fuel.kernels.copy_row cimport AHEAD, fuel_copy_row
from fuel.kernels.guard cimport guarded, is_unchanged
from fuel.kernels.tiles cimport Segment, Tiles

import numpy

cnp.import_array()

# What a table of addresses holds for a chunk that is not in the file, and
# for one that cannot be where the file says it is.
MISSING = -1
OUTSIDE = -2

cdef enum:
    MISSING_CHUNK = -1
    OUTSIDE_CHUNK = -2


cdef inline Py_ssize_t block_of(const Blocks *blocks,
                                Py_ssize_t row) noexcept nogil:
    """Return ``row // blocks.rows`` of a row below 2 ** 52."""
    cdef Py_ssize_t block = <Py_ssize_t>(row * blocks.inverse)
    # One too many or too few, where rounding decided.
    if block * blocks.rows > row:
        return block - 1
    if row - block * blocks.rows >= blocks.rows:
        return block + 1
    return block


cdef inline Py_ssize_t length_of_run(const Request *request, Py_ssize_t place,
                                     Py_ssize_t most) noexcept nogil:
    """Return how many rows from a place on, up to `most`, are neighbours."""
    cdef Py_ssize_t run = 1
    if request.rows == NULL:
        return most
    while (run < most
           and request.rows[place + run] == request.rows[place] + run):
        run += 1
    return run


cdef inline void put(const Conversion *conversion, char *out,
                     const char *source, Py_ssize_t nbytes, bint is_row,
                     const char *coming) noexcept nogil:
    """Copy or convert elements that lie together in both places."""
    if conversion.convert != NULL:
        conversion.convert(source, out, nbytes // conversion.itemsize,
                           conversion.scale, conversion.shift, coming)
    elif is_row:
        fuel_copy_row(out, source, nbytes, coming)
    else:
        # Several rows are one copy: twice as fast.
        memcpy(out, source, nbytes)


cdef void put_segments(const Window *window,
                       const Piece *piece) noexcept nogil:
    """Copy the segments of a tile, of each of its rows."""
    cdef const Segment *segment
    cdef const Conversion *conversion = window.conversion
    cdef const char *source
    cdef Py_ssize_t row, place, start
    for row in range(piece.rows):
        for place in range(window.tile_starts[piece.tile],
                           window.tile_starts[piece.tile + 1]):
            segment = window.segments + place
            start = segment.in_row
            if conversion.convert != NULL:
                start = start // conversion.itemsize * conversion.out_itemsize
            source = window.fill + segment.in_row
            if piece.source != NULL:
                source = (piece.source + row * window.stride
                          + segment.in_chunk)
            put(conversion, window.out + (piece.first + row)
                * window.out_row_nbytes + start, source, segment.nbytes,
                False, source)


cdef void put_pieces(Window *window) noexcept nogil:
    """Copy all pieces of a window, which is empty then."""
    cdef const Piece *piece
    cdef const char *coming
    cdef Py_ssize_t place, last = window.count - 1
    for place in range(window.count):
        piece = window.pieces + place
        if not window.whole or piece.source == NULL:
            put_segments(window, piece)
            continue
        coming = window.pieces[min(place + AHEAD, last)].source
        put(window.conversion,
            window.out + piece.first * window.out_row_nbytes, piece.source,
            piece.rows * window.row_nbytes, piece.rows == 1,
            coming if coming != NULL else piece.source)
    window.count = 0


cdef inline void add(Window *window, const char *source, Py_ssize_t first,
                     Py_ssize_t rows, Py_ssize_t tile) noexcept nogil:
    """Add rows of a chunk."""
    cdef Piece *piece
    if window.count == WINDOW:
        put_pieces(window)
    piece = window.pieces + window.count
    piece.source = source
    piece.first = first
    piece.rows = rows
    piece.tile = tile
    window.count += 1


cdef void gather_rows(const char *source, const cnp.npy_intp *rows,
                      Py_ssize_t count, Py_ssize_t row_nbytes,
                      const Conversion *conversion, char *out) noexcept nogil:
    """Gather rows of an array whose numbers are known to be right."""
    cdef Request request
    cdef Py_ssize_t place = 0, run
    cdef Py_ssize_t out_row_nbytes = (
        row_nbytes // conversion.itemsize * conversion.out_itemsize)
    request.rows = rows
    while place < count:
        run = length_of_run(&request, place, count - place)
        put(conversion, out + place * out_row_nbytes,
            source + rows[place] * row_nbytes, run * row_nbytes, run == 1,
            source + rows[min(place + AHEAD, count - 1)] * row_nbytes)
        place += run


cdef int check(Tiles tiles, rows, cnp.ndarray out, Py_ssize_t begin,
               end, Request *request) except -1:
    """Refuse what the kernel could read or write outside of."""
    cdef cnp.ndarray array
    cdef Py_ssize_t count, stop
    request.rows = NULL
    if isinstance(rows, tuple):
        request.first, stop = rows
        count = stop - request.first
        if request.first < 0 or count < 0 or stop > tiles.num_rows:
            raise IndexError(
                f'rows must lie in 0 to {tiles.num_rows - 1}, got '
                f'{request.first} to {stop - 1}')
    else:
        array = rows
        if (cnp.PyArray_TYPE(array) != cnp.NPY_INTP
                or cnp.PyArray_NDIM(array) != 1
                or not cnp.PyArray_IS_C_CONTIGUOUS(array)
                or not cnp.PyArray_ISNOTSWAPPED(array)):
            raise ValueError('rows must be a contiguous 1-d array of intp')
        request.first = 0
        request.rows = <const cnp.npy_intp *>cnp.PyArray_DATA(array)
        count = cnp.PyArray_DIM(array, 0)
    if (not cnp.PyArray_IS_C_CONTIGUOUS(out)
            or not cnp.PyArray_ISWRITEABLE(out)
            or cnp.PyArray_NBYTES(out) != count * tiles.row_nbytes):
        raise ValueError(
            f'{count} rows of {tiles.row_nbytes} bytes do not fit an array '
            f'of {out.nbytes} bytes (or it is not plain)')
    stop = count if end is None else end
    if not 0 <= begin <= stop <= count:
        raise ValueError(f'rows {begin} to {stop} of {count}')
    request.count = stop
    return 0


cdef int refuse_row(Py_ssize_t row, Tiles tiles) except -1:
    raise IndexError(
        f'rows must lie in 0 to {tiles.num_rows - 1}, got {row}')


cdef class Rows:
    """Rows of one source of a file: base of the classes below.

    `addresses`: shape (chunks,), dtype int64; where each chunk starts in the
        file; `MISSING` for one that was never written, `OUTSIDE` for one that
        the file cannot hold.
    `fill`: a row of fill values.
    `addresses`: a copy. `OUTSIDE` also for chunks that end outside of the
        file.
    `declines`: whether every batch is left to the caller. Defaults to False.
    """

    def __init__(self, Tiles tiles not None, addresses,
                 cnp.ndarray fill not None):
        cdef Py_ssize_t needed = tiles.num_tiles * (
            (tiles.num_rows + tiles.block_rows - 1) // tiles.block_rows)
        if (not cnp.PyArray_IS_C_CONTIGUOUS(fill)
                or cnp.PyArray_NBYTES(fill) != tiles.row_nbytes):
            raise ValueError('the fill value must be one row')
        self.addresses = numpy.array(addresses, numpy.int64)
        self.addresses.flags.writeable = False
        if cnp.PyArray_SIZE(self.addresses) < needed:
            raise ValueError(f'{needed} chunks, but a table of '
                             f'{len(self.addresses)}')
        self.places = <int64_t *>cnp.PyArray_DATA(self.addresses)
        self.tiles = tiles
        self.fill = fill
        self.blocks.rows = tiles.block_rows
        self.blocks.inverse = 1. / tiles.block_rows
        self.descriptor = -1

    def watch(self, int descriptor, int64_t size, int64_t changed):
        """Let `Batches` decline rows of a file that was changed.

        `descriptor`: of the file.
        `size`, `changed`: what `file_state` said of it.
        """
        self.descriptor = descriptor
        self.file_size = size
        self.file_changed = changed

    cdef bint is_current(self) noexcept nogil:
        """Tell whether the file is what it was; asked after a copy."""
        return self.descriptor < 0 or is_unchanged(
            self.descriptor, self.file_size, self.file_changed)

    cdef int begin(self, Window *window, char *out,
                   const Conversion *conversion) except -1:
        """Describe where pieces go, and as what."""
        cdef Tiles tiles = self.tiles
        window.count = 0
        window.row_nbytes = tiles.row_nbytes
        window.stride = tiles.stride
        window.whole = tiles.whole
        window.segments = tiles.segments
        window.tile_starts = tiles.tile_starts
        window.fill = <const char *>cnp.PyArray_DATA(self.fill)
        window.conversion = conversion
        window.out = out
        window.out_row_nbytes = (tiles.row_nbytes // conversion.itemsize
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
    Py_ssize_t num_rows, num_tiles
    const Blocks *blocks
    const char *base
    const int64_t *places
    # How the job ended, and at which row or chunk.
    int state
    Py_ssize_t where


cdef void copy_mapped(void *argument) noexcept nogil:
    """Copy row after row, up to one that is not there."""
    cdef MappedJob *job = <MappedJob *>argument
    cdef const Request *request = job.request
    cdef Py_ssize_t place = job.begin
    cdef Py_ssize_t row, block, inside, chunk, tile, rows
    cdef int64_t start
    while place < request.count:
        row = request.first
        row += place if request.rows == NULL else request.rows[place]
        if row < 0 or row >= job.num_rows:
            job.state, job.where = WRONG_ROW, row
            return
        block = block_of(job.blocks, row)
        inside = row - block * job.blocks.rows
        rows = length_of_run(request, place, min(
            request.count - place, job.blocks.rows - inside))
        for tile in range(job.num_tiles):
            chunk = block * job.num_tiles + tile
            start = job.places[chunk]
            if start >= 0:
                add(&job.window, job.base + start
                    + inside * job.window.stride, place, rows, tile)
            elif start == MISSING_CHUNK:
                add(&job.window, NULL, place, rows, tile)
            else:
                job.state, job.where = WRONG_CHUNK, chunk
                return
        place += rows
    put_pieces(&job.window)


cdef class MappedRows(Rows):
    """Rows of a data set in a mapped file.

    `tiles`, `addresses`, `fill`: as for `Rows`.
    `memory`: the mapped file.
    """

    cdef const unsigned char[::1] memory
    cdef const char *base
    cdef Py_ssize_t size

    def __init__(self, Tiles tiles not None, addresses,
                 cnp.ndarray fill not None, const unsigned char[::1] memory):
        Rows.__init__(self, tiles, addresses, fill)
        self.memory = memory
        self.size = memory.shape[0]
        self.base = NULL
        if self.size:
            self.base = <const char *>&memory[0]
        self.bound_addresses()

    cdef int bound_addresses(self) except -1:
        """Mark chunks that are not whole in the file."""
        cdef Tiles tiles = self.tiles
        cdef Py_ssize_t chunk, block, nbytes
        for chunk in range(cnp.PyArray_SIZE(self.addresses)):
            block = chunk // tiles.num_tiles
            # Of the last chunk, what holds no rows may be missing.
            nbytes = tiles.stride * min(
                tiles.block_rows,
                max(0, tiles.num_rows - block * tiles.block_rows))
            if self.places[chunk] != MISSING_CHUNK and (
                    self.places[chunk] < 0 or nbytes > self.size
                    or self.places[chunk] > self.size - nbytes):
                self.places[chunk] = OUTSIDE_CHUNK
        return 0

    cdef bint run(self, MappedJob *job, const Request *request, char *out,
                  const Conversion *conversion) except -1:
        """Copy rows; return whether the map could be read."""
        cdef bint intact
        self.begin(&job.window, out, conversion)
        job.request = request
        job.num_rows = self.tiles.num_rows
        job.num_tiles = self.tiles.num_tiles
        job.blocks = &self.blocks
        job.base = self.base
        job.places = self.places
        job.state = DONE
        with nogil:
            intact = guarded(copy_mapped, job, self.base,
                             self.base + self.size)
        return intact

    cdef bint copy_plain(self, const Request *request, char *out,
                         const Conversion *conversion) except -1:
        cdef MappedJob job
        job.begin = 0
        return (self.run(&job, request, out, conversion)
                and job.state == DONE and self.is_current())

    def copy(self, rows, cnp.ndarray out not None, Py_ssize_t begin=0,
             end=None):
        """Copy rows into a batch.

        `rows`: shape (batch,), dtype intp; which rows, or the first one and
            the one after the last.
        `begin`, `end`: the part of the batch to copy. Default to all of it.
        Returns: False if the map could not be read: its file was cut, or the
            disk failed.
        """
        cdef Request request
        cdef MappedJob job
        check(self.tiles, rows, out, begin, end, &request)
        job.begin = begin
        intact = self.run(
            &job, &request, <char *>cnp.PyArray_DATA(out), conversion_of(None))
        if job.state == WRONG_CHUNK:
            raise LookupError(job.where)
        if job.state == WRONG_ROW:
            refuse_row(job.where, self.tiles)
        return intact


cdef class DecodedRows(Rows):
    """Rows of a data set in decoded chunks.

    `tiles`, `addresses`, `fill`: as for `Rows`.
    `slots`: the chunks that are remembered.
    `clock`: tells when a chunk was used.
    """

    cdef Slots slots
    cdef Clock clock

    def __init__(self, Tiles tiles not None, addresses,
                 cnp.ndarray fill not None, Slots slots not None,
                 Clock clock not None):
        Rows.__init__(self, tiles, addresses, fill)
        if slots.num_chunks < cnp.PyArray_SIZE(self.addresses):
            raise ValueError(f'{len(self.addresses)} chunks, but '
                             f'{slots.num_chunks} slots')
        if slots.chunk_nbytes < tiles.chunk_nbytes:
            raise ValueError(f'chunks of {tiles.chunk_nbytes} bytes, but '
                             f'slots of {slots.chunk_nbytes}')
        self.slots = slots
        self.clock = clock

    cdef bint copy_plain(self, const Request *request, char *out,
                         const Conversion *conversion) except -1:
        cdef Window window
        self.begin(&window, out, conversion)
        return self.run(&window, request, None) and self.is_current()

    cdef bint run(self, Window *window, const Request *request,
                  dict absent) except -1:
        """Copy rows of remembered chunks, and list those that are absent.

        Without `absent`, return False at the first one.
        """
        # Whoever forgets a chunk meanwhile must not write into it.
        cdef PyObject *held[WINDOW]
        cdef Py_ssize_t num_held = 0
        cdef Py_ssize_t place = 0, row, block, inside, chunk, tile, rows
        cdef Py_ssize_t last = -1
        cdef const char *source = NULL
        cdef PyObject *decoded = NULL
        self.clock.time += 1
        try:
            while place < request.count:
                row = request.first
                row += (place if request.rows == NULL
                        else request.rows[place])
                if row < 0 or row >= self.tiles.num_rows:
                    if absent is None:
                        return False
                    refuse_row(row, self.tiles)
                block = block_of(&self.blocks, row)
                inside = row - block * self.blocks.rows
                rows = length_of_run(request, place, min(
                    request.count - place, self.blocks.rows - inside))
                for tile in range(self.tiles.num_tiles):
                    if window.count == WINDOW or num_held == WINDOW:
                        with nogil:
                            put_pieces(window)
                        release(held, &num_held)
                        last = -1
                    chunk = block * self.tiles.num_tiles + tile
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
                            <cnp.ndarray>decoded) + inside * window.stride)
                    elif self.places[chunk] != MISSING_CHUNK:
                        if absent is None:
                            return False
                        absent.setdefault(chunk, []).extend(
                            range(place, place + rows))
                        continue
                    add(window, source, place, rows, tile)
                place += rows
            with nogil:
                put_pieces(window)
        finally:
            release(held, &num_held)
        return True

    def copy(self, rows, cnp.ndarray out not None):
        """Copy rows of the chunks that are remembered into a batch.

        Returns: chunks that were not remembered, and the places in the batch
            of the rows that lie in them.
        """
        cdef Request request
        cdef Window window
        cdef dict absent = {}
        check(self.tiles, rows, out, 0, None, &request)
        self.begin(&window, <char *>cnp.PyArray_DATA(out), conversion_of(None))
        self.run(&window, &request, absent)
        return list(absent.items())

    def copy_chunk(self, Py_ssize_t chunk, cnp.ndarray decoded not None, rows,
                   list places not None, cnp.ndarray out not None):
        """Copy rows of one decoded chunk into a batch."""
        cdef Request request
        cdef Window window
        cdef Py_ssize_t place, row, block
        cdef const char *start = <const char *>cnp.PyArray_DATA(decoded)
        check(self.tiles, rows, out, 0, None, &request)
        self.slots.checked(chunk)
        self.slots.check(decoded)
        self.begin(&window, <char *>cnp.PyArray_DATA(out), conversion_of(None))
        block = chunk // self.tiles.num_tiles
        for place in places:
            if place < 0 or place >= request.count:
                raise IndexError(f'place {place} of {request.count}')
            row = request.first
            row += place if request.rows == NULL else request.rows[place]
            row -= block * self.tiles.block_rows
            if row < 0 or row >= self.tiles.block_rows:
                raise IndexError(f'place {place} is in another chunk')
            add(&window, start + row * window.stride, place, 1,
                chunk % self.tiles.num_tiles)
        put_pieces(&window)


cdef void release(PyObject **held, Py_ssize_t *count) noexcept:
    cdef Py_ssize_t place
    for place in range(count[0]):
        Py_DECREF(<object>held[place])
    count[0] = 0
