"""Base of the stages that workers run: of this host, or of a cluster."""
from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Any

from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import check_one_to_one
from fuel.epochs.runtime import runtime_of
from fuel.epochs.state import RUNNING, state_between
from fuel.epochs.sealing import Identified, identified
from fuel.iterator import DataIterator
from fuel.profiling.report import StageProfile
from fuel.streams.base import AbstractDataStream
from fuel.transformers.base import Transformer, length_of
from fuel.typing import Batch, State, StreamLike
from fuel.utils.checks import positive
from fuel.workers.global_random import GeneratorSource
from fuel.workers.remote_stream import RemoteStream, session_of
from fuel.workers.team import Team, WorkerSession


class WorkerStage(RemoteStream, Transformer):
    """A stage whose data stream is read by a team of workers."""

    unsaved_arguments: tuple[str, ...] = ('num_workers',)

    def __init__(self, data_stream: StreamLike, num_workers: int,
                 **kwargs: Any) -> None:
        positive('num_workers', num_workers)
        if num_workers > 1:
            check_one_to_one(data_stream)
        if kwargs.get('iteration_scheme') is None:
            # A stage of the user's may not know; then this one does not.
            with suppress(ValueError):
                kwargs.setdefault('produces_examples',
                                  data_stream.produces_examples)
        super().__init__(data_stream, **kwargs)
        self.num_workers = num_workers
        self._calls: tuple[str, ...] = ()
        self._generators = GeneratorSource()

    # Its items are those of the stream that it reads.
    passes_items_on = True
    _keeps_types = True
    # The session of the next epoch, if its state was asked for.
    _next: WorkerSession | None = None

    def _length(self) -> int | None:
        return length_of(self.data_stream)

    @property
    def runs_in(self) -> str:
        """Where the data stream is read (str)."""
        return ('1 worker' if self.num_workers == 1
                else f'{self.num_workers} workers')

    def get_data(self, request: object = None) -> Batch:
        """Return the next batch that the workers made."""
        if request is not None:
            raise ValueError(
                f'{type(self).__name__} takes no requests, since its batches '
                f'were made before; got {request!r}')
        return self._take(self._get_team)

    def _open_session(self) -> WorkerSession:
        """Begin the epoch that comes next."""
        runtime = runtime_of(self)
        pending = runtime.pending
        last = self._last_session()
        opened, self._next = self._next, None
        if opened is not None:
            self._after, self._calls = None, ()
            return opened
        if pending is not None and pending['epoch'] == RUNNING:
            session = WorkerSession(pending)
            session.begin(self._get_team())
            return session
        if pending is not None:
            after = pending
        elif last is None:
            after = self._after
        elif not runtime.is_left() and last.is_connected():
            # Its workers run both.
            after = None
        else:
            after = last.last_state()
        self._leave_idle_sessions()
        session = WorkerSession(after, after=True, calls=self._calls)
        session.begin(self._get_team(), last)
        self._after, self._calls = None, ()
        return session

    def _get_team(self) -> Team:
        """Return running workers, started if there are none."""
        team: Team | None = vars(self).get('_team')
        if team is None or not team.is_usable():
            if team is not None:
                team.close()
            team = self._team = self._start_team()
        return team

    def _start_team(self) -> Team:
        """Start the workers."""
        raise NotImplementedError

    def _leave_idle_sessions(self) -> None:
        """Leave the epochs that nobody reads any more."""
        for epoch in runtime_of(self).release_left():
            session_of(epoch).leave()

    def _adopt_epoch(self, epoch: Epoch, iterator: DataIterator) -> None:
        super()._adopt_epoch(epoch, iterator)
        runtime_of(self).holders.append((weakref.ref(iterator), epoch))

    # A state is that of the wrapped stream, so it fits that stream too.

    def _epoch_position(self, epoch: Epoch) -> State:
        """Return the wrapped stream's state after what was delivered."""
        return _state_of_session(session_of(epoch) or self.session)

    def _state_of(self, epoch: Epoch) -> State:
        return self._epoch_position(epoch)

    def _state_between_epochs(self, epoch: str) -> State:
        last = self._last_session()
        state = self._after if last is None else _state_of_session(last)
        if state is None:
            return state_between(self.data_stream, epoch)
        if state['epoch'] != RUNNING:
            return state
        # That epoch was left, so the state is that of the next.
        if self._next is None:
            after, calls = self._after, self._calls
            self._next = self._open_session()
            self._after, self._calls = after, calls
        return _state_of_session(self._next)

    def _begin_epoch(self, epoch: Epoch) -> None:
        runtime = runtime_of(self)
        with runtime.lock:
            pending = runtime.pending
            self.session = self._open_session()
            runtime.pending = None
            AbstractDataStream._begin_epoch(self, epoch)
            if pending is not None and pending['epoch'] == RUNNING:
                epoch.position = pending['position']

    def _check_state(self, state: object) -> State:
        checked: State = self.data_stream._check_state(state)
        return checked

    def _identified(self, state: State) -> Identified:
        return identified(self.data_stream, state)

    def _load_checked(self, state: State) -> None:
        # The wrapped stream runs in the worker, and so it is loaded there.
        runtime = runtime_of(self)
        with runtime.lock:
            runtime.pending = state
            self._next = None

    @property
    def worker_pids(self) -> list[int]:
        """Identifiers of the running worker processes (list of int)."""
        team = vars(self).get('_team')
        return [] if team is None else team.pids

    def measure_stages(self) -> list[StageProfile]:
        """Return what the stages took in the workers.

        The first call begins to measure, and starts the workers if there
        are none.
        """
        with runtime_of(self).lock:
            if '_team' not in vars(self):
                self._only_measured = True
            return self._get_team().measure()

    def stop_measuring(self) -> None:
        """Measure the stages no more; end workers started for that."""
        if vars(self).pop('_only_measured', False):
            self.close()
            return
        with runtime_of(self).lock:
            team = vars(self).get('_team')
            if team is not None and team.is_usable():
                team.stop_measuring()

    def reset(self) -> None:
        """Reset the wrapped stream before the next epoch."""
        self._calls += ('reset',)
        self._next = None

    def next_epoch(self) -> None:
        """Switch the wrapped stream to the next epoch."""
        self._calls += ('next_epoch',)
        self._next = None

    def close(self) -> None:
        """End the workers; batches that were delivered stay.

        A thread that waits for a batch gets an error.
        """
        is_locked = self._lock_to_close(self._cut)
        try:
            last = self._last_session()
            if is_locked and last is not None:
                # The next epoch iterator comes after what was delivered.
                last.state()
            self._next = None
            team = vars(self).pop('_team', None)
            if team is not None:
                team.close()
        finally:
            if is_locked:
                runtime_of(self).lock.release()
        self.data_stream.close()

    def _cut(self) -> None:
        team = vars(self).get('_team')
        if team is not None:
            team.cut()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        for name in ('_team', '_next', '_only_measured'):
            state.pop(name, None)
        return state


def _state_of_session(session: WorkerSession) -> State:
    state = session.state()
    if isinstance(state, Exception):
        raise state
    return state
