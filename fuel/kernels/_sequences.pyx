"""Sequences of different lengths in one array, with their mask.

The two functions here take what is common, lists of numbers and arrays of
one type, and return None for anything else; ``_padding.py`` does the rest.
"""
cimport numpy as cnp
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact, PyList_GET_ITEM, PyList_GET_SIZE
from cpython.long cimport PyLong_AsDouble, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, \
    PyTuple_GET_SIZE
from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy

cdef extern from 'Python.h':
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow)

cnp.import_array()

cdef enum Kind:
    NEITHER
    INTEGERS
    FLOATS


cdef inline Py_ssize_t length_of(object sequence) except -2:
    """Return the length of a list or a tuple, -1 for anything else."""
    if PyList_CheckExact(sequence):
        return PyList_GET_SIZE(sequence)
    if PyTuple_CheckExact(sequence):
        return PyTuple_GET_SIZE(sequence)
    return -1


cdef inline object item_of(object sequence, Py_ssize_t place):
    if PyList_CheckExact(sequence):
        return <object>PyList_GET_ITEM(sequence, place)
    return <object>PyTuple_GET_ITEM(sequence, place)


cdef Py_ssize_t longest_of(list sequences) except -2:
    """Return the greatest length, -1 if one is neither list nor tuple."""
    cdef Py_ssize_t longest = 0, length
    for sequence in sequences:
        length = length_of(sequence)
        if length < 0:
            return -1
        longest = max(longest, length)
    return longest


cdef Kind fill_integers(object sequence, int64_t *out,
                        Py_ssize_t length) except *:
    """Write integers; return the kind of the first other value."""
    cdef Py_ssize_t place
    cdef int overflow = 0
    for place in range(length):
        item = item_of(sequence, place)
        if not PyLong_CheckExact(item):
            return FLOATS if PyFloat_CheckExact(item) else NEITHER
        out[place] = PyLong_AsLongLongAndOverflow(item, &overflow)
        if overflow:
            return NEITHER
    return INTEGERS


cdef Kind fill_floats(object sequence, double *out,
                      Py_ssize_t length) except *:
    """Write floats and integers; return the kind of the first other value."""
    cdef Py_ssize_t place
    cdef int overflow = 0
    for place in range(length):
        item = item_of(sequence, place)
        if PyFloat_CheckExact(item):
            out[place] = PyFloat_AS_DOUBLE(item)
        elif PyLong_CheckExact(item):
            out[place] = <double>PyLong_AsLongLongAndOverflow(item, &overflow)
            if overflow:
                return NEITHER
        else:
            return NEITHER
    return FLOATS


cdef cnp.ndarray zeros(int ndim, cnp.npy_intp *shape, dtype):
    return numpy.zeros(tuple([shape[axis] for axis in range(ndim)]), dtype)


cdef class MaskWriter:
    """Writes runs of ones of any type at the start of each row."""

    cdef readonly cnp.ndarray mask
    cdef cnp.ndarray ones
    cdef char *target
    cdef const char *source
    cdef Py_ssize_t itemsize, row

    def __cinit__(self, Py_ssize_t count, Py_ssize_t longest, dtype):
        cdef cnp.npy_intp shape[2]
        shape[0], shape[1] = count, longest
        self.mask = zeros(2, shape, dtype)
        self.ones = numpy.ones(longest, dtype)
        self.target = <char *>cnp.PyArray_DATA(self.mask)
        self.source = <const char *>cnp.PyArray_DATA(self.ones)
        self.itemsize = cnp.PyArray_ITEMSIZE(self.mask)
        self.row = longest * self.itemsize

    cdef void write(self, Py_ssize_t place, Py_ssize_t length) noexcept:
        memcpy(self.target + place * self.row, self.source,
               length * self.itemsize)


