"""Send data once to all workers of a loader that are not forked.

PyTorch itself pickles the data set for each worker.
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
# For each loader, the data that were sent to the workers of its pass. The key
# is the process if the loader is not known. The data live as long as the key.
_sent: weakref.WeakKeyDictionary[Any, list[SharedPickle]] = (
    weakref.WeakKeyDictionary())


class Sent(NamedTuple):
    """An object that is sent to a worker in shared memory.

    `descriptor`: descriptor of the segment, in a form that can be sent.
    """

    shared: Shared
    descriptor: Any

    def load(self) -> Any:
        """Return the object that was sent; see
        :meth:`~.shared_pickle.Shared.load`."""
        return self.shared.load(None if self.descriptor is None
                                else self.descriptor.detach())


def send(instance: object) -> Any:
    """Return the object to pickle in the place of an instance.

    While a worker is started, it is a :class:`Sent`, whose large arrays are
    in memory that all workers of the loader's pass share.  Otherwise it is
    the instance itself.
    """
    starting = context.get_spawning_popen()
    if starting is None or not HAS_MEMFD:
        return instance
    # Locks, and tensors in shared memory, are pickled for each process, since
    # only a process that is being started can receive them.
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
    """Return the instance from which :func:`send` made a value."""
    return value.load() if isinstance(value, Sent) else value
