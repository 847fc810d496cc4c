cimport numpy as cnp
from libc.stdint cimport int64_t, uint32_t

from fuel.kernels.converter cimport Converter


cdef class RequestPosition:
    cdef public Py_ssize_t position, step, offset, limit


cdef class CompiledReader:
    cdef readonly RequestPosition requests
    cdef readonly object fallback

    cdef object take(self)


cdef class Order:
    cdef object indices
    cdef Py_ssize_t size, first, step
    cdef const uint32_t[::1] short_indices
    cdef const int64_t[::1] long_indices
    cdef Py_ssize_t at(self, Py_ssize_t place)
    cdef cnp.ndarray batch(self, Py_ssize_t position, Py_ssize_t batch_size)


cdef class IndexReader(CompiledReader):
    cdef public object converted
    cdef object wanted
    cdef list converters
    cdef Order order
    # Number of examples of a request; 0 for a single one.
    cdef Py_ssize_t batch_size
    cdef cnp.ndarray batch(self, Py_ssize_t position)
    cdef Converter converter(self, Py_ssize_t place)
    cdef object finish(self, data)
