"""A profile: items of a pipeline are read, all timed."""
from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from fuel.describe.pipeline import HERE
from fuel.epochs.stage import stage_of
from fuel.epochs.state import NOT_STARTED
from fuel.kernels.epoch_iterator import MOST_SPANS, now
from fuel.profiling.measurements import (
    Span, StageMeasurements, StageSpans, measure_stages, remote_stage,
    stages_here, take_spans, this_process, time_all)
from fuel.profiling.report import Headroom, Profile, StageProfile
from fuel.utils.checks import not_negative, positive

# How many items are looked at to find one with as many examples as usual.
_MOST_TRIED = 10
# What a step takes that the clock does not see.
_TICK = 1e-9
# With a smaller share of the time in waiting for data, they are not the
# bottleneck.
IDLE = .1
# Workers that could make so many times the batches that come are not the
# bottleneck.
SPARE = 4.


def profile(stream: Any, batches: int = 100, *, warm_up: int = 2,
            step: Callable[[Any], object] | None = None,
            headroom: bool = False) -> Profile:
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
    headroom : bool, optional
        Whether to call `step` as often again, with copies of one batch that
        is there, and so to find how fast training could be if data cost
        nothing. Defaults to False.

    Returns
    -------
    Profile
        ``print(profile)`` shows a table and the bottleneck.

    Raises
    ------
    ValueError
        If `headroom` is asked for without a `step`.
    TypeError
        If a batch cannot be copied, and `headroom` is asked for.

    Notes
    -----
    The stream is put back to where it stood, if no epoch was running and
    its state can be told. Conversions that the data set does while it reads
    are measured there. Stages in other processes are measured from the start
    of the profile, with what they make ahead.

    A step that changes its batch gets a new copy each time, which is made
    while the clock stands. A step that returns before its work is done, as
    those of PyTorch and JAX on a GPU do, must wait for its result at its
    end: ``torch.cuda.synchronize()``, ``jax.block_until_ready(...)``.
    Otherwise the clock sees how long it takes to ask for the work.

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
    if headroom and step is None:
        raise ValueError(
            'headroom=True compares training steps, and there is none: pass '
            'step=..., a function of a batch')
    # First, since workers may begin the next epoch to tell its state.
    reading = _Reading(stream)
    before = None
    try:
        before = _state_of(stream)
        reading.read(warm_up)
        reading.restart()
        begin = time.perf_counter()
        items, step_seconds = reading.read(batches, step)
        seconds = time.perf_counter() - begin
        measured = reading.measured()
        spans = reading.spans()
        skipped = reading.num_skipped()
        examples = measured[0].examples if measured else 0
        ready = reading.ready_item(examples / items) if (
            headroom and items) else None
    finally:
        reading.stop()
        if before is not None:
            stream.load_state_dict(before)
    stages = with_shares(
        [_as_profile(stage) for stage in measured], step_seconds)
    found = Profile(
        stages, seconds, step_seconds, items, examples,
        sentence(stages, seconds, step_seconds), skipped, spans=spans)
    if ready is None or step is None:
        return found
    gained = _measure_headroom(found, ready, step, warm_up)
    return replace(found, headroom=gained, bottleneck=sentence(
        stages, seconds, step_seconds, gained.factor))


class _Ready(NamedTuple):
    """A batch, and how many examples it has."""

    item: Any
    examples: int


def _measure_headroom(now: Profile, ready: _Ready,
                      step: Callable[[Any], object],
                      warm_up: int) -> Headroom:
    """Return how fast training is with a batch that is there."""
    seconds = 0.
    for number in range(-warm_up, now.batches):
        try:
            item = copy.deepcopy(ready.item)
        except Exception as error:
            raise TypeError(
                'headroom=True gives each step a copy of one batch, and this '
                f'batch cannot be copied: {error}') from error
        begin = time.perf_counter()
        step(item)
        if number >= 0:
            seconds += time.perf_counter() - begin
    rate = now.batches / (seconds or _TICK)
    examples = rate * ready.examples
    return Headroom(
        rate, examples, now.batches_per_second, now.examples_per_second,
        rate / now.batches_per_second if not examples
        else examples / now.examples_per_second)


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
        self._num_read = 0
        self._waits: list[Span] = []
        self._steps: list[Span] = []
        # Examples that the epochs before the running one have left out.
        self._skipped = 0
        self._before = {stage.path: stage for stage in measure_stages(stream)}
        # Those that are started for the profile alone.
        self._idle = [
            one for _, one in stages_here(stream)
            if remote_stage(one) and not remote_stage(one).is_running]
        time_all(stream, is_exact=True)

    def read(self, count: int,
             step: Callable[[Any], object] | None = None
             ) -> tuple[int, float]:
        """Read some items, in as many epochs as it takes.

        Returns: How many, and the seconds of the steps.
        """
        done, in_steps, fruitless = 0, 0, 0
        while done < count and fruitless < 2:
            fruitless += 1
            if self._iterator is None:
                self._iterator = self._stream.get_epoch_iterator()
            begin = now()
            for item in self._iterator:
                end = now()
                self._note(self._waits, begin, end)
                begin = end
                if step is not None:
                    step(item)
                    end = now()
                    in_steps += end - begin
                    self._note(self._steps, begin, end)
                    begin = end
                self._num_read += 1
                done, fruitless = done + 1, 0
                if done == count:
                    return done, in_steps / 1e9
            self._iterator = None
            self._skipped += stage_of(self._stream).skipped.count
        return done, in_steps / 1e9

    def _note(self, spans: list[Span], begin: int, end: int) -> None:
        if len(spans) < MOST_SPANS:
            spans.append((self._num_read, begin, end))

    def spans(self) -> list[StageSpans]:
        """Return what this thread did, and the stages, here and elsewhere."""
        thread = threading.current_thread()
        waits = StageSpans(
            (), 'wait', 'wait', this_process(), threading.get_native_id(),
            thread.name, [*self._waits])
        steps = waits._replace(
            name='step', kind='step', spans=[*self._steps])
        return [waits, steps, *take_spans(self._stream)]

    def ready_item(self, usual: float) -> _Ready:
        """Return an item that has as many examples as others have.

        `usual`: how many they have on average; the last of an epoch may have
            fewer.
        """
        meter, best = stage_of(self._stream).meter, _Ready(None, -1)
        for _ in range(_MOST_TRIED):
            items: list[Any] = []
            before = meter.examples
            self.read(1, items.append)
            found = _Ready(items.pop(), meter.examples - before)
            best = max(best, found, key=lambda ready: ready.examples)
            if best.examples >= usual:
                break
        return best

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


