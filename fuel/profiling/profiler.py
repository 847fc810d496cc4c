"""Measures a pipeline stage by stage, also in other processes."""
from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fuel.epochs.state import NOT_STARTED
from fuel.profiling.bottleneck import sentence
from fuel.profiling.clock import Clock
from fuel.profiling.meter import Meter, with_shares
from fuel.profiling.report import Profile
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
    not_negative('warm_up', warm_up)
    before = _state_of(stream)
    meter = Meter(stream)
    run = _Run(stream, meter)
    try:
        run.read(warm_up)
        meter.restart()
        begin = time.perf_counter()
        items, step_seconds = run.read(batches, step)
        seconds = time.perf_counter() - begin
        stages = with_shares(meter.stages(), step_seconds)
    finally:
        del run
        meter.stop()
        if before is not None:
            stream.load_state_dict(before)
    return Profile(
        stages, seconds, step_seconds, items,
        stages[0].examples if stages else 0,
        sentence(stages, seconds, step_seconds))


def _state_of(stream: Any) -> Any:
    with suppress(Exception):
        state = stream.state_dict()
        if state['epoch'] == NOT_STARTED:
            return state
    return None


class _Run:
    """Reads a stream, in as many epochs as it takes."""

    def __init__(self, stream: Any, meter: Meter) -> None:
        self._stream = stream
        self._meter = meter
        self._clock: Clock | None = None

    def read(self, count: int,
             step: Callable[[Any], object] | None = None
             ) -> tuple[int, float]:
        """Read some items; return how many, and the seconds of the steps."""
        done, seconds, fruitless = 0, 0., 0
        while done < count and fruitless < 2:
            fruitless += 1
            for item in self._running_epoch():
                if step is not None:
                    begin = time.perf_counter()
                    step(item)
                    seconds += time.perf_counter() - begin
                done, fruitless = done + 1, 0
                if done == count:
                    return done, seconds
            self._clock = None
        return done, seconds

    def _running_epoch(self) -> Clock:
        """Return the clock of the running epoch, or of a new one."""
        if self._clock is None:
            self._clock = self._meter.attach(self._stream.get_epoch_iterator())
        return self._clock
