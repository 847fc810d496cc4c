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
from libc.string cimport memcpy

from fuel.kernels.converter cimport Converter, conversion_of
from fuel.kernels.epoch_reader cimport IndexReader
from fuel.kernels.gather cimport Rows
from fuel.kernels.memory cimport new_array
from fuel.kernels.pieces cimport Request

import numpy

cnp.import_array()

cdef enum:
    # As of every NumPy.
    MOST_AXES = 32


@cython.final
cdef class Batches:
    """Batches of some sources.

    `parts`: for each source its rows; which of them are examples: the first
        one, or all in their order, an array of intp; and the shape and type
        of a row, in native byte order.
    `most_nbytes`: larger sources of a batch are left to several threads.
    `held`: what must not be closed while this object lives.
    `version`: of the files that are read.
    """

    cdef list parts
    cdef Py_ssize_t num_examples, most_nbytes
    cdef object held
    cdef tuple version

    def __init__(self, list parts not None, Py_ssize_t num_examples,
                 Py_ssize_t most_nbytes, held, tuple version=()):
        self.parts = [Part(*part) for part in parts]
        for part in self.parts:
            if (<Part>part).order is not None and len(
                    (<Part>part).order) < num_examples:
                raise ValueError(f'{num_examples} examples, in an order of '
                                 f'{len((<Part>part).order)} rows')
        self.num_examples = num_examples
        self.most_nbytes = most_nbytes
        self.held = held
        self.version = version

    def read(self, request):
        """Return a batch.

        Returns: new and writable. None if the request is anything else than a
            contiguous array of intp within the examples, or its rows cannot be
            copied in this way.
        """
        if type(request) is not cnp.ndarray or not self.accepts(request):
            return None
        return self.copy(request, None)

    cdef tuple copy(self, cnp.ndarray rows, list converters):
        """Copy rows whose numbers are those of examples, or return None."""
        cdef cnp.npy_intp shape[MOST_AXES]
        cdef tuple data = PyTuple_New(len(self.parts))
        cdef Py_ssize_t place
        cdef Part part
        cdef cnp.ndarray batch
        cdef Request wanted
        cdef Converter converter = None
        cdef cnp.ndarray order = None
        cdef Py_ssize_t count = cnp.PyArray_DIM(rows, 0)
        cdef cnp.ndarray ordered = rows
        wanted.lengths = NULL
        wanted.count = count
        for place in range(len(self.parts)):
            part = <Part>self.parts[place]
            if (part.rows.declines
                    or count * part.rows.table.row_nbytes
                    > self.most_nbytes):
                return None
            if part.order is not order:
                order = part.order
                ordered = rows if order is None else in_order(rows, order)
            wanted.rows = <const cnp.npy_intp *>cnp.PyArray_DATA(ordered)
            memcpy(shape, part.shape, part.ndim * sizeof(cnp.npy_intp))
            shape[0] = count
            wanted.first = part.first
            if converters is not None:
                converter = converters[place]
            if converter is None:
                batch = new_array(part.ndim, shape, part.dtype)
            elif converter.source == part.dtype:
                batch = converter.new_batch(part.ndim, shape)
            else:
                return None
            Py_INCREF(batch)
            PyTuple_SET_ITEM(data, place, batch)
            if not part.rows.copy_plain(
                    &wanted, <char *>cnp.PyArray_DATA(batch),
                    conversion_of(converter)):
                return None
        return data

    cdef bint accepts(self, cnp.ndarray request):
        cdef const cnp.npy_intp *rows
        cdef Py_ssize_t place
        if (cnp.PyArray_TYPE(request) != cnp.NPY_INTP
                or cnp.PyArray_NDIM(request) != 1
                or not cnp.PyArray_IS_C_CONTIGUOUS(request)
                or not cnp.PyArray_ISALIGNED(request)
                or not cnp.PyArray_ISNOTSWAPPED(request)
                or cnp.PyArray_DIM(request, 0) == 0):
            return False
        rows = <const cnp.npy_intp *>cnp.PyArray_DATA(request)
        for place in range(cnp.PyArray_DIM(request, 0)):
            if rows[place] < 0 or rows[place] >= self.num_examples:
                return False
        return True

    def __reduce__(self):
        # A data set is pickled without its open file, and makes them anew.
        return type(None), ()


cdef cnp.ndarray in_order(cnp.ndarray examples, cnp.ndarray order):
    """Return the rows of examples whose numbers are known to be right."""
    cdef cnp.npy_intp count = cnp.PyArray_DIM(examples, 0), place
    cdef cnp.ndarray rows = cnp.PyArray_SimpleNew(1, &count, cnp.NPY_INTP)
    cdef cnp.npy_intp *target = <cnp.npy_intp *>cnp.PyArray_DATA(rows)
    cdef const cnp.npy_intp *source = <const cnp.npy_intp *>(
        cnp.PyArray_DATA(order))
    cdef const cnp.npy_intp *wanted = <const cnp.npy_intp *>(
        cnp.PyArray_DATA(examples))
    for place in range(count):
        target[place] = source[wanted[place]]
    return rows


@cython.final
cdef class BatchReader(IndexReader):
    """Reads the batches of an epoch, where all is plain.

    `requests`, `fallback`, `**kwargs`: as for `IndexReader`.
    `owner`: its attribute ``_direct`` is the `Batches` to read, or None while
        there are none. They are not kept here, so that it can close them.
    `is_open`: whether batches may be read here; until then `fallback` reads.
    `version`: of the files that the epoch reads; `fallback` refuses others.
    """

    cdef object __weakref__
    cdef object owner
    # In whose order the converters are, if there are any.
    cdef tuple sources
    cdef public bint is_open
    cdef public tuple version

    def __init__(self, requests, fallback, owner, **kwargs):
        IndexReader.__init__(self, requests, fallback, **kwargs)
        self.owner = owner
        self.version = ()
        self.sources = tuple(owner.sources) if self.converters else None

    cdef object take(self):
        cdef Batches batches
        cdef cnp.ndarray rows
        data = None
        if self.is_open and (self.sources is None or self.sources == tuple(
                self.owner.sources)):
            batches = self.owner._direct
            rows = self.batch(self.requests.position)
            if (batches is not None and rows is not None
                    and batches.version == self.version
                    and batches.accepts(rows)):
                data = batches.copy(rows, self.converters)
        return self.finish(data)


@cython.final
cdef class Part:
    """What `Batches` knows of a source."""

    cdef Rows rows
    cdef Py_ssize_t first
    # The row of each example, if they do not follow each other.
    cdef cnp.ndarray order
    cdef int ndim
    # The first place is for the number of examples.
    cdef cnp.npy_intp shape[MOST_AXES]
    cdef cnp.dtype dtype

    def __init__(self, Rows rows not None, first, tuple shape,
                 cnp.dtype dtype not None):
        cdef Py_ssize_t nbytes = dtype.itemsize
        cdef int axis = 1
        if len(shape) >= MOST_AXES:
            raise ValueError(f'too many axes: {shape}')
        for length in shape:
            self.shape[axis] = length
            nbytes *= length
            axis += 1
        if nbytes != rows.table.row_nbytes or dtype.hasobject:
            raise ValueError(
                f'rows of {rows.table.row_nbytes} bytes do not hold {shape} '
                f'of {dtype}')
        self.rows = rows
        self.first, self.order = 0, None
        if isinstance(first, numpy.ndarray):
            self.order = numpy.ascontiguousarray(first, numpy.intp)
        else:
            self.first = first
        self.ndim = axis
        self.dtype = dtype
