"""Rows out of a mapped file or out of decoded chunks.

A row of an HDF5 data set lies in one chunk, or, where chunks divide the
trailing axes too, in one *tile* of several chunks.  `Tiles` knows how; it
turns a request into `Copies`, a list of pieces of memory to copy, which then
runs without the GIL, whole or in parts on several threads.
"""
cimport numpy as cnp
from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fuel.kernels._prefetch cimport fuel_ask_for

import numpy

cnp.import_array()

cdef extern from *:
    """
    #include <stdint.h>
    typedef void (*fuel_work)(void *);

    #ifdef _WIN32
    /* Windows refuses to cut a file that is mapped. */
    static int fuel_guarded(fuel_work work, void *job, const char *low,
                            const char *high)
    {
        work(job);
        return 0;
    }
    #else
    #include <setjmp.h>
    #include <signal.h>
    #include <string.h>

    /* A page of a map whose file was cut, or cannot be read, raises SIGBUS
       in the thread that touches it.  While a copy is guarded, the handler
       jumps back to it; any other SIGBUS goes where it went before. */
    static __thread sigjmp_buf fuel_jump;
    static __thread const char *volatile fuel_low = NULL;
    static __thread const char *volatile fuel_high = NULL;
    static struct sigaction fuel_previous;
    static volatile sig_atomic_t fuel_passed_on = 0;

    static void fuel_on_bus_error(int number, siginfo_t *info, void *context)
    {
        const char *address = (const char *)info->si_addr;
        if (fuel_low != NULL && address >= fuel_low && address < fuel_high) {
            siglongjmp(fuel_jump, 1);
        }
        /* Once more means that the previous handler handed it back. */
        if (fuel_passed_on) {
            signal(number, SIG_DFL);
        } else {
            fuel_passed_on = 1;
            sigaction(number, &fuel_previous, NULL);
        }
        if (info->si_code <= 0) {
            raise(number);  /* Sent by a process: nothing will repeat it. */
        }
    }

    static int fuel_guarded(fuel_work work, void *job, const char *low,
                            const char *high)
    {
        struct sigaction action;
        if (low == NULL) {
            work(job);
            return 0;
        }
        /* Others, such as faulthandler, may have put theirs in between. */
        sigaction(SIGBUS, NULL, &action);
        if (action.sa_sigaction != fuel_on_bus_error) {
            fuel_previous = action;
            fuel_passed_on = 0;
            memset(&action, 0, sizeof(action));
            sigemptyset(&action.sa_mask);
            action.sa_sigaction = fuel_on_bus_error;
            /* Not deferred: the jump leaves the handler for good. */
            action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
            sigaction(SIGBUS, &action, NULL);
        }
        fuel_high = high;
        fuel_low = low;
        if (sigsetjmp(fuel_jump, 0)) {
            fuel_low = NULL;
            return -1;
        }
        work(job);
        fuel_low = NULL;
        return 0;
    }
    #endif
    """
    int fuel_guarded(void (*work)(void *) noexcept nogil, void *job,
                     const char *low, const char *high) nogil

cdef enum:
    # A piece is cut here, so that several threads can share one slice.
    LONGEST = 1 << 20
    # How many rows or pieces ahead of the copy memory is asked for.
    AHEAD = 2
    # Rows that are looked up before they are copied.
    WINDOW = 128

cdef extern from *:
    """
    #include <sys/types.h>
    #include <sys/stat.h>
    #if defined(__APPLE__)
    #define fuel_nanoseconds(status) ((status).st_mtimespec.tv_nsec)
    #elif defined(_WIN32)
    #define fuel_nanoseconds(status) 0
    #else
    #define fuel_nanoseconds(status) ((status).st_mtim.tv_nsec)
    #endif

    /* Size, and time of the last change in nanoseconds; 0 if it worked. */
    static int fuel_state(int descriptor, int64_t *size, int64_t *changed)
    {
        struct stat status;
        if (fstat(descriptor, &status)) {
            return -1;
        }
        *size = status.st_size;
        *changed = (int64_t)status.st_mtime * 1000000000
            + fuel_nanoseconds(status);
        return 0;
    }
    """
    int fuel_state(int descriptor, int64_t *size, int64_t *changed)


