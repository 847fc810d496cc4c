from libc.stdint cimport int64_t


cdef struct State:
    int descriptor
    int64_t size, changed
    # The watch that reports the file's events, -1 if there is none; the number
    # of events when it was found unchanged, and the time of that.
    int watch
    int64_t num_events, found


cdef class FileStates:
    cdef readonly Py_ssize_t num_files
    cdef int64_t process
    cdef State *states
    cdef int watch(self) noexcept
    cdef int unwatch(self) noexcept
    cdef bint are_current(self, const unsigned char *used) noexcept
