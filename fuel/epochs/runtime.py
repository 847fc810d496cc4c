"""Objects that a stream holds while it runs, and no pickle keeps."""
from __future__ import annotations

import threading
import weakref
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from fuel.epochs.encoded import Encoded
from fuel.utils.forks import Step, at_fork, for_each

if TYPE_CHECKING:
    from fuel.epochs.epoch import Epoch


class Runtime:
    """What a stream holds while it runs, and what no pickle keeps.

    `epoch`: the one made last.
    `holders`: the epochs that still have a data set's state.
    `pending`: the state that the next epoch iterator takes up.
    `fingerprint`: what a saved state must fit, made for the last one.
    `encoded_scheme`: the state of the scheme that was saved last.
    """

    def __init__(self, pending: dict[str, Any] | None = None) -> None:
        self.lock = threading.RLock()
        self.epoch: Epoch | None = None
        self.iterator: weakref.ref[Any] | None = None
        self.start: Any = None
        self.holders: list[tuple[weakref.ref[Any], Epoch]] = []
        self.pending = pending
        self.fingerprint: Any = None
        self.encoded_scheme: Encoded | None = None
        _all.add(self)

    def unlock(self) -> None:
        """Replace the lock, which a thread of the parent may have held."""
        self.lock = threading.RLock()

    def __reduce__(self) -> Any:
        return Runtime, (self.pending,)

    def release_left(self) -> list[Epoch]:
        """Drop the holders that are finished or abandoned; return them."""
        running, left = [], []
        for reference, epoch in self.holders:
            if epoch.finished or reference() is None:
                left.append(epoch)
            else:
                running.append((reference, epoch))
        self.holders = running
        return left

    def is_left(self) -> bool:
        """Return whether the epoch made last is finished or abandoned."""
        return (self.epoch is not None and (
            self.epoch.finished
            or self.iterator is None or self.iterator() is None))


_all: weakref.WeakSet[Runtime] = weakref.WeakSet()
at_fork(Step.OWNERSHIP, in_child=for_each(_all, Runtime.unlock))


def runtime_of(stream: Any) -> Runtime:
    """Return the stream's :class:`Runtime`, made on first use.

    Subclasses may have skipped every ``__init__``, so none is relied on.
    """
    try:
        runtime: Runtime = vars(stream)['_runtime']
    except KeyError:
        runtime = vars(stream).setdefault('_runtime', Runtime())
    return runtime


def lock_of(stream: Any) -> Any:
    """Return the lock to hold while the stream's attributes are used."""
    if hasattr(type(stream), 'epoch_attributes'):
        return runtime_of(stream).lock
    return nullcontext()
