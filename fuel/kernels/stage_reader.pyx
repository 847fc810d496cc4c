"""Readers of a stage: the next item of its child, transformed.

They call Python once for each item, for what the stage does with it.
"""
cimport cython
cimport numpy as cnp
from cpython.dict cimport PyDict_GetItem, PyDict_Update
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport (
    PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_New,
    PyTuple_SET_ITEM)

from fuel.kernels.epoch_iterator cimport EpochPosition
from fuel.kernels.epoch_reader cimport CompiledReader

import weakref
from collections.abc import Iterator

cnp.import_array()


@cython.auto_pickle(False)
cdef class ItemReader(CompiledReader):
    """Base of the readers that make an item, or raise.

    `stage`: held weakly, since it holds the epoch that has this reader.
    """

    cdef object stage
    # The error that `take` caught, and `read` raises.
    cdef object error
    cdef bint is_pending

    def __init__(self, stage):
        self.stage = weakref.ref(stage)
        self.is_pending = False

    cdef object make(self):
        # Each subclass has its own.
        raise NotImplementedError

    cdef object take(self):
        if self.is_pending:
            return None
        try:
            data = self.make()
        except Exception as error:
            # Raised by `read`, where the epoch counts and explains it.
            self.error, self.is_pending = error, True
            return None
        self.is_pending = data is None
        return data

    cdef object transformed(self, stage, transform, child, item, bint is_bound):
        """Return an item transformed, or raise an error that says where."""
        try:
            data = transform(item) if is_bound else transform(stage, item)
            if type(data) is not tuple and isinstance(data, Iterator):
                data = tuple(data)
        except Exception as error:
            explained = stage._explained(error, child, item)
            if explained is error:
                raise
            raise explained from error
        return data

    def explained(self, error, child, item):
        """Return an error of a transformation with what is known of it."""
        return self.stage()._explained(error, child, item)

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
        """Let go of what is held."""


@cython.auto_pickle(False)
cdef class StageReader(ItemReader):
    """Reads a stage that does not ask for the attributes of its epoch.

    `child`: the epoch iterator of the stream that the stage reads.
    `transform`: takes the stage and an item, and returns the item transformed.
    """

    cdef public object child
    cdef readonly object transform

    def __init__(self, stage, child, transform):
        ItemReader.__init__(self, stage)
        self.child = child
        self.transform = transform

    cdef object make(self):
        # Held here, since another thread may come to the end and close this.
        child = self.child
        if child is None:
            raise StopIteration
        item = next(child)
        return self.transformed(
            self.stage(), self.transform, child, item, False)

    def close(self):
        """Let go of the child's iterator."""
        self.child = None


@cython.auto_pickle(False)
cdef class BoundStageReader(ItemReader):
    """Reads a stream that shows the attributes of the epoch meanwhile.

    `epoch`: the epoch, held weakly too.
    `method`: the name of the method that transforms an item of the child.
        None: `get_data` is asked for the data of the next request.
    """

    cdef object epoch
    cdef tuple names
    cdef str method

    def __init__(self, epoch, stage, method=None):
        ItemReader.__init__(self, stage)
        self.epoch = weakref.ref(epoch)
        self.names = tuple(getattr(stage, 'epoch_attributes', ()))
        self.method = method

    cdef object make(self):
        cdef EpochPosition epoch = self.epoch()
        stage = self.stage()
        cdef dict shown = stage.__dict__
        cdef PyObject *kept = PyDict_GetItem(shown, '__fuel_kept__')
        cdef PyObject *value
        # A foreign stream has none.
        lock = None if kept == NULL else (<object>kept).lock
        if lock is not None:
            lock.acquire()
        try:
            PyDict_Update(shown, epoch.attributes)
            try:
                return (self.ask(stage, epoch) if self.method is None
                        else self.call(stage, shown))
            finally:
                for name in self.names:
                    value = PyDict_GetItem(shown, name)
                    if value == NULL:
                        epoch.attributes.pop(name, None)
                    else:
                        epoch.attributes[name] = <object>value
        finally:
            if lock is not None:
                lock.release()

    cdef object call(self, stage, dict shown):
        child = shown['child_epoch_iterator']
        item = next(child)
        return self.transformed(
            stage, getattr(stage, self.method), child, item, True)

    cdef object ask(self, stage, epoch):
        requests = epoch.request_iterator
        if requests is None:
            return stage.get_data()
        request = None
        try:
            request = next(requests)
            return stage.get_data(request)
        except Exception as error:
            note_request(error, request)
            raise


@cython.auto_pickle(False)
@cython.final
cdef class OfPlainArrays:
    """Calls a function with each array of an item.

    `function`: takes an array that is laid out as those of Fuel are.
    `otherwise`: takes the stage and an item that has other parts, or one that
        the function refuses.
    `as_int64`: whether integers of one axis and less than 64 bits become
        int64 before.
    """

    cdef object function, otherwise
    cdef bint as_int64

    def __init__(self, function, otherwise, bint as_int64=False):
        self.function = function
        self.otherwise = otherwise
        self.as_int64 = as_int64

    def __call__(self, stage, data):
        """Return an item, transformed."""
        if PyTuple_CheckExact(data):
            try:
                made = self.each(data)
                if made is not None:
                    return made
            except (TypeError, ValueError):
                pass
        return self.otherwise(stage, data)

    cdef tuple each(self, tuple data):
        cdef Py_ssize_t place, count = PyTuple_GET_SIZE(data)
        cdef tuple made = PyTuple_New(count)
        for place in range(count):
            part = <object>PyTuple_GET_ITEM(data, place)
            if not (cnp.PyArray_CheckExact(part)
                    and cnp.PyArray_ISCARRAY(part)):
                return None
            if self.as_int64 and cnp.PyArray_NDIM(part) == 1 and (
                    cnp.PyArray_ISINTEGER(part)
                    and cnp.PyArray_ITEMSIZE(part) < 8):
                part = cnp.PyArray_Cast(part, cnp.NPY_INT64)
            part = self.function(part)
            Py_INCREF(part)
            PyTuple_SET_ITEM(made, place, part)
        return made


def note_request(error, request):
    """Add to an error which request it came from, if from any."""
    if request is not None and not isinstance(error, StopIteration):
        if hasattr(request, 'tolist'):
            request = request.tolist()
        error.add_note(f'for the request {request!r:.500}')
