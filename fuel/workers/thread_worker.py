"""A worker that is threads of this process, seen from its consumer and within.

One thread makes the batches in order, and others run the stages that are
declared pure (:mod:`fuel.epochs.ahead`).  Nothing is pickled but the changes
of states, which the stages may go on to change.
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

from fuel.epochs.ahead import let_run
from fuel.epochs.stage import children_of, stage_of
from fuel.exceptions import WorkerError
from fuel.iterator import DataIterator
from fuel.kernels.epoch_iterator import Waiting
from fuel.kernels.stage_reader import BoundStageReader, StageReader
from fuel.sharding.pipeline import can_seek
from fuel.typing import Batch, State, StreamLike
from fuel.utils.crew import Crew
from fuel.utils.threads import end_thread_at_exit
from fuel.workers.batch_maker import BatchMaker, Made, pickle_state
from fuel.workers.global_random import refuse_if_drawn
from fuel.workers.remote_epoch import EpochWorker, RemoteEpoch

# Seconds between looks at how long a batch was waited for.
_INTERVAL = 1.0


class ThreadEpoch(RemoteEpoch):
    """One epoch, which the thread that makes it and its consumer share.

    `made`: what was made, and not received.
    `maker`: makes the batches; None before it began and after its end.
    `count`: how many batches and errors were made.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.made: deque[tuple[Made, bytes]] = deque()
        self.maker: BatchMaker[Batch] | None = None
        self.count = 0


class ThreadProducer:
    """Makes the batches of the epochs of one consumer, in threads.

    `stream`: is read by one thread at a time.
    `max_batches`: how many batches of an epoch may wait.
    `is_asked`: whether the consumer has asked for a batch.
    `is_awaited`: whether it waits, which it does while the first one is made.
    `num_waits`: how often it has ceased to wait, also at an error.
    `wanted`: gets a value when something was made that is waited for.
    `failure`: what ended the thread, if something did.
    """

    def __init__(self, name: str, stream: StreamLike, num_threads: int,
                 max_batches: int) -> None:
        self.stream = stream
        self.max_batches = max_batches
        self.in_order = Crew(1, f'fuel-{name}')
        self.in_any_order = Crew(
            num_threads, f'fuel-{name}-pure', is_nested=True)
        self.is_asked = False
        self.is_awaited = False
        self.num_waits = 0
        self.wanted: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.failure: BaseException | None = None
        # The epochs that have room are made in turn.
        self._epochs: deque[ThreadEpoch] = deque()
        self._last: ThreadEpoch | None = None
        self._steps: deque[Callable[[], None]] = deque()
        # Since when there is no room for another batch; 0 if there is.
        self._full_since = 0.0
        self._is_known_to_draw_nothing = False
        self._refusal: ValueError | None = None
        # Whether a step is under way, or will be.
        self._turn = queue.SimpleQueue[None]()
        self._turn.put(None)

    def close(self) -> None:
        """End the threads."""
        self.in_any_order.close()
        self.in_order.close()

    def do(self, step: Callable[[], None]) -> None:
        """Let the thread do something before it makes the next batch."""
        self._steps.append(step)
        self.go_on()

    def go_on(self) -> None:
        """Let the thread work if there is something to do."""
        while self._has_work():
            try:
                self._turn.get_nowait()
            except queue.Empty:
                # Whoever has the turn looks again when it has ended.
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
            self.is_asked and self._find() is not None)

    def _find(self) -> ThreadEpoch | None:
        """Return an epoch that has room for another batch; for one while it
        is not known whether a stage draws, since a consumer that gets it no
        longer waits."""
        room = self.max_batches if self._is_known_to_draw_nothing else 1
        return next((epoch for epoch in list(self._epochs)
                     if len(epoch.made) < room), None)

    def _take_step(self) -> None:
        if self._full_since:
            stage_of(self.stream).meter.count_room(
                time.perf_counter() - self._full_since)
        try:
            if self._steps:
                self._steps.popleft()()
            else:
                epoch = self._find()
                if epoch is not None:
                    self._make(epoch)
                del epoch
        except BaseException as error:  # noqa: BLE001 - told to the consumer
            self.failure = error
        is_full = bool(self._epochs) and self._find() is None
        self._full_since = time.perf_counter() if is_full else 0.0
        if self.is_awaited:
            self.wanted.put(None)
        self._turn.put(None)
        self.go_on()

    def open(self, epoch: ThreadEpoch, options: dict[str, Any]) -> None:
        """Begin an epoch."""
        try:
            if self._refusal is not None:
                # A seed that is set again changes nothing.
                raise self._refusal
            with self._watched():
                maker = epoch.maker = self._open(**options)
        except Exception as error:  # noqa: BLE001 - raised by the consumer
            epoch.fail(error)
            return
        epoch.base, epoch.opened = maker.base, True
        self._last = epoch
        self._epochs.append(epoch)

    def _open(self, state: State | None = None, after: bool = False,
              calls: Sequence[str] = (), left: int = 0, delivered: int = 0,
              **options: Any) -> BatchMaker[Batch]:
        last, self._last = self._last, None
        if last is not None and after and last.final is not None and (
                last.number, last.count) == (left, delivered):
            # Nothing was made beyond it: the stream stands there.
            state = None
        # Its iterator must be gone before the next is made.
        del last
        return BatchMaker(
            self.stream, _as_it_is, state=state, after=after, calls=calls,
            prepare=partial(_run_ahead, threads=self.in_any_order), **options)

    def _make(self, epoch: ThreadEpoch) -> None:
        maker, number = epoch.maker, self.num_waits
        assert maker is not None
        if len(self._epochs) > 1:
            # The others come first the next time.
            self._epochs.rotate(-1)
        try:
            with self._watched():
                maker.num_ahead = len(epoch.made)
                made = maker.next()
        except ValueError as error:
            self._refusal = error
            self.leave(epoch)
            epoch.fail(error)
            return
        if number == self.num_waits:
            self._is_known_to_draw_nothing = True
        changes = b'' if made.changes is None else pickle_state(made.changes)
        if made.is_end:
            epoch.final = pickle_state(made.state)
            self.leave(epoch)
        else:
            epoch.count += 1
        epoch.made.append((made, changes))

    def _watched(self) -> AbstractContextManager[None]:
        """Refuse draws from the global generators, until a batch was made
        while the consumer waited, which draws from them too."""
        number = self.num_waits
        return (nullcontext() if self._is_known_to_draw_nothing
                else refuse_if_drawn(
                    self.stream, lambda: number == self.num_waits))

    def leave(self, epoch: ThreadEpoch) -> None:
        """Make nothing more of an epoch."""
        if epoch in self._epochs:
            self._epochs.remove(epoch)
        epoch.maker = None


