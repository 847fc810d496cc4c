from libc.stdint cimport int64_t


cdef struct Span:
    # Of a map: from `low` to before `high`.
    const char *low
    const char *high


cdef struct State:
    int descriptor
    int64_t size, changed


cdef bint guarded(void (*work)(void *) noexcept nogil, void *job,
                  const Span *spans, Py_ssize_t count) noexcept nogil


cdef class FileStates:
    cdef readonly Py_ssize_t num_files
    cdef State *states
    cdef bint are_current(self, const unsigned char *used) noexcept nogil
