"""Find the bytes of a row in the chunks that hold it.

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
    """Places of the bytes of a row in the chunks that hold it.

    `row_shape`: of a row; no axis is empty.
    `tile_shape`: of what a chunk holds of a row; same length. A contiguous
        data set is one chunk.
    `itemsize`: bytes of an element in the chunk.
    `fields`: of each element, offset and bytes of what a row has of it, in its
        order. Default: all of it.
    `num_tiles`: chunks that together hold a row.
    `row_nbytes`: bytes of a row.
    `stride`: bytes from one row of a chunk to the next.
    """

    MOST_SEGMENTS = 1 << 16
    MOST_ELEMENTS = 1 << 22

    def __cinit__(self):
        self.segments = NULL
        self.tile_starts = NULL

    def __dealloc__(self):
        free(self.segments)
        free(self.tile_starts)

    def __init__(self, tuple row_shape, tuple tile_shape,
                 Py_ssize_t itemsize, list fields=None):
        if len(row_shape) != len(tile_shape):
            raise ValueError(f'tiles of shape {tile_shape} cannot hold '
                             f'rows of shape {row_shape}')
        if 0 in row_shape or min(tile_shape, default=1) < 1 or itemsize < 1:
            raise ValueError(
                f'rows of shape {row_shape}, tiles of shape {tile_shape} '
                f'or elements of {itemsize} bytes are empty')
        out_itemsize = itemsize
        if fields is not None:
            for offset, nbytes in fields:
                if not 0 <= offset < offset + nbytes <= itemsize:
                    raise ValueError(
                        f'there are no bytes {offset} to {offset + nbytes} '
                        f'in elements of {itemsize} bytes')
            out_itemsize = sum([nbytes for _, nbytes in fields])
        # Python's integers, which do not overflow.
        row_nbytes = math.prod(row_shape) * <object>out_itemsize
        stride = math.prod(tile_shape) * <object>itemsize
        if max(row_nbytes, stride) > sys.maxsize:
            raise ValueError(
                f'no memory holds rows of shape {row_shape} or tiles of '
                f'shape {tile_shape}, of {itemsize} bytes an element')
        self.row_nbytes = row_nbytes
        self.stride = stride
        self.whole = row_shape == tile_shape and fields is None
        if self.whole:
            tiles = [[(0, 0, self.row_nbytes)]]
        else:
            tiles = self.divide(row_shape, tile_shape, itemsize, fields)
        self.keep(tiles)

    cdef list divide(self, tuple row, tuple tile, Py_ssize_t itemsize,
                     list fields):
        """Return the segments of each tile of a row."""
        if max(math.prod(row), math.prod(tile)) > self.MOST_ELEMENTS:
            raise ValueError('rows are too large to be divided')
        in_row = numpy.arange(numpy.prod(row, dtype=numpy.intp)).reshape(row)
        in_chunk = numpy.arange(
            numpy.prod(tile, dtype=numpy.intp)).reshape(tile)
        grid = tuple([-(-whole // part) for whole, part in zip(row, tile)])
        tiles, total = [], 0
        for place in numpy.ndindex(grid):
            corner = [index * part for index, part in zip(place, tile)]
            source = in_row[tuple([
                slice(start, start + part)
                for start, part in zip(corner, tile)])]
            target = in_chunk[tuple([
                slice(length) for length in source.shape])]
            if fields is None:
                segments = runs(source.ravel(), target.ravel(), itemsize)
            else:
                if source.size * len(fields) > self.MOST_SEGMENTS:
                    raise ValueError('a row falls into too many segments')
                segments = of_fields(source.ravel().tolist(),
                                     target.ravel().tolist(), itemsize,
                                     fields)
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


cdef list of_fields(list in_row, list in_chunk, Py_ssize_t itemsize,
                    list fields):
    """Return `(in_row, in_chunk, nbytes)` of the fields of each element."""
    cdef Py_ssize_t start, out_itemsize = sum([
        nbytes for _, nbytes in fields])
    segments = []
    for row, chunk in zip(in_row, in_chunk):
        start = row * out_itemsize
        for offset, nbytes in fields:
            segments.append((start, chunk * itemsize + offset, nbytes))
            start += nbytes
    return segments
