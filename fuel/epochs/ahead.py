"""Stages that run ahead of an epoch's reader, in threads.

A stage that is declared pure makes an item of one item, in any order and in
several threads at a time.  So a run of such stages needs no turn: items of the
stream below are read ahead in order, threads transform them, and each is
handed out when those before it were.  Everything else goes on as without
threads: each epoch counts, and explains errors, when an item is handed out.
What a state says of the stages below is where they stood after that item was
read.
"""
from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from fuel.epochs.epoch import Epoch
from fuel.epochs.state import Position, position_of
from fuel.kernels.epoch_iterator import (
    MeasuredItem, StageMeter, Waiting, now)
from fuel.kernels.stage_reader import StageReader
from fuel.typing import Batch, State

# Seconds between checks whether the threads are halted.
_POLL_SECONDS = 0.1

#: A function of a stage and an item, which returns the item transformed.
Transform = Callable[[Any, Any], Any]


class TransformAsRead:
    """Transforms an item by how the stream below has read it.

    `bind`: returns the function for the item that was read last.
    """

    def __init__(self, bind: Callable[[], Transform]) -> None:
        self.bind = bind

    def __call__(self, stage: object, item: Batch) -> Any:
        """Return the item that was read last, transformed."""
        return self.bind()(stage, item)


class Threads(Protocol):
    """Interface of an executor; see :class:`fuel.utils.crew.Crew`.

    `size`: number of tasks that it runs at a time.
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
    """An item that a run of pure stages makes of one of the stream below.

    `data`: the item; what the last stage returned, or what the one that
        failed was given.
    `failed`: the place of the stage that failed, None if none did.
    `error`: its error.
    `thread`: native identifier of the thread that made it.
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
        """Make the item, unless another thread does."""
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
            # Stages above get the task, which has no rows and no bytes.
            self.count(data)

    @property
    def is_done(self) -> bool:
        """Whether it was made, or has failed (bool)."""
        return not self._running.locked()

    def wait(self, threads: Threads) -> None:
        """Wait until the item is made; make it here if no thread will."""
        while not self._running.acquire(timeout=_POLL_SECONDS):
            if threads.is_halted:
                self()
        self._running.release()


class _Entry(NamedTuple):
    """A prefetched item: a task, or an error in its place, or the end.

    `position`: of the stream below, after it was read.
    """

    task: Task | None
    error: Exception | None
    position: Position | State | Exception


class ReadAhead:
    """Reads an epoch iterator ahead, and hands out the tasks in order.

    `source`: the epoch iterator, of `data_stream`.
    """

    def __init__(self, source: Any, stages: Sequence[tuple[Any, Transform]],
                 threads: Threads) -> None:
        self.source = source
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
        self._position = entry.position
        if entry.error is not None:
            raise entry.error
        assert entry.task is not None
        entry.task.wait(self._threads)
        return entry.task

    def _may_read(self) -> bool:
        """Return whether to read one more item before one is delivered.

        Twice as many as there are threads, so that none waits for reading.
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
        try:
            item = next(self.source)
            task = Task(item, [
                (stage, transform.bind() if isinstance(
                    transform, TransformAsRead) else transform)
                for stage, transform in self._stages])
        except StopIteration as end:
            self._has_ended, failure = True, end
        except Exception as error:  # noqa: BLE001 - raised in its turn
            failure = error
        else:
            # Without any thread, whoever waits for the item makes it.
            with suppress(RuntimeError):
                self._threads.submit(task)
        self._entries.append(_Entry(
            task, failure, _kept(position_of(self.source))))

    def get_position(self) -> Position | State | Exception:
        """Return the position of `source` after the last item handed out."""
        return self._position

    @property
    def epoch(self) -> Epoch:
        """The epoch of `source`, for code that needs its requests."""
        epoch: Epoch = self.source.epoch
        return epoch

    @property
    def num_ahead(self) -> int:
        """Number of prefetched items that were not handed out (int)."""
        return sum(not isinstance(entry.error, StopIteration)
                   for entry in self._entries)

    def close(self) -> None:
        """Drop the items that were read."""
        self._entries.clear()
        self._has_ended = True


class TaskItems:
    """Reads a pure stage whose items threads make.

    `reader`: that of the stage without threads.
    `child`: the iterator that it reads: of tasks.
    `meter`: measures the stage.
    """

    def __init__(self, reader: StageReader, child: Any, place: int,
                 meter: StageMeter, *, is_last: bool) -> None:
        self._reader = reader
        self.child = child
        self._place = place
        self._meter = meter
        self._is_last = is_last

    def read(self) -> Any:
        """Return the next item, or the task that makes it for a stage
        above."""
        with Waiting(is_told=True):
            task: Task = next(self.child)
        self._meter.credit(task.thread, *task.spans[self._place])
        if task.failed == self._place:
            error = task.error
            assert error is not None
            explained = self._reader.explained(
                error, self.child, task.data)
            if explained is error:
                raise error
            raise explained from error
        task.place = self._place
        return task.data if self._is_last else task

    def skip(self, count: int) -> None:
        """Read items and drop them."""
        for _ in range(count):
            self.read()

    def close(self) -> None:
        """Release the child's iterator."""
        self._reader.close()
        self.child = None


def run_in_threads(run: Sequence[Any], below: Any, threads: Threads) -> None:
    """Let pure stages run in threads.

    `run`: their epoch iterators, the innermost first, whose readers are open.
    `below`: that of the stream below.
    """
    stages = [(each.data_stream, each.epoch.reader.transform) for each in run]
    child: Any = ReadAhead(below, stages, threads)
    run[0].epoch.attributes['child_epoch_iterator'] = child
    for place, each in enumerate(run):
        each.epoch.reader = TaskItems(
            each.epoch.reader, child, place, each.epoch.meter,
            is_last=each is run[-1])
        child = each


def _kept(position: Position | State | Exception,
          ) -> Position | State | Exception:
    """Return a copy of a position that does not change with the stage."""
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
