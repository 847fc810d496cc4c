"""What was measured of a pipeline, as plain data that add."""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

#: Where a stage is in the tree of stages: its number in the process that
#: runs it; for one that runs elsewhere, behind the path of the stage that
#: reads it.
Path = tuple[int, ...]


@dataclass(frozen=True)
class StageMeasurements:
    """What one stage took, and gave.

    Attributes
    ----------
    path : tuple of int
        Where it is in the pipeline: its number in its process, behind the
        path of the stage that reads it from there.
    name : str
        Class of the stage, and a user's function.
    depth : int
        How many stages read it.
    runs_in : str
        ``'this process'``, ``'2 workers'``, ``'server host:port'``.
    processes : int
        How many workers share the work.
    items, examples, bytes : int
        Batches (or examples), the examples in them, and the bytes of their
        arrays.
    written : int
        Bytes of arrays that the stage made anew; the others it passed on.
    timed : int
        Items that were timed one by one. Where they take less than 20
        microseconds one of 64 is, and stands for the others.
    work_seconds : float
        The stage's own work, without the stages below and without waiting;
        summed over the processes that share it.
    input_seconds : float
        How long it waited for what workers, threads or a server make.
    room_seconds : float
        How long it could have gone on, had there been room for its batches:
        nobody took them so fast.
    stall_seconds : float
        How long the consumer of the pipeline waited while this stage was
        what took longest.
    queue_items, queue_size : int
        Batches that are ready, and how many may be.
    restarts : int
        How often its workers, or its connection, were started again.
    bytes_read, chunks_decoded, bytes_decoded : int
        Bytes read from files (those of mapped files are not), and chunks
        of HDF5 files that were decoded; of the whole process, counted for
        its first stage that reads a data set.
    requests, bytes_fetched, retries : int
        Likewise, requests that servers of files have answered, what they
        sent, and requests that were made again.
    remedy : str
        What usually helps if this stage takes the most time.
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
        return replace(self, **{name: getattr(self, name) + getattr(
            other, name) for name in (*_SUMS, *_LEVELS)})

    def __sub__(self, other: StageMeasurements) -> StageMeasurements:
        return replace(self, **{name: getattr(self, name) - getattr(
            other, name) for name in _SUMS})


#: Fields that are counted for the whole process.
IO_COUNTS = ('bytes_read', 'chunks_decoded', 'bytes_decoded', 'requests',
             'bytes_fetched', 'retries')
# What grows for as long as a program runs, and what goes up and down.
_SUMS = ('items', 'examples', 'bytes', 'written', 'timed', 'work_seconds',
         'input_seconds', 'room_seconds', 'stall_seconds', 'restarts',
         *IO_COUNTS)
_LEVELS = 'queue_items', 'queue_size'


@dataclass(frozen=True)
class Measurements:
    """What a pipeline took while its epochs were read.

    Those of several ranks add with ``+``, and the difference of two of one
    stream is what happened between them.

    Attributes
    ----------
    stages : tuple of StageMeasurements
        The outermost first, each before those that it reads.
    seconds : float
        Time that passed within epochs, from the first item that was asked
        for: `stall_seconds` and `consumer_seconds`.
    stall_seconds : float
        How long the consumer waited for items. The parts of the stages are
        in their own `stall_seconds`.
    consumer_seconds : float
        How long it did something else: what a training step takes.
    items, examples : int
        What came out of the outermost stage.
    interval : Measurements or None
        What happened since ``stream.measurements()`` was called before; None
        for the first call.
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
        """Part of the time that the consumer waited (float, 0 to 1)."""
        return self.stall_seconds / self.seconds if self.seconds else 0.

    @property
    def slowest(self) -> StageMeasurements | None:
        """The stage that the consumer waited for most, if for any."""
        found = max(self.stages, key=lambda stage: stage.stall_seconds,
                    default=None)
        return found if found is not None and found.stall_seconds else None

    @property
    def examples_per_second(self) -> float:
        """How many examples came per second (float); 0 before the first."""
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
            interval=interval, **{name: getattr(self, name) + getattr(
                other, name) for name in _TOTALS})

    def __sub__(self, other: Measurements) -> Measurements:
        before = {stage.path: stage for stage in other.stages}
        return replace(
            self, stages=tuple(
                stage - before[stage.path] if stage.path in before else stage
                for stage in self.stages),
            interval=None, **{name: getattr(self, name) - getattr(
                other, name) for name in _TOTALS})

    def __str__(self) -> str:
        head = ('stage', 'runs in', 'items', 'work s', 'waits s', 'stalls s',
                'ready')
        rows = [head, *map(_cells, self.stages)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        found = self.slowest
        return '\n'.join([
            (f'{self.items} items, {self.examples} examples in '
             f'{self.seconds:.3f} s: {self.examples_per_second:.0f} '
             f'examples/s; the consumer waited {self.stall_share:.0%} of the '
             'time' + ('' if found is None
                       else f', most for {found.name}')),
            *('  '.join(cell.ljust(width) if place < 2 else cell.rjust(width)
                        for place, (cell, width) in enumerate(
                            zip(row, widths, strict=True))).rstrip()
              for row in rows)])


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
    """Return the sums of the same stages, as far as they are the same."""
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
