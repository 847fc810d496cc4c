"""The reader of a mixture: the next item of the stream that is chosen."""
cimport cython
cimport numpy as cnp
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport int64_t

from fuel.kernels.epoch_reader cimport CompiledReader

cnp.import_array()


@cython.auto_pickle(False)
cdef class MixReader(CompiledReader):
    """Reads the items of a mixture.

    Parameters
    ----------
    requests : fuel.schemes.mixing.MixingRequests
    fallback : EpochReader
        Reads the next item where a stream has ended, or where items before
        it were left out.
    iterators : list of iterator
        Epoch iterators of the streams; they are looked up for each item.
    thresholds : numpy.ndarray, shape (streams,), dtype int64
        Where the interval of points of each stream ends. Looked at for each
        item.
    taken : numpy.ndarray, shape (streams,), dtype int64
        How many items each stream has given; counted up here.
    finish : callable, optional
        Takes the data and the number of the stream, and returns the item.

    """

    cdef list iterators
    cdef const int64_t[::1] thresholds
    cdef int64_t[::1] taken
    cdef object finish
    # The points from the position `first` on.
    cdef const int64_t[::1] points
    cdef Py_ssize_t first, stop
    # The position whose item the streams give next.
    cdef Py_ssize_t expected
    # An error that `take` caught, and `read` raises.
    cdef object error

    def __init__(self, requests, fallback, list iterators not None,
                 thresholds, taken, finish=None):
        CompiledReader.__init__(self, requests, fallback)
        self.iterators = iterators
        self.thresholds = thresholds
        self.taken = taken
        self.finish = finish
        self.points = None
        self.first = self.stop = 0
        if not len(iterators) == len(thresholds) == len(taken):
            raise ValueError('there must be one threshold and one count for '
                             'each stream')
        self.count()

    cdef void count(self) noexcept:
        """Find the position of the next item: so many were taken."""
        cdef Py_ssize_t place
        self.expected = 0
        for place in range(self.taken.shape[0]):
            self.expected += self.taken[place]

    cdef bint find_points(self, Py_ssize_t position) except -1:
        """Look up the points around a position, if the epoch has it."""
        if position < 0 or position >= (<object>self.requests).num_requests:
            return False
        self.points = (<object>self.requests).chunk_at(position)
        self.first = position - position % self.points.shape[0]
        self.stop = <Py_ssize_t>min(
            self.first + self.points.shape[0], (<object>self.requests).num_requests)
        return True

    cdef object take(self):
        cdef Py_ssize_t position = self.requests.position
        cdef Py_ssize_t place = 0, count = self.thresholds.shape[0]
        cdef int64_t point
        cdef object data
        if self.error is not None or position != self.expected:
            return None
        if (position < self.first or position >= self.stop) and (
                not self.find_points(position)):
            return None
        point = self.points[position - self.first]
        while place < count and self.thresholds[place] <= point:
            place += 1
        if place == count or place >= PyList_GET_SIZE(self.iterators):
            return None
        try:
            data = next(<object>PyList_GET_ITEM(self.iterators, place))
            self.advance(place)
            if self.finish is not None:
                data = self.finish(data, place)
            return data
        except StopIteration:
            return None
        except Exception as error:
            # Raised by `read`, where the epoch counts it.
            self.error = error
            if self.requests.position == position:
                self.advance(place)
            return None

    cdef void advance(self, Py_ssize_t place) noexcept:
        """Count an item of a stream as taken."""
        self.requests.position += 1
        self.expected += 1
        self.taken[place] += 1

    def read(self):
        """Return the next item."""
        data = self.take()
        error, self.error = self.error, None
        if error is not None:
            raise error
        if data is not None:
            return data
        try:
            return self.fallback.read()
        finally:
            self.count()

    def close(self):
        """Let go of the iterators."""
        self.iterators = []
        self.fallback.close()
