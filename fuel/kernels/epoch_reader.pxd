cdef class RequestPosition:
    cdef public Py_ssize_t position


cdef class CompiledReader:
    cdef readonly RequestPosition requests
    cdef readonly object fallback

    cdef object take(self)
