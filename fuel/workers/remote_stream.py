"""Base classes of streams with epochs that workers or a server make, and of
the sessions that read these epochs."""
from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from fuel.epochs.epoch import Epoch
from fuel.epochs.sealing import ADVICE
from fuel.epochs.stage import stage_of
from fuel.epochs.state import available
from fuel.kernels.epoch_iterator import EpochIterator, PendingItem
from fuel.streams.base import AbstractDataStream
from fuel.streams.stage import StreamStage
from fuel.typing import Batch, EpochReader, Request, State
from fuel.utils.overrides import covers

# Seconds between attempts to stop another thread that waits for a batch, and
# seconds after which the stream is closed even if that thread has not stopped.
_RETRY_SECONDS = 0.1
_CLOSE_SECONDS = 5.0

Source = TypeVar('Source')


class RemoteSession(PendingItem, Generic[Source]):
    """Reader of an epoch that workers or a server make.

    A batch is pending until the epoch iterator has returned it.  If Ctrl-C
    comes before that, the next call returns the same batch.  States and
    pickles contain delivered batches only; :meth:`count` counts the batch of a
    receipt as delivered.

    A subclass receives the batches: it must implement :meth:`receive`,
    :meth:`count` and :meth:`state`.

    `resume`: the first state; :meth:`state` returns it until a batch comes.
    `finished`: whether the end of the epoch was received.
    `left`: whether the epoch was left, so that :meth:`receive` raises an
        error.
    `stream`: function that returns the stream of the epoch, or None.  It holds
        the stream by a weak reference, since the stream holds the session.
    """

    stream: Callable[[], Source | None] = staticmethod(lambda: None)

    def __init__(self, resume: State | None = None,
                 finished: bool = False) -> None:
        self.resume = resume
        self.finished = self.is_over = finished
        self.left = False
        self._is_counting = False

    def read(self) -> Batch:
        """Return the next batch, or raise the error in its place."""
        stream = self.stream()
        if stream is not None:
            vars(stream)['session'] = self
        try:
            if self.held is None or self.left:
                self.commit_delivered()
                if self.finished:
                    raise StopIteration
                self.receive(stream)
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

    def skip(self, count: int) -> None:
        """Read batches and drop them."""
        for _ in range(count):
            self.read()

    def close(self) -> None:
        """Do nothing: the session must return its state after the end, too."""

    def commit_delivered(self) -> None:
        """Count the batch that was delivered since the last call."""
        if self.receipt is None:
            return
        if self._is_counting:
            # The handler of a signal requests the state while `count` runs.
            raise RuntimeError(
                'a state was asked for while a batch is being counted: '
                f'{ADVICE}')
        self._is_counting = True
        try:
            self.count(self.receipt)
            self.receipt = None
        finally:
            self._is_counting = False

    def receive(self, stream: Source | None) -> None:
        """Set `held` to a tuple of the data or None, the error or None, and a
        receipt."""
        raise NotImplementedError

    def count(self, receipt: Any) -> None:
        """Count the item of a receipt as delivered."""
        raise NotImplementedError

    def state(self) -> Any:
        """Return a state from which another session resumes the epoch."""
        raise NotImplementedError

    @property
    def is_waiting(self) -> bool:
        """Whether the session waits for an item of another process (bool)."""
        return False

    def leave(self) -> None:
        """Report to the workers or the server that the epoch is not read any
        more."""

    def __reduce__(self) -> Any:
        return type(self), (available(self.state()), self.is_over)


class RemoteStage(StreamStage):
    """The stage of a stream whose epochs other processes, or threads, make."""

    __slots__ = ()

    @property
    def after(self) -> State | None:
        """State after which the next epoch begins, in a stream that was
        pickled and has no session (dict); None otherwise."""
        state: State | None = self.stream._after
        return state

    def open_session(self) -> RemoteSession[Any]:
        """Return the session of a new epoch."""
        raise NotImplementedError

    def begin(self, epoch: Epoch) -> None:
        """Open the session of an epoch that begins."""
        with self.lock:
            self.stream.session = self.open_session()
            super().begin(epoch)

    def adopt(self, epoch: Epoch, iterator: EpochIterator) -> None:
        """Make an epoch, and its session, the stream's latest one."""
        super().adopt(epoch, iterator)
        # A finished epoch drops its attributes, but keeps its session.
        session = epoch.attributes.get('session', session_of(epoch))
        session.stream = weakref.ref(self.stream)
        vars(epoch)['session'] = epoch.pending_item = session

    @property
    def is_waiting(self) -> bool:
        """Whether the latest epoch waits for its next item (bool)."""
        session = last_session(self.stream)
        return session is not None and bool(session.is_waiting)

    @property
    def num_processes(self) -> int:
        """Number of processes, or groups of threads (int)."""
        return 1

    @property
    def queue(self) -> tuple[int, int]:
        """Number of prefetched batches, and its limit (int, int)."""
        raise NotImplementedError

    @property
    def is_running(self) -> bool:
        """Whether there are workers, or a connection to a server (bool)."""
        raise NotImplementedError

    def time_all(self, *, is_exact: bool) -> None:
        """Time each item in the workers, from the next epoch on."""

    def lock_to_close(self, stop: Callable[[], None]) -> bool:
        """Lock the stream; call `stop` while another thread holds the lock.
        Return False if that takes too long."""
        deadline = time.monotonic() + _CLOSE_SECONDS
        while not self.lock.acquire(timeout=_RETRY_SECONDS):
            stop()
            if time.monotonic() > deadline:
                return False
        return True


class RemoteStream(AbstractDataStream):
    """A stream that reads each epoch through a :class:`RemoteSession`.

    A subclass must implement :meth:`_refuse`.

    `session`: session of the epoch that is read, or was read last.
    """

    __fuel_stage__ = RemoteStage
    # True if threads of this process draw from the generators of its input.
    __fuel_in_process__ = False
    epoch_attributes: tuple[str, ...] = ('session',)
    session: Any
    # The state that the next epoch follows, if there is no session.
    _after: Any = None

    def start_epoch(self) -> None:
        """Do nothing: the epoch begins elsewhere, not in this process's
        streams."""

    def _refuse(self, request: Request) -> None:
        """Raise ValueError for a request; None is not a request."""
        raise NotImplementedError

    def get_data(self, request: Request = None) -> Any:
        """Return the next batch of the workers or the server.

        Raises
        ------
        ValueError
            If there is a request; then no batch is read.
        """
        self._refuse(request)
        if 'session' not in vars(self):
            stage: Any = stage_of(self)
            self.session = stage.open_session()
            self.session.stream = weakref.ref(self)
        return self.session.read()

    def open_reader(self, epoch: Epoch) -> EpochReader | None:
        """Return the session of an epoch, which reads it in the place of
        :meth:`get_data`.  Return None if a subclass has its own `get_data`, or
        there are requests, which `get_data` refuses."""
        reader: EpochReader = session_of(epoch)
        return reader if epoch.request_iterator is None and covers(
            self, 'open_reader', ('get_data',)) else None

    def __getstate__(self) -> dict[str, Any]:
        with stage_of(self).lock:
            state = super().__getstate__()
            session = last_session(self)
            if session is not None:
                after = session.last_state()
                if after is not None:
                    state['_after'] = after
            return state


def session_of(epoch: Epoch) -> Any:
    """Return the session of an epoch; None if there is none."""
    return vars(epoch).get('session')


def last_session(stream: RemoteStream) -> Any:
    """Return the session of a stream's latest epoch; None if there is none."""
    epoch = stage_of(stream).epoch
    return None if epoch is None else session_of(epoch)
