"""Workers that make the batches of an epoch in turn, and who reads them."""
from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from fuel.epochs.skipped import Skipped, SkipLimit, merged
from fuel.epochs.stage import stage_of
from fuel.epochs.state import without_frames
from fuel.epochs.state_delta import Receipt
from fuel.exceptions import BadRecordsError, WorkerError
from fuel.typing import State, StreamLike
from fuel.workers.remote_epoch import EpochWorker, RemoteEpoch
from fuel.workers.remote_stream import RemoteSession


class Team:
    """One worker, or several that each make one batch of several.

    `continues`: whether the next epoch may begin where the streams of its
        workers stand, and needs no state to go on from.
    """

    continues = True

    def __init__(self, workers: Sequence[EpochWorker[Any]]) -> None:
        self.workers = list(workers)

    @property
    def pids(self) -> list[int]:
        """Process identifiers of the workers (list of int)."""
        return [worker.pid for worker in self.workers
                if worker.pid is not None]

    def is_usable(self) -> bool:
        """Return whether epochs can be begun with these workers."""
        return all(worker.is_usable() for worker in self.workers)

    @property
    def interrupted(self) -> bool:
        """Whether one of them was given up after an interrupt (bool)."""
        for worker in self.workers:  # noqa: SIM110 (asked for each batch)
            if worker.interrupted:
                return True
        return False

    @property
    def error(self) -> WorkerError | None:
        """Why the first that is given up was given up, if any is."""
        return next((worker.error for worker in self.workers
                     if worker.error is not None), None)

    def begin(self, start: dict[str, Any],
              follows: tuple[int, int] | None) -> list[RemoteEpoch]:
        """Begin an epoch in every worker."""
        count = len(self.workers)
        if count == 1:
            return [self.workers[0].begin({**start, 'follows': follows})]
        # Each has prefetched other batches, so each goes back.
        return [worker.begin({**start, 'share': (place, count)})
                for place, worker in enumerate(self.workers)]

    def cut(self) -> None:
        """Interrupt a thread that waits for a batch."""
        for worker in self.workers:
            worker.cut()

    def close(self) -> None:
        """End the workers."""
        for worker in self.workers:
            worker.close()


