"""Measures of the stages of one pipeline, and of those that others run."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fuel.describe.pipeline import HERE
from fuel.epochs.pipeline import child_streams
from fuel.epochs.stage import stage_of
from fuel.epochs.state import NOT_STARTED
from fuel.iterator import DataIterator
from fuel.profiling.report import (
    MORE_WORKERS, WORKERS, Profile, StageProfile, remedy, sentence, stages_in)
from fuel.profiling.clock import Clock, Tally, instrument
from fuel.utils.checks import not_negative, positive


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
    meter = Meter(stream)
    try:
        meter.read(warm_up)
        meter.restart()
        begin = time.perf_counter()
        items, step_seconds = meter.read(batches, step)
        seconds = time.perf_counter() - begin
        stages = with_shares(meter.stages(), step_seconds)
        skipped = meter.num_skipped()
    finally:
        meter.stop()
        if before is not None:
            stream.load_state_dict(before)
    return Profile(
        stages, seconds, step_seconds, items,
        stages[0].examples if stages else 0,
        sentence(stages, seconds, step_seconds), skipped)


def _state_of(stream: Any) -> Any:
    with suppress(Exception):
        state = stream.state_dict()
        if state['epoch'] == NOT_STARTED:
            return state
    return None


class Meter:
    """Measures the stages of a pipeline, in all its epochs.

    Remote stages begin to be measured when it is made.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        # The streams are kept, so that no other gets the same `id`.
        self._tallies: dict[int, tuple[Any, Tally]] = {}
        self._remote = list(_remote_streams(stream))
        # The running epoch.
        self._clock: Clock | None = None
        # Examples that the epochs before it have left out.
        self._skipped = 0
        try:
            for one in self._remote:
                one.measure_stages()
        except BaseException:
            self.stop()
            raise

    def attach(self, iterator: DataIterator) -> Clock:
        """Return an epoch iterator that measures, in the place of another."""
        return instrument(iterator, self._tally_of)

    def read(self, count: int,
             step: Callable[[Any], object] | None = None
             ) -> tuple[int, float]:
        """Read some items, in as many epochs as it takes.

        Returns: How many, and the seconds of the steps.
        """
        done, seconds, fruitless = 0, 0., 0
        while done < count and fruitless < 2:
            fruitless += 1
            if self._clock is None:
                self._clock = self.attach(self._stream.get_epoch_iterator())
            for item in self._clock:
                if step is not None:
                    begin = time.perf_counter()
                    step(item)
                    seconds += time.perf_counter() - begin
                done, fruitless = done + 1, 0
                if done == count:
                    return done, seconds
            self._clock = None
            self._skipped += stage_of(self._stream).skipped.count
        return done, seconds

    def num_skipped(self) -> int:
        """Return how many examples were left out of all epochs."""
        return self._skipped + (0 if self._clock is None else stage_of(
            self._stream).skipped.count)

    def restart(self) -> None:
        """Measure the stages of this process anew."""
        for _, tally in self._tallies.values():
            tally.clear()

    def stop(self) -> None:
        """Stop to measure the remote stages, and leave the epoch."""
        self._clock = None
        for one in self._remote:
            # One that has failed measures no more.
            with suppress(Exception):
                one.stop_measuring()

    def _tally_of(self, stream: Any) -> Tally:
        return self._tallies.setdefault(id(stream), (stream, Tally()))[1]

    def stages(self) -> list[StageProfile]:
        """Return what each stage took so far, the outermost first."""
        return list(self._stages(self._stream, 0))

    def _stages(self, stream: Any, depth: int) -> Iterator[StageProfile]:
        if id(stream) not in self._tallies:
            return
        tally = self._tally_of(stream)
        is_remote = _is_remote(stream)
        inner = [] if is_remote else child_streams(stream)
        below = {id(child): self._tally_of(child).seconds for child in inner}
        seconds = max(0., tally.seconds - sum(below.values()))
        runs_in = str(stream.runs_in) if is_remote else HERE
        processes = getattr(stream, 'num_workers', 1) if is_remote else 1
        yield StageProfile(
            _label(stream), depth, runs_in, seconds,
            seconds if is_remote else 0., 0., tally.items, tally.examples,
            tally.written, processes, remedy(stream))
        if is_remote:
            for stage in stream.measure_stages():
                yield stage_below(stage, depth, runs_in)
        for child in inner:
            yield from self._stages(child, depth + 1)


def _is_remote(stream: object) -> bool:
    return hasattr(type(stream), 'measure_stages')


def _remote_streams(stream: Any) -> Iterator[Any]:
    if _is_remote(stream):
        yield stream
        return
    for child in child_streams(stream):
        yield from _remote_streams(child)


def stage_below(stage: StageProfile, depth: int,
                runs_in: str) -> StageProfile:
    """Return a remote stage as part of the pipeline that reads it."""
    place = runs_in if stage.runs_in == HERE else (
        f'{stage.runs_in} of {runs_in}')
    return replace(stage, depth=depth + 1 + stage.depth, runs_in=place)


def total(measured: Sequence[list[StageProfile]]) -> list[StageProfile]:
    """Return the sums over workers that run the same pipeline."""
    # One may have begun no epoch yet.
    stages = max(measured, key=len, default=[])
    for other in measured:
        if other is not stages and len(other) == len(stages):
            stages = [_sum(one, two) for one, two in zip(
                stages, other, strict=True)]
    return [replace(stage, remedy=stage.remedy.replace(WORKERS, MORE_WORKERS))
            for stage in stages]


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


def _sum(one: StageProfile, two: StageProfile) -> StageProfile:
    return replace(one, **{
        name: getattr(one, name) + getattr(two, name)
        for name in ('seconds', 'waiting', 'items', 'examples', 'written')})


def _label(stream: object) -> str:
    """Return the name of a stage; of a user's function too."""
    function = vars(stream).get('mapping')
    name = getattr(function, '__name__', None)
    return type(stream).__name__ + (f'({name})' if name else '')
