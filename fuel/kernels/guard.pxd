from libc.stdint cimport int64_t


cdef bint guarded(void (*work)(void *) noexcept nogil, void *job,
                  const char *low, const char *high) noexcept nogil
cdef bint is_unchanged(int descriptor, int64_t size,
                       int64_t changed) noexcept nogil
