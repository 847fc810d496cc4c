"""A worker and its epochs, on the consumer's side."""
from __future__ import annotations

import itertools
import os
import pickle
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

from fuel.epochs.sealing import ADVICE
from fuel.epochs.state import without_frames
from fuel.epochs.state_delta import Receipt
from fuel.exceptions import WorkerError
from fuel.kernels.epoch_iterator import PendingItem, Waiting, take_note
from fuel.typing import State
from fuel.workers.batch_maker import Note, ReceivedItem
from fuel.utils.remote_errors import unpickle_error

#: Seconds for what another worker has to say of an epoch that is over.
MOMENT = 0.2
# Tells workers apart, also those that are gone.
_numbers = itertools.count()


class RemoteEpoch:
    """One epoch of one worker, on the consumer's side.

    `taken`: how many batches and errors were received and opened.
    `items`: those that came and were not opened, as the worker sends them.
    `num_ready`: how many batches were made and not delivered, as far as that
        is known.
    `opened`: whether the worker answered the request for the epoch.
    `base`: the state before the first batch, or why there is none.
    `failure`: why the epoch could not begin, if it could not.
    `final`: the state after the end, or why there is none, pickled; None
        before the end was received.
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
        """Record that the worker has begun the epoch, or could not."""
        self.opened = True
        if failed:
            self.fail(pipeline_error(answer))
        else:
            self.base = pickle.loads(answer)

    def fail(self, error: Exception) -> None:
        """Record that there is no epoch, and why."""
        self.base = without_frames(error)
        self.failure, self.opened = error, True


AnyEpoch = TypeVar('AnyEpoch', bound=RemoteEpoch)


class EpochWorker(ABC, Generic[AnyEpoch]):
    """Makes epochs for one consumer: a process, or an actor of a cluster.

    `kind`, `remedy`: for errors: what it is, and what a child process that
        cannot use it is to do.
    `name`: of the stream.
    `stalled`: seconds without an answer after which it counts as stalled.
    `owner`: the process that may use it.
    `epochs`: those that are read, by number.
    `error`: why it was given up, None if it was not.
    `interrupted`: whether its epochs go on with other workers.
    `is_used`: whether something is asked of it, or received, at the moment.
    `is_cut`: whether another thread ended the wait for a batch.
    `waiter`: has `is_waiting`: whether an exception comes while it waits, so
        that nothing is lost.
    """

    waiter: Any
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
        """Stop reading an epoch."""
        if self.epochs.pop(epoch.number, None) and self.is_usable():
            with self._given_up_if_interrupted():
                self._leave(epoch)

    def wait_until_open(self, epoch: AnyEpoch) -> None:
        """Wait for the first state of an epoch, if that may come."""
        if not epoch.opened and self.is_used:
            # The answer cannot be received in the middle of a message.
            raise WorkerError(
                f'{self.kind} of {self.name} is waited for, and has not begun '
                f'the epoch, so the state is not known yet: {ADVICE}')
        if not epoch.opened and self.is_usable():
            with self._given_up_if_interrupted():
                self._wait(epoch, lambda: epoch.opened)

    def receive(self, epoch: AnyEpoch, pending: PendingItem) -> None:
        """Receive the next batch of an epoch, or its error, as pending."""
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
        """Give the worker up if Ctrl-C may have lost what it sent.

        Another one goes on where the user was.
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

    @abstractmethod
    def _is_open(self) -> bool:
        """Return whether it was not closed, and can make epochs."""

    @abstractmethod
    def _begin(self, number: int, options: dict[str, Any]) -> AnyEpoch:
        """Ask for an epoch."""

    @abstractmethod
    def _leave(self, epoch: AnyEpoch) -> None:
        """Ask for nothing more of an epoch."""

    @abstractmethod
    def _wait(self, epoch: AnyEpoch, is_there: Callable[[], bool]) -> None:
        """Receive what comes of an epoch until a condition is true."""

    @abstractmethod
    def _load(self, item: Any) -> ReceivedItem:
        """Return the answer that was received, with its arrays."""

    def _hear_end(self, epoch: AnyEpoch) -> None:
        """Take the last note of an epoch, if that comes at once."""

    @abstractmethod
    def _ask_for_more(self, epoch: AnyEpoch) -> None:
        """Ask for more batches, after one was received."""

    def hear_end(self, epoch: AnyEpoch) -> None:
        """Take the last note of an epoch whose end another worker has told."""
        with self._given_up_if_interrupted():
            self._hear_end(epoch)

    def report_anew(self) -> None:
        """Let another process report, whose sums begin at zero."""
        self._number = next(_numbers)

    def take_note(self, epoch: AnyEpoch, note: Note | None) -> None:
        """Take what the item took that is being received."""
        if note is not None:
            is_late = take_note(self._number, note.path, note.seconds,
                                note.report, note.spans)
            # The worker learns some batches later what was taken. With none
            # before it, it was taken at once.
            epoch.num_ready = 0 if is_late else (
                note.num_ahead and note.num_ahead + 1)

    @abstractmethod
    def cut(self) -> None:
        """Interrupt a thread that waits for a batch."""

    @abstractmethod
    def close(self) -> None:
        """End the worker; arrays that were delivered stay."""

    def __getstate__(self) -> object:
        raise TypeError(f'{self.kind} of {self.name} cannot be pickled')


def pipeline_error(pickled: bytes) -> Exception:
    """Return an exception of the worker's pipeline as one of ours."""
    return unpickle_error(
        pickled, WorkerError, 'the pipeline in the worker process raised an '
        'error that cannot be pickled: ')
