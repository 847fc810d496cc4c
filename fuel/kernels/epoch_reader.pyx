"""Readers of an epoch's data at the cost of a C call.

A Python call for each step between a training loop and one example would
take longer than the example.  So the epoch iterator asks a reader of this
module in C; whatever is out of the ordinary is left to the reader's
`fallback`, written in Python.
"""
cimport cython
cimport numpy as cnp
from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.long cimport PyLong_AsSsize_t, PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.pyport cimport PY_SSIZE_T_MAX
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport (
    PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM)
from libc.stdint cimport int64_t, uint32_t

from fuel.kernels.copy_row cimport AHEAD, fuel_copy_row
from fuel.kernels.converter cimport Converter
from fuel.kernels.memory cimport RecentArrays
from fuel.kernels.rows cimport is_plain, take_plain

import numpy

cnp.import_array()


@cython.auto_pickle(False)
cdef class RequestPosition:
    """Number of requests that were made: the only position of an epoch.

    Of an order that ranks share, a request moves the position by `step`, and
    the next one lies `offset` behind it. From the position `limit` on, the
    requests have to be asked themselves.
    """

    def __cinit__(self, *args, **kwargs):
        self.step = 1
        self.offset = 0
        self.limit = PY_SSIZE_T_MAX

    def __reduce__(self):
        return new_object, (type(self),), self.__getstate__()


def new_object(cls):
    """Return an instance without attributes, for any pickle protocol."""
    return cls.__new__(cls)


@cython.auto_pickle(False)
cdef class CompiledReader:
    """Base of the readers that give most data in C.

    `fallback`: reads the next request where this reader cannot.
    """

    def __init__(self, RequestPosition requests not None, fallback):
        self.requests = requests
        self.fallback = fallback

    cdef object take(self):
        """Return the next data, or None where `fallback` has to read."""
        return None

    def read(self):
        """Return the data of the next request."""
        data = self.take()
        return self.fallback.read() if data is None else data

    def skip(self, Py_ssize_t count):
        """Skip requests without reading their data."""
        self.fallback.skip(count)

    def close(self):
        """Release what the reader holds."""
        self.fallback.close()

    def __reduce__(self):
        raise TypeError('the reader of an epoch cannot be pickled')


cdef class PrefetchReader(CompiledReader):
    """Reads prefetched data as long as the position follows them.

    Subclasses implement ``prefetch()``, which calls :meth:`fill` where there
    is something to prefetch.
    """

    cdef object items
    cdef Py_ssize_t expected

    def fill(self, items):
        """Take an iterator over the data of the next requests."""
        self.items = iter(items)
        self.expected = self.requests.position

    def drop(self):
        """Drop prefetched data."""
        self.items = None

    cdef object take(self):
        if self.items is None:
            return None
        if self.requests.position == self.expected:
            for item in self.items:
                self.expected += self.requests.step
                self.requests.position = self.expected
                return item
        self.items = None
        return None

    def read(self):
        """Return the data of the next request."""
        data = self.take()
        if data is None:
            self.prefetch()
            data = self.take()
        return self.fallback.read() if data is None else data

    def prefetch(self):
        """Fill with the data of the next requests; here, of none."""

    def close(self):
        """Release what the reader holds."""
        self.items = None
        self.fallback.close()


@cython.final
cdef class Order:
    """The examples of an epoch, one after another."""

    def __init__(self, indices):
        self.indices = indices
        self.size = len(indices)
        self.step = 0
        self.short_indices = self.long_indices = None
        if isinstance(indices, range):
            self.first = indices.start
            self.step = indices.step
        elif isinstance(indices, numpy.ndarray):
            if indices.dtype == numpy.uint32:
                self.short_indices = indices
            else:
                self.long_indices = indices.astype(numpy.int64, copy=False)
        elif type(indices) is not list:
            raise TypeError('an order is a range, a list or an array, not '
                            f'{type(indices).__name__}')

    cdef Py_ssize_t at(self, Py_ssize_t place):
        """Return the index at a place below `size`; -1 if it is none."""
        cdef object value
        if self.short_indices is not None:
            return self.short_indices[place]
        if self.step:
            return self.first + place * self.step
        if self.long_indices is not None:
            return self.long_indices[place]
        if place >= PyList_GET_SIZE(self.indices):
            return -1
        value = <object>PyList_GET_ITEM(self.indices, place)
        if not PyLong_CheckExact(value):
            return -1
        try:
            return PyLong_AsSsize_t(value)
        except OverflowError:
            return -1

    cdef cnp.ndarray batch(self, Py_ssize_t position, Py_ssize_t batch_size):
        """Return the indices of a batch; None behind the last."""
        cdef Py_ssize_t place, first
        cdef cnp.npy_intp count
        cdef cnp.npy_intp *out
        cdef cnp.ndarray rows
        if position < 0 or position > self.size // batch_size:
            return None
        first = position * batch_size
        count = min(batch_size, self.size - first)
        if count <= 0:
            return None
        rows = cnp.PyArray_EMPTY(1, &count, cnp.NPY_INTP, 0)
        out = <cnp.npy_intp *>cnp.PyArray_DATA(rows)
        for place in range(count):
            out[place] = self.at(first + place)
        return rows


