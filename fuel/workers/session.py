"""Reads an epoch that is made elsewhere: by workers, or by a server."""
from __future__ import annotations

from typing import Any, Generic, TypeVar

from fuel.epochs.state import available
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
        state = available(self.state())
        return _restored, (type(self), state, self.is_over)


def _restored(cls: Any, resume: State | None, finished: bool) -> Any:
    return cls(resume, finished)
