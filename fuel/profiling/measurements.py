"""Measurements of a pipeline, and functions that make them.

The functions read the meters of the stages, including stages in other
processes. Measurements can be added and subtracted.
"""
from __future__ import annotations

import dataclasses
import operator
import os
import platform
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple, TypeAlias

from fuel.describe.pipeline import HERE, stage_name
from fuel.epochs.pipeline import child_streams
from fuel.epochs.stage import stage_of
from fuel.kernels.epoch_iterator import StageMeter
from fuel.profiling.remedies import MORE_WORKERS, WORKERS, remedy
from fuel.utils.io_counts import io_counts
from fuel.utils.printing import aligned

#: Path of a stage in the tree of stages: its number in the process that runs
#: it. For a stage in another process, the path of the stage that reads it
#: comes first.
Path = tuple[int, ...]
#: Number of the item, and start and end in nanoseconds; the number is -1 for
#: an error, or the end of the epoch, in the place of an item.
Span: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class StageMeasurements:
    """Time, items and bytes of one stage.

    Attributes
    ----------
    path : tuple of int
        Its place in the pipeline: the path of the stage that reads it from
        another process, if there is one, then its number in its own process.
    name : str
        Class of the stage, with the user's function in parentheses if it calls
        one.
    depth : int
        Number of stages that read it, directly or indirectly.
    runs_in : str
        ``'this process'``, ``'2 workers'``, ``'server host:port'``.
    processes : int
        Number of workers that share the work.
    items, examples, bytes : int
        Number of batches (or examples) that the stage made, number of examples
        in them, and bytes of their arrays.
    written : int
        Bytes of the arrays that the stage itself made, without arrays that it
        only passed on.
    timed : int
        Number of items whose time was measured. If items take less than 20
        microseconds, one of 64 is measured, and its time counts for all of
        them.
    work_seconds : float
        Seconds of the stage's own work, without the stages that it reads and
        without waiting; summed over the processes that share the work.
    input_seconds : float
        Seconds that it waited for workers, threads or a server.
    room_seconds : float
        Seconds that it waited for room in its queue, since its consumer was
        slower.
    stall_seconds : float
        Seconds that the consumer of the pipeline waited while this stage was
        the slowest.
    queue_items, queue_size : int
        Number of prefetched batches, and its limit.
    restarts : int
        Number of restarts of its workers, or of its connection.
    bytes_read, chunks_decoded, bytes_decoded : int
        Bytes read from files, except from mapped ones; number of decoded
        chunks of HDF5 files; and bytes of those chunks. These are counts of
        the whole process. Only the first stage of the process that reads a
        data set has them.
    requests, bytes_fetched, retries : int
        Number of answered requests to servers of files, bytes that the servers
        sent, and number of repeated requests. These are also counts of the
        whole process.
    remedy : str
        The usual remedy if this stage takes the most time.
    """

    path: Path
    name: str
    depth: int
    runs_in: str
    processes: int = 1
    items: int = 0
    examples: int = 0
    bytes: int = 0
    written: int = 0
    timed: int = 0
    work_seconds: float = 0.
    input_seconds: float = 0.
    room_seconds: float = 0.
    stall_seconds: float = 0.
    queue_items: int = 0
    queue_size: int = 0
    restarts: int = 0
    bytes_read: int = 0
    chunks_decoded: int = 0
    bytes_decoded: int = 0
    requests: int = 0
    bytes_fetched: int = 0
    retries: int = 0
    remedy: str = ''

    def __add__(self, other: StageMeasurements) -> StageMeasurements:
        return replace(self, **_combined(
            operator.add, self, other, (*_SUMS, *_LEVELS)))

    def __sub__(self, other: StageMeasurements) -> StageMeasurements:
        return replace(self, **_combined(operator.sub, self, other, _SUMS))


#: Fields that are counted for the whole process.
IO_COUNTS = ('bytes_read', 'chunks_decoded', 'bytes_decoded', 'requests',
             'bytes_fetched', 'retries')
# Sums never decrease while a program runs; levels can.
_SUMS = ('items', 'examples', 'bytes', 'written', 'timed', 'work_seconds',
         'input_seconds', 'room_seconds', 'stall_seconds', 'restarts',
         *IO_COUNTS)
_LEVELS = 'queue_items', 'queue_size'


def _combined(operation: Callable[[Any, Any], Any], one: object,
              other: object, names: Sequence[str]) -> dict[str, Any]:
    """Return the sums, or the differences, of attributes of two objects."""
    return {name: operation(getattr(one, name), getattr(other, name))
            for name in names}


