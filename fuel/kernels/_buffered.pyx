"""An iterator that hands out items read ahead at the cost of a C call.

A Python call for each step between a training loop and one example would
take longer than the example.  So the epoch iterator is built on a class of
C, which gives what is in the buffer and calls Python when that is empty.
"""
cimport cython


@cython.auto_pickle(False)
cdef class Buffer:
    """Items read ahead.

    Attributes
    ----------
    items : iterator or None
        Those not handed out yet.
    taken : int
        How many were handed out since it was set to 0.

    """

    cdef public object items
    cdef public Py_ssize_t taken


@cython.auto_pickle(False)
cdef class BufferedIterator:
    """Iterator that empties a buffer, then calls its own ``read_next()``.

    Attributes
    ----------
    epoch : Buffer

    """

    cdef public Buffer epoch

    def __iter__(self):
        return self

    def __next__(self):
        cdef Buffer epoch = self.epoch
        if epoch is None:
            raise TypeError(
                f'{type(self).__name__} has no epoch to iterate over: call '
                'super().__init__ in its __init__')
        if epoch.items is not None:
            for item in epoch.items:
                epoch.taken += 1
                return item
            epoch.items = None
        return self.read_next()
