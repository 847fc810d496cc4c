"""Run pure stages in threads, ahead of an epoch's reader.

A stage that is declared pure makes each item from one item, in any order and
in several threads at a time.  So items of the stream below a run of pure
stages are prefetched in order, threads transform them, and the results are
delivered in the same order.  Everything else works as without threads: each
epoch counts an item, and explains its error, when the item is delivered.  A
state saved after an item has the positions that the stages below had when
they had read that item.
"""
from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from fuel.epochs.epoch import Epoch
from fuel.epochs.examples import SourceExamples
from fuel.epochs.state import Position, position_of
from fuel.kernels.epoch_iterator import (
    MeasuredItem, StageMeter, Waiting, now)
from fuel.kernels.stage_reader import StageReader
from fuel.typing import Batch, State

# Seconds between two checks whether the threads are halted.
_POLL_SECONDS = 0.1

#: A function of a stage and an item, which returns the item transformed.
Transform = Callable[[Any, Any], Any]
#: A function that returns the examples of an item, None if not known.
Examples = Callable[[], SourceExamples | None]


class TransformAsRead:
    """Transform that depends on how the stream below has read the item.

    `bind`: returns the transform for the item that was read last.
    """

    def __init__(self, bind: Callable[[], Transform]) -> None:
        self.bind = bind

    def __call__(self, stage: object, item: Batch) -> Any:
        """Return the transformed item; it must be the one read last."""
        return self.bind()(stage, item)


class Threads(Protocol):
    """Interface of an executor; see :class:`fuel.utils.crew.Crew`.

    `size`: number of tasks that the executor runs at a time.
    `is_halted`: whether tasks that have not begun have to wait.
    """

    size: int

    @property
    def is_halted(self) -> bool:
        """See above."""

    def submit(self, task: Callable[[], None]) -> None:
        """Run a task in one of the threads.

        Raises: RuntimeError if there is no thread, and none can be started.
        """


