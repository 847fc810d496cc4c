"""The reader of a stage: the next item of its child, transformed.

It calls Python once for each item, for the transformation itself.
"""
cimport cython

from fuel.kernels.epoch_reader cimport CompiledReader

import weakref
from collections.abc import Iterator


@cython.auto_pickle(False)
cdef class StageReader(CompiledReader):
    """Reads the items of a stage.

    `stage`: held weakly, since it holds the epoch that has this reader.
    `child`: the epoch iterator of the stream that the stage reads.
    `transform`: takes the stage and an item, and returns the item transformed.
    """

    cdef object stage
    cdef public object child
    cdef object transform
    # What `read` has to return or to raise, after `take` could not.
    cdef object data, error
    cdef bint is_pending

    def __init__(self, stage, child, transform):
        self.stage = weakref.ref(stage)
        self.child = child
        self.transform = transform
        self.is_pending = False

    cdef object take(self):
        if self.is_pending:
            return None
        cdef object data = None, item = None, stage = self.stage()
        try:
            item = next(self.child)
        except Exception as error:
            # Raised by `read`, where the epoch counts and explains it.
            self.error, self.is_pending = error, True
            return None
        try:
            data = self.transform(stage, item)
            if type(data) is not tuple and isinstance(data, Iterator):
                data = tuple(data)
        except Exception as error:
            self.error = stage._explained(error, self.child, item)
            self.is_pending = True
            return None
        self.is_pending = data is None
        return data

    def read(self):
        """Return the next item."""
        data = self.take()
        if not self.is_pending:
            return data
        self.is_pending = False
        error, self.error = self.error, None
        if error is not None:
            raise error
        return None

    def skip(self, Py_ssize_t count):
        """Read items and drop them."""
        for _ in range(count):
            self.read()

    def close(self):
        """Let go of the child's iterator."""
        self.child = None