cdef class IndexReader(CompiledReader):
    """Base of the readers that know the indices of requests.

    `converters`: one for each source; of batches only. Default to none.
    `converted`: names of the sources that are converted.
    `converted`: those of the data that were read last.
    """

    def __init__(self, requests, fallback, converters=None,
                 converted=frozenset()):
        CompiledReader.__init__(self, requests, fallback)
        self.converters = converters
        self.wanted = self.converted = converted
        indices = requests.plain_order()
        self.order = None if indices is None else Order(indices)
        self.batch_size = 0
        if not requests.requests_examples:
            # A number of any size stands for the whole epoch at once.
            self.batch_size = 1 if indices is None else min(
                requests.batch_size, max(1, len(indices)))

    cdef cnp.ndarray batch(self, Py_ssize_t position):
        """Return the indices of a batch, None if they are not known."""
        if position >= self.requests.limit:
            return None
        if self.order is not None:
            return self.order.batch(
                position + self.requests.offset, self.batch_size)
        request = self.requests.compact_at(position)
        if type(request) is not cnp.ndarray or (
                request.dtype != numpy.intp or not request.size
                or not request.flags.c_contiguous):
            return None
        return request

    cdef Converter converter(self, Py_ssize_t place):
        """Return what converts a source, if anything does."""
        return None if self.converters is None else self.converters[place]

    cdef object finish(self, data):
        """Count data as read, if they are."""
        if data is not None:
            self.requests.position += self.requests.step
        self.converted = NOTHING if data is None else self.wanted
        return data


cdef frozenset NOTHING = frozenset()