@dataclass(frozen=True)
class Measurements:
    """Times and numbers of items of a pipeline and its stages.

    ``+`` adds the measurements of several ranks. The difference of two
    measurements of one stream has the counts and times between them.

    Attributes
    ----------
    stages : tuple of StageMeasurements
        The outermost stage first, each stage before those that it reads.
    seconds : float
        Seconds within epochs, from the request for the first item: the sum of
        `stall_seconds` and `consumer_seconds`.
    stall_seconds : float
        Seconds that the consumer waited for items. The `stall_seconds` of a
        stage are the part in which that stage was the slowest.
    consumer_seconds : float
        Seconds that the consumer did something else, such as a training step.
    items, examples : int
        Number of items and number of examples of the outermost stage.
    interval : Measurements or None
        The measurements since the last call of ``stream.measurements()``;
        None for the first call.
    """

    stages: tuple[StageMeasurements, ...]
    seconds: float
    stall_seconds: float
    consumer_seconds: float
    items: int
    examples: int
    interval: Measurements | None = None

    @property
    def stall_share(self) -> float:
        """Fraction of the time that the consumer waited (float, 0 to 1)."""
        return self.stall_seconds / self.seconds if self.seconds else 0.

    @property
    def slowest(self) -> StageMeasurements | None:
        """The stage that the consumer waited for most, or None."""
        found = max(self.stages, key=lambda stage: stage.stall_seconds,
                    default=None)
        return found if found is not None and found.stall_seconds else None

    @property
    def examples_per_second(self) -> float:
        """Number of examples per second (float); 0 before the first item."""
        return self.examples / self.seconds if self.seconds else 0.

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        return asdict(self)

    def __add__(self, other: Measurements) -> Measurements:
        interval = None
        if self.interval is not None and other.interval is not None:
            interval = self.interval + other.interval
        return replace(
            self, stages=tuple(sum_of([self.stages, other.stages])),
            interval=interval, **_combined(
                operator.add, self, other, _TOTALS))

    def __sub__(self, other: Measurements) -> Measurements:
        before = {stage.path: stage for stage in other.stages}
        return replace(
            self, stages=tuple(
                stage - before[stage.path] if stage.path in before else stage
                for stage in self.stages),
            interval=None, **_combined(operator.sub, self, other, _TOTALS))

    def __str__(self) -> str:
        head = ('stage', 'runs in', 'items', 'work s', 'waits s', 'stalls s',
                'ready')
        found = self.slowest
        return '\n'.join([
            (f'{self.items} items, {self.examples} examples in '
             f'{self.seconds:.3f} s: {self.examples_per_second:.0f} '
             f'examples/s; the consumer waited {self.stall_share:.0%} of the '
             'time' + ('' if found is None
                       else f', most for {found.name}')),
            *aligned([head, *map(_cells, self.stages)], 2)])


_TOTALS = ('seconds', 'stall_seconds', 'consumer_seconds', 'items',
           'examples')


def _cells(stage: StageMeasurements) -> tuple[str, ...]:
    ready = (f'{stage.queue_items} of {stage.queue_size}'
             if stage.queue_size else '')
    return ('  ' * stage.depth + stage.name, stage.runs_in,
            str(stage.items), f'{stage.work_seconds:.3f}',
            f'{stage.input_seconds:.3f}', f'{stage.stall_seconds:.3f}', ready)


def sum_of(measured: Sequence[Sequence[StageMeasurements]],
           ) -> list[StageMeasurements]:
    """Return the sum of the measurements of each stage."""
    sums: dict[tuple[Path, str], StageMeasurements] = {}
    for stages in measured:
        for stage in stages:
            key = stage.path, stage.name
            sums[key] = sums[key] + stage if key in sums else stage
    return list(sums.values())


def field_types() -> dict[str, str]:
    """Return the types of the fields of StageMeasurements, as text."""
    return {field.name: str(field.type)
            for field in dataclasses.fields(StageMeasurements)}


class Process(NamedTuple):
    """Identity of a process among the processes of several machines.

    `clock`: identifier of the machine's clock. Times of processes with the
        same clock can be compared.
    `token`: random text, which distinguishes processes with the same `pid` in
        different containers.
    """

    clock: str
    pid: int
    token: str


class StageSpans(NamedTuple):
    """Start and end of each item that a stage made in one thread.

    `path`: the stage's place; see :class:`StageMeasurements`.
    `name`: name of the stage, or of the consumer's activity.
    `kind`: ``'stage'`` for a stage; ``'wait'`` or ``'step'`` for the consumer.
    `thread`: native identifier of the thread.
    `thread_name`: name of the thread; empty if it has ended.
    `num_left_out`: number of further spans, which were not kept.
    """

    path: Path
    name: str
    kind: Literal['stage', 'wait', 'step']
    process: Process
    thread: int
    thread_name: str
    spans: list[Span]
    num_left_out: int = 0


def this_process() -> Process:
    """Return the identity of this process."""
    return _process(os.getpid())


@cache
def _process(pid: int) -> Process:
    clock = platform.node()
    with suppress(OSError):
        # Containers of one machine share its clock, unless they have an
        # offset of their own.
        with open('/proc/sys/kernel/random/boot_id', encoding='ascii') as file:
            clock = file.read().strip()
        clock += os.readlink('/proc/self/ns/time')
    return Process(clock, pid, os.urandom(8).hex())


