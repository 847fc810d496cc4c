"""Workers, the epochs that they make, and the session that reads an epoch,
from the view of the consumer."""
from __future__ import annotations

import itertools
import os
import pickle
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fuel.epochs.sealing import ADVICE
from fuel.epochs.skipped import Skipped, SkipLimit, merged
from fuel.epochs.stage import stage_of
from fuel.epochs.state import without_frames
from fuel.epochs.state_delta import Receipt
from fuel.exceptions import BadRecordsError, WorkerError
from fuel.kernels.epoch_iterator import PendingItem, Waiting, take_note
from fuel.typing import State, StreamLike
from fuel.utils.remote_errors import unpickle_error
from fuel.workers.batch_maker import Note, ReceivedItem
from fuel.workers.remote_stream import RemoteSession

if TYPE_CHECKING:
    from fuel.sharding.order import EpochOrder

#: Seconds to wait for the last measurements of another worker after an epoch.
MOMENT = 0.2
# Numbers that identify workers, including those that are gone.
_numbers = itertools.count()


class RemoteEpoch:
    """One epoch of one worker, on the consumer's side.

    `taken`: number of batches and errors that were received and decoded.
    `items`: received items that are not decoded yet, in the worker's form.
    `num_ready`: last known number of batches that are made and not delivered.
    `opened`: whether the worker answered the request for the epoch.
    `base`: state before the first batch, or the error that explains why there
        is none.
    `failure`: error at the start of the epoch; None if there was none.
    `final`: state after the end, or the error that explains why there is none,
        pickled; None before the end was received.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.taken = 0
        self.num_ready = 0
        self.items: deque[Any] = deque()
        self.opened = False
        self.base: State | Exception = WorkerError(
            'the worker has not begun the epoch')
        self.failure: Exception | None = None
        self.final: bytes | None = None

    def open(self, answer: bytes, *, failed: bool) -> None:
        """Record the worker's answer: the first state, or an error if it
        failed."""
        if failed:
            self.fail(pipeline_error(answer))
        else:
            self.base = pickle.loads(answer)
        # This is set last, since Ctrl-C may come before.
        self.opened = True

    def fail(self, error: Exception) -> None:
        """Record the error that kept the epoch from beginning."""
        self.base = without_frames(error)
        self.failure, self.opened = error, True


AnyEpoch = TypeVar('AnyEpoch', bound=RemoteEpoch)


class EpochWorker(ABC, Generic[AnyEpoch]):
    """Makes epochs for one consumer: a process, or an actor of a cluster.

    `kind`, `remedy`: parts of error texts: the kind of worker, and advice for
        a child process that tries to use the worker of its parent, which is an
        error.
    `name`: name of the stream.
    `stalled`: seconds without an answer after which the worker counts as
        stalled.
    `owner`: identifier of the process that may use the worker.
    `epochs`: the epochs that are being read, by number.
    `error`: the reason why the worker was given up, or None.
    `interrupted`: whether it was given up after Ctrl-C, so that other workers
        resume its epochs.
    `is_used`: whether a message to or from it is being sent or received now.
    `is_cut`: whether another thread ended the wait for a batch.
    `waiter`: object whose attribute `is_waiting` is True during a wait for
        messages.  An exception during the wait loses no message.
    `finalizer`: finalizer that ends the worker; a subclass sets it.
    """

    waiter: Any
    finalizer: Any
    kind = 'the worker'
    remedy = 'make a new epoch iterator there'

    def __init__(self, name: str, stalled: float) -> None:
        self.name = name
        self.stalled = stalled
        self.owner = os.getpid()
        self.epochs: dict[int, AnyEpoch] = {}
        self.error: WorkerError | None = None
        self.interrupted = self.is_cut = self.is_used = False
        self._num_epochs = 0
        self.report_anew()

    @property
    @abstractmethod
    def pid(self) -> int | None:
        """Process identifier (int), None if unknown."""

    def is_usable(self) -> bool:
        """Return whether epochs can be begun with this worker."""
        return (self.error is None and self.owner == os.getpid()
                and self._is_open())

    def begin(self, options: dict[str, Any]) -> AnyEpoch:
        """Begin an epoch; the options are those of :class:`BatchMaker`."""
        with self._given_up_if_interrupted():
            self._num_epochs += 1
            epoch = self._begin(self._num_epochs, options)
            self.epochs[epoch.number] = epoch
            return epoch

    def leave(self, epoch: AnyEpoch) -> None:
        """Stop reading an epoch, and let the worker leave it."""
        if self.epochs.pop(epoch.number, None) and self.is_usable():
            with self._given_up_if_interrupted():
                self._leave(epoch)

    def wait_until_open(self, epoch: AnyEpoch) -> None:
        """Wait until the first state of an epoch is known, if the worker can
        send it."""
        if not epoch.opened and self.is_used:
            # The answer cannot be received in the middle of a message.
            raise WorkerError(
                f'{self.kind} of {self.name} is waited for, and has not begun '
                f'the epoch, so the state is not known yet: {ADVICE}')
        if not epoch.opened and self.is_usable():
            with self._given_up_if_interrupted():
                self._wait(epoch, lambda: epoch.opened)

    def receive(self, epoch: AnyEpoch, pending: PendingItem) -> None:
        """Receive the next batch of an epoch, or its error, into
        `pending.held`."""
        if self.owner != os.getpid():
            raise WorkerError(
                f'{self.kind} of {self.name}, of process {self.owner}, cannot '
                f'be used by its child {os.getpid()}: '
                f'{self.remedy}')
        with self._given_up_if_interrupted():
            if not epoch.items:
                with Waiting():
                    self._wait(epoch, lambda: bool(
                        epoch.items) or epoch.failure is not None)
            if epoch.failure is not None:
                pending.held = None, epoch.failure, None
                return
            answer = self._load(epoch.items.popleft())
            self.take_note(epoch, answer.note)
            if answer.final is not None:
                epoch.final = answer.final
                self.epochs.pop(epoch.number, None)
                raise StopIteration
            epoch.taken += 1
            pending.held = answer.data, answer.error, Receipt(
                epoch.base, partial(pickle.loads, answer.changes))
            self._ask_for_more(epoch)

    @contextmanager
    def _given_up_if_interrupted(self) -> Iterator[None]:
        """Give the worker up if an exception, such as Ctrl-C, may have lost a
        message.

        Another worker resumes the epoch at the user's position.
        """
        self.waiter.is_waiting = False
        was_used, self.is_used = self.is_used, True
        try:
            yield
        except (StopIteration, WorkerError):
            raise
        except BaseException:
            if not self.waiter.is_waiting:
                self.interrupted = True
                self.error = WorkerError(
                    f'{self.kind} of {self.name} was given up, since an '
                    'interrupt came in the middle of a message, and another '
                    'one needs a position to go on from')
            raise
        finally:
            self.is_used = was_used

    def _is_open(self) -> bool:
        """Return whether the worker was not closed, and can make epochs."""
        return bool(self.finalizer.alive)

    @abstractmethod
    def _begin(self, number: int, options: dict[str, Any]) -> AnyEpoch:
        """Request that the worker begins an epoch."""

    @abstractmethod
    def _leave(self, epoch: AnyEpoch) -> None:
        """Request that the worker leaves an epoch."""

    @abstractmethod
    def _wait(self, epoch: AnyEpoch, is_there: Callable[[], bool]) -> None:
        """Receive messages about an epoch until a condition is true."""

    def _load(self, item: Any) -> ReceivedItem:
        """Return a received item with its arrays."""
        answer: ReceivedItem = item
        return answer

    def _receive_end(self, epoch: AnyEpoch) -> None:
        """Receive the last measurements of an epoch, if they come at once."""

    @abstractmethod
    def _ask_for_more(self, epoch: AnyEpoch) -> None:
        """Report to the worker that an item was received, so that it makes
        more."""

    def receive_end(self, epoch: AnyEpoch) -> None:
        """Receive the last measurements of an epoch after another worker has
        sent the end of the epoch."""
        with self._given_up_if_interrupted():
            self._receive_end(epoch)

    def report_anew(self) -> None:
        """Start a new record of measurements, for another process, in which
        the sums begin at zero."""
        self._number = next(_numbers)

    def take_note(self, epoch: AnyEpoch, note: Note | None) -> None:
        """Record the measurements of the item that is being received."""
        if note is not None:
            is_late = take_note(self._number, note.path, note.seconds,
                                note.report, note.spans)
            # The worker learns only some batches later which batches were
            # delivered. If no earlier items were undelivered when an item was
            # made, the item was delivered at once.
            epoch.num_ready = 0 if is_late else (
                note.num_ahead and note.num_ahead + 1)

    def cut(self) -> None:
        """Make a thread that waits for a batch raise an error."""
        self.is_cut = True

    def close(self) -> None:
        """End the worker; delivered arrays remain valid."""
        self.finalizer()
        self.epochs.clear()

    def __getstate__(self) -> object:
        raise TypeError(f'{self.kind} of {self.name} cannot be pickled')


def pipeline_error(pickled: bytes) -> Exception:
    """Return an exception, to be raised in this process, for a pickled error
    of the worker's pipeline."""
    return unpickle_error(
        pickled, WorkerError, 'the pipeline in the worker process raised an '
        'error that cannot be pickled: ')


