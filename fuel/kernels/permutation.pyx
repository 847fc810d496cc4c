"""A pseudorandom permutation that is computed, not stored.

The numbers below `size` are pairs ``(left, right)`` with ``left < width`` and
``right < height``, where ``width * height`` is at least `size` and hardly
more.  Each round of a Feistel network adds a keyed hash of one half to the
other, which can be undone and so is a bijection of the pairs.  A result that
is not below `size` goes through the network again until it is (cycle
walking): the restriction of a bijection is one.
"""
cimport numpy as cnp
from libc.stdint cimport int64_t, uint64_t

import math

import numpy

cnp.import_array()

cdef extern from *:
    """
    #include <stdint.h>
    #if defined(_MSC_VER)
    #include <intrin.h>
    #define fuel_high(a, b) __umulh((a), (b))
    #else
    #define fuel_high(a, b) \\
        ((uint64_t) (((unsigned __int128) (a) * (b)) >> 64))
    #endif
    static inline uint64_t fuel_mix(uint64_t x) {
        x ^= x >> 32;
        x *= UINT64_C(0xd6e8feb86659fd93);
        x ^= x >> 32;
        x *= UINT64_C(0xd6e8feb86659fd93);
        x ^= x >> 32;
        return x;
    }
    """
    uint64_t fuel_high(uint64_t a, uint64_t b) nogil
    uint64_t fuel_mix(uint64_t x) nogil

# Four rounds pass a chi-square test of places, of neighbours and of the
# distance moved (tests/kernels/test_permutation.py); twice as many cost
# little beside a read of the data.
ROUNDS = 8
DEF _ROUNDS = 8

MOST = 2 ** 62


cdef struct Network:
    uint64_t size
    uint64_t width
    uint64_t height
    uint64_t keys[_ROUNDS]


cdef inline uint64_t once(Network* network, uint64_t number) noexcept nogil:
    cdef uint64_t left = number % network.width
    cdef uint64_t right = number // network.width
    cdef int step
    for step in range(0, _ROUNDS, 2):
        left += fuel_high(fuel_mix(right + network.keys[step]), network.width)
        if left >= network.width:
            left -= network.width
        right += fuel_high(
            fuel_mix(left + network.keys[step + 1]), network.height)
        if right >= network.height:
            right -= network.height
    return right * network.width + left


cdef inline uint64_t back(Network* network, uint64_t number) noexcept nogil:
    """Return the number whose image under `once` is given."""
    cdef uint64_t left = number % network.width
    cdef uint64_t right = number // network.width
    cdef uint64_t added
    cdef int step
    for step in range(_ROUNDS - 2, -1, -2):
        added = fuel_high(
            fuel_mix(left + network.keys[step + 1]), network.height)
        right = right - added if right >= added else (
            right + network.height - added)
        added = fuel_high(fuel_mix(right + network.keys[step]), network.width)
        left = left - added if left >= added else (
            left + network.width - added)
    return right * network.width + left


cdef void fill(Network* network, int64_t* numbers, Py_ssize_t count,
               bint backwards) noexcept nogil:
    cdef Py_ssize_t place
    cdef uint64_t number
    for place in range(count):
        number = <uint64_t> numbers[place]
        if backwards:
            number = back(network, number)
            while number >= network.size:
                number = back(network, number)
        else:
            number = once(network, number)
            while number >= network.size:
                number = once(network, number)
        numbers[place] = <int64_t> number


def permute(cnp.ndarray numbers not None, size, keys):
    """Replace each number below `size` by its image, in place.

    `numbers`: of type int64, one-dimensional and contiguous; each at least 0
        and below `size`.
    `keys`: ``ROUNDS`` numbers below 2 ** 64: another permutation for each.
    """
    replace(numbers, size, keys, False)


def unpermute(cnp.ndarray numbers not None, size, keys):
    """Replace each number below `size` by the number whose image it is, in
    place.

    The arguments are those of `permute`.
    """
    replace(numbers, size, keys, True)


cdef object replace(cnp.ndarray numbers, size, keys, bint backwards):
    cdef Network network
    cdef int step
    if (numbers.dtype != numpy.int64 or numbers.ndim != 1
            or not numbers.flags.c_contiguous or not numbers.flags.writeable):
        raise TypeError('numbers must be a contiguous array of int64')
    if not 1 <= size <= MOST:
        raise ValueError(f'size must be from 1 to 2 ** 62, got {size}')
    if len(keys) != ROUNDS:
        raise ValueError(f'expected {ROUNDS} keys, got {len(keys)}')
    if numbers.size and not (
            0 <= int(numbers.min()) and int(numbers.max()) < size):
        raise ValueError(f'numbers must be at least 0 and below {size}')
    network.size = size
    # Even, so that odd permutations are among those that can come out.
    network.width = max(2, (math.isqrt(size - 1) + 2) // 2 * 2)
    network.height = -(-size // network.width)
    for step in range(_ROUNDS):
        network.keys[step] = keys[step]
    cdef int64_t* data = <int64_t*> cnp.PyArray_DATA(numbers)
    cdef Py_ssize_t count = cnp.PyArray_SIZE(numbers)
    with nogil:
        fill(&network, data, count, backwards)
