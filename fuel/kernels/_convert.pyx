"""Numbers of one type made into numbers of another, in one pass."""
from cython cimport floating

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

cdef extern from '<fenv.h>' nogil:
    const int FE_INVALID
    const int FE_OVERFLOW
    int feclearexcept(int exceptions)
    int fetestexcept(int exceptions)

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


def scale_and_shift(const number[::1] source, floating[::1] target,
                    double scale, double shift):
    """Write ``source * scale + shift``, computed in doubles, to `target`.

    The caller sees to it that both have the same length.  Returns whether
    all went well: False if something overflowed or was not a number any
    more, which needs a closer look.
    """
    cdef Py_ssize_t place
    cdef int trouble
    with nogil:
        feclearexcept(FE_OVERFLOW | FE_INVALID)
        for place in range(source.shape[0]):
            target[place] = <floating>(<double>source[place] * scale + shift)
        trouble = fetestexcept(FE_OVERFLOW | FE_INVALID)
    return trouble == 0
