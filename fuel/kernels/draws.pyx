"""What ``RandomState`` draws, in less time.

NumPy promises that ``RandomState`` never changes what it draws.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport uint32_t

cimport numpy as cnp
from numpy.random cimport bitgen_t

from fuel.kernels.copy_row cimport fuel_prefetch

cnp.import_array()

cdef enum:
    # So many places are drawn before their elements are swapped.
    DRAWN = 64


cdef inline uint32_t mask_of(uint32_t most) noexcept nogil:
    """Return the smallest number of ones that covers a number."""
    most |= most >> 1
    most |= most >> 2
    most |= most >> 4
    most |= most >> 8
    return most | most >> 16


cdef inline uint32_t draw(bitgen_t *bits, uint32_t mask,
                          uint32_t most) noexcept nogil:
    """Draw from 0 to `most`; what lies above it is drawn again."""
    cdef uint32_t value = bits.next_uint32(bits.state) & mask
    while value > most:
        value = bits.next_uint32(bits.state) & mask
    return value


cdef bitgen_t *bits_of(bit_generator) except NULL:
    return <bitgen_t *>PyCapsule_GetPointer(
        bit_generator.capsule, 'BitGenerator')


def draw_integers(bit_generator, uint32_t most, Py_ssize_t count):
    """Draw integers from 0 to `most`, both included.

    Parameters
    ----------
    bit_generator : numpy.random.BitGenerator
        That of a ``RandomState``.
    most : int
        Below 2 ** 32 - 1.
    count : int

    Returns
    -------
    numpy.ndarray, shape (count,), dtype intp
        What ``RandomState.randint(0, most + 1, count)`` returns; the
        generator is afterwards where it would be then.

    Examples
    --------
    >>> import numpy
    >>> rng = numpy.random.RandomState(1)
    >>> draw_integers(rng._bit_generator, 4, 3)
    array([3, 4, 0])

    """
    # For small counts, ``randint`` mostly looks at its arguments.
    cdef bitgen_t *bits = bits_of(bit_generator)
    cdef cnp.npy_intp shape = count
    cdef cnp.ndarray out = cnp.PyArray_ZEROS(1, &shape, cnp.NPY_INTP, 0)
    cdef cnp.npy_intp *target = <cnp.npy_intp *>cnp.PyArray_DATA(out)
    cdef uint32_t mask = mask_of(most)
    cdef Py_ssize_t place
    if not most:
        return out
    with bit_generator.lock:
        for place in range(count):
            target[place] = draw(bits, mask, most)
    return out


def draw_order(bit_generator, uint32_t size):
    """Draw an order of the numbers below `size`.

    Parameters
    ----------
    bit_generator : numpy.random.BitGenerator
        That of a ``RandomState``.
    size : int
        Below 2 ** 32.

    Returns
    -------
    numpy.ndarray, shape (size,), dtype uint32
        What ``RandomState.shuffle`` makes of ``range(size)``; the generator
        is afterwards where it would be then.

    Examples
    --------
    >>> import numpy
    >>> rng = numpy.random.RandomState(1)
    >>> draw_order(rng._bit_generator, 5)
    array([2, 1, 4, 0, 3], dtype=uint32)

    """
    cdef bitgen_t *bits = bits_of(bit_generator)
    cdef cnp.npy_intp shape = size
    cdef cnp.ndarray out = cnp.PyArray_EMPTY(1, &shape, cnp.NPY_UINT32, 0)
    cdef uint32_t *order = <uint32_t *>cnp.PyArray_DATA(out)
    with bit_generator.lock:
        with nogil:
            shuffle(bits, order, size)
    return out


cdef void shuffle(bitgen_t *bits, uint32_t *order,
                  uint32_t size) noexcept nogil:
    cdef uint32_t places[DRAWN]
    cdef uint32_t last, place, element
    cdef int count, number
    for place in range(size):
        order[place] = place
    last = size
    while last > 1:
        # Places do not depend on what is there: with many of them known,
        # their elements come from memory at the same time.
        count = min(<uint32_t>DRAWN, last - 1)
        for number in range(count):
            place = last - 1 - number
            places[number] = draw(bits, mask_of(place), place)
            fuel_prefetch(order + places[number])
        for number in range(count):
            last -= 1
            element = order[places[number]]
            order[places[number]] = order[last]
            order[last] = element
