"""Batches by one call, where nothing is out of the ordinary.

A batch of a few hundred kilobytes leaves little of Python's own data in the
processor's cache, so each object that is touched between two batches is
fetched from memory again. Here a request becomes a batch without touching
any. What is not plain (a chunk that is missing, a file that was cut, a wrong
index) is not dealt with here: no batch is made, and the caller goes the way
that knows all cases and says what is wrong.
"""
cimport cython
cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fuel.kernels.copy_row cimport AHEAD, fuel_copy_row
from fuel.kernels.gather cimport (
    Copies, check, check_fill, check_slots, check_table, plan_list,
    plan_range)
from fuel.kernels.guard cimport guarded, is_unchanged
from fuel.kernels.memory cimport new_array
from fuel.kernels.chunk_slots cimport Clock, Slots
from fuel.kernels.tiles cimport Tiles

import numpy

cnp.import_array()

cdef enum:
    # Rows that are looked up before they are copied.
    WINDOW = 128
    # As of every NumPy.
    MOST_AXES = 32


cdef struct Window:
    # Where each row is.
    const char *found[WINDOW]
    Py_ssize_t count
    Py_ssize_t row_nbytes
    char *out


cdef void copy_window(const Window *window) noexcept nogil:
    cdef Py_ssize_t nbytes = window.row_nbytes, last = window.count - 1
    cdef Py_ssize_t place = 0, run
    while place <= last:
        # Rows that follow each other are one copy.
        run = 1
        while (place + run <= last and window.found[place + run]
               == window.found[place] + run * nbytes):
            run += 1
        if run == 1:
            fuel_copy_row(window.out + place * nbytes, window.found[place],
                          nbytes, window.found[min(place + AHEAD, last)])
        else:
            memcpy(window.out + place * nbytes, window.found[place],
                   run * nbytes)
        place += run


cdef struct Blocks:
    # Of how many rows each is, and 1 over it: to divide takes longer.
    Py_ssize_t rows
    double inverse


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


cdef class Rows:
    """Rows of one source, each in one piece: base of those below.

    Parameters
    ----------
    tiles : Tiles

    Attributes
    ----------
    declines : bool
        Whether every batch is left to the caller. Defaults to False.

    """

    cdef public bint declines
    cdef Tiles tiles
    cdef Blocks blocks

    def __init__(self, Tiles tiles not None, *rest):
        self.tiles = tiles
        self.blocks.rows = tiles.block_rows
        self.blocks.inverse = 1. / tiles.block_rows

    cdef bint copy_plain(self, const cnp.npy_intp *rows, Py_ssize_t count,
                         Py_ssize_t first, char *out) except -1:
        """Copy rows, each number counted from `first`.

        Returns
        -------
        bool
            False if something is out of the ordinary; then what was copied
            is worth nothing.

        """
        return False

    def __reduce__(self):
        raise TypeError('rows of an open file cannot be pickled')


cdef struct MappedJob:
    const cnp.npy_intp *rows
    Py_ssize_t count
    Py_ssize_t first
    Py_ssize_t num_rows
    Py_ssize_t row_nbytes
    const Blocks *blocks
    const char *base
    const Py_ssize_t *starts
    char *out
    bint done


cdef inline const char *find_mapped(const MappedJob *job,
                                    Py_ssize_t row) noexcept nogil:
    """Return where a row is mapped; NULL if something is odd about it."""
    cdef Py_ssize_t block, start
    if row < 0 or row >= job.num_rows:
        return NULL
    block = block_of(job.blocks, row)
    start = job.starts[block]
    if start < 0:
        return NULL
    return (job.base + start
            + (row - block * job.blocks.rows) * job.row_nbytes)


cdef void copy_mapped(void *argument) noexcept nogil:
    """Copy row after row; stop, not done, where something is odd."""
    cdef MappedJob *job = <MappedJob *>argument
    cdef Window window
    cdef Py_ssize_t start = 0, place
    window.row_nbytes = job.row_nbytes
    while start < job.count:
        window.count = min(job.count - start, <Py_ssize_t>WINDOW)
        window.out = job.out + start * job.row_nbytes
        for place in range(window.count):
            window.found[place] = find_mapped(
                job, job.rows[start + place] + job.first)
            if window.found[place] == NULL:
                return
        copy_window(&window)
        start += window.count
    job.done = True