def file_state(int descriptor):
    """Return the size of an open file, and when it was last changed.

    Parameters
    ----------
    descriptor : int

    Returns
    -------
    size, changed : int
        Bytes, and nanoseconds since 1970.

    Raises
    ------
    OSError
        If the descriptor is not open.

    """
    cdef int64_t size = 0, changed = 0
    if fuel_state(descriptor, &size, &changed):
        raise OSError(f'file descriptor {descriptor} is not open')
    return size, changed


# What a table of addresses holds for a chunk that is not in the file, and
# for one that cannot be where the file says it is.
MISSING = -1
OUTSIDE = -2


cdef struct Piece:
    # NULL: the row of fill values.
    const char *source
    Py_ssize_t first
    Py_ssize_t rows
    Py_ssize_t tile


cdef struct Segment:
    Py_ssize_t in_row
    Py_ssize_t in_chunk
    Py_ssize_t nbytes


cdef class Tiles:
    """Where the bytes of a row lie in the chunks that hold it.

    Parameters
    ----------
    shape : tuple of int
        Of the data set; at least one axis, none of the others empty.
    chunk_shape : tuple of int
        Same length.  A contiguous data set is one chunk.
    itemsize : int
        Bytes of an element.

    Attributes
    ----------
    num_rows, block_rows : int
        Rows of the data set, and of one chunk.
    num_tiles : int
        Chunks that together hold a row.
    row_nbytes, chunk_nbytes : int
        Decoded sizes in bytes.

    Raises
    ------
    ValueError
        If the axes do not match, or a row falls into too many segments to
        be worth it.

    """

    cdef readonly Py_ssize_t num_rows, block_rows, num_tiles
    cdef readonly Py_ssize_t row_nbytes, chunk_nbytes
    # From one row of a chunk to the next.
    cdef Py_ssize_t stride
    # Whether a row is one segment at the start of the chunk's row and fills
    # it, so that neighbours in a chunk are neighbours in the batch.
    cdef bint whole
    cdef Segment *segments
    cdef Py_ssize_t *tile_starts

    MOST_SEGMENTS = 1 << 16
    MOST_ELEMENTS = 1 << 22

    def __cinit__(self):
        self.segments = NULL
        self.tile_starts = NULL

    def __dealloc__(self):
        free(self.segments)
        free(self.tile_starts)

    def __init__(self, tuple shape, tuple chunk_shape, Py_ssize_t itemsize):
        if not shape or len(shape) != len(chunk_shape):
            raise ValueError(f'chunks of shape {chunk_shape} cannot hold '
                             f'rows of a data set of shape {shape}')
        if min(chunk_shape) < 1 or 0 in shape[1:] or itemsize < 1:
            raise ValueError(
                f'rows of shape {shape[1:]}, chunks of shape {chunk_shape} '
                f'or elements of {itemsize} bytes are empty')
        self.num_rows = shape[0]
        self.block_rows = chunk_shape[0]
        self.row_nbytes = itemsize
        self.stride = itemsize
        for length in shape[1:]:
            self.row_nbytes *= length
        for length in chunk_shape[1:]:
            self.stride *= length
        self.chunk_nbytes = self.stride * self.block_rows
        self.whole = shape[1:] == chunk_shape[1:]
        if self.whole:
            tiles = [[(0, 0, self.row_nbytes)]]
        else:
            tiles = self.divide(shape[1:], chunk_shape[1:], itemsize)
        self.keep(tiles)

    cdef list divide(self, tuple row, tuple chunk, Py_ssize_t itemsize):
        """Return the segments of each tile of a row."""
        if max(self.row_nbytes, self.stride) > self.MOST_ELEMENTS * itemsize:
            raise ValueError('rows are too large to be divided')
        in_row = numpy.arange(numpy.prod(row, dtype=numpy.intp)).reshape(row)
        in_chunk = numpy.arange(
            numpy.prod(chunk, dtype=numpy.intp)).reshape(chunk)
        grid = tuple([-(-whole // part) for whole, part in zip(row, chunk)])
        tiles, total = [], 0
        for place in numpy.ndindex(grid):
            corner = [index * part for index, part in zip(place, chunk)]
            source = in_row[tuple([
                slice(start, start + part)
                for start, part in zip(corner, chunk)])]
            target = in_chunk[tuple([
                slice(length) for length in source.shape])]
            segments = runs(source.ravel(), target.ravel(), itemsize)
            tiles.append(segments)
            total += len(segments)
            if total > self.MOST_SEGMENTS:
                raise ValueError('a row falls into too many segments')
        return tiles

    cdef int keep(self, list tiles) except -1:
        cdef Py_ssize_t total = sum(map(len, tiles))
        cdef Py_ssize_t place = 0, tile
        free(self.segments)
        free(self.tile_starts)
        self.num_tiles = len(tiles)
        self.segments = <Segment *>malloc(total * sizeof(Segment))
        self.tile_starts = <Py_ssize_t *>malloc(
            (len(tiles) + 1) * sizeof(Py_ssize_t))
        if self.segments == NULL or self.tile_starts == NULL:
            raise MemoryError
        for tile, segments in enumerate(tiles):
            self.tile_starts[tile] = place
            for in_row, in_chunk, nbytes in segments:
                self.segments[place].in_row = in_row
                self.segments[place].in_chunk = in_chunk
                self.segments[place].nbytes = nbytes
                place += 1
        self.tile_starts[self.num_tiles] = place
        return 0

    def __reduce__(self):
        raise TypeError('Tiles belong to an open file and cannot be pickled')


cdef list runs(cnp.ndarray in_row, cnp.ndarray in_chunk, Py_ssize_t itemsize):
    """Return `(in_row, in_chunk, nbytes)` for runs consecutive in both."""
    breaks = numpy.flatnonzero(
        (numpy.diff(in_row) != 1) | (numpy.diff(in_chunk) != 1)) + 1
    starts = numpy.concatenate([[0], breaks])
    lengths = numpy.diff(numpy.append(starts, in_row.size))
    return [(int(row) * itemsize, int(chunk) * itemsize,
             int(length) * itemsize)
            for row, chunk, length in zip(
                in_row[starts], in_chunk[starts], lengths)]


cdef struct Job:
    const Piece *pieces
    Py_ssize_t count
    const Segment *segments
    const Py_ssize_t *tile_starts
    const char *fill
    char *out
    Py_ssize_t row_nbytes
    Py_ssize_t stride
    bint whole


cdef void copy_pieces(void *argument) noexcept nogil:
    cdef Job *job = <Job *>argument
    cdef const Piece *piece
    cdef Py_ssize_t place
    for place in range(job.count):
        if place + AHEAD < job.count:
            piece = job.pieces + place + AHEAD
            if piece.source != NULL:
                fuel_ask_for(piece.source, job.row_nbytes)
        piece = job.pieces + place
        if job.whole and piece.source != NULL:
            memcpy(job.out + piece.first * job.row_nbytes, piece.source,
                   piece.rows * job.row_nbytes)
        else:
            copy_segments(job, piece)


cdef void copy_segments(const Job *job, const Piece *piece) noexcept nogil:
    cdef const Segment *segment
    cdef Py_ssize_t row, place
    cdef char *out
    for row in range(piece.rows):
        out = job.out + (piece.first + row) * job.row_nbytes
        for place in range(job.tile_starts[piece.tile],
                           job.tile_starts[piece.tile + 1]):
            segment = job.segments + place
            if piece.source == NULL:
                memcpy(out + segment.in_row, job.fill + segment.in_row,
                       segment.nbytes)
            else:
                memcpy(out + segment.in_row,
                       piece.source + row * job.stride + segment.in_chunk,
                       segment.nbytes)


cdef class Copies:
    """Pieces of memory to copy into one batch.

    Made by `MappedRows`, `cached_rows` and `chunk_rows`.

    Attributes
    ----------
    count : int
        How many pieces.
    absent : list of tuple
        ``(chunk, tile, positions)`` left out, since the chunk was not there:
        `positions` are the places in the batch.

    """

    cdef readonly Py_ssize_t count
    cdef readonly list absent
    cdef Tiles tiles
    cdef Piece *pieces
    cdef Py_ssize_t room
    cdef cnp.ndarray out, fill
    # What must not be freed while memory is read.
    cdef object held
    cdef const char *low
    cdef const char *high

    def __cinit__(self):
        self.pieces = NULL

    def __dealloc__(self):
        free(self.pieces)

    cdef int prepare(self, Tiles tiles, Py_ssize_t room, cnp.ndarray out,
                     cnp.ndarray fill) except -1:
        self.tiles = tiles
        self.out = out
        self.fill = fill
        self.absent = []
        self.room = room
        self.pieces = <Piece *>malloc((room + 1) * sizeof(Piece))
        if self.pieces == NULL:
            raise MemoryError
        return 0

    cdef inline void add(self, const char *source, Py_ssize_t first,
                         Py_ssize_t rows, Py_ssize_t tile) noexcept:
        """Add rows of a chunk, joined to the last piece where possible."""
        cdef Piece *last
        if self.count and self.tiles.whole and source != NULL:
            last = self.pieces + self.count - 1
            if (last.source != NULL
                    and last.source + last.rows * self.tiles.stride == source
                    and last.first + last.rows == first
                    and (last.rows + rows) * self.tiles.stride <= LONGEST):
                last.rows += rows
                return
        last = self.pieces + self.count
        last.source = source
        last.first = first
        last.rows = rows
        last.tile = tile
        self.count += 1

    def run(self, Py_ssize_t begin=0, end=None):
        """Copy the pieces from `begin` to `end`.

        Returns
        -------
        bool
            False if the map could not be read: its file was cut, or the
            disk failed.

        """
        cdef Py_ssize_t stop = self.count if end is None else end
        cdef Job job
        cdef int failed
        if not 0 <= begin <= stop <= self.count:
            raise ValueError(f'pieces {begin} to {stop} of {self.count}')
        job.pieces = self.pieces + begin
        job.count = stop - begin
        job.segments = self.tiles.segments
        job.tile_starts = self.tiles.tile_starts
        job.fill = <const char *>cnp.PyArray_DATA(self.fill)
        job.out = <char *>cnp.PyArray_DATA(self.out)
        job.row_nbytes = self.tiles.row_nbytes
        job.stride = self.tiles.stride
        job.whole = self.tiles.whole
        with nogil:
            failed = fuel_guarded(copy_pieces, &job, self.low, self.high)
        return failed == 0


cdef int check(Tiles tiles, cnp.ndarray rows, cnp.ndarray out) except -1:
    """Refuse arrays that the kernel could read or write outside of."""
    if (cnp.PyArray_TYPE(rows) != cnp.NPY_INTP
            or cnp.PyArray_NDIM(rows) != 1
            or not cnp.PyArray_IS_C_CONTIGUOUS(rows)
            or not cnp.PyArray_ISNOTSWAPPED(rows)):
        raise ValueError('rows must be a contiguous 1-d array of intp')
    check_out(tiles, cnp.PyArray_DIM(rows, 0), out)
    return 0


cdef int check_out(Tiles tiles, Py_ssize_t count, cnp.ndarray out) except -1:
    if (not cnp.PyArray_IS_C_CONTIGUOUS(out)
            or not cnp.PyArray_ISWRITEABLE(out)
            or cnp.PyArray_NBYTES(out) != count * tiles.row_nbytes):
        raise ValueError(
            f'{count} rows of {tiles.row_nbytes} bytes do not fit an array '
            f'of {out.nbytes} bytes (or it is not plain)')
    return 0


cdef int check_fill(Tiles tiles, cnp.ndarray fill) except -1:
    if (not cnp.PyArray_IS_C_CONTIGUOUS(fill)
            or cnp.PyArray_NBYTES(fill) != tiles.row_nbytes):
        raise ValueError('the fill value must be one row')
    return 0


cdef object refuse_row(Py_ssize_t row, Tiles tiles):
    raise IndexError(
        f'rows must lie in 0 to {tiles.num_rows - 1}, got {row}')


cdef int check_table(Tiles tiles, Py_ssize_t length) except -1:
    cdef Py_ssize_t blocks = (
        tiles.num_rows + tiles.block_rows - 1) // tiles.block_rows
    if length < blocks * tiles.num_tiles:
        raise ValueError(f'{blocks * tiles.num_tiles} chunks, but a table '
                         f'of {length}')
    return 0


cdef const char *address_of(const char *base, Py_ssize_t size,
                            const int64_t *addresses, Py_ssize_t chunk,
                            Py_ssize_t nbytes) except? NULL:
    """Return where a chunk is mapped, NULL if it is not in the file."""
    cdef int64_t address = addresses[chunk]
    if address == MISSING_CHUNK:
        return NULL
    if address < 0 or nbytes > size or address > size - nbytes:
        raise LookupError(chunk)
    return base + address


cdef enum:
    MISSING_CHUNK = -1


cdef struct PlainJob:
    const cnp.npy_intp *rows
    Py_ssize_t count
    Py_ssize_t num_rows
    Py_ssize_t block_rows
    Py_ssize_t row_nbytes
    const char *base
    Py_ssize_t size
    const int64_t *addresses
    char *out
    bint done


cdef inline const char *find_plain(const PlainJob *job,
                                   Py_ssize_t row) noexcept nogil:
    """Return where a row is mapped; NULL if something is odd about it."""
    cdef Py_ssize_t block, first, end
    cdef int64_t address
    if row < 0 or row >= job.num_rows:
        return NULL
    block = row // job.block_rows
    first = block * job.block_rows
    end = min(first + job.block_rows, job.num_rows)
    address = job.addresses[block]
    if address < 0 or address > job.size - (end - first) * job.row_nbytes:
        return NULL
    return job.base + address + (row - first) * job.row_nbytes


cdef void copy_plain(void *argument) noexcept nogil:
    """Copy row after row; stop, not done, where something is odd."""
    cdef PlainJob *job = <PlainJob *>argument
    cdef const char *found[WINDOW]
    cdef Py_ssize_t start = 0, place, count, run
    while start < job.count:
        count = min(job.count - start, <Py_ssize_t>WINDOW)
        for place in range(count):
            found[place] = find_plain(job, job.rows[start + place])
            if found[place] == NULL:
                return
        place = 0
        while place < count:
            # Rows that follow each other are one copy.
            run = 1
            while (place + run < count and found[place + run]
                   == found[place] + run * job.row_nbytes):
                run += 1
            if place + run - 1 + AHEAD < count:
                fuel_ask_for(found[place + run - 1 + AHEAD], job.row_nbytes)
            memcpy(job.out + (start + place) * job.row_nbytes, found[place],
                   run * job.row_nbytes)
            place += run
        start += count
    job.done = True


cdef class MappedRows:
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

    cdef Tiles tiles
    cdef const unsigned char[::1] memory
    cdef const int64_t[::1] addresses
    cdef cnp.ndarray fill
    cdef const char *base
    cdef Py_ssize_t size

    def __init__(self, Tiles tiles not None,
                 const unsigned char[::1] memory,
                 const int64_t[::1] addresses, cnp.ndarray fill not None):
        check_table(tiles, addresses.shape[0])
        check_fill(tiles, fill)
        self.tiles = tiles
        self.memory = memory
        self.addresses = addresses
        self.fill = fill
        self.size = memory.shape[0]
        self.base = NULL
        if self.size:
            self.base = <const char *>&memory[0]

    cdef const int64_t *table(self):
        return &self.addresses[0] if self.addresses.shape[0] else NULL

    def copy(self, rows, cnp.ndarray out not None):
        """Copy rows into a batch, in this thread.

        Parameters
        ----------
        rows, out
            As for :meth:`plan`.

        Returns
        -------
        bool
            As of :meth:`Copies.run`.

        Raises
        ------
        IndexError, LookupError
            As of :meth:`plan`.

        """
        cdef PlainJob job
        cdef cnp.ndarray wanted
        cdef int failed
        # By far the commonest request needs no list of pieces.
        if self.tiles.whole and cnp.PyArray_Check(rows):
            wanted = rows
            check(self.tiles, wanted, out)
            job.rows = <const cnp.npy_intp *>cnp.PyArray_DATA(wanted)
            job.count = cnp.PyArray_DIM(wanted, 0)
            job.num_rows = self.tiles.num_rows
            job.block_rows = self.tiles.block_rows
            job.row_nbytes = self.tiles.row_nbytes
            job.base = self.base
            job.size = self.size
            job.addresses = self.table()
            job.out = <char *>cnp.PyArray_DATA(out)
            job.done = False
            with nogil:
                failed = fuel_guarded(copy_plain, &job, self.base,
                                      self.base + self.size)
            if failed:
                return False
            if job.done:
                return True
        # Something is missing or wrong: this path says what.
        return self.plan(rows, out).run()

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
        copies.held = self
        copies.low = self.base
        copies.high = self.base + self.size
        if isinstance(rows, tuple):
            plan_range(copies, self.tiles, self.base, self.size,
                       self.table(), rows, out, self.fill)
        else:
            plan_list(copies, self.tiles, self.base, self.size,
                      self.table(), rows, out, self.fill)
        return copies

    def __reduce__(self):
        raise TypeError('rows of a mapped file cannot be pickled')


cdef int plan_list(Copies copies, Tiles tiles, const char *base,
                   Py_ssize_t size, const int64_t *addresses,
                   cnp.ndarray rows, cnp.ndarray out,
                   cnp.ndarray fill) except -1:
    check(tiles, rows, out)
    cdef const cnp.npy_intp *wanted = <const cnp.npy_intp *>(
        cnp.PyArray_DATA(rows))
    cdef Py_ssize_t place, row, block, tile
    cdef Py_ssize_t count = cnp.PyArray_DIM(rows, 0)
    cdef const char *source
    copies.prepare(tiles, count * tiles.num_tiles, out, fill)
    for place in range(count):
        row = wanted[place]
        if row < 0 or row >= tiles.num_rows:
            refuse_row(row, tiles)
        block = row // tiles.block_rows
        for tile in range(tiles.num_tiles):
            source = address_of(base, size, addresses,
                                block * tiles.num_tiles + tile,
                                needed_bytes(tiles, block))
            if source != NULL:
                source += (row - block * tiles.block_rows) * tiles.stride
            copies.add(source, place, 1, tile)
    return 0


cdef inline Py_ssize_t needed_bytes(Tiles tiles, Py_ssize_t block) noexcept:
    """Return how many bytes of a chunk hold rows of the data set."""
    return tiles.stride * min(
        tiles.block_rows, tiles.num_rows - block * tiles.block_rows)


cdef int plan_range(Copies copies, Tiles tiles, const char *base,
                    Py_ssize_t size, const int64_t *addresses, tuple rows,
                    cnp.ndarray out, cnp.ndarray fill) except -1:
    cdef Py_ssize_t start = rows[0], stop = rows[1]
    cdef Py_ssize_t row = start, block, tile, count, most
    cdef const char *source
    if start < 0 or stop < start or stop > tiles.num_rows:
        raise IndexError(f'rows must lie in 0 to {tiles.num_rows - 1}, got '
                         f'{start} to {stop - 1}')
    check_out(tiles, stop - start, out)
    # A piece is never longer than LONGEST, nor than a chunk.
    most = max(<Py_ssize_t>1, min(
        tiles.block_rows, LONGEST // tiles.stride))
    copies.prepare(
        tiles, ((stop - start) // most
                + (stop - start) // tiles.block_rows + 3) * tiles.num_tiles,
        out, fill)
    while row < stop:
        block = row // tiles.block_rows
        count = min(stop, (block + 1) * tiles.block_rows) - row
        count = min(count, most)
        for tile in range(tiles.num_tiles):
            source = address_of(base, size, addresses,
                                block * tiles.num_tiles + tile,
                                needed_bytes(tiles, block))
            if source != NULL:
                source += (row - block * tiles.block_rows) * tiles.stride
            copies.add(source, row - start, count, tile)
        row += count
    return 0


def cached_rows(Tiles tiles not None, list slots not None,
                int64_t[::1] used, int64_t now, cnp.ndarray rows not None,
                cnp.ndarray out not None, cnp.ndarray fill not None):
    """Plan the copying of rows out of the chunks that are remembered.

    Parameters
    ----------
    tiles : Tiles
    slots : list
        For each chunk its decoded bytes, a contiguous array, or None.
    used : int64 array, shape (chunks,)
        Set to `now` for each chunk that is needed.
    now : int
        The time, by the cache's own count.
    rows, out, fill : numpy.ndarray
        As for `MappedRows`.

    Returns
    -------
    Copies
        It holds the chunks, so that they outlive the cache's memory of them.
        `absent` lists what has to be decoded first.

    """
    check(tiles, rows, out)
    check_fill(tiles, fill)
    check_table(tiles, len(slots))
    check_table(tiles, used.shape[0])
    cdef const cnp.npy_intp *wanted = <const cnp.npy_intp *>(
        cnp.PyArray_DATA(rows))
    cdef Py_ssize_t place, row, block, tile, chunk
    cdef Py_ssize_t count = cnp.PyArray_DIM(rows, 0)
    cdef Copies copies = Copies.__new__(Copies)
    cdef list held = []
    cdef dict absent = {}
    cdef object decoded = None
    cdef Py_ssize_t last = -1
    cdef const char *start = NULL
    copies.prepare(tiles, count * tiles.num_tiles, out, fill)
    copies.held = held
    for place in range(count):
        row = wanted[place]
        if row < 0 or row >= tiles.num_rows:
            refuse_row(row, tiles)
        block = row // tiles.block_rows
        for tile in range(tiles.num_tiles):
            chunk = block * tiles.num_tiles + tile
            if chunk != last:
                used[chunk] = now
                last = chunk
                decoded = <object>PyList_GET_ITEM(slots, chunk)
                if decoded is not None:
                    held.append(decoded)
                    start = start_of(tiles, decoded)
            if decoded is None:
                absent.setdefault(chunk, []).append(place)
                continue
            copies.add(start + (row - block * tiles.block_rows)
                       * tiles.stride, place, 1, tile)
    copies.absent = [(chunk, chunk % tiles.num_tiles, places)
                     for chunk, places in absent.items()]
    return copies


cdef const char *start_of(Tiles tiles, object decoded) except NULL:
    if not cnp.PyArray_Check(decoded):
        raise TypeError(f'a decoded chunk must be an array, got {decoded!r}')
    if (cnp.PyArray_NBYTES(<cnp.ndarray>decoded) < tiles.chunk_nbytes
            or not cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray>decoded)):
        raise ValueError(f'a decoded chunk must have {tiles.chunk_nbytes} '
                         f'bytes, got {decoded.nbytes}')
    return <const char *>cnp.PyArray_DATA(<cnp.ndarray>decoded)


def chunk_rows(Tiles tiles not None, decoded, Py_ssize_t tile,
               cnp.ndarray rows not None, list places not None,
               cnp.ndarray out not None, cnp.ndarray fill not None):
    """Plan the copying of rows out of one decoded chunk.

    Parameters
    ----------
    tiles : Tiles
    decoded : numpy.ndarray or None
        The chunk's bytes; None for one that was never written.
    tile : int
        Which tile of its rows it holds.
    rows, out, fill : numpy.ndarray
        As for `MappedRows`.
    places : list of int
        Which of `rows` lie in this chunk.

    Returns
    -------
    Copies

    """
    check(tiles, rows, out)
    check_fill(tiles, fill)
    if not 0 <= tile < tiles.num_tiles:
        raise ValueError(f'tile {tile} of {tiles.num_tiles}')
    cdef const cnp.npy_intp *wanted = <const cnp.npy_intp *>(
        cnp.PyArray_DATA(rows))
    cdef Py_ssize_t count = cnp.PyArray_DIM(rows, 0)
    cdef Py_ssize_t place, row
    cdef const char *start = NULL
    cdef const char *source
    cdef Copies copies = Copies.__new__(Copies)
    copies.prepare(tiles, len(places), out, fill)
    copies.held = decoded
    if decoded is not None:
        start = start_of(tiles, decoded)
    for place in places:
        if place < 0 or place >= count:
            raise IndexError(f'place {place} of {count}')
        row = wanted[place]
        if row < 0 or row >= tiles.num_rows:
            refuse_row(row, tiles)
        source = NULL
        if start != NULL:
            source = start + (row % tiles.block_rows) * tiles.stride
        copies.add(source, place, 1, tile)
    return copies
