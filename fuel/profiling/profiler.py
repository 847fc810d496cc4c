"""Measures a pipeline stage by stage, also in its worker processes."""
from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from fuel.describe.pipeline import HERE
from fuel.epochs.pipeline import child_streams
from fuel.epochs.state import NOT_STARTED
from fuel.profiling.bottleneck import sentence
from fuel.profiling.clock import Clock, Totals, instrument, rows_of, walk
from fuel.profiling.probe import Probe
from fuel.profiling.report import Profile, StageProfile
from fuel.transformers.multiprocessing import MultiProcessing
from fuel.utils.checks import not_negative, positive
from fuel.workers.remote_stream import RemoteStream


def profile(stream: Any, batches: int = 100, *, warm_up: int = 2,
            step: Callable[[Any], object] | None = None) -> Profile:
    """Measure where the time of a pipeline goes.

    Parameters
    ----------
    stream : AbstractDataStream
        The outermost stage. What a
        :class:`~fuel.transformers.MultiProcessing` runs is measured in its
        workers; of a :class:`~fuel.streams.ServerDataStream`, the waiting.
    batches : int, optional
        How many batches, or examples, to measure; as many epochs are begun
        as it takes. Defaults to 100.
    warm_up : int, optional
        How many come before that are not measured: the first ones wait for
        files and processes. Defaults to 2.
    step : callable, optional
        Called with each batch, in the place of training. With it, waiting
        is what training would wait. Defaults to None: nothing is done with
        the batches.

    Returns
    -------
    Profile
        ``print(profile)`` shows a table and the bottleneck.

    Notes
    -----
    The stream is put back to where it stood, if no epoch was running and
    its state can be told. Conversions that the data set does while it reads
    are measured there.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> from fuel.transformers import Mapping
    >>> def slow(batch):
    ...     return [[numpy.sort(part) for part in batch] for _ in '12'][0]
    >>> stream = DataStream(IndexableDataset(numpy.arange(4000)[::-1].copy()),
    ...                     batch_size=500)
    >>> found = profile(Mapping(stream, slow), batches=20)
    >>> [stage.name for stage in found.stages]
    ['Mapping(slow)', 'DataStream']
    >>> found.bottleneck.split(':')[0].startswith('Mapping(slow) takes')
    True
    """
    positive('batches', batches)
    before = _state_of(stream)
    run = _Run(stream)
    try:
        run.read(not_negative('warm_up', warm_up))
        run.reset()
        begin = time.perf_counter()
        run.read(batches, step)
        seconds = time.perf_counter() - begin
        run.measure()
    finally:
        run.close()
        if before is not None:
            stream.load_state_dict(before)
    stages = run.stages()
    return Profile(
        stages, seconds, run.step_seconds, run.items, run.examples,
        sentence(stages, run.streams(), seconds, run.step_seconds))


def _state_of(stream: Any) -> Any:
    with suppress(Exception):
        state = stream.state_dict()
        if state['epoch'] == NOT_STARTED:
            return state
    return None


