"""A worker that consists of threads of this process, and its producer.

One thread makes the batches in order, and others run the stages that are
declared pure (:mod:`fuel.epochs.ahead`).  Only the changes of states are
pickled, since the stages may still modify them.
"""
from __future__ import annotations

import queue
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

from fuel.epochs.ahead import Examples, run_in_threads
from fuel.epochs.examples import SourceExamples
from fuel.epochs.pipeline import can_seek, source_examples
from fuel.epochs.stage import children_of, stage_of
from fuel.exceptions import WorkerError
from fuel.iterator import DataIterator
from fuel.kernels.epoch_iterator import PendingItem
from fuel.kernels.stage_reader import BoundStageReader, StageReader
from fuel.typing import Batch, StreamLike
from fuel.utils.crew import Crew
from fuel.utils.threads import end_thread_at_exit
from fuel.workers.batch_maker import BatchMaker, RunningEpochs
from fuel.workers.global_random import refuse_if_drawn
from fuel.workers.team import EpochWorker, RemoteEpoch

# Seconds between checks of how long the consumer has waited.
_POLL_SECONDS = 1.0


class ThreadProducer:
    """Makes the batches of the epochs of one consumer, in threads.

    `max_batches`: number of batches of an epoch that may be prefetched.
    `epochs`: the epochs.  Only one thread at a time makes their batches.
    `is_asked`: whether the consumer has requested a batch.
    `is_awaited`: whether the consumer waits for a batch.
    `num_waits`: number of the consumer's waits that have ended, including
        those that an error ended.
    `wanted`: queue that receives a value after each step while the consumer
        waits.
    `failure`: error that ended the thread; None if there was none.
    """

    def __init__(self, name: str, stream: StreamLike, num_threads: int,
                 max_batches: int) -> None:
        self.max_batches = max_batches
        self.epochs = RunningEpochs(stream, _as_it_is)
        self.in_order = Crew(1, f'fuel-{name}')
        self.in_any_order = Crew(
            num_threads, f'fuel-{name}-pure', is_nested=True)
        self.is_asked = False
        self.is_awaited = False
        self.num_waits = 0
        self.wanted: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.failure: BaseException | None = None
        self._steps: deque[Callable[[], None]] = deque()
        # Time since which there is no room for another batch; 0 if there is
        # room.
        self._full_since = 0.0
        self._is_known_to_draw_nothing = False
        self._refusal: ValueError | None = None
        # Empty while a step is under way or queued.
        self._turn = queue.SimpleQueue[None]()
        self._turn.put(None)

    def close(self) -> None:
        """End the threads."""
        self.in_any_order.close()
        self.in_order.close()

    def do(self, step: Callable[[], None]) -> None:
        """Run a function in the thread before it makes the next batch."""
        self._steps.append(step)
        self.go_on()

    def go_on(self) -> None:
        """Let the thread take its next step if there is one."""
        while self._has_work():
            try:
                self._turn.get_nowait()
            except queue.Empty:
                # The running step checks again for work when it has ended.
                return
            if self._has_work():
                self.in_order.submit(self._take_step)
                return
            self._turn.put(None)

    def _has_work(self) -> bool:
        if self.failure is not None or not (
                self.is_awaited or self._is_known_to_draw_nothing):
            return False
        return bool(self._steps) or (
            self.is_asked and bool(self._with_room()))

    def _with_room(self) -> list[tuple[int, BatchMaker[Batch]]]:
        """Return the epochs that have room for another batch.  While it is
        unknown whether a stage draws from the global generators, an epoch has
        room for one batch, which is made while the consumer waits."""
        return self.epochs.with_room(
            self.max_batches if self._is_known_to_draw_nothing else 1)

    def _take_step(self) -> None:
        if self._full_since:
            stage_of(self.epochs.stream).meter.count_room(
                time.perf_counter() - self._full_since)
        try:
            if self._steps:
                self._steps.popleft()()
            else:
                for number, maker in self._with_room()[:1]:
                    self._make(number, maker.reader)
        except BaseException as error:  # noqa: BLE001 - told to the consumer
            self.failure = error
        is_full = bool(self.epochs.in_turn()) and not self._with_room()
        self._full_since = time.perf_counter() if is_full else 0.0
        if self.is_awaited:
            self.wanted.put(None)
        self._turn.put(None)
        self.go_on()

    def open(self, epoch: RemoteEpoch, options: dict[str, Any]) -> None:
        """Begin an epoch."""
        try:
            if self._refusal is not None:
                # If the next epoch set the same seed again when it begins,
                # that would not be noticed.
                raise self._refusal
            with self._watched():
                maker = self.epochs.open(epoch.number, prepare=partial(
                    _run_ahead, threads=self.in_any_order), **options)
        except Exception as error:  # noqa: BLE001 - raised by the consumer
            epoch.fail(error)
            return
        maker.delivered, maker.reader = 0, epoch
        epoch.base, epoch.opened = maker.base, True

    def _make(self, number: int, reader: RemoteEpoch) -> None:
        num_waits = self.num_waits
        self.epochs.postpone(number)
        try:
            with self._watched():
                made = self.epochs.make(number)
        except ValueError as error:
            self._refusal = error
            reader.fail(error)
            self.epochs.leave(number)
            return
        if num_waits == self.num_waits:
            self._is_known_to_draw_nothing = True
        reader.items.append(made.as_received(elsewhere=False))

    def _watched(self) -> AbstractContextManager[None]:
        """Return a context that refuses draws from the global generators.  It
        refuses nothing once a batch without draws was made while the consumer
        waited."""
        number = self.num_waits
        return (nullcontext() if self._is_known_to_draw_nothing
                else refuse_if_drawn(
                    self.epochs.stream, lambda: number == self.num_waits))


