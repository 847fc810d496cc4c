"""Sequences packed into rows: which goes where, and the copies."""
cimport cython
cimport numpy as cnp
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memset

import numpy

cnp.import_array()


def measure(list sequences not None, cnp.dtype dtype not None,
            tuple shape not None):
    """Return the lengths of arrays that can be copied as bytes.

    Parameters
    ----------
    sequences : list of numpy.ndarray, shape (length, ...)
    dtype : numpy.dtype
        A native type without objects.
    shape : tuple of int
        Of an element.

    Returns
    -------
    numpy.ndarray, dtype int64, or None
        None unless all are C-contiguous arrays of that type, whose elements
        have that shape.
    """
    cdef Py_ssize_t place, count = PyList_GET_SIZE(sequences)
    cdef int axis, ndim = len(shape) + 1
    cdef cnp.npy_intp dimensions[32]
    cdef cnp.ndarray lengths = numpy.empty(count, numpy.int64)
    cdef int64_t *out = <int64_t *>cnp.PyArray_DATA(lengths)
    cdef cnp.ndarray array
    if ndim > 32 or dtype.hasobject:
        return None
    for axis in range(1, ndim):
        dimensions[axis] = shape[axis - 1]
    for place in range(count):
        item = <object>PyList_GET_ITEM(sequences, place)
        if type(item) is not cnp.ndarray:
            return None
        array = <cnp.ndarray>item
        if (cnp.PyArray_NDIM(array) != ndim
                or not cnp.PyArray_IS_C_CONTIGUOUS(array)
                or (<void *>cnp.PyArray_DESCR(array) != <void *>dtype
                    and array.dtype != dtype)):
            return None
        for axis in range(1, ndim):
            if cnp.PyArray_DIM(array, axis) != dimensions[axis]:
                return None
        out[place] = cnp.PyArray_DIM(array, 0)
    return lengths


@cython.auto_pickle(False)
cdef class RowPacker:
    """Puts sequences into rows: each into the first open row with room.

    If there is none, a new row is opened; if as many are open as may be, the
    oldest is closed first. So rows are closed in the order in which they were
    opened, and are numbered in it.

    Parameters
    ----------
    length : int
        How many items a row has.
    window : int
        How many rows may be open.
    num_sources : int
    used : list of int, optional
        How much of each open row is used, the oldest first, by sequences that
        are not kept. Defaults to no open rows.
    first : int, optional
        Number of the oldest open row.

    Attributes
    ----------
    first : int
        Number of the oldest open row.
    closed : list
        Closed rows: of each a list for every source, of sequences.
    """

    cdef readonly Py_ssize_t length, window, num_sources, first
    cdef readonly list closed
    cdef list rows
    cdef int64_t[::1] levels

    def __init__(self, Py_ssize_t length, Py_ssize_t window,
                 Py_ssize_t num_sources, used=(), Py_ssize_t first=0):
        if length < 1 or window < 1 or len(used) > window:
            raise ValueError('length and window must be positive, and no '
                             'more rows open than the window has')
        if not all(0 <= level <= length for level in used) or first < 0:
            raise ValueError('rows are used from 0 to their length')
        self.length, self.window, self.num_sources = (
            length, window, num_sources)
        self.first = first
        self.closed = []
        self.rows = [self._new_row() for _ in used]
        self.levels = numpy.zeros(window, numpy.int64)
        for place, level in enumerate(used):
            self.levels[<Py_ssize_t>place] = level

    def __reduce__(self):
        return RowPacker, (
            self.length, self.window, self.num_sources, self.used,
            self.first), (self.rows, self.closed)

    def __setstate__(self, state):
        self.rows, self.closed = state

    cdef list _new_row(self):
        return [[] for _ in range(self.num_sources)]

    @property
    def used(self):
        """Used elements of each open row, the oldest row first (list)."""
        return [self.levels[place] for place in range(len(self.rows))]

    @property
    def num_closed(self):
        """Number of rows that were closed in all (int)."""
        return self.first

    cdef object close_oldest(self):
        cdef Py_ssize_t place
        self.closed.append(self.rows.pop(0))
        self.first += 1
        for place in range(PyList_GET_SIZE(self.rows)):
            self.levels[place] = self.levels[place + 1]

    def add(self, tuple parts not None, const int64_t[::1] lengths not None,
            Py_ssize_t start, Py_ssize_t stop, Py_ssize_t wanted):
        """Put sequences into rows until enough rows were closed.

        Parameters
        ----------
        parts : tuple of list
            For each source the sequences.
        lengths : numpy.ndarray, dtype int64
            Of the sequences; at most that of a row.
        start, stop : int
            Which of them.
        wanted : int
            Stop as soon as so many rows were closed in all.

        Returns
        -------
        int
            The first sequence that was not put into a row.
        """
        cdef Py_ssize_t place, count, source
        cdef int64_t length
        cdef list row
        if not 0 <= start <= stop <= lengths.shape[0]:
            raise IndexError('these are not sequences of the parts')
        for part in parts:
            if len(part) < stop:
                raise IndexError('a source has too few sequences')
        while start < stop and self.first < wanted:
            length = lengths[start]
            if length < 0 or length > self.length:
                raise ValueError(f'a sequence of {length} does not fit')
            if length == 0:
                start += 1
                continue
            count = PyList_GET_SIZE(self.rows)
            place = 0
            while place < count and (
                    self.levels[place] + length > self.length):
                place += 1
            if place == count:
                if count == self.window:
                    self.close_oldest()
                    place -= 1
                self.rows.append(self._new_row())
                self.levels[place] = 0
            row = <list>PyList_GET_ITEM(self.rows, place)
            for source in range(self.num_sources):
                (<list>PyList_GET_ITEM(row, source)).append(
                    parts[source][start])
            self.levels[place] += length
            start += 1
            while PyList_GET_SIZE(self.rows) and (
                    self.levels[0] == self.length):
                self.close_oldest()
        return start

    def finish(self):
        """Close all rows: there are no more sequences."""
        while self.rows:
            self.close_oldest()

    def take(self, Py_ssize_t count):
        """Return up to `count` closed rows, which are not kept."""
        taken, self.closed = self.closed[:count], self.closed[count:]
        return taken


