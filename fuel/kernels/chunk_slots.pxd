cimport numpy as cnp
from libc.stdint cimport int64_t


cdef class Clock:
    cdef readonly int64_t time


cdef class Slots:
    cdef readonly Py_ssize_t num_chunks, num_held, held_nbytes
    cdef readonly cnp.ndarray last_used
    cdef int64_t *used
    # Of each chunk, decoded.
    cdef int64_t *sizes
    cdef list chunks
    # In which call each chunk was met last, how many calls there were, and
    # what the present one met.
    cdef int64_t *met
    cdef cnp.npy_intp *found
    cdef int64_t num_calls
    cdef tuple arrays
    cdef object get(self, Py_ssize_t chunk)


cdef inline bint meet(Slots slots, Py_ssize_t chunk) noexcept:
    """Return whether the present call has not met a chunk before."""
    if slots.met[chunk] == slots.num_calls:
        return False
    slots.met[chunk] = slots.num_calls
    return True
