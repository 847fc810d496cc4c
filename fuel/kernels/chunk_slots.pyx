"""Decoded chunks of a data set, where C finds them."""
cimport numpy as cnp
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

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
    """A slot for each chunk of a source: None, or an array that begins with
    its bytes.

    `nbytes`: shape (chunks,), dtype int64; of each chunk, decoded.
    `last_used`: shape (chunks,), dtype int64; when each chunk was last needed.
    `num_held`, `held_nbytes`: how many slots hold a chunk, and the bytes of
        the arrays that hold them.
    """

    def __init__(self, nbytes):
        sizes = numpy.array(nbytes, numpy.int64, ndmin=1)
        self.num_chunks = len(sizes)
        self.chunks = [None] * self.num_chunks
        self.last_used = numpy.zeros(self.num_chunks, numpy.int64)
        met = numpy.zeros(self.num_chunks, numpy.int64)
        found = numpy.empty(self.num_chunks, numpy.intp)
        self.used = <int64_t *>cnp.PyArray_DATA(self.last_used)
        self.sizes = <int64_t *>cnp.PyArray_DATA(<cnp.ndarray>sizes)
        self.met = <int64_t *>cnp.PyArray_DATA(<cnp.ndarray>met)
        self.found = <cnp.npy_intp *>cnp.PyArray_DATA(<cnp.ndarray>found)
        # Keeps the memory that the pointers refer to.
        self.arrays = sizes, met, found
        self.num_calls = 0

    def __len__(self):
        return self.num_chunks

    def __getitem__(self, Py_ssize_t chunk):
        return self.chunks[self.checked(chunk)]

    def __setitem__(self, Py_ssize_t chunk, decoded):
        if decoded is not None:
            self.check(chunk, decoded)
        before = self.chunks[self.checked(chunk)]
        self.chunks[chunk] = decoded
        for one, sign in (decoded, 1), (before, -1):
            if one is not None:
                self.num_held += sign
                self.held_nbytes += sign * one.nbytes

    def held(self):
        """Return the numbers of the chunks in slots: shape (num_held,), dtype
        intp."""
        cdef Py_ssize_t chunk, count = 0
        result = numpy.empty(self.num_chunks, numpy.intp)
        cdef cnp.npy_intp *numbers = <cnp.npy_intp *>cnp.PyArray_DATA(
            <cnp.ndarray>result)
        for chunk in range(self.num_chunks):
            if PyList_GET_ITEM(self.chunks, chunk) != <PyObject *>None:
                numbers[count] = chunk
                count += 1
        return result[:count].copy()

    def checked(self, Py_ssize_t chunk):
        """Return a number if it is that of a chunk."""
        if not 0 <= chunk < self.num_chunks:
            raise IndexError(f'chunk {chunk} of {self.num_chunks}')
        return chunk

    def check(self, Py_ssize_t chunk, decoded):
        """Refuse what a kernel could read outside of."""
        if not isinstance(decoded, numpy.ndarray):
            raise TypeError(
                f'a decoded chunk must be an array, got {decoded!r}')
        if (decoded.nbytes < self.sizes[self.checked(chunk)]
                or not cnp.PyArray_IS_C_CONTIGUOUS(<cnp.ndarray>decoded)):
            raise ValueError(
                f'decoded chunk {chunk} must have {self.sizes[chunk]} bytes, '
                f'got {decoded.nbytes}')

    def nbytes(self, Py_ssize_t chunk):
        """Return the bytes of a decoded chunk (int)."""
        return self.sizes[self.checked(chunk)]

    cdef object get(self, Py_ssize_t chunk):
        """Return what is in a slot whose number is known to be right."""
        return <object>PyList_GET_ITEM(self.chunks, chunk)

    def __reduce__(self):
        raise TypeError('chunks belong to an open file and cannot be '
                        'pickled')
