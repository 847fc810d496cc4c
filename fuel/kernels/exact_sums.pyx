"""Sums of numbers and of their squares, in integers, so that none is rounded.

A number is an integer times a power of two. It is added to a long integer of
its column, which is kept in limbs of 32 bits: limb 0 of all limbs counts
``2 ** -1088``, so that every floating number of 64 bits has a place. The
limbs are of 64 bits, so that a few hundred million numbers can be added
before a carry has to be passed on.
"""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

# The limb of the number 1.
cdef enum:
    UNIT = 34

ctypedef fused number:
    double
    int64_t
    uint64_t


cdef inline Py_ssize_t split(
        number value, uint64_t *digits, bint *is_negative) noexcept nogil:
    """Split a number into three digits of 32 bits.

    Returns the limb of the lowest, or -1 for zero, which has none.
    """
    cdef uint64_t bits, mantissa
    cdef int64_t exponent
    cdef int shift = 0
    cdef Py_ssize_t limb = UNIT
    if number is double:
        memcpy(&bits, &value, 8)
        is_negative[0] = bits >> 63
        mantissa = bits & <uint64_t>0xfffffffffffff
        exponent = <int64_t>(bits >> 52 & 0x7ff)
        if exponent:
            mantissa |= <uint64_t>1 << 52
            exponent -= 1
        # The mantissa counts 2 ** (exponent - 1074).
        exponent += 32 * UNIT - 1074
        limb = exponent >> 5
        shift = <int>(exponent & 31)
    elif number is int64_t:
        is_negative[0] = value < 0
        mantissa = -<uint64_t>value if value < 0 else <uint64_t>value
    else:
        is_negative[0] = False
        mantissa = value
    if mantissa == 0:
        return -1
    digits[0] = mantissa << shift & <uint64_t>0xffffffff
    digits[1] = mantissa >> (32 - shift) & <uint64_t>0xffffffff
    digits[2] = mantissa >> 32 >> (32 - shift)
    return limb


def limbs_of(const number[:, :] rows):
    """Return the lowest and the highest limb of numbers, all finite.

    Returns
    -------
    tuple of int
        (-1, -1) if all are zero.
    """
    cdef Py_ssize_t row, column, limb, low = -1, high = -1
    cdef uint64_t digits[3]
    cdef bint is_negative
    with nogil:
        for row in range(rows.shape[0]):
            for column in range(rows.shape[1]):
                limb = split(rows[row, column], digits, &is_negative)
                if limb < 0:
                    continue
                if low < 0 or limb < low:
                    low = limb
                # A number has three digits.
                if limb + 2 > high:
                    high = limb + 2
    return low, high


def add_exactly(const number[:, :] rows, Py_ssize_t first,
                int64_t[:, ::1] sums, int64_t[:, ::1] squares):
    """Add numbers to the sums of their columns, and their squares to others.

    Parameters
    ----------
    rows : numpy.ndarray, shape (rows, columns)
        Doubles, or integers of 64 bits.
    first : int
        Which limb is the first of `sums`. Of `squares` it is that twice.
    sums : numpy.ndarray, shape (columns, limbs), dtype int64
    squares : numpy.ndarray, shape (columns, 2 * limbs), dtype int64

    Raises
    ------
    ValueError
        If a number has no place in the limbs; rows may have been added then.
    """
    cdef Py_ssize_t row, column, limb, count = sums.shape[1]
    cdef uint64_t digits[3]
    cdef int64_t sign
    cdef bint is_negative = False, fits = True
    cdef int64_t *total
    if (sums.shape[0] != rows.shape[1] or squares.shape[0] != rows.shape[1]
            or squares.shape[1] != 2 * count):
        raise ValueError('the sums must have a row for each column, and '
                         'the squares twice as many limbs')
    with nogil:
        for row in range(rows.shape[0]):
            for column in range(rows.shape[1]):
                limb = split(rows[row, column], digits, &is_negative)
                if limb < 0:
                    continue
                limb -= first
                if limb < 0 or limb + 3 > count:
                    fits = False
                    break
                total = &sums[column, limb]
                # All bits or none: a jump for each sign would take longer.
                sign = -<int64_t>is_negative
                total[0] += (<int64_t>digits[0] ^ sign) - sign
                total[1] += (<int64_t>digits[1] ^ sign) - sign
                total[2] += (<int64_t>digits[2] ^ sign) - sign
                add_square(&squares[column, 2 * limb], digits)
            if not fits:
                break
    if not fits:
        raise ValueError('a number has no place in the limbs of the sums')


cdef inline void add_square(
        int64_t *total, const uint64_t *digits) noexcept nogil:
    """Add the square of a number of three digits to six limbs."""
    cdef uint64_t low = 0xffffffff, product
    product = digits[0] * digits[0]
    total[0] += <int64_t>(product & low)
    total[1] += <int64_t>(product >> 32)
    product = digits[0] * digits[1]
    total[1] += <int64_t>((product & low) << 1)
    total[2] += <int64_t>(product >> 32 << 1)
    product = digits[1] * digits[1]
    total[2] += <int64_t>(product & low)
    total[3] += <int64_t>(product >> 32)
    product = digits[0] * digits[2]
    total[2] += <int64_t>((product & low) << 1)
    total[3] += <int64_t>(product >> 32 << 1)
    product = digits[1] * digits[2]
    total[3] += <int64_t>((product & low) << 1)
    total[4] += <int64_t>(product >> 32 << 1)
    product = digits[2] * digits[2]
    total[4] += <int64_t>(product & low)
    total[5] += <int64_t>(product >> 32)
