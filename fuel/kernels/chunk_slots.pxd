cimport numpy as cnp
from libc.stdint cimport int64_t


cdef class Clock:
    cdef readonly int64_t time


cdef class Slots:
    cdef readonly Py_ssize_t num_chunks, chunk_nbytes, num_held
    cdef readonly cnp.ndarray last_used
    cdef int64_t *used
    cdef list chunks
    # In which call of `expect` each chunk was met last, how many calls
    # there were, and what the present one met.
    cdef cnp.ndarray met, found
    cdef int64_t num_calls
    cdef object get(self, Py_ssize_t chunk)
