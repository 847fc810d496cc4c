"""Base of the stages that workers run, on this host or on a cluster."""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Unpack

from fuel import config
from fuel.epochs.epoch import Epoch
from fuel.epochs.examples import SourceExamples
from fuel.epochs.pipeline import length_of, require_one_to_one
from fuel.epochs.skipped import Skipped
from fuel.epochs.state import RUNNING, as_state
from fuel.epochs.stage import Stage, stage_of
from fuel.exceptions import UnknownOrderError
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.profiling.measurements import keep_sums
from fuel.schemes.shard import Shard
from fuel.sharding.asking import order_of_state
from fuel.sharding.order import Unordered
from fuel.streams.arguments import StreamOptions
from fuel.streams.stage import StreamStage
from fuel.transformers.base import ALL, Transformer
from fuel.typing import Request, State, StreamLike
from fuel.utils.checks import positive
from fuel.workers.global_random import GeneratorSource
from fuel.workers.remote_stream import (
    RemoteStage, RemoteStream, last_session, session_of)
from fuel.workers.team import Team, WorkerSession


class TeamStage(RemoteStage):
    """The stage of a stream whose epochs a team of workers makes.

    Its state is the state of its input, so it fits the input too.

    `team`: the workers that were started last; None if there are none.
    `upcoming`: the session of the next epoch, if its state was requested.
    """

    __slots__ = 'team', 'upcoming'

    def __init__(self, stream: object) -> None:
        super().__init__(stream)
        self.team: Team | None = None
        self.upcoming: WorkerSession | None = None

    def get_team(self) -> Team:
        """Return the running workers; start them if there are none."""
        # Another thread may close the stream meanwhile.
        team = self.team
        if team is None or not team.is_usable():
            if team is not None:
                team.close()
                keep_sums(self.meter)
                self.meter.restarts += 1
            team = self.team = self.stream._start_team()
        return team

    def open_session(self) -> WorkerSession:
        """Return the session of the next epoch; begin it unless it exists."""
        session, self.upcoming = self.upcoming or self._make_session(), None
        if session.after:
            self.stream._after, self.stream._calls = None, ()
        return session

    def _make_session(self) -> WorkerSession:
        """Begin the next epoch in the workers."""
        pending, last = self.pending, last_session(self.stream)
        state: State | None
        if pending is not None:
            state = pending
        elif last is None:
            state = self.after
        elif not self.is_left() and last.is_connected():
            # The workers run both epochs.
            state = None
        else:
            state = last.last_state()
        for epoch in self.release_left():
            # The workers make nothing more of epochs that nobody reads.
            session_of(epoch).leave()
        if self.resumed() is None:
            session = WorkerSession(
                state, after=True, calls=self.stream._calls)
        else:
            session = WorkerSession(state)
        session.is_exact = self.meter.is_exact
        # A loaded state may differ from the position of the workers.
        session.begin(self.get_team(), last if pending is None else None)
        return session

    def close(self) -> None:
        """End the workers; a thread that waits for a batch gets an error."""
        is_locked = self.lock_to_close(self._cut)
        try:
            last = last_session(self.stream)
            if is_locked and last is not None:
                # The next epoch iterator continues after the delivered
                # batches.
                last.state()
            team, self.team, self.upcoming = self.team, None, None
            if team is not None:
                team.close()
                keep_sums(self.meter)
        finally:
            if is_locked:
                self.lock.release()

    def _cut(self) -> None:
        team = self.team
        if team is not None:
            team.cut()

    def begin(self, epoch: Epoch) -> None:
        """Open a session from a loaded state."""
        with self.lock:
            resumed = self.resumed()
            self.stream.session = self.open_session()
            if self.pending is not None:
                # The state names the epochs that were begun before.
                self.past, self.epoch = self.pending.get('past'), None
            self.pending = None
            StreamStage.begin(self, epoch)
            if resumed is not None:
                epoch.position = resumed['position']

    def adopt(self, epoch: Epoch, iterator: EpochIterator) -> None:
        """Make an epoch the current one, and hold it."""
        super().adopt(epoch, iterator)
        session_of(epoch).most_skipped = self.most_skipped
        self.hold(epoch, iterator)

    @property
    def skipped(self) -> Skipped:
        """The examples that the workers have left out (Skipped)."""
        session = last_session(self.stream)
        state = self.pending if session is None else session.state()
        return Skipped() if state is None or isinstance(
            state, Exception) else Skipped.in_state(state)

    def position(self, epoch: Epoch) -> State:
        """Return the state of its input in an epoch, even at its end."""
        return as_state(self._session(epoch).position())

    def state_of(self, epoch: Epoch) -> State:
        """Return the state of its input after the delivered batches."""
        return as_state(self._session(epoch).state())

    def _session(self, epoch: Epoch) -> WorkerSession:
        session: WorkerSession = session_of(epoch)
        return session

    def state_between(self, epoch: str) -> State:
        """Return the state of its input while no epoch is running."""
        last = last_session(self.stream)
        state = self.after if last is None else as_state(last.state())
        if state is None:
            return self._input.state_between(epoch)
        if state['epoch'] != RUNNING:
            return as_state(state)
        # That epoch was left, so return the state of the next epoch.
        if self.upcoming is None:
            self.upcoming = self._make_session()
        return as_state(self.upcoming.state())

    def load(self, state: State) -> None:
        """Load a state in the workers."""
        with self.lock:
            self.pending = state
            self.upcoming = None

    def set_generators(self, state: State) -> None:
        """Do nothing: the stream that the workers run loads the state."""

    @property
    def state_owner(self) -> Stage | None:
        """The stage whose pipeline a saved state describes: its input's."""
        return self._input.state_owner

    @property
    def num_processes(self) -> int:
        """Number of workers (int)."""
        return int(self.stream.num_workers)

    @property
    def queue(self) -> tuple[int, int]:
        """Number of prefetched batches, and limit (int, int)."""
        last = last_session(self.stream)
        ready = 0 if last is None else sum(
            part.num_ready for part in last.parts)
        return ready, self.stream.max_store

    @property
    def is_running(self) -> bool:
        """Whether there are workers (bool)."""
        return self.team is not None

    @property
    def _input(self) -> Stage:
        """The stream that is read, as a stage."""
        return stage_of(self.stream.data_stream)