cdef class MappedRows(Rows):
    """Rows of a data set in a mapped file.

    Parameters
    ----------
    tiles : Tiles
    memory : buffer
        The mapped file.
    addresses : int64 array, shape (chunks,)
        Where each chunk starts in `memory`; `MISSING` for one that was never
        written, `OUTSIDE` for one that the file cannot hold.
    fill : numpy.ndarray
        A row of fill values.

    """

    cdef const unsigned char[::1] memory
    cdef const int64_t[::1] addresses
    cdef cnp.ndarray fill
    cdef const char *base
    cdef Py_ssize_t size
    # Where each chunk starts, -1 for those that are not whole in the file;
    # NULL where a row falls into pieces.
    cdef Py_ssize_t *starts
    # The file, and what `file_state` said of it.
    cdef int descriptor
    cdef int64_t file_size, file_changed

    def __cinit__(self):
        self.starts = NULL
        self.descriptor = -1

    def __dealloc__(self):
        free(self.starts)

    def __init__(self, Tiles tiles not None,
                 const unsigned char[::1] memory,
                 const int64_t[::1] addresses, cnp.ndarray fill not None):
        Rows.__init__(self, tiles)
        check_table(tiles, addresses.shape[0])
        check_fill(tiles, fill)
        self.memory = memory
        self.addresses = addresses
        self.fill = fill
        self.size = memory.shape[0]
        self.base = NULL
        if self.size:
            self.base = <const char *>&memory[0]
        if tiles.whole:
            self.find_starts()

    cdef int find_starts(self) except -1:
        cdef Tiles tiles = self.tiles
        cdef Py_ssize_t block, nbytes
        cdef Py_ssize_t count = (
            tiles.num_rows + tiles.block_rows - 1) // tiles.block_rows
        free(self.starts)
        self.starts = <Py_ssize_t *>malloc((count + 1) * sizeof(Py_ssize_t))
        if self.starts == NULL:
            raise MemoryError
        for block in range(count):
            # Of the last chunk, what holds no rows may be missing.
            nbytes = tiles.row_nbytes * min(
                tiles.block_rows, tiles.num_rows - block * tiles.block_rows)
            self.starts[block] = -1
            if (self.addresses[block] >= 0
                    and self.addresses[block] <= self.size - nbytes):
                self.starts[block] = self.addresses[block]
        return 0

    def watch(self, int descriptor, int64_t size, int64_t changed):
        """Take no batch for good if the file was changed meanwhile.

        Parameters
        ----------
        descriptor : int
            Of the file, open as long as this object is used.
        size, changed : int
            What `file_state` said when the file was opened.

        """
        self.descriptor = descriptor
        self.file_size = size
        self.file_changed = changed

    cdef bint copy_plain(self, const cnp.npy_intp *rows, Py_ssize_t count,
                         Py_ssize_t first, char *out) except -1:
        cdef MappedJob job
        cdef bint intact
        if self.starts == NULL:
            return False
        job.rows = rows
        job.count = count
        job.first = first
        job.num_rows = self.tiles.num_rows
        job.row_nbytes = self.tiles.row_nbytes
        job.blocks = &self.blocks
        job.base = self.base
        job.starts = self.starts
        job.out = out
        job.done = False
        with nogil:
            intact = guarded(copy_mapped, &job, self.base,
                             self.base + self.size)
            if self.descriptor >= 0:
                intact = intact and is_unchanged(
                    self.descriptor, self.file_size, self.file_changed)
        return intact and job.done

    def plan(self, rows, cnp.ndarray out not None):
        """Plan the copying of rows into a batch.

        Parameters
        ----------
        rows : numpy.ndarray, shape (batch,), dtype intp; or tuple of two int
            Which rows, or the first one and the one after the last.
        out : numpy.ndarray
            C-contiguous, of the batch's size.

        Returns
        -------
        Copies

        Raises
        ------
        IndexError
            If a row is out of range.
        LookupError
            Its argument is the first chunk needed that is `OUTSIDE`.

        """
        cdef Copies copies = Copies.__new__(Copies)
        cdef const int64_t *table = NULL
        if self.addresses.shape[0]:
            table = &self.addresses[0]
        copies.held = self
        copies.low = self.base
        copies.high = self.base + self.size
        if isinstance(rows, tuple):
            plan_range(copies, self.tiles, self.base, self.size, table, rows,
                       out, self.fill)
        else:
            plan_list(copies, self.tiles, self.base, self.size, table, rows,
                      out, self.fill)
        return copies


