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

    `parts`: for each source what reads it, and which of its examples there
        are: the first one, or all in their order, an array of intp.
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
        self.parts = []
        for part, first in parts:
            (<Part?>part).place(first, num_examples)
            self.parts.append(part)
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
        cdef tuple data = PyTuple_New(len(self.parts))
        cdef Py_ssize_t place
        cdef Part part
        cdef Converter converter = None
        cdef cnp.ndarray order = None
        cdef cnp.ndarray ordered = rows
        for place in range(len(self.parts)):
            part = <Part>self.parts[place]
            if part.order is not order:
                order = part.order
                ordered = rows if order is None else in_order(rows, order)
            if converters is not None:
                converter = converters[place]
            batch = part.read(ordered, converter, self.most_nbytes)
            if batch is None:
                return None
            Py_INCREF(batch)
            PyTuple_SET_ITEM(data, place, batch)
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
    `prefetches`: whether `fallback` prefetches first, by a method of that
        name.
    `version`: of the files that the epoch reads; `fallback` refuses others.
    """

    cdef object __weakref__
    cdef object owner
    # In whose order the converters are, if there are any.
    cdef tuple sources
    cdef public bint is_open, prefetches
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
        if self.prefetches:
            self.fallback.prefetch()
        if self.is_open and (self.sources is None or self.sources == tuple(
                self.owner.sources)):
            batches = self.owner._direct
            rows = self.batch(self.requests.position)
            if (batches is not None and rows is not None
                    and batches.version == self.version
                    and batches.accepts(rows)):
                data = batches.copy(rows, self.converters)
        return self.finish(data)


cdef class Part:
    """Base of the classes below, which read a source."""

    # Added to the number of an example.
    cdef Py_ssize_t first
    # The number of each example, if they do not follow each other.
    cdef cnp.ndarray order

    cdef int place(self, first, Py_ssize_t num_examples) except -1:
        """Take the first example, or all of them in their order."""
        self.first, self.order = 0, None
        if not isinstance(first, numpy.ndarray):
            self.first = first
            return 0
        self.order = numpy.ascontiguousarray(first, numpy.intp)
        if len(self.order) < num_examples:
            raise ValueError(f'{num_examples} examples, in an order of '
                             f'{len(self.order)} rows')
        return 0

    cdef object read(self, cnp.ndarray examples, Converter converter,
                     Py_ssize_t most_nbytes):
        """Return examples, or None if they cannot be read in this way."""
        return None


cdef class PlainRows(Part):
    """Examples that are a row each.

    `rows`: copies them.
    `shape`, `dtype`: of an example, in native byte order.
    `each`: rows of an example. Defaults to 1.
    """

    cdef readonly Rows rows
    cdef int ndim
    # The first place is for the number of examples.
    cdef cnp.npy_intp shape[MOST_AXES]
    cdef cnp.dtype dtype

    def __init__(self, Rows rows not None, tuple shape,
                 cnp.dtype dtype not None, Py_ssize_t each=1):
        cdef Py_ssize_t nbytes = dtype.itemsize
        cdef int axis = 1
        if len(shape) >= MOST_AXES:
            raise ValueError(f'too many axes: {shape}')
        for length in shape:
            self.shape[axis] = length
            nbytes *= length
            axis += 1
        if nbytes != rows.table.row_nbytes * each or dtype.hasobject:
            raise ValueError(
                f'{each} rows of {rows.table.row_nbytes} bytes do not hold '
                f'{shape} of {dtype}')
        self.rows = rows
        self.ndim = axis
        self.dtype = dtype

    cdef object read(self, cnp.ndarray examples, Converter converter,
                     Py_ssize_t most_nbytes):
        cdef Request wanted
        wanted.rows = numbers(examples)
        wanted.lengths = NULL
        wanted.first = self.first
        wanted.count = cnp.PyArray_DIM(examples, 0)
        return self.copy(&wanted, wanted.count, converter, most_nbytes)

    cdef cnp.ndarray copy(self, const Request *wanted, Py_ssize_t count,
                          Converter converter, Py_ssize_t most_nbytes):
        """Return the rows of some examples as one array, or None."""
        cdef cnp.npy_intp shape[MOST_AXES]
        cdef cnp.ndarray batch
        if (self.rows.declines or wanted.count
                > most_nbytes // max(1, self.rows.table.row_nbytes)):
            return None
        memcpy(shape, self.shape, self.ndim * sizeof(cnp.npy_intp))
        shape[0] = count
        if converter is None:
            batch = new_array(self.ndim, shape, self.dtype)
        elif converter.source == self.dtype:
            batch = converter.new_batch(self.ndim, shape)
        else:
            return None
        if not self.rows.copy_plain(
                wanted, <char *>cnp.PyArray_DATA(batch),
                conversion_of(converter)):
            return None
        return batch


@cython.final
cdef class WindowRows(PlainRows):
    """Examples that are windows of runs: of each the same rows, counted from
    its beginning.

    `rows`, `shape`, `dtype`: see `PlainRows`.
    `first_examples`: of each run, and how many windows there are; shape
        (runs + 1,).
    `first_rows`: of each run; shape (runs,).
    `stride`: from the first row of a window to that of the next.
    `offsets`: the rows of a window; shape (rows,).
    """

    cdef cnp.ndarray first_examples, first_rows, offsets
    cdef Py_ssize_t stride
    cdef bint is_range

    def __init__(self, Rows rows not None, tuple shape, cnp.dtype dtype,
                 first_examples, first_rows, Py_ssize_t stride, offsets):
        PlainRows.__init__(self, rows, shape, dtype, len(offsets))
        self.first_examples, self.first_rows, self.offsets = [
            numpy.array(one, numpy.intp, ndmin=1)
            for one in (first_examples, first_rows, offsets)]
        if len(self.first_examples) != len(self.first_rows) + 1:
            raise ValueError(
                f'{len(self.first_rows)} runs, but the first examples of '
                f'{len(self.first_examples) - 1}')
        self.stride = stride
        self.is_range = bool((numpy.diff(self.offsets) == 1).all())

    cdef object read(self, cnp.ndarray examples, Converter converter,
                     Py_ssize_t most_nbytes):
        cdef Request wanted
        cdef cnp.npy_intp count = cnp.PyArray_DIM(examples, 0), place
        cdef cnp.npy_intp each = cnp.PyArray_DIM(self.offsets, 0), row
        cdef cnp.npy_intp number = count if self.is_range else count * each
        cdef const cnp.npy_intp *offsets = numbers(self.offsets)
        cdef cnp.ndarray rows, lengths
        cdef cnp.npy_intp *target
        if count > most_nbytes // max(1, self.rows.table.row_nbytes * each):
            return None
        rows = cnp.PyArray_SimpleNew(1, &number, cnp.NPY_INTP)
        target = <cnp.npy_intp *>cnp.PyArray_DATA(rows)
        wanted.rows = target
        wanted.lengths = NULL
        wanted.first = 0
        wanted.count = count * each
        if not self.find(numbers(examples), count, target):
            return None
        if self.is_range:
            lengths = cnp.PyArray_SimpleNew(1, &number, cnp.NPY_INTP)
            wanted.lengths = <cnp.npy_intp *>cnp.PyArray_DATA(lengths)
            for place in range(count):
                target[place] += offsets[0]
                (<cnp.npy_intp *>cnp.PyArray_DATA(lengths))[place] = each
        else:
            # From the last on, since the first rows lie in the same array.
            for place in range(count - 1, -1, -1):
                row = target[place]
                for number in range(each - 1, -1, -1):
                    target[place * each + number] = row + offsets[number]
        return self.copy(&wanted, count, converter, most_nbytes)

    cdef bint find(self, const cnp.npy_intp *examples, Py_ssize_t count,
                   cnp.npy_intp *rows):
        """Find where windows begin; return whether there are all of them."""
        cdef const cnp.npy_intp *firsts = numbers(self.first_examples)
        cdef const cnp.npy_intp *first_rows = numbers(self.first_rows)
        cdef Py_ssize_t place, example, low, high, middle
        cdef Py_ssize_t num_runs = cnp.PyArray_DIM(self.first_rows, 0)
        for place in range(count):
            example = self.first + examples[place]
            if example < firsts[0] or example >= firsts[num_runs]:
                return False
            low, high = 0, num_runs
            while high - low > 1:
                middle = (low + high) // 2
                if firsts[middle] <= example:
                    low = middle
                else:
                    high = middle
            rows[place] = (first_rows[low]
                           + (example - firsts[low]) * self.stride)
        return True


@cython.final
cdef class RangeRows(Part):
    """Examples that are made of ranges of rows.

    `parts`: read the rows; of each the same ranges.
    `starts`, `stops`: shape (examples,), dtype intp; of the ranges.
    `make`: takes a list of what the parts read, how many rows each example
        has, and the numbers of the examples; returns these.
    """

    cdef list parts
    cdef cnp.ndarray starts, stops
    cdef object make

    def __init__(self, list parts not None, starts, stops, make):
        if not all(type(part) is PlainRows for part in parts):
            raise TypeError(f'ranges of plain rows are read, got {parts}')
        self.parts = parts
        self.starts = numpy.ascontiguousarray(starts, numpy.intp)
        self.stops = numpy.ascontiguousarray(stops, numpy.intp)
        if len(self.starts) != len(self.stops):
            raise ValueError(f'{len(self.starts)} ranges begin, and '
                             f'{len(self.stops)} end')
        self.make = make

    cdef object read(self, cnp.ndarray examples, Converter converter,
                     Py_ssize_t most_nbytes):
        cdef Request wanted
        cdef cnp.npy_intp count = cnp.PyArray_DIM(examples, 0), place
        cdef cnp.ndarray starts = cnp.PyArray_SimpleNew(
            1, &count, cnp.NPY_INTP)
        cdef cnp.ndarray counts = cnp.PyArray_SimpleNew(
            1, &count, cnp.NPY_INTP)
        cdef cnp.npy_intp *begin = <cnp.npy_intp *>cnp.PyArray_DATA(starts)
        cdef cnp.npy_intp *lengths = <cnp.npy_intp *>cnp.PyArray_DATA(counts)
        cdef const cnp.npy_intp *all_starts = numbers(self.starts)
        cdef const cnp.npy_intp *all_stops = numbers(self.stops)
        cdef const cnp.npy_intp *numbers_of = numbers(examples)
        cdef Py_ssize_t example, total = 0
        if converter is not None:
            return None
        for place in range(count):
            example = self.first + numbers_of[place]
            if example < 0 or example >= cnp.PyArray_DIM(self.starts, 0):
                return None
            begin[place] = all_starts[example]
            lengths[place] = all_stops[example] - all_starts[example]
            if lengths[place] < 0 or lengths[place] > most_nbytes - total:
                return None
            total += lengths[place]
        wanted.rows = begin
        wanted.lengths = lengths
        wanted.first = 0
        wanted.count = total
        found = []
        for part in self.parts:
            data = (<PlainRows>part).copy(&wanted, total, None, most_nbytes)
            if data is None:
                return None
            found.append(data)
        if self.first:
            examples = examples + self.first
        try:
            return self.make(found, counts, examples)
        except Exception:
            # Whoever reads them anew says which request it was.
            return None


cdef inline const cnp.npy_intp *numbers(cnp.ndarray array) noexcept:
    """Return what is in an array of intp that is known to be plain."""
    return <const cnp.npy_intp *>cnp.PyArray_DATA(array)
