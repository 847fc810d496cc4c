"""Numbers of one type made into numbers of another, in one pass."""
cimport numpy as cnp
from cython cimport floating

from libc.math cimport isinf
from libc.stdint cimport (
    int8_t,
    int16_t,
    int32_t,
    int64_t,
    uint8_t,
    uint16_t,
    uint32_t,
    uint64_t,
)

from fuel.kernels.convert_row cimport fuel_scale_uint8_float

cdef extern from '<fenv.h>':
    const int FE_INVALID
    const int FE_OVERFLOW
    int feclearexcept(int exceptions) nogil
    int fetestexcept(int exceptions) nogil

ctypedef fused number:
    int8_t
    int16_t
    int32_t
    int64_t
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double


cdef void convert(const number *source, floating *target, Py_ssize_t size,
                  double scale, double shift) noexcept nogil:
    cdef Py_ssize_t place
    if number is uint8_t and floating is float:
        # Pixels to floats are what this is used for most.
        fuel_scale_uint8_float(<const char *>source, <char *>target, size,
                               scale, shift, <const char *>source)
    else:
        for place in range(size):
            target[place] = <floating>(<double>source[place] * scale + shift)


cdef bint convert_kind(char kind, int width, const void *source,
                       floating *target, Py_ssize_t size, double scale,
                       double shift) noexcept nogil:
    """Convert numbers of a kind and width; return whether there are such."""
    if kind == b'u' or kind == b'b':
        if width == 1:
            convert(<const uint8_t *>source, target, size, scale, shift)
        elif width == 2:
            convert(<const uint16_t *>source, target, size, scale, shift)
        elif width == 4:
            convert(<const uint32_t *>source, target, size, scale, shift)
        else:
            convert(<const uint64_t *>source, target, size, scale, shift)
    elif kind == b'i':
        if width == 1:
            convert(<const int8_t *>source, target, size, scale, shift)
        elif width == 2:
            convert(<const int16_t *>source, target, size, scale, shift)
        elif width == 4:
            convert(<const int32_t *>source, target, size, scale, shift)
        else:
            convert(<const int64_t *>source, target, size, scale, shift)
    elif kind == b'f' and width == 4:
        convert(<const float *>source, target, size, scale, shift)
    elif kind == b'f' and width == 8:
        convert(<const double *>source, target, size, scale, shift)
    else:
        return False
    return True


cdef void convert_singles(const float *source, float *target, Py_ssize_t size,
                          float scale, float shift) noexcept nogil:
    cdef Py_ssize_t place
    for place in range(size):
        target[place] = source[place] * scale + shift


def scale_singles(cnp.ndarray source not None, cnp.ndarray target not None,
                  double scale, double shift):
    """Write ``source * scale + shift``, computed in singles, to `target`.

    `source` and `target` are of float32, and have one shape. Returns whether
    all went well: False if the arrays are not both in C order and native byte
    order, or if something overflowed or was not a number any more, which
    needs a closer look.
    """
    cdef int trouble
    cdef Py_ssize_t size = cnp.PyArray_SIZE(source)
    if not (cnp.PyArray_TYPE(source) == cnp.NPY_FLOAT
            and cnp.PyArray_TYPE(target) == cnp.NPY_FLOAT
            and cnp.PyArray_ISCARRAY_RO(source)
            and cnp.PyArray_ISCARRAY(target)
            and cnp.PyArray_SIZE(target) == size):
        return False
    if (isinf(<float>scale) and not isinf(scale)) or (
            isinf(<float>shift) and not isinf(shift)):
        return False
    with nogil:
        feclearexcept(FE_OVERFLOW | FE_INVALID)
        convert_singles(
            <const float *>cnp.PyArray_DATA(source),
            <float *>cnp.PyArray_DATA(target), size, <float>scale,
            <float>shift)
        trouble = fetestexcept(FE_OVERFLOW | FE_INVALID)
    return trouble == 0


def scale_and_shift(cnp.ndarray source not None, cnp.ndarray target not None,
                    double scale, double shift):
    """Write ``source * scale + shift``, computed in doubles, to `target`.

    Returns whether all went well: False if the arrays are not both in C
    order and native byte order, if there is no loop for their types, or if
    something overflowed or was not a number any more, which needs a closer
    look.
    """
    cdef int trouble, number = cnp.PyArray_TYPE(target)
    cdef int width = <int>cnp.PyArray_ITEMSIZE(source)
    cdef char kind = (<cnp.dtype>cnp.PyArray_DESCR(source)).kind
    cdef Py_ssize_t size = cnp.PyArray_SIZE(source)
    cdef bint is_known
    if not (cnp.PyArray_ISCARRAY_RO(source) and cnp.PyArray_ISCARRAY(target)
            and cnp.PyArray_SIZE(target) == size):
        return False
    if number != cnp.NPY_FLOAT and number != cnp.NPY_DOUBLE:
        return False
    with nogil:
        feclearexcept(FE_OVERFLOW | FE_INVALID)
        if number == cnp.NPY_FLOAT:
            is_known = convert_kind(
                kind, width, cnp.PyArray_DATA(source),
                <float *>cnp.PyArray_DATA(target), size, scale, shift)
        else:
            is_known = convert_kind(
                kind, width, cnp.PyArray_DATA(source),
                <double *>cnp.PyArray_DATA(target), size, scale, shift)
        trouble = fetestexcept(FE_OVERFLOW | FE_INVALID)
    return is_known and trouble == 0
