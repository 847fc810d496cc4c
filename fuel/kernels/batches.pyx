"""Batches by one call, where nothing is out of the ordinary.

A batch of a few hundred kilobytes leaves little of Python's own data in the
processor's cache, so each object that is touched between two batches is
fetched from memory again. Here a request becomes a batch without touching
any. What is not plain (a chunk that is not decoded, a file that was cut, a
wrong index) is not dealt with here: no batch is made, and the caller goes the
way that knows all cases and says what is wrong.
"""
cimport cython
cimport numpy as cnp
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from fuel.kernels.gather cimport Request, Rows
from fuel.kernels.memory cimport new_array

import numpy

cnp.import_array()

cdef enum:
    # As of every NumPy.
    MOST_AXES = 32


@cython.final
cdef class Batches:
    """Batches of some sources.

    Parameters
    ----------
    parts : list of (Rows, int, tuple of int, numpy.dtype)
        For each source its rows, the first of them that is an example, the
        shape of a row and its type, in native byte order.
    num_examples : int
    most_nbytes : int
        Larger sources of a batch are left to several threads.
    held : object
        What must not be closed while this object lives.

    """

    cdef list parts
    cdef Py_ssize_t num_examples, most_nbytes
    cdef object held

    def __init__(self, list parts not None, Py_ssize_t num_examples,
                 Py_ssize_t most_nbytes, held):
        self.parts = [Part(*part) for part in parts]
        self.num_examples = num_examples
        self.most_nbytes = most_nbytes
        self.held = held

    def read(self, request):
        """Return a batch.

        Parameters
        ----------
        request : object

        Returns
        -------
        tuple of numpy.ndarray or None
            New and writable. None if the request is anything else than a
            contiguous array of intp within the examples, or its rows cannot
            be copied in this way.

        """
        if type(request) is not cnp.ndarray or not self.accepts(request):
            return None
        return self.copy(
            <const cnp.npy_intp *>cnp.PyArray_DATA(<cnp.ndarray>request),
            cnp.PyArray_DIM(<cnp.ndarray>request, 0))

    cdef tuple copy(self, const cnp.npy_intp *rows, Py_ssize_t count):
        cdef cnp.npy_intp shape[MOST_AXES]
        cdef tuple data = PyTuple_New(len(self.parts))
        cdef Py_ssize_t place
        cdef Part part
        cdef cnp.ndarray batch
        cdef Request wanted
        wanted.rows, wanted.count = rows, count
        for place in range(len(self.parts)):
            part = <Part>self.parts[place]
            if (part.rows.declines
                    or count * part.rows.tiles.row_nbytes
                    > self.most_nbytes):
                return None
            memcpy(shape, part.shape, part.ndim * sizeof(cnp.npy_intp))
            shape[0] = count
            wanted.first = part.first
            batch = new_array(part.ndim, shape, part.dtype)
            Py_INCREF(batch)
            PyTuple_SET_ITEM(data, place, batch)
            if not part.rows.copy_plain(
                    &wanted, <char *>cnp.PyArray_DATA(batch), NULL):
                return None
        return data

    cdef bint accepts(self, cnp.ndarray request):
        if (cnp.PyArray_TYPE(request) != cnp.NPY_INTP
                or cnp.PyArray_NDIM(request) != 1
                or not cnp.PyArray_IS_C_CONTIGUOUS(request)
                or not cnp.PyArray_ISALIGNED(request)
                or not cnp.PyArray_ISNOTSWAPPED(request)
                or cnp.PyArray_DIM(request, 0) == 0):
            return False
        return self.are_examples(
            <const cnp.npy_intp *>cnp.PyArray_DATA(request),
            cnp.PyArray_DIM(request, 0))

    cdef bint are_examples(self, const cnp.npy_intp *rows, Py_ssize_t count):
        cdef Py_ssize_t place
        for place in range(count):
            if rows[place] < 0 or rows[place] >= self.num_examples:
                return False
        return True

    def __reduce__(self):
        # A data set is pickled without its open file, and makes them anew.
        return type(None), ()


