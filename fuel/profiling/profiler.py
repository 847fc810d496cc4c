"""Profile a pipeline: read some items, and time each of them."""
from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from fuel.epochs.stage import stage_of
from fuel.epochs.state import NOT_STARTED
from fuel.kernels.epoch_iterator import MOST_SPANS, now
from fuel.profiling.bottleneck import describe_bottleneck, with_shares
from fuel.profiling.measurements import (
    Span, StageMeasurements, StageSpans, measure_stages, remote_stage,
    stages_here, take_spans, this_process, time_all)
from fuel.profiling.report import Headroom, Profile, StageProfile
from fuel.utils.checks import not_negative, positive

# Most items that are read to find one with as many examples as the average.
_MOST_TRIED = 10
# Replaces a time of zero seconds, by which rates would be divided.
_TICK = 1e-9


def profile(stream: Any, batches: int = 100, *, warm_up: int = 2,
            step: Callable[[Any], object] | None = None,
            headroom: bool = False) -> Profile:
    """Measure where the time of a pipeline goes.

    Parameters
    ----------
    stream : AbstractDataStream
        The outermost stage. Stages that a
        :class:`~fuel.transformers.MultiProcessing`, or a
        :class:`~fuel.interop.ray.RayWorkers`, runs are measured in its
        workers. Stages that a :class:`~fuel.streams.ServerDataStream` reads
        are measured in the server, for all its clients.
    batches : int, optional
        Number of batches, or examples, to measure. As many epochs are read as
        are needed. Defaults to 100.
    warm_up : int, optional
        Number of batches to read before the measurement: the first ones wait
        for files and processes. Defaults to 2.
    step : callable, optional
        Called with each batch, as a training step. With it, the profile shows
        how long training waits for data. Defaults to None: the batches are
        only read.
    headroom : bool, optional
        Whether to call `step` again the same number of times, with copies of
        one loaded batch. This measures the speed of training if data cost no
        time. Defaults to False.

    Returns
    -------
    Profile
        ``print(profile)`` shows a table and the bottleneck.

    Raises
    ------
    ValueError
        If `headroom` is True and there is no `step`.
    TypeError
        If `headroom` is True and a batch cannot be copied.

    Notes
    -----
    The stream's state is restored if no epoch was running and the stream has a
    state. If the data set converts data while it reads them, the time of the
    conversion counts as time of the data set. Stages in other processes are
    measured from the start of the profile, including the batches that they
    prefetch.

    With `headroom`, each call of `step` gets a new copy, so it may change the
    batch; the copying is not timed. A step on a GPU, with PyTorch or JAX,
    returns before its work is done. So the step must wait for its result
    before it returns: call ``torch.cuda.synchronize()`` or
    ``jax.block_until_ready(...)``. Otherwise only the time to start the work
    is measured.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> from fuel.transformers import Mapping
    >>> def slow(batch):
    ...     return [list(map(numpy.sort, batch)) for _ in range(999)][0]
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
    # Do this before the state is read: to return a state, workers may begin
    # the next epoch.
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
        describe_bottleneck(stages, seconds, step_seconds), skipped,
        spans=spans)
    if ready is None or step is None:
        return found
    gained = _measure_headroom(found, ready, step, warm_up)
    return replace(found, headroom=gained, bottleneck=describe_bottleneck(
        stages, seconds, step_seconds, gained.factor))


class _Ready(NamedTuple):
    """A loaded batch, and the number of its examples."""

    item: Any
    examples: int


def _measure_headroom(now: Profile, ready: _Ready,
                      step: Callable[[Any], object],
                      warm_up: int) -> Headroom:
    """Return the speed of training with copies of one loaded batch."""
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
    """Reads items of a pipeline, and times each of them.

    Stages in other processes are measured from its creation, with the batches
    that they prefetch. Stages in this process are measured from the call of
    `restart`.
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
        # Stages whose workers are started for the profile alone.
        self._idle = [
            one for _, one in stages_here(stream)
            if remote_stage(one) and not remote_stage(one).is_running]
        time_all(stream, is_exact=True)

    def read(self, count: int,
             step: Callable[[Any], object] | None = None
             ) -> tuple[int, float]:
        """Read `count` items, in as many epochs as are needed.

        Returns: the number of items, and the seconds of the steps.
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
        """Return the spans of this thread and of all stages."""
        thread = threading.current_thread()
        waits = StageSpans(
            (), 'wait', 'wait', this_process(), threading.get_native_id(),
            thread.name, [*self._waits])
        steps = waits._replace(
            name='step', kind='step', spans=[*self._steps])
        return [waits, steps, *take_spans(self._stream)]

    def ready_item(self, usual: float) -> _Ready:
        """Read items, and return one with at least the usual number of
        examples; the largest of `_MOST_TRIED` items if none has so many.

        `usual`: average number of examples of an item. The last item of an
            epoch may have fewer.
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
        """Return the number of examples that all epochs together left out."""
        return self._skipped + (0 if self._iterator is None else stage_of(
            self._stream).skipped.count)

    def restart(self) -> None:
        """Restart the measurements of this process's stages."""
        self._before.update({
            stage.path: stage for stage in measure_stages(self._stream)
            if len(stage.path) == 1})

    def measured(self) -> list[StageMeasurements]:
        """Return the measurements of each stage."""
        return [stage - self._before[stage.path]
                if stage.path in self._before else stage
                for stage in measure_stages(self._stream)]

    def stop(self) -> None:
        """Stop timing each item, leave the epoch, and end the workers that the
        profile started."""
        self._iterator = None
        time_all(self._stream, is_exact=False)
        for one in self._idle:
            one.close()