class Task(MeasuredItem):
    """Task of making one item by a run of pure stages.

    `data`: the item that the last stage returned, or the item that was passed
        to the stage that failed.
    `failed`: index of the stage that failed in the run, None if none failed.
    `error`: the error of the stage that failed.
    `thread`: native identifier of the thread that made the item.
    `spans`: start and end of each stage, in nanoseconds of the system's
        clock.
    """

    def __init__(self, data: Batch, stages: Sequence[tuple[Any, Transform]],
                 ) -> None:
        self.data: Any = data
        self.failed: int | None = None
        self.error: Exception | None = None
        self.thread = 0
        self.spans: list[tuple[int, int]] = []
        self._stages = stages
        self._begun, self._running = threading.Lock(), threading.Lock()
        self._running.acquire()

    def __call__(self) -> None:
        """Make the item, unless a thread has begun to make it."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            self._make()
        finally:
            self._running.release()

    def _make(self) -> None:
        self.thread = threading.get_native_id()
        self.begin(self.data)
        for place, (stage, transform) in enumerate(self._stages):
            begin = now()
            try:
                data = transform(stage, self.data)
                if type(data) is not tuple and isinstance(data, Iterator):
                    data = tuple(data)
            except Exception as error:  # noqa: BLE001 - raised in its turn
                self.failed, self.error = place, error
                return
            except BaseException as error:  # noqa: BLE001 - ends no thread
                self.failed = place
                self.error = RuntimeError(
                    f'the stage {type(stage).__name__} raised '
                    f'{type(error).__name__}, which would end its thread')
                self.error.__cause__ = error
                return
            finally:
                self.spans.append((begin, now()))
            self.data = data
            # Count rows and bytes here, since the stages above get the task,
            # which has none.
            self.count(data)

    @property
    def is_done(self) -> bool:
        """Whether the item was made, or a stage has failed (bool)."""
        return not self._running.locked()

    def wait(self, threads: Threads) -> None:
        """Wait until the item is made.

        If the threads are halted before one of them has begun, the caller's
        thread makes the item.
        """
        while not self._running.acquire(timeout=_POLL_SECONDS):
            if threads.is_halted:
                self()
        self._running.release()


class _Entry(NamedTuple):
    """A prefetched item: its task, or the error of reading it.

    At the end of the epoch, the error is StopIteration.

    `position`: position of the stream below after this item was read.
    `examples`: returns the examples of the item, if they are noted.
    """

    task: Task | None
    error: Exception | None
    position: Position | State | Exception
    examples: Examples | None


class ReadAhead:
    """Prefetches items of an epoch iterator, and delivers tasks in order.

    `source`: the epoch iterator that is prefetched.
    `data_stream`: the stream of that iterator.
    `note`: returns a function for the item that `source` has read last, which
        returns its examples; None if no stage asks for them.
    """

    _examples: Examples | None = None

    def __init__(self, source: Any, stages: Sequence[tuple[Any, Transform]],
                 threads: Threads,
                 note: Callable[[], Examples] | None = None) -> None:
        self.source = source
        self.note = note
        self.data_stream = source.data_stream
        self._stages = stages
        self._threads = threads
        self._entries: deque[_Entry] = deque()
        self._has_ended = False
        self._position = _kept(position_of(source))

    def __iter__(self) -> ReadAhead:
        return self

    def __next__(self) -> Task:
        while self._may_read():
            self._read()
        if not self._entries:
            raise StopIteration
        entry = self._entries.popleft()
        self._position, self._examples = entry.position, entry.examples
        if entry.error is not None:
            raise entry.error
        assert entry.task is not None
        entry.task.wait(self._threads)
        return entry.task

    def _may_read(self) -> bool:
        """Return whether to read one more item before one is delivered.

        At most twice as many items as there are threads are prefetched, so
        that no thread waits for an item.
        """
        count = len(self._entries)
        if self._has_ended or not count:
            return not self._has_ended
        if self._threads.is_halted or count >= 2 * self._threads.size:
            return False
        first = self._entries[0].task
        return count <= self._threads.size or (
            first is not None and not first.is_done)

    def _read(self) -> None:
        task: Task | None = None
        failure: Exception | None = None
        examples: Examples | None = None
        try:
            item = next(self.source)
            if self.note is not None:
                examples = self.note()
            task = Task(item, [
                (stage, transform.bind() if isinstance(
                    transform, TransformAsRead) else transform)
                for stage, transform in self._stages])
        except StopIteration as end:
            self._has_ended, failure = True, end
        except Exception as error:  # noqa: BLE001 - raised in its turn
            failure = error
        else:
            # Without a thread, the code that waits for the item makes it.
            with suppress(RuntimeError):
                self._threads.submit(task)
        self._entries.append(_Entry(
            task, failure, _kept(position_of(self.source)), examples))

    def get_position(self) -> Position | State | Exception:
        """Return the position that `source` had after it read the item that
        was delivered last."""
        return self._position

    @property
    def examples(self) -> SourceExamples | None:
        """The examples of the item that was delivered last, if noted and known
        (SourceExamples or None)."""
        return None if self._examples is None else self._examples()

    @property
    def epoch(self) -> Epoch:
        """The epoch of `source`, for code that needs its requests."""
        epoch: Epoch = self.source.epoch
        return epoch

    @property
    def num_ahead(self) -> int:
        """Number of prefetched items that were not delivered yet (int)."""
        return sum(not isinstance(entry.error, StopIteration)
                   for entry in self._entries)

    def close(self) -> None:
        """Drop the prefetched items, and end the iteration."""
        self._entries.clear()
        self._has_ended = True


class TaskItems:
    """Reader of a pure stage whose items are made by threads.

    `reader`: the reader of the stage without threads; it explains errors.
    `child`: the iterator of tasks that is read.
    `place`: index of the stage in the run of pure stages.
    `own`: the stage and its transform.
    `meter`: measures the stage.
    `is_last`: whether the stage is the last one of the run.
    """

    def __init__(self, reader: StageReader, child: Any, place: int,
                 own: tuple[Any, Transform], meter: StageMeter, *,
                 is_last: bool) -> None:
        self._reader = reader
        self._own = own
        self.child = child
        self._place = place
        self._meter = meter
        self._is_last = is_last

    def read(self) -> Any:
        """Return the next item; below the last stage of the run, its task."""
        with Waiting(is_told=True):
            item = next(self.child)
        task, place = item, self._place
        is_remainder = type(item) is not Task
        if is_remainder:
            # A stage below has left out rows of the item, and made it again.
            task, place = Task(item, [self._own]), 0
            task()
        self._meter.credit(task.thread, *task.spans[place])
        if task.failed == place:
            error = task.error
            assert error is not None
            explained = self._reader.explained(
                error, self.child, task.data)
            if explained is error:
                raise error
            raise explained from error
        task.place = place
        return task.data if self._is_last or is_remainder else task

    def skip(self, count: int) -> None:
        """Read items and drop them."""
        for _ in range(count):
            self.read()

    def close(self) -> None:
        """Release the child's iterator."""
        self._reader.close()
        self.child = None


def run_in_threads(run: Sequence[Any], below: Any, threads: Threads,
                   note: Callable[[], Examples] | None = None) -> None:
    """Let a run of pure stages make its items in threads.

    `run`: the epoch iterators of the stages, the innermost first; their
        readers are open.
    `below`: the epoch iterator of the stream below the run.
    `note`: see :class:`ReadAhead`.
    """
    stages = [(each.data_stream, each.epoch.reader.transform) for each in run]
    child: Any = ReadAhead(below, stages, threads, note)
    run[0].epoch.attributes['child_epoch_iterator'] = child
    for place, each in enumerate(run):
        each.epoch.reader = TaskItems(
            each.epoch.reader, child, place, stages[place],
            each.epoch.meter, is_last=each is run[-1])
        child = each


def _kept(position: Position | State | Exception,
          ) -> Position | State | Exception:
    """Return a copy of a position, which later reads do not change."""
    if not isinstance(position, Position):
        return position
    children: list[Any] = [_kept(child) for child in position.children]
    leftover, dataset = position.leftover, position.dataset_position
    if leftover is not None and not isinstance(leftover, Exception):
        leftover = copy.deepcopy(leftover)
    if dataset is not None and not isinstance(dataset, Exception):
        dataset = copy.deepcopy(dataset)
    return position._replace(
        children=children, leftover=leftover, dataset_position=dataset)