class _Run:
    """Reads a stream with a clock in each of its stages."""

    def __init__(self, stream: Any) -> None:
        self._remote: dict[int, Totals] = {}
        self._restore: list[Callable[[], object]] = []
        # The worker's pipeline, by `id` of the stage that runs it.
        self._inner: dict[int, Any] = {}
        self._stream = self._with_probes(stream)
        self._clock: Clock | None = None
        # Of each stage: itself, and the measures of finished epochs.
        self._streams: list[Any] = []
        self._past: Any = 0.
        self._base: dict[int, Any] = {}
        self.step_seconds = 0.
        self.items = self.examples = 0

    def _with_probes(self, stream: Any) -> Any:
        """Return a stream whose workers measure what they do."""
        if type(stream) is MultiProcessing:
            measured = MultiProcessing(
                Probe(stream.data_stream), stream.max_store,
                num_workers=stream.num_workers,
                start_method=stream.start_method, max_bytes=stream.max_bytes,
                timeout=stream.timeout, axis_labels=stream.axis_labels)
            measured.sources = stream.sources
            self._remote[id(measured)] = Totals()
            self._inner[id(measured)] = stream.data_stream
            self._restore.append(measured.close)
            return measured
        for name in ('data_stream', 'data_streams'):
            old = vars(stream).get(name)
            if old is None:
                continue
            new: Any = self._with_probes(old) if name == 'data_stream' else (
                tuple(self._with_probes(one) for one in old))
            if new is not old:
                setattr(stream, name, new)
                self._restore.insert(
                    0, functools.partial(setattr, stream, name, old))
        return stream

    def read(self, count: int,
             step: Callable[[Any], object] | None = None) -> None:
        """Read some items, in as many epochs as it takes."""
        fruitless = 0
        while count > 0 and fruitless < 2:
            clock = self._begin()
            read = 0
            for item in clock:
                read += 1
                if step is not None:
                    begin = time.perf_counter()
                    step(item)
                    self.step_seconds += time.perf_counter() - begin
                if read == count:
                    self.items += read
                    return
            self._past = self._past + rows_of(clock)
            self._clock = None
            self.items += read
            count -= read
            fruitless = 0 if read else fruitless + 1

    def _begin(self) -> Clock:
        """Return the clock of the running epoch, or of a new one."""
        if self._clock is None:
            self._clock = instrument(
                self._stream.get_epoch_iterator(), self._remote)
            self._streams = [one.data_stream for one in walk(self._clock)]
        return self._clock

    def _rows(self) -> Any:
        if self._clock is None:
            return self._past
        return self._past + rows_of(self._clock)

    def reset(self) -> None:
        """Begin to measure anew."""
        self._base = {number: totals.rows()
                      for number, totals in self._remote.items()}
        self._base[0] = self._rows()
        self.items = 0

    def close(self) -> None:
        """Put the pipeline back together, and end the workers."""
        self._clock = None
        for restore in self._restore:
            restore()

    def measure(self) -> None:
        """Keep the measures, before the pipeline is taken apart."""
        self._measures = list(self._measured())

    def _measured(self) -> Iterator[tuple[Any, StageProfile]]:
        rows = self._rows() - self._base[0]
        if not len(self._streams):
            return
        outer = {id(stream): row for stream, row in zip(
            self._streams, rows, strict=True)}
        self.examples = int(rows[0][2])
        yield from self._stages(
            self._stream, outer, float(rows[:, 0].sum()), 0, HERE)

    def _stages(self, stream: Any, rows: dict[int, Any], total: float,
                depth: int, where: str
                ) -> Iterator[tuple[Any, StageProfile]]:
        row = rows.get(id(stream))
        if row is None:
            return
        seconds, items, examples, written = map(float, row)
        is_remote = isinstance(stream, RemoteStream)
        runs_in = str(stream.runs_in) if is_remote else where
        yield stream, StageProfile(
            _label(stream), depth, runs_in, seconds,
            seconds if is_remote else 0., seconds / total if total else 0.,
            int(items), int(examples), int(written))
        if id(stream) in self._remote:
            yield from self._worker_stages(stream, depth + 1, runs_in)
            return
        for child in child_streams(stream):
            yield from self._stages(child, rows, total, depth + 1, where)

    def _worker_stages(self, stream: Any, depth: int, runs_in: str
                       ) -> Iterator[tuple[Any, StageProfile]]:
        found = self._remote[id(stream)].rows()
        inner = list(_pipeline(self._inner[id(stream)]))
        if found is None or len(found) != len(inner):
            return
        base = self._base[id(stream)]
        found = found if base is None else found - base
        by_stage = {id(one): row for one, row in zip(
            inner, found, strict=True)}
        yield from self._stages(
            inner[0], by_stage, float(found[:, 0].sum()), depth, runs_in)

    def stages(self) -> list[StageProfile]:
        """Return what each stage took, the outermost first."""
        return [stage for _, stage in self._measures]

    def streams(self) -> list[Any]:
        """Return the streams of these stages."""
        return [stream for stream, _ in self._measures]


def _label(stream: object) -> str:
    """Return the name of a stage; of a user's function too."""
    function = vars(stream).get('mapping')
    name = getattr(function, '__name__', None)
    return type(stream).__name__ + (f'({name})' if name else '')


def _pipeline(stream: object) -> Iterator[Any]:
    """Yield a stream and those below it, as clocks are put into them."""
    yield stream
    if not isinstance(stream, RemoteStream):
        for child in child_streams(stream):
            yield from _pipeline(child)
