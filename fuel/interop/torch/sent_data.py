"""Send data to the workers of a loader that are not forked, once for all.

PyTorch pickles the data set for each of them.
"""
from __future__ import annotations

import io
import sys
import weakref
from multiprocessing import context
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any, NamedTuple

from fuel.interop.torch.callers import find_caller
from fuel.transport.segment import HAS_MEMFD
from fuel.transport.shared_pickle import Shared, SharedPickle

_STARTING = ('torch.utils.data.dataloader._MultiProcessingDataLoaderIter',
             ('torchdata.stateful_dataloader.stateful_dataloader.'
              '_StatefulMultiProcessingDataLoaderIter'))
# Data that were sent to the workers of a pass of a loader, or to one process
# if the loader is not known. They live as long as that loader or process.
_sent: weakref.WeakKeyDictionary[Any, list[SharedPickle]] = (
    weakref.WeakKeyDictionary())


class Sent(NamedTuple):
    """An object on its way to a worker.

    `descriptor`: of the segment, in a form that reaches the worker.
    """

    shared: Shared
    descriptor: Any

    def load(self) -> Any:
        """Return the object; see :meth:`~.shared_pickle.Shared.load`."""
        return self.shared.load(None if self.descriptor is None
                                else self.descriptor.detach())


def send(instance: object) -> Any:
    """Return the object that is pickled instead of an instance.

    Where a worker is started: a :class:`Sent`, whose large arrays lie in
    memory that all workers of this pass of the loader share.  Elsewhere: the
    object.
    """
    starting = context.get_spawning_popen()
    if starting is None or not HAS_MEMFD:
        return instance
    # Objects that only a starting process can take, such as locks, and
    # tensors in shared memory, are pickled for each process.
    pickled = SharedPickle(
        instance, ForkingPickler(io.BytesIO()).dispatch_table, sys.maxsize)
    loader = find_caller(*_STARTING)
    sent = _sent.setdefault(starting if loader is None else loader, [])
    for other in sent:
        if pickled.has_arrays_of(other):
            break
    else:
        pickled.write()
        sent.append(other := pickled)
    return Sent(pickled.shared, None if other.descriptor is None
                else DupFd(other.descriptor))


def received(value: Any) -> Any:
    """Return the object that a value of :func:`send` was made of."""
    return value.load() if isinstance(value, Sent) else value