def _run_ahead(iterator: Any, threads: Crew, *,
               ends_early: bool = False) -> None:
    """Run pure stages of a beginning epoch in threads.

    These are the outermost stages, up to the first that is not pure.  If no
    ranks share the epoch, pure stages upstream of a stage that reads items one
    after another run in threads, too.

    `ends_early`: whether a stage downstream may leave items unread.  Then a
        stream is read ahead only if its position can be set back.
    """
    if not isinstance(iterator, DataIterator):
        return
    run, below = _pure_run(iterator)
    if run and (not ends_early or (
            isinstance(below, DataIterator)
            and can_seek(below.data_stream))):
        run_in_threads(run[::-1], below, threads, partial(
            _note_examples, below) if run[-1].epoch.is_asked else None)
    if not isinstance(below, DataIterator):
        return
    stage = stage_of(below.data_stream)
    if stage.dataset is not None or stage.shard is not None or not (
            isinstance(_reader_of(below), BoundStageReader)):
        return
    ends_early = ends_early or stage.reads_several or not stage.one_to_one
    for child in children_of(below.epoch):
        _run_ahead(child, threads, ends_early=ends_early)


def _note_examples(iterator: Any) -> Examples:
    """Return a function that returns the examples of the item that an iterator
    has read last, without those that pure stages leave out of it later."""
    found = source_examples(iterator, 1)
    limit, short = iterator.epoch.limit, iterator.epoch.short
    if found is None or limit is None or limit.requests is None:
        return lambda: found
    number = limit.requests.last_position
    before = short.get(number)

    def remaining() -> SourceExamples:
        after = short.get(number)
        if after is before:
            return found
        rows = range(after.total) if before is None else before.places
        return found.pick([[*rows].index(row) for row in after.places])

    return remaining


def _pure_run(iterator: Any) -> tuple[list[Any], Any]:
    """Return the iterators of consecutive pure stages, outermost first, and
    the iterator of the first stage that is not pure."""
    run: list[Any] = []
    while isinstance(iterator, DataIterator) and isinstance(
            _reader_of(iterator), StageReader):
        run.append(iterator)
        iterator = _reader_of(iterator).child
    return run, iterator


