"""Reads an epoch that is made elsewhere: by workers, or by a server."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from fuel.epochs.state_delta import Changes, changed
from fuel.kernels.epoch_iterator import PendingItem
from fuel.typing import Batch, State

Source = TypeVar('Source')


class RemoteSession(PendingItem, Generic[Source]):
    """One epoch made elsewhere, as far as its reader has come.

    A batch is pending until the epoch iterator has returned it; if Ctrl-C
    comes before, the next call returns the same.  Its receipt counts it as
    delivered, and states and pickles know delivered batches alone.

    A subclass knows the channel: it must implement :meth:`receive`,
    :meth:`count` and :meth:`state`.

    `resume`: what to go on from; :meth:`state` returns it until batches came.
    `finished`: whether the end of the epoch was received.
    `left`: whether nobody reads it any more, so that :meth:`receive` raises.
    """

    def __init__(self, resume: State | None = None,
                 finished: bool = False) -> None:
        self.resume = resume
        self.finished = self.is_over = finished
        self.left = False
        self.states = DeliveredStates()

    def take(self, source: Source) -> Batch:
        """Return the next batch, or raise the error in its place."""
        try:
            if self.held is None or self.left:
                self.commit_delivered()
                if self.finished:
                    raise StopIteration
                self.receive(source)
        except StopIteration:
            self.finished = True
            if not self.is_asked:
                self.is_over = True
            raise
        assert self.held is not None
        data, error, _ = self.held
        if not self.is_asked:
            self.claim()
        if error is not None:
            raise error
        batch: Batch = data
        return batch

    def commit_delivered(self) -> None:
        """Count the batch that was delivered since the last call."""
        if self.receipt is not None:
            self.count(self.receipt)
            self.receipt = None

    def receive(self, source: Source) -> None:
        """Set `held` to data, or None, an error, or None, and a receipt."""
        raise NotImplementedError

    def count(self, receipt: Any) -> None:
        """Count a delivered item."""
        raise NotImplementedError

    def state(self) -> Any:
        """Return what another session of the epoch can go on from."""
        raise NotImplementedError

    def leave(self) -> None:
        """Report that nobody reads the epoch any more."""

    def __reduce__(self) -> Any:
        state = self.state()
        if isinstance(state, Exception):
            raise state
        return _restored, (type(self), state, self.is_over)


def _restored(cls: Any, resume: State | None, finished: bool) -> Any:
    return cls(resume, finished)


class _Known(NamedTuple):
    """Parts of a state, known after a number of batches."""

    number: int
    base: State | Exception | None
    changes: Any


class DeliveredStates:
    """States of a pipeline, each known after some number of batches."""

    def __init__(self, decode: Callable[[Any], Changes | Exception | None]
                 = lambda changes: changes) -> None:
        self._decode = decode
        self._known: list[_Known] = []

    def clear(self) -> None:
        """Forget them all."""
        self._known.clear()

    def add(self, number: int, base: State | Exception | None,
            changes: Any = None) -> None:
        """Add the state after `number` batches: a first one, and changes."""
        self._known.append(_Known(number, base, changes))

    def keep_from(self, floor: int) -> None:
        """Forget states before the latest after at most `floor` batches."""
        latest = self._latest(floor)
        if latest is not None:
            self._known = [latest, *(known for known in self._known
                                     if known.number > floor)]

    def _latest(self, floor: int) -> _Known | None:
        return max((known for known in self._known if known.number <= floor),
                   key=lambda known: known.number, default=None)

    def latest(self, floor: int) -> tuple[int, State | Exception | None]:
        """Return the last state after at most `floor` batches."""
        known = self._latest(floor)
        if known is None:
            return 0, None
        number, base, encoded = known
        if encoded is None or base is None or isinstance(base, Exception):
            return number, base
        changes = self._decode(encoded)
        if changes is None or isinstance(changes, Exception):
            return number, changes
        return number, changed(base, changes)
