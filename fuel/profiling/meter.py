"""Measures of a pipeline's stages, here and where they run elsewhere."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fuel.describe.pipeline import HERE
from fuel.epochs.pipeline import child_streams
from fuel.epochs.runtime import runtime_of
from fuel.epochs.stage import stage_of
from fuel.epochs.state import NOT_STARTED
from fuel.kernels.epoch_iterator import StageMeter
from fuel.profiling.measurements import (
    IO_COUNTS, Measurements, Path, StageMeasurements, sum_of)
from fuel.profiling.report import (
    MORE_WORKERS, WORKERS, Profile, StageProfile, remedy, sentence, stages_in)
from fuel.utils.checks import not_negative, positive
from fuel.utils.io_counts import io_counts


def measure(stream: Any) -> Measurements:
    """Return what a pipeline took so far, in all epochs."""
    meter = runtime_of(stream).meter
    return Measurements(
        tuple(measure_stages(stream)),
        meter.awaited_seconds + meter.consumer_seconds,
        meter.awaited_seconds, meter.consumer_seconds, meter.items,
        meter.examples)


def measure_and_compare(stream: Any) -> Measurements:
    """Return what a pipeline took, with what it took since the last call."""
    runtime = runtime_of(stream)
    found, last = measure(stream), runtime.measured
    runtime.measured = found
    return found if last is None else replace(found, interval=found - last)


def measure_stages(stream: Any) -> list[StageMeasurements]:
    """Return what each stage took so far, the outermost first."""
    found: list[StageMeasurements] = []
    counts = {name: getattr(io_counts, name) for name in IO_COUNTS}
    for number, (depth, one) in enumerate(_stages_here(stream)):
        measured = list(_measure_stage(one, number, depth))
        if counts and stage_of(one).dataset is not None:
            measured[0], counts = replace(measured[0], **counts), {}
        found += measured
    return found


def stage_paths(stream: Any) -> dict[StageMeter, Path]:
    """Return where the stages are that have meters in this process."""
    return {runtime_of(one).meter: (number,) for number, (_, one)
            in enumerate(_stages_here(stream))}


def _stages_here(stream: Any) -> list[tuple[int, Any]]:
    """Return the stages that run in this process, with their depths."""
    found: list[tuple[int, Any]] = []
    known: set[int] = set()

    def add(one: Any, depth: int) -> None:
        if id(one) not in known:
            known.add(id(one))
            found.append((depth, one))
            for child in [] if _remote(one) else child_streams(one):
                add(child, depth + 1)

    add(stream, 0)
    return found


def _remote(stream: object) -> Any:
    """Return the stage of a stream whose epochs are made in other processes
    or threads (RemoteStage), None for another."""
    stage = stage_of(stream)
    return stage if stage.is_remote else None


def _measure_stage(stream: Any, number: int, depth: int,
                   ) -> Iterator[StageMeasurements]:
    """Yield what a stage took, then what those took that run for it."""
    meter = runtime_of(stream).meter
    here = StageMeasurements(
        (number,), _label(stream), depth, HERE, 1, meter.items,
        meter.examples, meter.bytes, meter.written, meter.timed,
        max(0., meter.work_seconds), meter.input_seconds, meter.room_seconds,
        meter.stall_seconds, restarts=meter.restarts, remedy=remedy(stream))
    stage = _remote(stream)
    if stage is None:
        yield here
        return
    runs_in = str(stream.runs_in)
    ready, size = stage.queue
    yield replace(
        here, runs_in=runs_in, processes=stage.num_processes,
        queue_items=ready, queue_size=size)
    # Another thread may add to it meanwhile.
    for below in sum_of(list(meter.reports.values())):
        place = runs_in if below.runs_in == HERE else (
            f'{below.runs_in} of {runs_in}')
        yield replace(
            below, path=(number, *below.path), depth=depth + 1 + below.depth,
            runs_in=place,
            stall_seconds=meter.stalls_below.get(below.path, 0.),
            remedy=below.remedy if runs_in.startswith('server') else
            below.remedy.replace(WORKERS, MORE_WORKERS))


def profile(stream: Any, batches: int = 100, *, warm_up: int = 2,
            step: Callable[[Any], object] | None = None) -> Profile:
    """Measure where the time of a pipeline goes.

    Parameters
    ----------
    stream : AbstractDataStream
        The outermost stage. What a
        :class:`~fuel.transformers.MultiProcessing`, or
        :class:`~fuel.interop.ray.RayWorkers`, runs is measured in its
        workers; what a :class:`~fuel.streams.ServerDataStream` reads, in the
        server, for all its clients.
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
    are measured there. Stages in other processes are measured from the start
    of the profile, with what they make ahead.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> from fuel.transformers import Mapping
    >>> def slow(batch):
    ...     return [[numpy.sort(part) for part in batch] for _ in range(99)][0]
    >>> stream = DataStream(IndexableDataset(numpy.arange(4000)[::-1].copy()),
    ...                     batch_size=500)
    >>> found = profile(Mapping(stream, slow), batches=20)
    >>> [stage.name for stage in found.stages]
    ['Mapping(slow)', 'DataStream']
    >>> found.bottleneck.split(':')[0].startswith('Mapping(slow) takes')
    True
    """
    positive('batches', batches)
    not_negative('warm_up', warm_up)
    before = _state_of(stream)
    reading = _Reading(stream)
    try:
        reading.read(warm_up)
        reading.restart()
        begin = time.perf_counter()
        items, step_seconds = reading.read(batches, step)
        seconds = time.perf_counter() - begin
        measured = reading.measured()
        skipped = reading.num_skipped()
    finally:
        reading.stop()
        if before is not None:
            stream.load_state_dict(before)
    stages = with_shares(
        [_as_profile(stage) for stage in measured], step_seconds)
    return Profile(
        stages, seconds, step_seconds, items,
        stages[0].examples if stages else 0,
        sentence(stages, seconds, step_seconds), skipped)


def _as_profile(stage: StageMeasurements) -> StageProfile:
    return StageProfile(
        stage.name, stage.depth, stage.runs_in,
        max(0., stage.work_seconds + stage.input_seconds),
        stage.input_seconds, 0., stage.items, stage.examples, stage.written,
        stage.processes, stage.remedy)


def _state_of(stream: Any) -> Any:
    with suppress(Exception):
        state = stream.state_dict()
        if state['epoch'] == NOT_STARTED:
            return state
    return None


class _Reading:
    """Reads a pipeline whose items are all timed.

    Stages elsewhere are measured from its beginning, with what they make
    ahead, those of this process since `restart`.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._iterator: Any = None
        # Examples that the epochs before the running one have left out.
        self._skipped = 0
        self._before = {stage.path: stage for stage in measure_stages(stream)}
        # Those that are started for the profile alone.
        self._idle = [one for _, one in _stages_here(stream)
                      if _remote(one) and not _remote(one).is_running]
        time_all(stream, is_exact=True)

    def read(self, count: int,
             step: Callable[[Any], object] | None = None
             ) -> tuple[int, float]:
        """Read some items, in as many epochs as it takes.

        Returns: How many, and the seconds of the steps.
        """
        done, seconds, fruitless = 0, 0., 0
        while done < count and fruitless < 2:
            fruitless += 1
            if self._iterator is None:
                self._iterator = self._stream.get_epoch_iterator()
            for item in self._iterator:
                if step is not None:
                    begin = time.perf_counter()
                    step(item)
                    seconds += time.perf_counter() - begin
                done, fruitless = done + 1, 0
                if done == count:
                    return done, seconds
            self._iterator = None
            self._skipped += stage_of(self._stream).skipped.count
        return done, seconds

    def num_skipped(self) -> int:
        """Return how many examples were left out of all epochs."""
        return self._skipped + (0 if self._iterator is None else stage_of(
            self._stream).skipped.count)

    def restart(self) -> None:
        """Measure the stages of this process anew."""
        self._before.update({
            stage.path: stage for stage in measure_stages(self._stream)
            if len(stage.path) == 1})

    def measured(self) -> list[StageMeasurements]:
        """Return what each stage took."""
        return [stage - self._before[stage.path]
                if stage.path in self._before else stage
                for stage in measure_stages(self._stream)]

    def stop(self) -> None:
        """Time no more than before, and leave the epoch."""
        self._iterator = None
        time_all(self._stream, is_exact=False)
        for one in self._idle:
            one.close()


def time_all(stream: Any, *, is_exact: bool) -> None:
    """Time each item of a pipeline, or only those that take long.

    Of what runs elsewhere, from the next epoch on.
    """
    for _, one in _stages_here(stream):
        runtime_of(one).meter.is_exact = is_exact
        if stage := _remote(one):
            stage.time_all(is_exact=is_exact)


def with_shares(stages: list[StageProfile], step_seconds: float = 0.,
                place: str = HERE) -> list[StageProfile]:
    """Return stages with their parts of the time in the same place.

    `step_seconds`: time of what else is done there.
    """
    found = list(stages_in(place, stages))
    seconds = step_seconds + sum(stage.seconds for stage, _ in found)
    shared = []
    for stage, inner in found:
        share = stage.seconds / seconds if seconds else 0.
        shared += [replace(stage, share=share),
                   *with_shares(inner, place=stage.runs_in)]
    return shared


def _label(stream: object) -> str:
    """Return the name of a stage; of a user's function too."""
    function = vars(stream).get('mapping')
    name = getattr(function, '__name__', None)
    return type(stream).__name__ + (f'({name})' if name else '')