cdef class RememberedRows(Rows):
    """Rows of a data set in decoded chunks.

    Parameters
    ----------
    tiles : Tiles
    slots : Slots
    clock : Clock
        Tells when a chunk was used.

    """

    cdef Slots slots
    cdef Clock clock

    def __init__(self, Tiles tiles not None, Slots slots not None,
                 Clock clock not None):
        Rows.__init__(self, tiles)
        check_slots(tiles, slots)
        self.slots = slots
        self.clock = clock

    cdef bint copy_plain(self, const cnp.npy_intp *rows, Py_ssize_t count,
                         Py_ssize_t first, char *out) except -1:
        cdef Py_ssize_t start, nbytes = self.tiles.row_nbytes
        if not self.tiles.whole:
            return False
        self.clock.time += 1
        for start in range(0, count, WINDOW):
            if not self.copy_some(rows + start, min(
                    count - start, <Py_ssize_t>WINDOW), first,
                    out + start * nbytes):
                return False
        return True

    cdef bint copy_some(self, const cnp.npy_intp *rows, Py_ssize_t count,
                        Py_ssize_t first, char *out) except -1:
        cdef Window window
        cdef PyObject *held[WINDOW]
        cdef Py_ssize_t place, row, block, num_held = 0
        window.count = count
        window.row_nbytes = self.tiles.row_nbytes
        window.out = out
        for place in range(count):
            row = rows[place] + first
            if row < 0 or row >= self.tiles.num_rows:
                break
            block = block_of(&self.blocks, row)
            self.slots.used[block] = self.clock.time
            decoded = self.slots.get(block)
            if decoded is None:
                break
            # Whoever forgets it meanwhile must not write into it.
            Py_INCREF(decoded)
            held[num_held] = <PyObject *>decoded
            num_held += 1
            window.found[place] = (
                <const char *>cnp.PyArray_DATA(<cnp.ndarray>decoded)
                + (row - block * self.blocks.rows) * window.row_nbytes)
        if num_held == count:
            with nogil:
                copy_window(&window)
        for place in range(num_held):
            Py_DECREF(<object>held[place])
        return num_held == count


@cython.final
cdef class Batches:
    """Batches of some sources.

    Parameters
    ----------
    parts : list of (Rows, int, tuple of int, numpy.dtype)
        For each source its rows, the first of them that is an example, the
        shape of a row and its type, in native byte order.
    num_examples : int
    most_nbytes : int
        Larger sources of a batch are left to several threads.
    held : object
        What must not be closed while this object lives.

    """

    cdef list parts
    cdef Py_ssize_t num_examples, most_nbytes
    cdef object held

    def __init__(self, list parts not None, Py_ssize_t num_examples,
                 Py_ssize_t most_nbytes, held):
        self.parts = [Part(*part) for part in parts]
        self.num_examples = num_examples
        self.most_nbytes = most_nbytes
        self.held = held

    def read(self, request):
        """Return a batch.

        Parameters
        ----------
        request : object

        Returns
        -------
        tuple of numpy.ndarray or None
            New and writable. None if the request is anything else than a
            contiguous array of intp within the examples, or its rows cannot
            be copied in this way.

        """
        if type(request) is not cnp.ndarray or not self.accepts(request):
            return None
        return self.copy(
            <const cnp.npy_intp *>cnp.PyArray_DATA(<cnp.ndarray>request),
            cnp.PyArray_DIM(<cnp.ndarray>request, 0))

    cdef tuple copy(self, const cnp.npy_intp *rows, Py_ssize_t count):
        cdef cnp.npy_intp shape[MOST_AXES]
        cdef tuple data = PyTuple_New(len(self.parts))
        cdef Py_ssize_t place
        cdef Part part
        cdef cnp.ndarray batch
        for place in range(len(self.parts)):
            part = <Part>self.parts[place]
            if (part.rows.declines
                    or count * part.rows.tiles.row_nbytes
                    > self.most_nbytes):
                return None
            memcpy(shape, part.shape, part.ndim * sizeof(cnp.npy_intp))
            shape[0] = count
            batch = new_array(part.ndim, shape, part.dtype)
            Py_INCREF(batch)
            PyTuple_SET_ITEM(data, place, batch)
            if not part.rows.copy_plain(
                    rows, count, part.first,
                    <char *>cnp.PyArray_DATA(batch)):
                return None
        return data

    cdef bint accepts(self, cnp.ndarray request):
        if (cnp.PyArray_TYPE(request) != cnp.NPY_INTP
                or cnp.PyArray_NDIM(request) != 1
                or not cnp.PyArray_IS_C_CONTIGUOUS(request)
                or not cnp.PyArray_ISALIGNED(request)
                or not cnp.PyArray_ISNOTSWAPPED(request)
                or cnp.PyArray_DIM(request, 0) == 0):
            return False
        return self.are_examples(
            <const cnp.npy_intp *>cnp.PyArray_DATA(request),
            cnp.PyArray_DIM(request, 0))

    cdef bint are_examples(self, const cnp.npy_intp *rows, Py_ssize_t count):
        cdef Py_ssize_t place
        for place in range(count):
            if rows[place] < 0 or rows[place] >= self.num_examples:
                return False
        return True

    def __reduce__(self):
        # A data set is pickled without its open file, and makes them anew.
        return type(None), ()