def sentence(stages: Sequence[StageProfile], seconds: float,
             step_seconds: float, factor: float = 1.) -> str:
    """Return the bottleneck in a sentence.

    `factor`: how many times as fast training was found to be with data that
        cost nothing, if that was measured.
    """
    if not stages or not seconds or not stages[0].items:
        return 'There were no batches to measure.'
    reading = seconds - step_seconds
    if step_seconds and reading < IDLE * seconds:
        return (f'The training step takes {step_seconds / seconds:.0%} of '
                'the time; the data are there when it asks for them.')
    found = _of_the_data(stages, seconds, reading)
    # Workers that use the cores slow the step down, too.
    if step_seconds > reading and factor < 1 + IDLE:
        return (f'The training step takes {step_seconds / seconds:.0%} of '
                f'the time, so faster data would help little. Next, {found}')
    return found


def _of_the_data(stages: Sequence[StageProfile], seconds: float,
                 reading: float) -> str:
    """Return the bottleneck of the data alone, in parts of the whole time."""
    readers, worst = _find_worst(stages)
    if not readers:
        return f'{worst.name} takes {worst.share:.0%} of the time: ' + (
            worst.remedy)
    waiting = f'{min(1., readers[0].waiting / seconds):.0%} of the time'
    if worst is readers[-1]:
        return (f'{worst.name} waits {waiting} for the {worst.runs_in}, '
                'whose stages were not measured: profile their stream in the '
                'process that runs it')
    spare = _spare(readers[0], stages, reading)
    if spare > SPARE:
        return (f'{readers[0].name} waits {waiting} for the '
                f'{readers[0].runs_in}, which could make {spare:.0f} times as '
                'many batches: sending them takes longer than making them, '
                'so do the work in this process, or more of it there')
    return (f'{worst.name} takes {worst.share:.0%} of the time in '
            f'{worst.runs_in}, and {waiting} is spent in waiting for that: '
            f'{worst.remedy}')


def _find_worst(stages: Sequence[StageProfile]
                ) -> tuple[list[StageProfile], StageProfile]:
    """Return the stage that all wait for, and those that wait, outer first.

    Where the stage that takes longest waits for other processes, it is
    looked for among the stages that they run.
    """
    readers: list[StageProfile] = []
    place, here = HERE, list(stages)
    while True:
        worst, inner = max(stages_in(place, here),
                           key=lambda found: found[0].seconds)
        if worst.runs_in == place:
            return readers, worst
        readers.append(worst)
        if not any(stage.seconds for stage in inner):
            return readers, worst
        place, here = worst.runs_in, inner


def stages_in(place: str, stages: list[StageProfile],
              ) -> Iterator[tuple[StageProfile, list[StageProfile]]]:
    """Yield the stages of one place, with those that each reads elsewhere."""
    while stages:
        stage, *stages = stages
        end = 0
        if stage.runs_in != place:
            depths = [other.depth > stage.depth for other in stages]
            end = [*depths, False].index(False)
        yield stage, stages[:end]
        stages = stages[end:]


def _spare(reader: StageProfile, stages: Sequence[StageProfile],
           reading: float) -> float:
    """Return how many times as many batches a reader's workers could make."""
    inner = next(inner for stage, inner in stages_in(HERE, list(stages))
                 if stage is reader)
    busy = sum(stage.seconds
               for stage, _ in stages_in(reader.runs_in, inner))
    made = inner[0].items
    if not busy or not made:
        return 0.
    rate = reader.processes * made / busy
    if reader.runs_in.startswith('server'):
        # Other clients may get the others.
        rate *= min(1., reader.items / made)
    return rate * reading / reader.items if reader.items else 0.
