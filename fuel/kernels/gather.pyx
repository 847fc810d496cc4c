"""Rows out of a mapped file or out of decoded chunks, however they lie.

A request becomes `Copies`, a list of pieces of memory to copy, which then
runs without the GIL, whole or in parts on several threads.
"""
cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fuel.kernels.copy_row cimport AHEAD, fuel_copy_row
from fuel.kernels.guard cimport guarded
from fuel.kernels.chunk_slots cimport Slots
from fuel.kernels.tiles cimport Segment, Tiles

cnp.import_array()

cdef enum:
    # A piece is cut here, so that several threads can share one slice.
    LONGEST = 1 << 20

# What a table of addresses holds for a chunk that is not in the file, and
# for one that cannot be where the file says it is.
MISSING = -1
OUTSIDE = -2


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
    cdef const char *coming
    cdef Py_ssize_t place
    for place in range(job.count):
        piece = job.pieces + place
        if not job.whole or piece.source == NULL:
            copy_segments(job, piece)
        elif piece.rows == 1:
            coming = job.pieces[min(place + AHEAD, job.count - 1)].source
            fuel_copy_row(job.out + piece.first * job.row_nbytes,
                          piece.source, job.row_nbytes,
                          coming if coming != NULL else piece.source)
        else:
            memcpy(job.out + piece.first * job.row_nbytes, piece.source,
                   piece.rows * job.row_nbytes)


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

    Made by `MappedRows.plan`, `cached_rows` and `chunk_rows`.

    Attributes
    ----------
    count : int
        How many pieces.
    absent : list of tuple
        ``(chunk, tile, positions)`` left out, since the chunk was not there:
        `positions` are the places in the batch.

    """

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
        cdef bint intact
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
            intact = guarded(copy_pieces, &job, self.low, self.high)
        return intact


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


cdef int check_slots(Tiles tiles, Slots slots) except -1:
    check_table(tiles, slots.num_chunks)
    if slots.chunk_nbytes < tiles.chunk_nbytes:
        raise ValueError(f'chunks of {tiles.chunk_nbytes} bytes, but slots '
                         f'of {slots.chunk_nbytes}')
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


def cached_rows(Tiles tiles not None, Slots slots not None, int64_t now,
                cnp.ndarray rows not None, cnp.ndarray out not None,
                cnp.ndarray fill not None):
    """Plan the copying of rows out of the chunks that are remembered.

    Parameters
    ----------
    tiles : Tiles
    slots : Slots
        What is remembered.
    now : int
        The time, by the cache's own count: for each chunk that is needed
        the one when it was last used.
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
    check_slots(tiles, slots)
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
                slots.used[chunk] = now
                last = chunk
                decoded = slots.get(chunk)
                if decoded is not None:
                    held.append(decoded)
                    start = <const char *>cnp.PyArray_DATA(decoded)
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
