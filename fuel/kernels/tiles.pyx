"""Where the bytes of a row lie in the chunks that hold it.

A row of an HDF5 data set lies in one chunk, or, where chunks divide the
trailing axes too, in one *tile* of several chunks.
"""
cimport numpy as cnp
from libc.stdlib cimport free, malloc

import math
import sys

import numpy

cnp.import_array()


cdef class Tiles:
    """Where the bytes of a row lie in the chunks that hold it.

    `shape`: of the data set; at least one axis, none of the others empty.
    `chunk_shape`: same length.  A contiguous data set is one chunk.
    `itemsize`: bytes of an element.
    `num_rows`, `block_rows`: rows of the data set, and of one chunk.
    `num_tiles`: chunks that together hold a row.
    `row_nbytes`, `chunk_nbytes`: decoded sizes in bytes.
    """

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
        # Python's integers, which do not overflow.
        row_nbytes = math.prod(shape[1:]) * <object>itemsize
        chunk_nbytes = math.prod(chunk_shape) * <object>itemsize
        if max(shape[0], row_nbytes, chunk_nbytes) > sys.maxsize:
            raise ValueError(
                f'no memory holds rows of shape {shape[1:]} or chunks of '
                f'shape {chunk_shape}, of {itemsize} bytes an element')
        self.num_rows = shape[0]
        self.block_rows = chunk_shape[0]
        self.row_nbytes = row_nbytes
        self.chunk_nbytes = chunk_nbytes
        self.stride = self.chunk_nbytes // self.block_rows
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