class Team:
    """One or several workers that share an epoch: of `n` workers, each makes
    every `n`-th batch.

    `continues`: whether the next epoch may begin at the present position of
        the workers' streams, without a state.
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
        """Whether one of the workers was given up after Ctrl-C (bool)."""
        for worker in self.workers:  # noqa: SIM110 (asked for each batch)
            if worker.interrupted:
                return True
        return False

    @property
    def error(self) -> WorkerError | None:
        """The reason why a worker was given up; None if none was."""
        return next((worker.error for worker in self.workers
                     if worker.error is not None), None)

    def begin(self, start: dict[str, Any],
              follows: tuple[int, int] | None) -> list[RemoteEpoch]:
        """Begin an epoch in every worker."""
        count = len(self.workers)
        if count == 1:
            return [self.workers[0].begin({**start, 'follows': follows})]
        # Each worker has prefetched different batches, so each loads the
        # state.
        return [worker.begin({**start, 'share': (place, count)})
                for place, worker in enumerate(self.workers)]

    def cut(self) -> None:
        """Make a thread that waits for a batch raise an error."""
        for worker in self.workers:
            worker.cut()

    def close(self) -> None:
        """End the workers."""
        for worker in self.workers:
            worker.close()


class WorkerSession(RemoteSession[StreamLike]):
    """One epoch that a team of workers makes.

    `resume`: state from which to resume.  Defaults to None: the stream's
        present state.
    `finished`: whether `resume` is the state after the end of the epoch.
    `after`: whether to read the epoch that follows the epoch of `resume`.
    `calls`: names of the stream's methods to call before the epoch.
    `team`: the workers; None after unpickling, until the first batch is
        requested.
    `parts`: the epoch in each worker.
    `delivered`: number of batches and errors of these parts that were
        delivered.
    `receipts`: maps the number of a part to the receipt of the item that the
        part delivered last.
    `most_skipped`: number of failing examples that all workers together may
        leave out.  A state contains the left-out examples of all workers.
    `end`: the position at the end of an epoch that was over when the session
        was pickled; None otherwise.
    `is_exact`: whether the workers time each item.
    `order`: the order of the items, once a stage above asks for it.
    """

    most_skipped = 0
    is_exact = False
    end: State | Exception | None = None
    order: EpochOrder | None = None

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
        """Begin the epoch in a team of workers.

        `last`: session of the epoch before; its workers may continue from
        their position.
        """
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
        """Receive the next batch from the worker whose turn it is, into
        `held`."""
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
                    worker.receive_end(part)
            raise
        if self.most_skipped and len(self.parts) > 1:
            self._check_skipped(place)

    def _check_skipped(self, place: int) -> None:
        """Replace a batch by an error if all workers together have left out
        more examples than they may.  Each worker counts only the examples that
        it has left out itself."""
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
        """Resume the epoch at the reader's position, in another team."""
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
        # Workers that are also in the new team make the rest of the epoch
        # again.
        self.leave()
        stage: Any = stage_of(stream)
        self.begin(stage.get_team())

    def count(self, receipt: Receipt) -> None:
        """Count the batch or error of a receipt as delivered."""
        self.receipts[self.delivered % len(self.parts)] = receipt
        self.delivered += 1

    def has_begun(self) -> bool:
        """Return whether the state of the epoch is known without waiting."""
        if not self.parts:
            return False
        # This part made the last item that was delivered.
        return self.parts[max(0, self.delivered - 1) % len(self.parts)].opened

    def state(self) -> State | Exception:
        """Return the wrapped stream's state after the delivered items."""
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
        """Return the state after the delivered items.

        At the end of the epoch this is still a state in the epoch: the state
        of a downstream stage contains such a state while the epoch of that
        stage is not over.
        """
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
        """Return the state of a part, with the left-out examples of all
        parts."""
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
            if self.team.interrupted and not self.has_begun():
                # Ctrl-C came before the first state: another team begins the
                # epoch.
                stream = self.stream()
                if stream is not None:
                    self._move(stream)
            self.team.workers[0].wait_until_open(self.parts[0])
        except Exception as error:  # noqa: BLE001 (to start runs any code)
            return without_frames(error)
        return self.parts[0].base

    def last_state(self) -> State | None:
        """Return the state after which the next epoch begins; None if
        unknown."""
        state = self.state()
        if not isinstance(state, Exception):
            return state
        return None if self.has_begun() else self.resume

    def is_connected(self) -> bool:
        """Return whether the workers can make the next epoch without a
        state."""
        return (self.team is not None and self.team.continues
                and self.team.is_usable())

    @property
    def is_waiting(self) -> bool:
        """Whether the session waits for an item of a worker (bool)."""
        return self.team is not None and any(
            worker.is_used and worker.waiter.is_waiting
            for worker in self.team.workers)

    def leave(self) -> None:
        """Report to the workers that the epoch is not read any more."""
        if self.team is not None:
            for worker, part in zip(self.team.workers, self.parts,
                                    strict=True):
                worker.leave(part)
