"""Measures of a pipeline's stages, here and where they run elsewhere."""
from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from fuel.describe.pipeline import HERE, stage_name
from fuel.epochs.pipeline import child_streams
from fuel.epochs.stage import stage_of
from fuel.kernels.epoch_iterator import StageMeter
from fuel.profiling.bottleneck import MORE_WORKERS, WORKERS, remedy
from fuel.profiling.measurements import (
    IO_COUNTS, Measurements, Path, StageMeasurements, sum_of)
from fuel.profiling.trace import Span, StageSpans, this_process
from fuel.utils.io_counts import io_counts


def measure(stream: Any) -> Measurements:
    """Return what a pipeline took so far, in all epochs."""
    meter = stage_of(stream).meter
    return Measurements(
        tuple(measure_stages(stream)),
        meter.awaited_seconds + meter.consumer_seconds,
        meter.awaited_seconds, meter.consumer_seconds, meter.items,
        meter.examples)


def measure_and_compare(stream: Any) -> Measurements:
    """Return what a pipeline took, with what it took since the last call."""
    stage = stage_of(stream)
    with stage.measuring:
        found, last = measure(stream), stage.measured
        stage.measured = found
    return found if last is None else replace(found, interval=found - last)


def measure_stages(stream: Any) -> list[StageMeasurements]:
    """Return what each stage took so far, the outermost first."""
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
    """Return when the stages made their items since the last call.

    Nothing while not every item is timed.
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
    """Return where the stages are that have meters in this process."""
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
    """Return the stage of a stream whose epochs are made in other processes
    or threads (RemoteStage), None for another."""
    stage = stage_of(stream)
    return stage if stage.is_remote else None


def _measure_stage(stream: Any, number: int, depth: int, outermost: StageMeter,
                   ) -> Iterator[StageMeasurements]:
    """Yield what a stage took, then what those took that run for it."""
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
    # Another thread may add to it meanwhile.
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
    """Keep the sums alone of what workers have reported that are gone."""
    reports = list(meter.reports.values())
    meter.reports = {None: sum_of(reports)} if reports else {}


def time_all(stream: Any, *, is_exact: bool) -> None:
    """Time each item of a pipeline, or only those that take long.

    Of what runs elsewhere, from the next epoch on.
    """
    for _, one in stages_here(stream):
        stage_of(one).meter.is_exact = is_exact
        if stage := remote_stage(one):
            stage.time_all(is_exact=is_exact)
