"""Base of the streams whose epochs are made in another process."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fuel.epochs.epoch import Epoch
from fuel.epochs.runtime import runtime_of
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.streams.base import AbstractDataStream
from fuel.streams.stage import StreamStage
from fuel.typing import Batch
from fuel.workers.session import RemoteSession

# Seconds between attempts to stop another thread that waits for a batch,
# and after which the stream is closed although it does not stop.
_RETRY = 0.1
_PATIENCE = 5.0


class RemoteStage(StreamStage):
    """A stream whose epochs are made in another process."""

    __slots__ = ()

    def begin(self, epoch: Epoch) -> None:
        """Open a session, which belongs to the epoch."""
        with self.lock:
            self.stream.session = self.stream._open_session()
            super().begin(epoch)

    def adopt(self, epoch: Epoch, iterator: EpochIterator) -> None:
        """Take an epoch for the one made last, with its session."""
        super().adopt(epoch, iterator)
        # A finished epoch lets go of its attributes, but not of this.
        session = epoch.attributes.get('session', session_of(epoch))
        vars(epoch)['session'] = epoch.pending_item = session

    def only_counts(self, epoch: Epoch) -> bool:
        """Return False: what the other process keeps may change."""
        return False


class RemoteStream(AbstractDataStream):
    """A stream each of whose epoch iterators reads a remote session.

    A subclass must implement :meth:`_open_session`.

    `session`: that of the epoch iterator that is reading, or read last.
    """

    __fuel_stage__ = RemoteStage
    epoch_attributes: tuple[str, ...] = ('session',)
    session: Any
    # What the next epoch comes after if there is no session.
    _after: Any = None

    def start_epoch(self) -> None:
        """Do not read a data stream here, as a transformer does."""

    def _open_session(self) -> RemoteSession[Any]:
        """Return the session of the epoch that comes next."""
        raise NotImplementedError

    def _take(self, source: object) -> Batch:
        """Return the next batch of the session that is reading."""
        if 'session' not in vars(self):
            self.session = self._open_session()
        session: RemoteSession[Any] = self.session
        return session.take(source)

    def _lock_to_close(self, stop: Callable[[], None]) -> bool:
        """Take the stream's lock, which a thread that waits may hold."""
        lock = runtime_of(self).lock
        deadline = time.monotonic() + _PATIENCE
        while not lock.acquire(timeout=_RETRY):
            stop()
            if time.monotonic() > deadline:
                return False
        return True

    def __getstate__(self) -> dict[str, Any]:
        with runtime_of(self).lock:
            state = super().__getstate__()
            session = last_session(self)
            if session is not None:
                after = session.last_state()
                if after is not None:
                    state['_after'] = after
            return state


def session_of(epoch: Epoch) -> Any:
    """Return the session that an epoch reads, None if there is none."""
    return vars(epoch).get('session')


def last_session(stream: RemoteStream) -> Any:
    """Return the session of the epoch made last, None if there is none."""
    epoch = runtime_of(stream).epoch
    return None if epoch is None else session_of(epoch)