def measure(stream: Any) -> Measurements:
    """Return the measurements of a pipeline, over all epochs."""
    meter = stage_of(stream).meter
    return Measurements(
        tuple(measure_stages(stream)),
        meter.awaited_seconds + meter.consumer_seconds,
        meter.awaited_seconds, meter.consumer_seconds, meter.items,
        meter.examples)


def measure_and_compare(stream: Any) -> Measurements:
    """Return the measurements of a pipeline, with the measurements since the
    last call as `interval`."""
    stage = stage_of(stream)
    with stage.measuring:
        found, last = measure(stream), stage.measured
        stage.measured = found
    return found if last is None else replace(found, interval=found - last)


def measure_stages(stream: Any) -> list[StageMeasurements]:
    """Return the measurements of each stage, the outermost first."""
    found: list[StageMeasurements] = []
    counts = {name: getattr(io_counts, name) for name in IO_COUNTS}
    for number, (depth, one) in enumerate(stages_here(stream)):
        measured = list(_measure_stage(
            one, number, depth, stage_of(stream).meter))
        if counts and stage_of(one).dataset is not None:
            measured[0], counts = replace(measured[0], **counts), {}
        found += measured
    return found


def take_spans(stream: Any) -> list[StageSpans]:
    """Return the spans of the items that the stages made since the last call.

    There are spans only while every item is timed.
    """
    found: list[StageSpans] = []
    for number, (_, one) in enumerate(stages_here(stream)):
        own, below, num_left_out = stage_of(one).meter.take_spans()
        threads: defaultdict[int, list[Span]] = defaultdict(list)
        for thread, item, begin, end in own:
            threads[thread].append((item, begin, end))
        names = _thread_names() if threads else {}
        if num_left_out:
            threads.setdefault(0, [])
        for thread, spans in threads.items():
            found.append(StageSpans(
                (number,), stage_name(one), 'stage', this_process(), thread,
                names.get(thread, ''), spans, num_left_out))
            num_left_out = 0
        found += [noted._replace(path=(number, *noted.path))
                  for noted in below]
    return found


def _thread_names() -> dict[int | None, str]:
    return {thread.native_id: thread.name for thread in threading.enumerate()}


def stage_paths(stream: Any) -> dict[StageMeter, Path]:
    """Return a dict from the meters to the paths of this process's stages."""
    return {stage_of(one).meter: (number,) for number, (_, one)
            in enumerate(stages_here(stream))}


def stages_here(stream: Any) -> list[tuple[int, Any]]:
    """Return the stages that run in this process, with their depths."""
    found: list[tuple[int, Any]] = []
    known: set[int] = set()

    def add(one: Any, depth: int) -> None:
        if id(one) not in known:
            known.add(id(one))
            found.append((depth, one))
            for child in [] if remote_stage(one) else child_streams(one):
                add(child, depth + 1)

    add(stream, 0)
    return found


def remote_stage(stream: object) -> Any:
    """Return the RemoteStage of a stream whose epochs are made by other
    processes or threads; None for any other stream."""
    stage = stage_of(stream)
    return stage if stage.is_remote else None


def _measure_stage(stream: Any, number: int, depth: int, outermost: StageMeter,
                   ) -> Iterator[StageMeasurements]:
    """Yield the measurements of a stage, then of the stages that run for it in
    other processes."""
    meter = stage_of(stream).meter
    stall, stalls_below = outermost.stalls_by(meter)
    here = StageMeasurements(
        (number,), stage_name(stream), depth, HERE, 1, meter.items,
        meter.examples, meter.bytes, meter.written, meter.timed,
        meter.work_seconds, meter.input_seconds, meter.room_seconds,
        stall, restarts=meter.restarts, remedy=remedy(stream))
    stage = remote_stage(stream)
    if stage is None:
        yield here
        return
    runs_in = str(stream.runs_in)
    ready, size = stage.queue
    yield replace(
        here, runs_in=runs_in, processes=stage.num_processes,
        queue_items=ready, queue_size=size)
    # Copy the reports, since another thread may add some meanwhile.
    for below in sum_of(list(meter.reports.values())):
        place = runs_in if below.runs_in == HERE else (
            f'{below.runs_in} of {runs_in}')
        yield replace(
            below, path=(number, *below.path), depth=depth + 1 + below.depth,
            runs_in=place, processes=below.processes * stage.num_processes,
            stall_seconds=stalls_below.get(below.path, 0.),
            remedy=below.remedy if runs_in.startswith('server') else
            below.remedy.replace(WORKERS, MORE_WORKERS))


def keep_sums(meter: StageMeter) -> None:
    """Replace the reports of workers that have ended by their sums."""
    reports = list(meter.reports.values())
    meter.reports = {None: sum_of(reports)} if reports else {}


def time_all(stream: Any, *, is_exact: bool) -> None:
    """Set which items of a pipeline are timed.

    Stages in other processes change from the next epoch on.

    `is_exact`: whether each item is timed. If False, slow items and one of 64
        fast items are timed.
    """
    for _, one in stages_here(stream):
        stage_of(one).meter.is_exact = is_exact
        if stage := remote_stage(one):
            stage.time_all(is_exact=is_exact)