class WorkerStage(RemoteStream, Transformer):
    """A stage whose data stream is read by a team of workers."""

    unsaved_arguments: tuple[str, ...] = (
        'max_bytes', 'max_store', 'num_workers', 'timeout')

    def __init__(self, data_stream: StreamLike, num_workers: int,
                 max_store: int, max_bytes: int | None,
                 timeout: float | None, *,
                 produces_examples: bool | None = None,
                 **kwargs: Unpack[StreamOptions]) -> None:
        if max_bytes is None:
            max_bytes = config.shared_memory_bytes
        positive('max_store', max_store)
        positive('max_bytes', max_bytes)
        positive('num_workers', num_workers)
        if num_workers > 1:
            require_one_to_one(data_stream)
        if (produces_examples is None
                and kwargs.get('iteration_scheme') is None):
            # A stage of the user's may not know; then this one does not.
            with suppress(ValueError):
                produces_examples = data_stream.produces_examples
        super().__init__(data_stream, produces_examples, **kwargs)
        self.num_workers = num_workers
        self.max_store = max_store
        self.max_bytes = max_bytes
        self.timeout: float = (
            config.stall_timeout if timeout is None else timeout)
        self._calls: tuple[str, ...] = ()
        self._generators = GeneratorSource()

    __fuel_stage__ = TeamStage
    # Its items are those of the stream that it reads.
    __fuel_passes_on__ = True
    keeps = ALL

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples of the last item, if its order is known."""
        stage, session = stage_of(self), self.session
        if stage.most_skipped:
            return None
        shard = stage.shard or Shard(0, 1)
        # The item of all ranks with which the step begins. The first step is
        # short where a state of another number of ranks was taken up.
        first = requests[0] - shard.offset
        if session.order is None:
            try:
                session.order = order_of_state(
                    self.data_stream, as_state(session.position()),
                    first % shard.step)
            except TypeError as error:
                session.order = Unordered(str(error))
        order = session.order
        try:
            found = SourceExamples(order[-(-first // shard.step)])
        except (IndexError, UnknownOrderError):
            return None
        return found.unordered(order.unsized_by()) if (
            order.unsized) else found

    def num_items(self) -> int | None:
        """Return the number of items of an epoch of `data_stream`."""
        return length_of(self.data_stream)

    @property
    def runs_in(self) -> str:
        """The workers that read the data stream (str)."""
        return ('1 worker' if self.num_workers == 1
                else f'{self.num_workers} workers')

    def _refuse(self, request: Request) -> None:
        if request is not None:
            raise ValueError(
                f'{type(self).__name__} takes no requests, since its batches '
                f'were made before; got {request!r}')

    def _start_team(self) -> Team:
        """Start the workers."""
        raise NotImplementedError

    @property
    def worker_pids(self) -> list[int]:
        """Identifiers of the running worker processes (list of int)."""
        team = team_stage(self).team
        return [] if team is None else team.pids

    def reset(self) -> None:
        """Reset the wrapped stream before the next epoch."""
        self._calls += ('reset',)
        team_stage(self).upcoming = None

    def next_epoch(self) -> None:
        """Switch the wrapped stream to the next epoch."""
        self._calls += ('next_epoch',)
        team_stage(self).upcoming = None

    def close(self) -> None:
        """End the workers; delivered batches stay valid.

        A thread that waits for a batch gets an error.
        """
        team_stage(self).close()
        self.data_stream.close()


def team_stage(stream: WorkerStage) -> TeamStage:
    """Return the stage of a stream whose epochs a team of workers makes."""
    stage = stage_of(stream)
    assert isinstance(stage, TeamStage)
    return stage