def _run_ahead(iterator: Any, threads: Crew, *,
               ends_early: bool = False) -> None:
    """Let the pure stages of an epoch that begins run in threads.

    Those above the first stage of another kind; where no ranks share the
    epoch, also those below stages that read one item after another.

    `ends_early`: whether a stage above may leave items unread.  Then no
        stream is read ahead that would stand elsewhere afterwards.
    """
    if not isinstance(iterator, DataIterator):
        return
    run, below = _pure_run(iterator)
    if run and (not ends_early or (
            isinstance(below, DataIterator)
            and can_seek(below.data_stream))):
        let_run(run[::-1], below, threads)
    if not isinstance(below, DataIterator):
        return
    stage = stage_of(below.data_stream)
    if stage.dataset is not None or stage.shard is not None or not (
            isinstance(_reader_of(below), BoundStageReader)):
        return
    ends_early = ends_early or stage.reads_several or not stage.one_to_one
    for child in children_of(below.epoch):
        _run_ahead(child, threads, ends_early=ends_early)


def _pure_run(iterator: Any) -> tuple[list[Any], Any]:
    """Return the iterators of pure stages from one on, outermost first, and
    the first one below them."""
    run: list[Any] = []
    while isinstance(iterator, DataIterator) and isinstance(
            _reader_of(iterator), StageReader):
        run.append(iterator)
        iterator = _reader_of(iterator).child
    return run, iterator


def _reader_of(iterator: Any) -> Any:
    """Return the reader of an epoch, None if it cannot be opened.

    The first read says why.
    """
    stage = stage_of(iterator.data_stream)
    if stage.dataset is None:
        with suppress(Exception):
            return stage.reader_of(iterator.epoch)
    return None


def _as_it_is(batch: Batch) -> tuple[Batch, Sequence[Any]]:
    """Encode a batch: what stays in this process is handed over."""
    return batch, ()


class ThreadWorker(EpochWorker[ThreadEpoch]):
    """Threads that prefetch batches of a stream."""

    kind = 'the threads'

    def __init__(self, name: str, stream: StreamLike, num_threads: int,
                 max_batches: int, stalled: float) -> None:
        super().__init__(name, stalled)
        self.waiter = SimpleNamespace(is_waiting=False)
        self._producer = ThreadProducer(
            name, stream, num_threads, max_batches)
        # Also when this object is gone, and at exit.
        self._finalizer = weakref.finalize(self, self._producer.close)

    @property
    def pid(self) -> int | None:
        """Process identifier of a process of its own: there is none."""
        return None

    def _is_open(self) -> bool:
        return self._finalizer.alive

    def _begin(self, number: int, options: dict[str, Any]) -> ThreadEpoch:
        epoch = ThreadEpoch(number)
        producer = self._producer
        producer.do(partial(producer.open, epoch, options))
        return epoch

    def _leave(self, epoch: ThreadEpoch) -> None:
        epoch.made.clear()
        self._producer.do(partial(self._producer.leave, epoch))

    def _wait_until_open(self, epoch: ThreadEpoch) -> None:
        self._wait(lambda: epoch.opened)

    def _receive(self, epoch: ThreadEpoch,
                 ) -> tuple[Any, Exception | None, bytes] | None:
        self._producer.is_asked = True
        if not epoch.made:
            with Waiting():
                self._wait(lambda: bool(
                    epoch.made) or epoch.failure is not None)
        if epoch.failure is not None:
            return None
        made, changes = epoch.made.popleft()
        self.take_note(epoch, made.note)
        if made.is_end:
            return None
        return made.description, made.error, changes

    def _ask_for_more(self, epoch: ThreadEpoch) -> None:
        self._producer.go_on()

    def _wait(self, is_there: Callable[[], bool]) -> None:
        """Wait until a condition is true."""
        producer = self._producer
        producer.is_awaited = True
        try:
            producer.go_on()
            self._watch_until(is_there)
        finally:
            producer.num_waits += 1
            producer.is_awaited = False

    def _watch_until(self, is_there: Callable[[], bool]) -> None:
        """Wait, and raise what keeps a condition from being true."""
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
            begin, interval = time.monotonic(), min(_INTERVAL, self.stalled)
            self.waiter.is_waiting = True
            with suppress(queue.Empty):
                producer.wanted.get(timeout=interval)
            self.waiter.is_waiting = False
            waited += min(time.monotonic() - begin, interval)

    def cut(self) -> None:
        """Interrupt a thread that waits for a batch."""
        self.is_cut = True
        self._producer.wanted.put(None)

    def close(self) -> None:
        """End the threads; what was delivered stays."""
        self._finalizer()
        self.epochs.clear()
