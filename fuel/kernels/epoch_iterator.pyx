"""The compiled part of the epoch iterator, and items of other processes."""
cimport cython
cimport numpy as cnp
from cpython.bytes cimport PyBytes_CheckExact
from cpython.dict cimport PyDict_CheckExact
from cpython.exc cimport PyErr_CheckSignals
from cpython.float cimport PyFloat_CheckExact
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE
from cpython.long cimport PyLong_CheckExact
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from cpython.tuple cimport (
    PyTuple_Check, PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE)
from cpython.unicode cimport PyUnicode_CheckExact

from fuel.kernels.epoch_reader cimport CompiledReader

cnp.import_array()

include 'stage_meter.pxi'

cdef extern from 'Python.h':
    ctypedef object (*iternextfunc)(object)

    ctypedef struct PyTypeObject:
        iternextfunc tp_iternext


@cython.auto_pickle(False)
cdef class PendingItem:
    """An item from another process that is not delivered yet.

    Ctrl-C may come between any two steps of Python, also between the one
    that takes a batch out of a queue and the one that returns it to a
    training loop. So a batch is held here until the iterator returns, in C,
    where no signal is handled. If one came before, the next call gets the
    same batch.

    `is_asked`: whether an iterator asks, which says when it has what is held.
    `held`: data, an error or None, and a receipt.
    `receipt`: of the item delivered last, until it is counted.
    `is_over`: whether StopIteration was raised.
    """

    def claim(self):
        """Hand out what is held."""
        if self.held is not None:
            self.receipt = self.held[2]
            self.held = None


@cython.auto_pickle(False)
cdef class EpochPosition:
    """Base of :class:`fuel.epochs.epoch.Epoch`: what is looked at in C.

    `position`: how many batches or examples were delivered.
    `reader`: what reads the data; None before the first read.
    `pending_item`: if the data come from another process.
    `step`: how many items of the order one of them stands for, which is the
        number of ranks that share it.
    `attributes`: the values of the stream's `epoch_attributes`.
    `skipped`: numbers of the reads to leave out, since their exceptions were
        delivered before the state was saved that was taken up.
    `meter`: measures the items.
    """

    def __cinit__(self, *args, **kwargs):
        self.step = 1
        self.attributes = {}
        self.skipped = set()
        self.meter = StageMeter()


cdef object _claim(EpochIterator iterator, EpochPosition epoch,
                   Frame *frame):
    cdef PendingItem pending_item = epoch.pending_item
    pending_item.is_asked = True
    try:
        data = iterator.read_next()
        # Here, since it may run Python code for unusual arrays.
        measure(frame, epoch.meter, data)
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


@cython.auto_pickle(False)
cdef class EpochIterator:
    """Iterator that asks a compiled reader, else its own ``read_next()``."""

    def __iter__(self):
        return self

    def __next__(self):
        cdef EpochPosition epoch = self.epoch
        if epoch is None:
            raise TypeError(
                f'{type(self).__name__} has no epoch to iterate over: call '
                'super().__init__ in its __init__')
        cdef StageMeter meter = epoch.meter
        cdef Frame frame
        # Held here, since another thread may come to the end and drop it.
        reader = epoch.reader
        cdef bint is_quick = (
            epoch.pending_item is None
            and isinstance(reader, CompiledReader) and not epoch.skipped)
        enter(&frame, meter, is_quick)
        try:
            data = None
            if is_quick:
                data = (<CompiledReader>reader).take()
                if data is not None:
                    epoch.position += epoch.step
                    if self.as_dict:
                        data = self.name_sources(data)
                elif frame.weight != 1:
                    slow_down(&frame, meter)
            if data is None:
                if epoch.pending_item is not None:
                    return self._claim_next(epoch, &frame)
                data = self.read_next()
            measure(&frame, meter, data)
            return data
        finally:
            leave(&frame, meter)

    cdef object _claim_next(self, EpochPosition epoch, Frame *frame):
        # Two threads must not receive the same item, so one of them takes an
        # item at a time. (No signal is handled before `try`.)
        lock = (<object>self.data_stream).__dict__['__fuel_kept__'].lock
        if not lock.acquire(False):
            with Waiting():
                lock.acquire()
        try:
            return _claim(self, epoch, frame)
        finally:
            lock.release()


def next_in_c(cls):
    """Let loops over a subclass call the compiled ``__next__`` directly.

    A class written in Python looks methods up by their names at each call,
    also those of a compiled base.  A subclass of `cls` does so again, and
    its own ``__next__`` is found.
    """
    if cls.__next__ is not EpochIterator.__next__:
        raise TypeError(f'{cls.__name__} has a __next__ of its own')
    (<PyTypeObject *>cls).tp_iternext = (
        <PyTypeObject *>EpochIterator).tp_iternext
    return cls
