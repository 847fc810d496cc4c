"""Find the rows of a source, by a table of its parts.

A part is a range of rows of one array in one file: a data set, or what of it
is in the source. The rows of the source are those of its parts, one after the
other.
"""
cimport numpy as cnp
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from fuel.kernels.tiles cimport Tiles

import numpy

cnp.import_array()

#: A part. `rows`: how many it has; `skip`: rows of the array before them;
#: `block_rows`: rows of the array in a chunk; `first_chunk`: number of the
#: array's first chunk; `offset`: bytes of a chunk before its first row;
#: `kind`, `file`: numbers of its kind and file.
PART = numpy.dtype([(name, numpy.int64) for name in (
    'rows', 'skip', 'block_rows', 'first_chunk', 'offset', 'kind', 'file')])

#: Rows in the only chunk of an array that is not chunked.
ALL_ROWS = 1 << 52

cdef enum:
    # Columns of `PART`.
    ROWS, SKIP, BLOCK_ROWS, FIRST_CHUNK, OFFSET, KIND, FILE, COLUMNS


cdef class PartTable:
    """A table of the parts that the rows of a source lie in.

    `kinds`: for each kind of parts its `Tiles`, and a row of fill values.
    `parts`: shape (parts,), dtype `PART`.
    `num_chunks`, `num_files`: number of chunks and files.
    """

    def __cinit__(self):
        self.parts = NULL
        self._kinds = NULL
        self.buckets = NULL

    def __dealloc__(self):
        free(self.parts)
        free(self._kinds)
        free(self.buckets)

    def __init__(self, list kinds not None, parts, Py_ssize_t num_chunks,
                 Py_ssize_t num_files=1):
        self.kinds = tuple(kinds)
        self.num_chunks = num_chunks
        self.num_files = num_files
        self.fill_kinds()
        self.fill_parts(parts)
        self.fill_buckets()
        self.table.parts = self.parts
        self.table.buckets = self.buckets
        self.table.num_rows = self.num_rows

    cdef int fill_kinds(self) except -1:
        cdef Kind *kind
        cdef Tiles tiles
        cdef cnp.ndarray fill
        if not self.kinds:
            raise ValueError('there are no kinds of parts')
        free(self._kinds)
        self._kinds = <Kind *>malloc(len(self.kinds) * sizeof(Kind))
        if self._kinds == NULL:
            raise MemoryError
        self.row_nbytes = (<Tiles?>self.kinds[0][0]).row_nbytes
        for place, (one, row) in enumerate(self.kinds):
            tiles, fill = one, row
            if (not cnp.PyArray_IS_C_CONTIGUOUS(fill)
                    or cnp.PyArray_NBYTES(fill) != tiles.row_nbytes
                    or tiles.row_nbytes != self.row_nbytes):
                raise ValueError('the fill value must be one row, and rows of '
                                 'all kinds must have one size')
            kind = self._kinds + <Py_ssize_t>place
            kind.num_tiles = tiles.num_tiles
            kind.stride = tiles.stride
            kind.whole = tiles.whole
            kind.segments = tiles.segments
            kind.tile_starts = tiles.tile_starts
            kind.fill = <const char *>cnp.PyArray_DATA(fill)
        return 0

    cdef int fill_parts(self, object parts) except -1:
        """Copy the parts; refuse those that do not lie in their chunks."""
        cdef cnp.ndarray array = numpy.ascontiguousarray(parts)
        cdef Py_ssize_t place, num_rows = 0, num_blocks
        cdef const int64_t *one
        cdef Part *part
        if array.dtype != PART or array.ndim != 1 or not array.size:
            raise ValueError('parts must be a list of some `PART`')
        self.num_parts = cnp.PyArray_SIZE(array)
        free(self.parts)
        self.parts = <Part *>malloc((self.num_parts + 1) * sizeof(Part))
        if self.parts == NULL:
            raise MemoryError
        for place in range(self.num_parts):
            one = <const int64_t *>cnp.PyArray_DATA(array) + place * COLUMNS
            part = self.parts + place
            if (min(one[ROWS], one[SKIP], one[OFFSET], one[FIRST_CHUNK]) < 0
                    or one[BLOCK_ROWS] < 1
                    or max(one[ROWS], one[SKIP], one[BLOCK_ROWS],
                           one[FIRST_CHUNK], num_rows) > ALL_ROWS
                    or not 0 <= one[FILE] < self.num_files
                    or not 0 <= one[KIND] < <Py_ssize_t>len(self.kinds)):
                raise ValueError(f'part {place} cannot be: {array[place]}')
            part.first = num_rows
            part.shift = one[SKIP] - num_rows
            part.block_rows = one[BLOCK_ROWS]
            part.inverse = 1. / part.block_rows
            part.first_chunk = one[FIRST_CHUNK]
            part.offset = one[OFFSET]
            part.kind = self._kinds + one[KIND]
            part.file = one[FILE]
            num_blocks = ((one[SKIP] + one[ROWS] + part.block_rows - 1)
                          // part.block_rows)
            if one[ROWS] and (num_blocks > (self.num_chunks
                                            - part.first_chunk)
                              // part.kind.num_tiles):
                raise ValueError(
                    f'{self.num_chunks} chunks, but part {place} has '
                    f'{num_blocks} times {part.kind.num_tiles} from chunk '
                    f'{part.first_chunk} on')
            num_rows += one[ROWS]
        self.num_rows = num_rows
        self.parts[self.num_parts] = self.parts[self.num_parts - 1]
        self.parts[self.num_parts].first = num_rows
        return 0

    def chunks_of(self, rows not None):
        """Return the chunks that rows lie in, each once, in ascending order.

        `rows`: shape (rows,), dtype intp.

        Raises: IndexError if there is no such row.
        """
        cdef cnp.ndarray wanted = numpy.ascontiguousarray(rows, numpy.intp)
        cdef const Py_ssize_t *numbers = (
            <const Py_ssize_t *>cnp.PyArray_DATA(wanted))
        cdef Py_ssize_t place, tile, row, count = 0, total = 0
        cdef Py_ssize_t num_rows = cnp.PyArray_SIZE(wanted)
        # The first chunk of each block of rows, and how many it has.
        cdef cnp.ndarray found = numpy.empty((2, num_rows), numpy.intp)
        cdef Py_ssize_t *firsts = <Py_ssize_t *>cnp.PyArray_DATA(found)
        cdef Py_ssize_t *tiles = firsts + num_rows
        cdef Py_ssize_t *chunks
        cdef const Part *part = self.parts
        for place in range(num_rows):
            row = numbers[place]
            if not 0 <= row < self.num_rows:
                raise IndexError(f'there is no row {row}')
            part = part_of(&self.table, row, part)
            firsts[count] = part.first_chunk + part.kind.num_tiles * block_of(
                part, row + part.shift)
            tiles[count] = part.kind.num_tiles
            # Rows that follow each other are often in one block.
            count += not count or firsts[count] != firsts[count - 1]
        found = found[:, :count]
        found = numpy.ascontiguousarray(found[:, found[0].argsort()])
        firsts = <Py_ssize_t *>cnp.PyArray_DATA(found)
        tiles = firsts + count
        for place in range(count):
            if place and firsts[place] == firsts[place - 1]:
                tiles[place] = 0
            total += tiles[place]
        numbered = numpy.empty(total, numpy.intp)
        chunks = <Py_ssize_t *>cnp.PyArray_DATA(numbered)
        total = 0
        for place in range(count):
            for tile in range(tiles[place]):
                chunks[total] = firsts[place] + tile
                total += 1
        return numbered

    cdef int fill_buckets(self) except -1:
        cdef Py_ssize_t bucket, num_buckets, row, place = 0
        self.table.shift = 0
        # One or two of them for each part.
        while self.num_rows >> self.table.shift > 2 * self.num_parts:
            self.table.shift += 1
        num_buckets = (self.num_rows >> self.table.shift) + 2
        free(self.buckets)
        self.buckets = <int32_t *>malloc(num_buckets * sizeof(int32_t))
        if self.buckets == NULL:
            raise MemoryError
        for bucket in range(num_buckets):
            row = bucket << self.table.shift
            while (place + 1 < self.num_parts
                   and self.parts[place + 1].first <= row):
                place += 1
            self.buckets[bucket] = <int32_t>place
        return 0

    def __reduce__(self):
        raise TypeError('parts of open files cannot be pickled')
