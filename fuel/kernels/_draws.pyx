"""Random integers as ``RandomState.randint`` draws them, without its setup.

NumPy promises that ``RandomState`` never changes what it draws.  For small
counts most of its time goes into looking at its arguments.
"""
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport uint32_t

cimport numpy as cnp
from numpy.random cimport bitgen_t

cnp.import_array()


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
    cdef bitgen_t *bits = <bitgen_t *>PyCapsule_GetPointer(
        bit_generator.capsule, 'BitGenerator')
    cdef cnp.npy_intp shape = count
    cdef cnp.ndarray out = cnp.PyArray_ZEROS(1, &shape, cnp.NPY_INTP, 0)
    cdef cnp.npy_intp *target = <cnp.npy_intp *>cnp.PyArray_DATA(out)
    cdef uint32_t mask = most, value
    cdef Py_ssize_t place
    if not most:
        return out
    # The smallest number of ones that covers `most`: what lies above it is
    # drawn again.
    mask |= mask >> 1
    mask |= mask >> 2
    mask |= mask >> 4
    mask |= mask >> 8
    mask |= mask >> 16
    with bit_generator.lock:
        for place in range(count):
            value = bits.next_uint32(bits.state) & mask
            while value > most:
                value = bits.next_uint32(bits.state) & mask
            target[place] = value
    return out
