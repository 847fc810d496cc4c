cimport numpy as cnp


# Converts so many elements; `coming` is what will be converted soon.
ctypedef void (*Convert)(
    const char *source, char *target, Py_ssize_t size, double scale,
    double shift, const char *coming) noexcept nogil


cdef struct Conversion:
    # NULL: elements are copied as they are.
    Convert convert
    double scale, shift
    Py_ssize_t itemsize, out_itemsize


cdef class Converter:
    cdef readonly cnp.dtype source, dtype
    cdef Conversion conversion
    cdef cnp.ndarray new_batch(self, int ndim, const cnp.npy_intp *shape)


cdef const Conversion *conversion_of(Converter converter) noexcept
