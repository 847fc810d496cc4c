cdef struct Span:
    # Of a map: from `low` to before `high`.
    const char *low
    const char *high


cdef bint guarded(void (*work)(void *) noexcept nogil, void *job,
                  const Span *spans, Py_ssize_t count) noexcept nogil