@cython.final
cdef class BatchesInOrder:
    """Iterator over the next batches of an epoch, as long as all is plain.

    It ends where the epoch does, or where a batch cannot be read in this
    way: then that batch is still to come.

    Parameters
    ----------
    owner : object
        Its attribute ``_direct`` is the `Batches` to read, or None while
        there are none. They are not kept here, so that it can close them.
    order : numpy.ndarray of uint32 or int64, or range
        The examples of the whole epoch, in order.
    batch_size : int
    position : int
        Number of the first batch to return.

    """

    cdef object owner
    cdef cnp.ndarray rows
    cdef const cnp.uint32_t[::1] short_order
    cdef const int64_t[::1] long_order
    # Of a range the first element; then there is no array.
    cdef Py_ssize_t start, size, batch_size, position

    def __init__(self, owner, order, Py_ssize_t batch_size,
                 Py_ssize_t position):
        if batch_size < 1 or position < 0:
            raise ValueError(f'batch {position} of size {batch_size}')
        self.owner = owner
        self.size = len(order)
        self.batch_size = batch_size
        self.position = position
        self.rows = numpy.empty(min(batch_size, self.size), numpy.intp)
        self.short_order = self.long_order = None
        if isinstance(order, range):
            if order.step != 1:
                raise ValueError(f'a range of step 1 is needed, got {order}')
            self.start = order.start
        elif order.dtype == numpy.uint32:
            self.short_order = order
        elif order.dtype == numpy.intp:
            # Of 32 bits on some machines.
            self.long_order = order.astype(numpy.int64, copy=False)
        else:
            self.long_order = order

    def __iter__(self):
        return self

    def __next__(self):
        cdef Py_ssize_t first, count
        cdef cnp.npy_intp *rows
        cdef Batches batches = self.owner._direct
        if (batches is None
                or self.position > self.size // self.batch_size):
            raise StopIteration
        first = self.position * self.batch_size
        count = min(self.batch_size, self.size - first)
        rows = <cnp.npy_intp *>cnp.PyArray_DATA(self.rows)
        self.list_rows(rows, first, count)
        if not count or not batches.are_examples(rows, count):
            raise StopIteration
        data = batches.copy(rows, count)
        if data is None:
            raise StopIteration
        self.position += 1
        return data

    cdef void list_rows(self, cnp.npy_intp *rows, Py_ssize_t first,
                        Py_ssize_t count) noexcept:
        cdef Py_ssize_t place
        if self.short_order is not None:
            for place in range(count):
                rows[place] = self.short_order[first + place]
        elif self.long_order is not None:
            for place in range(count):
                rows[place] = self.long_order[first + place]
        else:
            for place in range(count):
                rows[place] = self.start + first + place

    def __reduce__(self):
        raise TypeError('batches of an open file cannot be pickled')


@cython.final
cdef class Part:
    """What `Batches` knows of a source."""

    cdef Rows rows
    cdef Py_ssize_t first
    cdef int ndim
    # The first place is for the number of examples.
    cdef cnp.npy_intp shape[MOST_AXES]
    cdef cnp.dtype dtype

    def __init__(self, Rows rows not None, Py_ssize_t first, tuple shape,
                 cnp.dtype dtype not None):
        cdef Py_ssize_t nbytes = dtype.itemsize
        cdef int axis = 1
        if len(shape) >= MOST_AXES:
            raise ValueError(f'too many axes: {shape}')
        for length in shape:
            self.shape[axis] = length
            nbytes *= length
            axis += 1
        if nbytes != rows.tiles.row_nbytes or dtype.hasobject:
            raise ValueError(
                f'rows of {rows.tiles.row_nbytes} bytes do not hold {shape} '
                f'of {dtype}')
        self.rows = rows
        self.first = first
        self.ndim = axis
        self.dtype = dtype