class WorkerSession(RemoteSession[StreamLike]):
    """One epoch that a team of workers makes.

    `resume`: state to go on from.  Defaults to None: the stream's present one.
    `finished`: whether that is the state after the end.
    `after`: whether the epoch that follows the state is wanted.
    `calls`: methods of the stream to call before.
    `team`: None before the first batch is asked for after unpickling.
    `parts`: the epoch in each worker.
    `delivered`: how many batches and errors of these parts were delivered.
    `receipts`: of what each part delivered last, by its number.
    `most_skipped`: how many examples that fail the workers may leave out; a
        state has those of all of them.
    `end`: the position of an epoch that was over when it was pickled.
    `is_exact`: whether the workers time each item.
    """

    most_skipped = 0
    is_exact = False
    end: State | Exception | None = None

    resume: State | None

    def __init__(self, resume: State | None = None, finished: bool = False,
                 after: bool = False, calls: tuple[str, ...] = ()) -> None:
        super().__init__(resume, finished)
        self.after = after
        self.calls = calls
        self.team: Team | None = None
        self.parts: list[RemoteEpoch] = []
        self.delivered = 0
        self.receipts: dict[int, Receipt] = {}

    def begin(self, team: Team, last: WorkerSession | None = None) -> None:
        """Begin the epoch in a team, perhaps that of the epoch before."""
        follows = None
        if last is not None and last.team is team and last.parts:
            last.commit_delivered()
            follows = last.parts[0].number, last.delivered
        self.parts = team.begin({
            'state': self.resume, 'after': self.after, 'calls': self.calls,
            'is_exact': self.is_exact}, follows)
        self.team = team
        self.delivered = 0
        self.receipts = {}

    def receive(self, stream: StreamLike | None) -> None:
        """Receive the next batch of the workers, which is pending then."""
        if self.team is None or self.team.interrupted:
            self._move(stream)
        assert self.team is not None
        taken = 0
        for part in self.parts:
            taken += part.taken
        place = taken % len(self.parts)
        try:
            self.team.workers[place].receive(self.parts[place], self)
        except StopIteration:
            for worker, part in zip(self.team.workers, self.parts,
                                    strict=True):
                if part is not self.parts[place]:
                    worker.hear_end(part)
            raise
        if self.most_skipped and len(self.parts) > 1:
            self._check_skipped(place)

    def _check_skipped(self, place: int) -> None:
        """Put an error in the place of a batch if all workers together have
        left out more than they may; each counts its own."""
        assert self.held is not None
        _, error, receipt = self.held
        if error is not None:
            return
        state = self._with_skipped(receipt.state(), place)
        if isinstance(state, Exception):
            return
        limit = SkipLimit(self.most_skipped)
        limit.restore(Skipped.in_state(state))
        try:
            limit.check()
        except BadRecordsError as too_many:
            self.held = None, too_many, receipt

    def _move(self, stream: StreamLike | None) -> None:
        """Go on, in another team, where the reader is."""
        if stream is None:
            assert self.team is not None
            assert self.team.error is not None
            raise self.team.error
        if self.has_begun():
            state = self.state()
            if isinstance(state, Exception):
                assert self.team is not None
                state.add_note(str(self.team.error))
                raise state
            self.resume, self.after, self.calls = state, False, ()
        stage: Any = stage_of(stream)
        self.begin(stage.get_team())

    def count(self, receipt: Receipt) -> None:
        """Count a delivered batch or error."""
        self.receipts[self.delivered % len(self.parts)] = receipt
        self.delivered += 1

    def has_begun(self) -> bool:
        """Return whether the state of the epoch is known without waiting."""
        if not self.parts:
            return False
        # What was delivered last came from this part.
        return self.parts[max(0, self.delivered - 1) % len(self.parts)].opened

    def state(self) -> State | Exception:
        """Return the wrapped stream's state after what was delivered."""
        if self.parts:
            self.commit_delivered()
            if self.is_over:
                for place, part in enumerate(self.parts):
                    if part.final is not None:
                        return self._with_skipped(
                            pickle.loads(part.final), place)
        if self.end is None:
            return self.position()
        assert self.resume is not None
        return self.resume

    def position(self) -> State | Exception:
        """Return the state after what was delivered, also at the end one in
        the epoch, as a stage holds it that reads on."""
        if self.end is not None:
            return self.end
        if self.parts:
            self.commit_delivered()
            state = self._state_of_parts()
            if (self.has_begun() or not isinstance(state, Exception)
                    or self.resume is None or self.after):
                return state
        assert self.resume is not None
        return self.resume

    def __reduce__(self) -> Any:
        reduced = super().__reduce__()
        end = self.position() if self.is_over else None
        return (*reduced, {'end': end}) if isinstance(end, dict) else reduced

    def _with_skipped(self, state: State | Exception, place: int,
                      ) -> State | Exception:
        """Return the state of a part with what all parts have left out."""
        base = self.parts[place].base
        others = [receipt.state() for other, receipt in self.receipts.items()
                  if other != place] if self.most_skipped else []
        if isinstance(state, Exception) or isinstance(base, Exception):
            return state
        return merged(state, [other for other in others if not isinstance(
            other, Exception)], base) if others else state

    def _state_of_parts(self) -> State | Exception:
        if self.receipts:
            last = (self.delivered - 1) % len(self.parts)
            return self._with_skipped(self.receipts[last].state(), last)
        assert self.team is not None
        try:
            self.team.workers[0].wait_until_open(self.parts[0])
        except WorkerError as error:
            return without_frames(error)
        return self.parts[0].base

    def last_state(self) -> State | None:
        """Return the state that an epoch comes after; None if unknown."""
        state = self.state()
        if not isinstance(state, Exception):
            return state
        return None if self.has_begun() else self.resume

    def is_connected(self) -> bool:
        """Return whether running workers can go on after the epoch."""
        return (self.team is not None and self.team.continues
                and self.team.is_usable())

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for what a worker has not made (bool)."""
        return self.team is not None and any(
            worker.is_used and worker.waiter.is_waiting
            for worker in self.team.workers)

    def leave(self) -> None:
        """Report to the workers that nobody reads the epoch any more."""
        if self.team is not None:
            for worker, part in zip(self.team.workers, self.parts,
                                    strict=True):
                worker.leave(part)