def pad_lists(list sequences not None, mask_dtype):
    """Pad lists or tuples of integers or floats.

    Returns: padded, int64 or float64, and mask. None if an element is anything
        but an exact int of 64 bits or an exact float.
    """
    cdef cnp.npy_intp shape[2]
    cdef Py_ssize_t place, length, count = PyList_GET_SIZE(sequences)
    cdef Kind kind = INTEGERS
    cdef Kind found
    cdef cnp.ndarray padded
    cdef MaskWriter mask
    shape[0], shape[1] = count, longest_of(sequences)
    if shape[1] <= 0:
        return None
    padded = zeros(2, shape, numpy.int64)
    mask = MaskWriter(count, shape[1], mask_dtype)
    place = 0
    while place < min(count, PyList_GET_SIZE(sequences)):
        sequence = <object>PyList_GET_ITEM(sequences, place)
        length = length_of(sequence)
        if not 0 <= length <= shape[1]:
            raise ValueError(
                f'element {place} of the batch was changed by another thread '
                'while it was padded')
        # No other code runs while the items are read, so no list changes.
        if kind == INTEGERS:
            found = fill_integers(
                sequence, <int64_t *>cnp.PyArray_DATA(padded)
                + place * shape[1], length)
        else:
            found = fill_floats(
                sequence, <double *>cnp.PyArray_DATA(padded)
                + place * shape[1], length)
        if found == NEITHER:
            return None
        if found != kind:
            # The first float: what is there becomes float, and this
            # sequence is read again.
            padded = padded.astype(numpy.float64)
            kind = FLOATS
            continue
        mask.write(place, length)
        place += 1
    return padded, mask.mask


cdef bint are_alike(list sequences) except -1:
    """Return whether all are plain arrays of one type and equal row shapes."""
    cdef cnp.ndarray first, array
    cdef int axis, ndim, kind
    if not cnp.PyArray_CheckExact(sequences[0]):
        return False
    first = sequences[0]
    ndim, kind = cnp.PyArray_NDIM(first), cnp.PyArray_TYPE(first)
    if ndim == 0 or not cnp.PyTypeNum_ISNUMBER(kind) and kind != cnp.NPY_BOOL:
        return False
    for item in sequences:
        if not cnp.PyArray_CheckExact(item):
            return False
        array = item
        if (cnp.PyArray_NDIM(array) != ndim
                or cnp.PyArray_TYPE(array) != kind
                or not cnp.PyArray_ISNOTSWAPPED(array)
                or not cnp.PyArray_IS_C_CONTIGUOUS(array)):
            return False
        for axis in range(1, ndim):
            if cnp.PyArray_DIM(array, axis) != cnp.PyArray_DIM(first, axis):
                return False
    return True


def pad_arrays(list sequences not None, mask_dtype):
    """Pad arrays of one type of number.

    Returns: padded and mask. None unless all are C-contiguous native arrays of
        one type of number, of equal shapes after the first axis.
    """
    cdef cnp.npy_intp shape[64]
    cdef Py_ssize_t place, count = PyList_GET_SIZE(sequences)
    cdef Py_ssize_t longest = 0, row
    cdef cnp.ndarray padded, array
    cdef MaskWriter mask
    cdef char *target
    cdef int axis, ndim
    if count == 0 or not are_alike(sequences):
        return None
    for array in sequences:
        longest = max(longest, cnp.PyArray_DIM(array, 0))
    array = sequences[0]
    ndim = cnp.PyArray_NDIM(array)
    if ndim > 31:
        return None
    row = longest * cnp.PyArray_ITEMSIZE(array)
    shape[0], shape[1] = count, longest
    for axis in range(1, ndim):
        shape[axis + 1] = cnp.PyArray_DIM(array, axis)
        row *= shape[axis + 1]
    padded = zeros(ndim + 1, shape, array.dtype)
    mask = MaskWriter(count, longest, mask_dtype)
    target = <char *>cnp.PyArray_DATA(padded)
    for place in range(count):
        array = <cnp.ndarray>PyList_GET_ITEM(sequences, place)
        memcpy(target + place * row, cnp.PyArray_DATA(array),
               cnp.PyArray_NBYTES(array))
        mask.write(place, cnp.PyArray_DIM(array, 0))
    return padded, mask.mask