cdef class ArrayReader(IndexReader):
    """Reads rows of arrays and lists in memory, as they are at the time.

    `requests`, `fallback`, `**kwargs`: as for `IndexReader`.
    `collections`: one for each source; for batches, arrays.
    `attributes`: names of those of the owner's attributes that say what to
        read. If one of them is set anew, `fallback` reads.
    `own`: returns a copy of an element of a list.
    """

    cdef list collections
    cdef tuple parts
    cdef dict present
    cdef tuple watched
    cdef object own
    cdef list recent

    def __init__(self, requests, fallback, list collections not None, owner,
                 attributes, own, **kwargs):
        IndexReader.__init__(self, requests, fallback, **kwargs)
        self.collections = collections
        self.parts = tuple(collections)
        self.present = vars(owner)
        self.watched = tuple([
            (name, self.present.get(name)) for name in attributes])
        self.own = own
        self.recent = [RecentArrays() for _ in collections]

    cpdef bint is_current(self):
        """Return whether the owner still has the same collections."""
        cdef Py_ssize_t place
        cdef PyObject *value
        cdef tuple entry
        if PyList_GET_SIZE(self.collections) != PyTuple_GET_SIZE(self.parts):
            return False
        for place in range(PyTuple_GET_SIZE(self.parts)):
            if (PyList_GET_ITEM(self.collections, place)
                    != PyTuple_GET_ITEM(self.parts, place)):
                return False
        for entry in self.watched:
            value = PyDict_GetItem(self.present, entry[0])
            if value == NULL:
                if entry[1] is not None:
                    return False
            elif value != <PyObject *>entry[1]:
                return False
        return True

    cdef object take(self):
        cdef Py_ssize_t position = self.requests.position
        data = None
        if self.is_current() and position >= 0:
            if self.batch_size:
                data = self.take_batch(position)
            else:
                data = self.take_example(position)
        return self.finish(data)

    cdef tuple take_example(self, Py_ssize_t position):
        cdef Py_ssize_t index, place, count = PyTuple_GET_SIZE(self.parts)
        cdef Py_ssize_t coming = -1, next
        cdef tuple data
        if position >= self.requests.limit:
            return None
        if self.order is None:
            index = self.ask_for_index(position)
        else:
            position += self.requests.offset
            if position >= self.order.size:
                return None
            index = self.order.at(position)
            next = position + AHEAD * self.requests.step
            if next < self.order.size:
                coming = self.order.at(next)
        data = PyTuple_New(count)
        for place in range(count):
            value = self.element(place, index, coming)
            if value is None:
                return None
            Py_INCREF(value)
            PyTuple_SET_ITEM(data, place, value)
        return data

    cdef Py_ssize_t ask_for_index(self, Py_ssize_t position):
        value = self.requests.compact_at(position)
        return value if PyLong_CheckExact(value) and value >= 0 else -1

    cdef object element(self, Py_ssize_t place, Py_ssize_t index,
                        Py_ssize_t coming):
        """Return one row, None where something is out of the ordinary."""
        part = <object>PyTuple_GET_ITEM(self.parts, place)
        if isinstance(part, cnp.ndarray):
            return row_of(<cnp.ndarray>part, index, coming, self.recent[place])
        if index < 0 or index >= len(part):
            return None
        value = part[index]
        if type(value) is int or type(value) is str or type(
                value) is float or type(value) is bytes:
            return value
        return self.own(value)

    cdef tuple take_batch(self, Py_ssize_t position):
        cdef Py_ssize_t place
        cdef cnp.ndarray rows = self.batch(position)
        cdef tuple data
        if rows is None:
            return None
        data = PyTuple_New(PyTuple_GET_SIZE(self.parts))
        for place in range(PyTuple_GET_SIZE(self.parts)):
            batch = rows_of(
                <object>PyTuple_GET_ITEM(self.parts, place), rows,
                self.converter(place))
            if batch is None:
                return None
            Py_INCREF(batch)
            PyTuple_SET_ITEM(data, place, batch)
        return data


def is_readable(part):
    """Return whether rows of an object can be copied as bytes."""
    return ((type(part) is cnp.ndarray or type(part) is numpy.memmap)
            and cnp.PyArray_NDIM(part) > 0 and is_plain(part))


cdef object row_of(cnp.ndarray array, Py_ssize_t index, Py_ssize_t coming,
                   RecentArrays recent):
    cdef int ndim = cnp.PyArray_NDIM(array)
    cdef Py_ssize_t size
    cdef cnp.ndarray row
    if not ndim or index < 0 or index >= cnp.PyArray_DIM(array, 0) \
            or not is_plain(array):
        return None
    if ndim == 1:
        if cnp.PyArray_TYPE(array) == cnp.NPY_VOID:
            return None
        return cnp.PyArray_ToScalar(
            cnp.PyArray_GETPTR1(array, index), array)
    row = recent.new_array(ndim - 1, cnp.PyArray_DIMS(array) + 1,
                           <cnp.dtype>cnp.PyArray_DESCR(array))
    size = cnp.PyArray_NBYTES(row)
    if coming < 0 or coming >= cnp.PyArray_DIM(array, 0):
        coming = index
    fuel_copy_row(<char *>cnp.PyArray_DATA(row),
                  <const char *>cnp.PyArray_DATA(array) + index * size, size,
                  <const char *>cnp.PyArray_DATA(array) + coming * size)
    return row


cdef object rows_of(part, cnp.ndarray rows, Converter converter):
    cdef const cnp.npy_intp *indices = <const cnp.npy_intp *>(
        cnp.PyArray_DATA(rows))
    cdef Py_ssize_t place, length
    cdef cnp.ndarray array
    if not isinstance(part, cnp.ndarray):
        return None
    array = <cnp.ndarray>part
    if not cnp.PyArray_NDIM(array) or not is_plain(array) or (
            converter is not None
            and array.dtype != converter.source):
        return None
    length = cnp.PyArray_DIM(array, 0)
    for place in range(cnp.PyArray_SIZE(rows)):
        if indices[place] < 0 or indices[place] >= length:
            return None
    return take_plain(array, rows, converter)
