"""An iterator that hands out items read ahead at the cost of a C call.

A Python call for each step between a training loop and one example would
take longer than the example.  So the epoch iterator is built on a class of
C, which gives what is in the buffer and calls Python when that is empty.
"""
cimport cython
from cpython.exc cimport PyErr_CheckSignals


@cython.auto_pickle(False)
cdef class PendingItem:
    """What comes from another process, until it is the user's.

    Ctrl-C may come between any two steps of Python, also between the one
    that takes a batch out of a queue and the one that returns it to a
    training loop. So a batch is held here until the iterator returns, in C,
    where no signal is handled. If one came before, the next call gets the
    same batch.

    Attributes
    ----------
    is_asked : bool
        Whether an iterator asks, which says when it has what is held.
    held : tuple or None
        Data, an error or None, and a receipt.
    receipt : object
        Of what was handed out last, until somebody makes a note of it.
    is_over : bool
        Whether StopIteration was raised.

    """

    cdef public bint is_asked
    cdef public bint is_over
    cdef public object held
    cdef public object receipt

    def claim(self):
        """Hand out what is held."""
        if self.held is not None:
            self.receipt = self.held[2]
            self.held = None


@cython.auto_pickle(False)
cdef class PrefetchBuffer:
    """Items read ahead.

    Attributes
    ----------
    items : iterator or None
        Those not handed out yet.
    taken : int
        How many were handed out since it was set to 0.
    pending_item : PendingItem or None
        If what is handed out comes from another process.

    """

    cdef public object items
    cdef public Py_ssize_t taken
    cdef public PendingItem pending_item


@cython.auto_pickle(False)
cdef class BufferedIterator:
    """Iterator that empties a buffer, then calls its own ``read_next()``.

    Attributes
    ----------
    epoch : PrefetchBuffer

    """

    cdef public PrefetchBuffer epoch

    def __iter__(self):
        return self

    def __next__(self):
        cdef PrefetchBuffer epoch = self.epoch
        if epoch is None:
            raise TypeError(
                f'{type(self).__name__} has no epoch to iterate over: call '
                'super().__init__ in its __init__')
        if epoch.items is not None:
            for item in epoch.items:
                epoch.taken += 1
                return item
            epoch.items = None
        if epoch.pending_item is not None:
            return self._claim_next(epoch.pending_item)
        return self.read_next()

    cdef object _claim_next(self, PendingItem pending_item):
        pending_item.is_asked = True
        try:
            data = self.read_next()
            PyErr_CheckSignals()
        except StopIteration:
            pending_item.is_over = True
            raise
        except Exception as error:
            # Not if it is the handler of a signal that raised it.
            if pending_item.held is not None and pending_item.held[1] is error:
                pending_item.claim()
            raise
        finally:
            pending_item.is_asked = False
        pending_item.claim()
        return data
