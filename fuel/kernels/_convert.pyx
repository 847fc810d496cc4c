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

cdef extern from *:
    """
    #include <fenv.h>
    #include <stddef.h>
    #include <stdint.h>

    /* Pixels to floats are what this is used for most. With the widest
       registers they take half the time, so there the compiler makes a
       version for each processor, one of which is chosen when this is
       loaded. All of them round in the same way. */
    #if defined(__x86_64__) && defined(__GLIBC__) \\
        && __GNUC__ >= 12 && !defined(__clang__)
    #define FUEL_FOR_EACH_PROCESSOR \\
        __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
    #else
    #define FUEL_FOR_EACH_PROCESSOR
    #endif

    FUEL_FOR_EACH_PROCESSOR
    static void fuel_convert_pixels(const uint8_t *source, float *target,
                                    ptrdiff_t size, double scale,
                                    double shift)
    {
        for (ptrdiff_t place = 0; place < size; place++)
            target[place] = (float)((double)source[place] * scale + shift);
    }
    """
    const int FE_INVALID
    const int FE_OVERFLOW
    int feclearexcept(int exceptions) nogil
    int fetestexcept(int exceptions) nogil
    void fuel_convert_pixels(const uint8_t *source, float *target,
                             Py_ssize_t size, double scale,
                             double shift) nogil

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


cdef void convert(const number[::1] source, floating[::1] target,
                  double scale, double shift) noexcept nogil:
    cdef Py_ssize_t place, size = source.shape[0]
    if number is uint8_t and floating is float:
        if size:
            fuel_convert_pixels(&source[0], &target[0], size, scale, shift)
    else:
        for place in range(size):
            target[place] = <floating>(<double>source[place] * scale + shift)


def scale_and_shift(const number[::1] source, floating[::1] target,
                    double scale, double shift):
    """Write ``source * scale + shift``, computed in doubles, to `target`.

    The caller sees to it that both have the same length.  Returns whether
    all went well: False if something overflowed or was not a number any
    more, which needs a closer look.
    """
    cdef int trouble
    with nogil:
        feclearexcept(FE_OVERFLOW | FE_INVALID)
        convert(source, target, scale, shift)
        trouble = fetestexcept(FE_OVERFLOW | FE_INVALID)
    return trouble == 0