def _reader_of(iterator: Any) -> Any:
    """Return the reader of an epoch; None if it cannot be opened, or if the
    stream reads a data set.

    If it cannot be opened, the first read of the epoch raises the error.
    """
    stage = stage_of(iterator.data_stream)
    if stage.dataset is None:
        with suppress(Exception):
            return stage.reader_of(iterator.epoch)
    return None


def _as_it_is(batch: Batch) -> tuple[Batch, Sequence[Any]]:
    """Return a batch as it is, since it stays in this process."""
    return batch, ()


class ThreadWorker(EpochWorker[RemoteEpoch]):
    """Threads that prefetch batches of a stream."""

    kind = 'the threads'

    def __init__(self, name: str, stream: StreamLike, num_threads: int,
                 max_batches: int, stalled: float) -> None:
        super().__init__(name, stalled)
        self.waiter = SimpleNamespace(is_waiting=False)
        self._producer = ThreadProducer(
            name, stream, num_threads, max_batches)
        # Ends the threads when this object is gone, and at exit.
        self.finalizer = weakref.finalize(self, self._producer.close)

    @property
    def pid(self) -> int | None:
        """None: the worker has no process of its own."""
        return None

    def _begin(self, number: int, options: dict[str, Any]) -> RemoteEpoch:
        epoch = RemoteEpoch(number)
        producer = self._producer
        producer.do(partial(producer.open, epoch, options))
        return epoch

    def _leave(self, epoch: RemoteEpoch) -> None:
        epoch.items.clear()
        self._producer.do(partial(self._producer.epochs.leave, epoch.number))

    def receive(self, epoch: RemoteEpoch, pending: PendingItem) -> None:
        """Receive the next batch of an epoch, or its error, into
        `pending.held`."""
        self._producer.is_asked = True
        super().receive(epoch, pending)

    def _ask_for_more(self, epoch: RemoteEpoch) -> None:
        self._producer.epochs.count_delivered(epoch.number, epoch.taken)
        self._producer.go_on()

    def _wait(self, epoch: RemoteEpoch, is_there: Callable[[], bool]) -> None:
        producer = self._producer
        producer.is_awaited = True
        try:
            producer.go_on()
            self._watch_until(is_there)
        finally:
            producer.num_waits += 1
            producer.is_awaited = False

    def _watch_until(self, is_there: Callable[[], bool]) -> None:
        """Wait until a condition is true; raise an error if the threads
        failed, were closed, or have stalled."""
        producer, waited = self._producer, 0.0
        while not is_there():
            if producer.failure is not None and self.error is None:
                self.error = WorkerError(
                    f'the thread that reads {self.name} ended by '
                    f'{producer.failure!r}')
                self.error.__cause__ = producer.failure
            if self.error is not None:
                raise self.error
            if self.is_cut or not self._is_open():
                end_thread_at_exit()
                raise WorkerError(
                    f'the threads of {self.name} were closed by another '
                    'thread while this one waited for a batch')
            if waited >= self.stalled:
                raise WorkerError(
                    f'the threads of {self.name} have made nothing for '
                    f'{self.stalled} seconds (timeout). They are at:\n'
                    f'{producer.in_order.stacks()}\n'
                    f'{producer.in_any_order.stacks()}')
            producer.in_order.start_threads()
            begin = time.monotonic()
            interval = min(_POLL_SECONDS, self.stalled)
            self.waiter.is_waiting = True
            with suppress(queue.Empty):
                producer.wanted.get(timeout=interval)
            self.waiter.is_waiting = False
            waited += min(time.monotonic() - begin, interval)

    def cut(self) -> None:
        """Make a thread that waits for a batch raise an error."""
        super().cut()
        self._producer.wanted.put(None)
