"""Decoded chunks of a data set, where C finds them."""
cimport numpy as cnp
from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int64_t

from fuel.kernels.tiles cimport Tiles

import numpy

cnp.import_array()


cdef class Clock:
    """Time, counted in requests."""

    def __cinit__(self):
        self.time = 0

    def tick(self):
        """Return the time, which is later at each call (int)."""
        self.time += 1
        return self.time


cdef class Slots:
    """A slot for each chunk of a data set: its bytes, or None.

    `chunk_nbytes`: of a decoded chunk.
    `last_used`: shape (num_chunks,), dtype int64; when each chunk was last
        needed.
    `num_held`: how many slots hold a chunk.
    """

    def __init__(self, Py_ssize_t num_chunks, Py_ssize_t chunk_nbytes):
        self.num_chunks = num_chunks
        self.chunk_nbytes = chunk_nbytes
        self.chunks = [None] * num_chunks
        self.last_used = numpy.zeros(num_chunks, numpy.int64)
        self.used = <int64_t *>cnp.PyArray_DATA(self.last_used)
        self.met = numpy.zeros(num_chunks, numpy.int64)
        self.found = numpy.empty(num_chunks, numpy.intp)
        self.num_calls = 0

    def __len__(self):
        return self.num_chunks

    def __getitem__(self, Py_ssize_t chunk):
        return self.chunks[self.checked(chunk)]

    def __setitem__(self, Py_ssize_t chunk, decoded):
        if decoded is not None:
            self.check(decoded)
        before = self.chunks[self.checked(chunk)]
        self.chunks[chunk] = decoded
        self.num_held += (decoded is not None) - (before is not None)

    def checked(self, Py_ssize_t chunk):
        """Return a number if it is that of a chunk."""
        if not 0 <= chunk < self.num_chunks:
            raise IndexError(f'chunk {chunk} of {self.num_chunks}')
        return chunk

    def check(self, decoded):
        """Refuse what a kernel could read outside of."""
        if not isinstance(decoded, numpy.ndarray):
            raise TypeError(
                f'a decoded chunk must be an array, got {decoded!r}')
        if (decoded.nbytes != self.chunk_nbytes
                or not cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray>decoded)):
            raise ValueError(f'a decoded chunk must have {self.chunk_nbytes} '
                             f'bytes, got {decoded.nbytes}')

    def expect(self, Tiles tiles not None, cnp.ndarray rows not None,
               const int64_t[::1] addresses, Py_ssize_t most, int64_t soon):
        """Note that some rows will soon be needed.

        `addresses`: shape (num_chunks,); where each chunk is in the file;
            negative for one that is not.
        Returns: in how many chunks the rows lie.
        Returns: those that are not in their slots.
        """
        cdef const cnp.npy_intp *wanted = <const cnp.npy_intp *>(
            cnp.PyArray_DATA(rows))
        cdef int64_t *met = <int64_t *>cnp.PyArray_DATA(self.met)
        cdef cnp.npy_intp *found = <cnp.npy_intp *>cnp.PyArray_DATA(
            self.found)
        cdef Py_ssize_t place, block, chunk, tile, count = 0
        cdef Py_ssize_t num_blocks = self.num_chunks // tiles.num_tiles
        if (cnp.PyArray_TYPE(rows) != cnp.NPY_INTP
                or not cnp.PyArray_IS_C_CONTIGUOUS(rows)
                or addresses.shape[0] < self.num_chunks):
            raise ValueError('rows must be a contiguous array of intp, and '
                             'each chunk needs an address')
        self.num_calls += 1
        for place in range(cnp.PyArray_SIZE(rows)):
            block = wanted[place] // tiles.block_rows
            if wanted[place] < 0 or block >= num_blocks:
                raise IndexError(f'row {wanted[place]} is in no chunk')
            chunk = block * tiles.num_tiles
            for tile in range(chunk, chunk + tiles.num_tiles):
                if met[tile] != self.num_calls and addresses[tile] >= 0:
                    met[tile] = self.num_calls
                    found[count] = tile
                    count += 1
        absent = []
        if count <= most:
            for place in range(count):
                self.used[found[place]] = soon
                if self.get(found[place]) is None:
                    absent.append(found[place])
        return count, absent

    cdef object get(self, Py_ssize_t chunk):
        """Return what is in a slot whose number is known to be right."""
        return <object>PyList_GET_ITEM(self.chunks, chunk)

    def __reduce__(self):
        raise TypeError('chunks belong to an open file and cannot be '
                        'pickled')
