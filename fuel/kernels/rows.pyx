"""Rows of arrays in memory: index lists, gathering, single rows.

Everything here checks its arguments first and then runs plain C.
"""
cimport numpy as cnp
from cpython.bool cimport PyBool_Check
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.long cimport PyLong_AsSsize_t, PyLong_CheckExact
from libc.string cimport memcpy

from fuel.kernels.converter cimport Conversion, Converter, conversion_of
from fuel.kernels.pieces cimport gather_rows
from fuel.kernels.memory cimport new_array

import operator

import numpy

cnp.import_array()

# Below this many bytes the copy takes less time than handing the GIL over.
cdef enum:
    RELEASE_FROM = 32768

# NumPy's number of the type float16, the last of the fixed ones.
cdef int HALF = numpy.dtype(numpy.float16).num


cdef object refuse_element(object value, Py_ssize_t place, object name):
    if isinstance(value, (bool, numpy.bool_)):
        remedy = ('for a boolean mask pass numpy.flatnonzero(mask).tolist() '
                  'instead')
    elif isinstance(value, (list, tuple)):
        remedy = 'pass one flat list of integers, without tuples or lists in it'
    else:
        remedy = 'convert the indices to integers'
    raise ValueError(
        f'{name} must hold integer indices, but element {place} is '
        f'{value!r} ({type(value).__name__}): {remedy}')


cdef object refuse_index(object value, Py_ssize_t place, object num_examples,
                         object name):
    if value < 0:
        raise ValueError(
            f'{name} must hold indices from 0 to {num_examples - 1}, but '
            f'element {place} is {value}: indices do not count from the end; '
            f'add the number of examples ({num_examples}) to it')
    raise ValueError(
        f'{name} must hold indices from 0 to {num_examples - 1}, but '
        f'element {place} is {value}: there are only {num_examples} examples')


cdef Py_ssize_t as_index(object value, Py_ssize_t place,
                         object name) except? -1:
    if PyLong_CheckExact(value):
        return PyLong_AsSsize_t(value)
    if PyBool_Check(value) or isinstance(value, numpy.bool_):
        refuse_element(value, place, name)
    if isinstance(value, numpy.ndarray) and value.ndim:
        refuse_element(value, place, name)
    try:
        return operator.index(value)
    except TypeError:
        refuse_element(value, place, name)


cdef cnp.ndarray indices_of_list(list request, Py_ssize_t num_examples,
                                 object name):
    cdef Py_ssize_t size = PyList_GET_SIZE(request)
    cdef cnp.npy_intp shape = size
    cdef cnp.ndarray indices = cnp.PyArray_EMPTY(1, &shape, cnp.NPY_INTP, 0)
    cdef cnp.npy_intp *out = <cnp.npy_intp *>cnp.PyArray_DATA(indices)
    cdef Py_ssize_t place, index = 0
    for place in range(size):
        # A user's own code may turn an element into an integer.
        if PyList_GET_SIZE(request) != size:
            raise ValueError(
                f'{name} of {size} indices has {len(request)} after '
                f'{place} of them were read: do not change it meanwhile')
        value = <object>PyList_GET_ITEM(request, place)
        try:
            index = as_index(value, place, name)
        except OverflowError:
            refuse_index(int(value), place, num_examples, name)
        if index < 0 or index >= num_examples:
            refuse_index(index, place, num_examples, name)
        out[place] = index
    return indices


cdef bint is_index_array(cnp.ndarray request):
    """Return whether an array can be read as it is."""
    return (cnp.PyArray_TYPE(request) == cnp.NPY_INTP
            and cnp.PyArray_NDIM(request) == 1
            and cnp.PyArray_IS_C_CONTIGUOUS(request)
            and cnp.PyArray_ISALIGNED(request)
            and cnp.PyArray_ISNOTSWAPPED(request))


cdef cnp.ndarray as_index_array(cnp.ndarray request, Py_ssize_t num_examples,
                                object name):
    """Convert another array, if it is one of integers."""
    if request.dtype.kind == 'b':
        raise ValueError(
            f'{name} must hold integer indices, but came as a boolean '
            'mask: pass numpy.flatnonzero(mask) instead')
    if request.dtype.kind not in 'iu' or cnp.PyArray_NDIM(request) != 1:
        raise ValueError(
            f'{name} must be a one-dimensional array of integers, got '
            f'{cnp.PyArray_NDIM(request)} dimensions of {request.dtype}: '
            'convert it with .ravel().astype(int)')
    if request.dtype.kind == 'u' and cnp.PyArray_ITEMSIZE(request) >= <int>sizeof(
            cnp.npy_intp) and cnp.PyArray_SIZE(request):
        # These may not fit into the type of an index.
        if int(request.max()) >= num_examples:
            refuse_index(int(request.max()), int(request.argmax()),
                         num_examples, name)
    return numpy.ascontiguousarray(request, dtype=numpy.intp)


cdef cnp.ndarray indices_of_array(cnp.ndarray request,
                                  Py_ssize_t num_examples, object name):
    cdef cnp.ndarray indices = request
    if not is_index_array(request):
        indices = as_index_array(request, num_examples, name)
    cdef const cnp.npy_intp *data = <const cnp.npy_intp *>cnp.PyArray_DATA(
        indices)
    cdef Py_ssize_t place
    for place in range(cnp.PyArray_SIZE(indices)):
        if data[place] < 0 or data[place] >= num_examples:
            refuse_index(data[place], place, num_examples, name)
    return indices