@cython.final
cdef class BatchesInOrder:
    """Iterator over the next batches of an epoch, as long as all is plain.

    It ends where the epoch does, or where a batch cannot be read in this
    way: then that batch is still to come.

    Parameters
    ----------
    owner : object
        Its attribute ``_direct`` is the `Batches` to read, or None while
        there are none. They are not kept here, so that it can close them.
    order : numpy.ndarray of uint32 or int64, or range
        The examples of the whole epoch, in order.
    batch_size : int
    position : int
        Number of the first batch to return.

    """

    cdef object owner
    cdef cnp.ndarray rows
    cdef const cnp.uint32_t[::1] short_order
    cdef const int64_t[::1] long_order
    # Of a range the first element; then there is no array.
    cdef Py_ssize_t start, size, batch_size, position

    def __init__(self, owner, order, Py_ssize_t batch_size,
                 Py_ssize_t position):
        if batch_size < 1 or position < 0:
            raise ValueError(f'batch {position} of size {batch_size}')
        self.owner = owner
        self.size = len(order)
        self.batch_size = batch_size
        self.position = position
        self.rows = numpy.empty(min(batch_size, self.size), numpy.intp)
        self.short_order = self.long_order = None
        if isinstance(order, range):
            if order.step != 1:
                raise ValueError(f'a range of step 1 is needed, got {order}')
            self.start = order.start
        elif order.dtype == numpy.uint32:
            self.short_order = order
        elif order.dtype == numpy.intp:
            # Of 32 bits on some machines.
            self.long_order = order.astype(numpy.int64, copy=False)
        else:
            self.long_order = order

    def __iter__(self):
        return self

    def __next__(self):
        cdef Py_ssize_t first, count
        cdef cnp.npy_intp *rows
        cdef Batches batches = self.owner._direct
        if (batches is None
                or self.position > self.size // self.batch_size):
            raise StopIteration
        first = self.position * self.batch_size
        count = min(self.batch_size, self.size - first)
        rows = <cnp.npy_intp *>cnp.PyArray_DATA(self.rows)
        self.list_rows(rows, first, count)
        if not count or not batches.are_examples(rows, count):
            raise StopIteration
        data = batches.copy(rows, count)
        if data is None:
            raise StopIteration
        self.position += 1
        return data

    cdef void list_rows(self, cnp.npy_intp *rows, Py_ssize_t first,
                        Py_ssize_t count) noexcept:
        cdef Py_ssize_t place
        if self.short_order is not None:
            for place in range(count):
                rows[place] = self.short_order[first + place]
        elif self.long_order is not None:
            for place in range(count):
                rows[place] = self.long_order[first + place]
        else:
            for place in range(count):
                rows[place] = self.start + first + place

    def __reduce__(self):
        raise TypeError('batches of an open file cannot be pickled')


@cython.final
cdef class Part:
    """What `Batches` knows of a source."""

    cdef Rows rows
    cdef Py_ssize_t first
    cdef int ndim
    # The first place is for the number of examples.
    cdef cnp.npy_intp shape[MOST_AXES]
    cdef cnp.dtype dtype

    def __init__(self, Rows rows not None, Py_ssize_t first, tuple shape,
                 cnp.dtype dtype not None):
        cdef Py_ssize_t nbytes = dtype.itemsize
        cdef int axis = 1
        if len(shape) >= MOST_AXES:
            raise ValueError(f'too many axes: {shape}')
        for length in shape:
            self.shape[axis] = length
            nbytes *= length
            axis += 1
        if nbytes != rows.tiles.row_nbytes or dtype.hasobject:
            raise ValueError(
                f'rows of {rows.tiles.row_nbytes} bytes do not hold {shape} '
                f'of {dtype}')
        self.rows = rows
        self.first = first
        self.ndim = axis
        self.dtype = dtype