def fill_rows(list rows not None, Py_ssize_t source,
              cnp.ndarray out not None):
    """Copy the sequences of rows behind each other, and zeros behind them.

    Parameters
    ----------
    rows : list of list of list of numpy.ndarray
        Of each row the sequences of every source, as `measure` takes them.
    source : int
        Which source.
    out : numpy.ndarray, shape (rows, length, ...)
        Written to: contiguous, of the type of the sequences.
    """
    cdef Py_ssize_t number, place, used, size
    cdef list sequences
    cdef cnp.ndarray array
    cdef char *target
    if not cnp.PyArray_ISCARRAY(out) or cnp.PyArray_NDIM(out) < 2 or (
            cnp.PyArray_DIM(out, 0) != len(rows)):
        raise ValueError('out must be a contiguous array of as many rows')
    size = cnp.PyArray_NBYTES(out) // max(1, len(rows))
    for number in range(PyList_GET_SIZE(rows)):
        target = <char *>cnp.PyArray_DATA(out) + number * size
        used = 0
        sequences = rows[number][source]
        for place in range(PyList_GET_SIZE(sequences)):
            array = <cnp.ndarray?>sequences[place]
            if used + cnp.PyArray_NBYTES(array) > size:
                raise ValueError('the sequences are longer than the row')
            memcpy(target + used, cnp.PyArray_DATA(array),
                   cnp.PyArray_NBYTES(array))
            used += cnp.PyArray_NBYTES(array)
        memset(target + used, 0, size - used)


def number_rows(list rows not None, int32_t[:, ::1] segments,
                int32_t[:, ::1] positions):
    """Write which sequence of its row each item is of, and where in it.

    Parameters
    ----------
    rows : list of list of list of numpy.ndarray
        Of each row the sequences of every source.
    segments, positions : numpy.ndarray, shape (rows, length), dtype int32
        Written to, or None. Segments are counted from 1 on, positions from
        0; both are 0 behind the last sequence.

    Returns
    -------
    int
        How many items the rows have.
    """
    cdef Py_ssize_t number, place, item, used, length, total = 0
    cdef Py_ssize_t width = 0
    cdef list sequences
    for name, array in (('segments', segments), ('positions', positions)):
        if array is not None:
            width = array.shape[1]
            if array.shape[0] != len(rows):
                raise ValueError(f'{name} must have as many rows')
    for number in range(PyList_GET_SIZE(rows)):
        sequences = rows[number][0]
        used = 0
        for place in range(PyList_GET_SIZE(sequences)):
            length = cnp.PyArray_DIM(<cnp.ndarray?>sequences[place], 0)
            if width and used + length > width:
                raise ValueError('the sequences are longer than the row')
            if segments is not None:
                for item in range(length):
                    segments[number, used + item] = <int32_t>(place + 1)
            if positions is not None:
                for item in range(length):
                    positions[number, used + item] = <int32_t>item
            used += length
        total += used
        if segments is not None:
            for item in range(used, width):
                segments[number, item] = 0
        if positions is not None:
            for item in range(used, width):
                positions[number, item] = 0
    return total