def as_indices(request, Py_ssize_t num_examples, name='a request'):
    """Return the indices of a request as an array, all of them checked.

    `name`: what the request is called in errors.

    Examples
    --------
    >>> as_indices([2, 0, 2], 3)
    array([2, 0, 2])
    """
    if isinstance(request, list):
        return indices_of_list(request, num_examples, name)
    if isinstance(request, numpy.ndarray):
        return indices_of_array(request, num_examples, name)
    if isinstance(request, (range, tuple)):
        return indices_of_list(list(request), num_examples, name)
    raise ValueError(
        f'{name} must be a list of integers or an integer array, got '
        f'{request!r} ({type(request).__name__})')


cdef bint is_plain(cnp.ndarray array):
    """Return whether rows can be copied as bytes into a native array."""
    cdef int kind = cnp.PyArray_TYPE(array)
    if not cnp.PyArray_IS_C_CONTIGUOUS(array) or kind == cnp.NPY_OBJECT:
        return False
    if kind == cnp.NPY_VOID:
        return is_native(array.dtype) and not array.dtype.hasobject
    # Types of later NumPy (variable-width strings) own memory of their own.
    return kind <= HALF and cnp.PyArray_ISNOTSWAPPED(array)


cdef cnp.ndarray take_plain(cnp.ndarray array, cnp.ndarray indices,
                            Converter converter):
    cdef int ndim = cnp.PyArray_NDIM(array)
    cdef cnp.npy_intp shape[64]
    cdef cnp.npy_intp count = cnp.PyArray_SIZE(indices)
    cdef Py_ssize_t row = cnp.PyArray_ITEMSIZE(array)
    cdef int axis
    shape[0] = count
    for axis in range(1, ndim):
        shape[axis] = cnp.PyArray_DIM(array, axis)
        row *= shape[axis]
    cdef cnp.ndarray out
    if converter is None:
        out = new_array(ndim, shape, <cnp.dtype>cnp.PyArray_DESCR(array))
    else:
        out = converter.new_batch(ndim, shape)
    cdef const Conversion *conversion = conversion_of(converter)
    cdef const char *source = <const char *>cnp.PyArray_DATA(array)
    cdef char *target = <char *>cnp.PyArray_DATA(out)
    cdef const cnp.npy_intp *rows = <const cnp.npy_intp *>cnp.PyArray_DATA(
        indices)
    if count * row >= RELEASE_FROM:
        with nogil:
            gather_rows(source, rows, count, row, conversion, target)
    else:
        gather_rows(source, rows, count, row, conversion, target)
    return out


cdef bint is_native(dtype):
    """Tell if a type, and those of its fields, have native byte order."""
    # `isnative` does not look into fields that are arrays.
    return dtype.isnative and (dtype.names is None or (
        dtype == dtype.newbyteorder('=')))


def native(array):
    """Return `array` in native byte order, copied only where it is not."""
    dtype = array.dtype
    return array if is_native(dtype) else array.astype(
        dtype.newbyteorder('='))


def own_record(record):
    """Return a copy of a record, in native byte order."""
    return native(record.copy())


def take(cnp.ndarray array not None, indices, Converter converter=None):
    """Return rows of an array, in the order asked for, as a new array.

    `indices`: which rows, as :func:`as_indices` takes them; they may repeat.
    `converter`: converts the elements, in the same pass. Defaults to None:
        they are what they are in `array`.

    Examples
    --------
    >>> import numpy
    >>> take(numpy.array([[1, 2], [3, 4], [5, 6]]), [2, 0])
    array([[5, 6],
           [1, 2]])
    """
    if cnp.PyArray_NDIM(array) == 0:
        raise ValueError('rows can only be taken from an array that has at '
                         'least one axis, got a 0-d array')
    cdef cnp.ndarray rows = as_indices(indices, cnp.PyArray_DIM(array, 0))
    if converter is not None and (
            array.dtype != converter.source or not is_plain(array)):
        raise TypeError(f'rows of {converter.source} in C order can be '
                        f'converted here, got {array.dtype}')
    if is_plain(array):
        return take_plain(array, rows, converter)
    return native(numpy.asarray(array).take(rows, axis=0))


def take_row(cnp.ndarray array not None, Py_ssize_t index):
    """Return one row of an array as the caller's own.

    Examples
    --------
    >>> import numpy
    >>> take_row(numpy.array([[1, 2], [3, 4]]), 1)
    array([3, 4])
    """
    cdef int ndim = cnp.PyArray_NDIM(array)
    if ndim == 0:
        raise ValueError('a row can only be taken from an array that has at '
                         'least one axis, got a 0-d array')
    if index < 0 or index >= cnp.PyArray_DIM(array, 0):
        raise ValueError(
            f'a request for one example must be an index from 0 to '
            f'{len(array) - 1}, got {index}')
    if ndim == 1 or not is_plain(array):
        value = array[index]
        if isinstance(value, numpy.ndarray):
            return native(numpy.array(value))
        # A record is a view, unlike other scalars.
        return own_record(value) if isinstance(value, numpy.void) else value
    cdef cnp.ndarray out = new_array(
        ndim - 1, cnp.PyArray_DIMS(array) + 1,
        <cnp.dtype>cnp.PyArray_DESCR(array))
    cdef Py_ssize_t size = cnp.PyArray_NBYTES(out)
    memcpy(cnp.PyArray_DATA(out),
           <const char *>cnp.PyArray_DATA(array) + index * size, size)
    return out
