"""Measurements as a flat dict from names to numbers, for loggers."""
from __future__ import annotations

import dataclasses
import re
import warnings
from typing import Any, NamedTuple

from fuel.profiling.measurements import (
    Measurements, StageMeasurements, measure)
from fuel.utils.checks import positive

# Fields that can decrease.
_LEVELS = ('processes', 'queue_items', 'queue_size')
# Help of each field. The braces are replaced by 'pipeline' or 'stage'.
_HELP = {
    'processes': 'Workers that share the work of the {}',
    'items': 'Batches, or single examples, that came out of the {}',
    'examples': 'Examples that came out of the {}',
    'bytes': 'Bytes of the arrays that came out of the {}',
    'written': 'Bytes of the arrays that the {} made anew',
    'timed': 'Items of the {} that were timed one by one',
    'seconds': 'Seconds that passed within epochs of the {}',
    'consumer_seconds':
        'Seconds in which the consumer of the {} did something else',
    'work_seconds': 'Seconds that the {} worked',
    'input_seconds':
        'Seconds that the {} waited for workers, threads or a server',
    'room_seconds': 'Seconds in which the {} had no room for its items',
    'stall_seconds': 'Seconds that the consumer waited for the {}',
    'queue_items': 'Items that are ready in the queue of the {}',
    'queue_size': 'Items that the queue of the {} holds at most',
    'restarts':
        'How often the workers or the connection of the {} were restarted',
    'bytes_read': 'Bytes that the {} read from files',
    'chunks_decoded': 'Chunks of HDF5 files that the {} decoded',
    'bytes_decoded': 'Bytes of the chunks that the {} decoded',
    'requests': 'Requests of the {} that servers of files have answered',
    'bytes_fetched': 'Bytes that servers of files sent to the {}',
    'retries': 'Requests to servers of files that the {} made again'}
_UNITS = ('seconds', 'bytes')
# Names of metrics that are longer than the names of their fields.
_IN_FULL = {'written': 'written_bytes', 'timed': 'timed_items'}
# Characters that MLflow or TensorBoard do not allow in a name.
_UNWANTED = re.compile(r'[^A-Za-z0-9_.-]+')
# Metrics of `as_flat` that are logged every n steps.
_OF_A_STEP = (
    'fuel.pipeline.stall.ratio', 'fuel.pipeline.examples_per_second',
    'fuel.stage.stall.ratio', 'fuel.stage.queue.ratio')


class Metric(NamedTuple):
    """A number that is exported.

    `field`: name of its field in `Measurements` or `StageMeasurements`.
    `name`: name by the conventions of OpenTelemetry, with the unit at its end,
        such as ``'fuel.stage.work.seconds'``.
    `grows`: whether it is a sum, which never decreases.
    `help`: description in one line.
    """

    field: str
    name: str
    grows: bool
    help: str = ''


def _metrics(group: str, kind: type[Any]) -> list[Metric]:
    """Return a metric for each field of a class that is a number."""
    found = []
    for field in dataclasses.fields(kind):
        if str(field.type) in ('int', 'float') and field.name != 'depth':
            words = _IN_FULL.get(field.name, field.name).split('_')
            words.sort(key=_UNITS.__contains__)
            found.append(Metric(
                field.name, '.'.join(['fuel', group, *words]),
                field.name not in _LEVELS,
                _HELP[field.name].format(group)))
    return found


OF_PIPELINES = _metrics('pipeline', Measurements)
OF_STAGES = _metrics('stage', StageMeasurements)


def as_flat(measured: Measurements | None) -> dict[str, float]:
    """Return measurements as a flat dict of numbers, for a logger.

    Parameters
    ----------
    measured : Measurements or None
        The result of ``stream.measurements()``, or its `interval`: the
        measurements since the call before.  In the first result, `interval` is
        None; for None an empty dict is returned.

    Returns
    -------
    dict of str to float
        A dict from names to numbers.  A name follows the conventions of
        OpenTelemetry, with the unit at its end, then a slash and the stage:
        ``'fuel.stage.work.seconds/1.Cast'``.  TensorBoard and Weights & Biases
        group names by the part before the slash.  In addition to the fields,
        the dict has:

        ``fuel.pipeline.stall.ratio``
            fraction of the time that the consumer waited, 0 to 1;
        ``fuel.pipeline.examples_per_second``
            examples that the consumer received per second;
        ``fuel.stage.stall.ratio/...``
            fraction of the time that the consumer waited for this stage.  The
            stage with the largest fraction is the bottleneck;
        ``fuel.stage.queue.ratio/...``
            prefetched batches as a fraction of the limit, 0 to 1, for stages
            with a queue.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(list(range(6))), batch_size=3)
    >>> batches = list(stream)
    >>> flat = as_flat(stream.measurements())
    >>> flat['fuel.pipeline.examples'], flat['fuel.stage.items/0.DataStream']
    (6, 2)
    """
    if measured is None:
        return {}
    found: dict[str, float] = {
        metric.name: getattr(measured, metric.field)
        for metric in OF_PIPELINES}
    found['fuel.pipeline.stall.ratio'] = measured.stall_share
    found['fuel.pipeline.examples_per_second'] = measured.examples_per_second
    for stage in measured.stages:
        place = place_of(stage)
        end = f'/{place}.' + _UNWANTED.sub('_', stage.name).strip('_')
        for metric in OF_STAGES:
            found[metric.name + end] = getattr(stage, metric.field)
        found['fuel.stage.stall.ratio' + end] = (
            stage.stall_seconds / measured.seconds if measured.seconds else 0.)
        if stage.queue_size:
            found['fuel.stage.queue.ratio' + end] = min(
                1., stage.queue_items / stage.queue_size)
    return found


def place_of(stage: StageMeasurements) -> str:
    """Return the path of a stage in the pipeline, such as ``'0-1'``."""
    return '-'.join(map(str, stage.path))


class StepLog:
    """Measures a stream after every n training steps, for a logger.

    It does not change the interval of ``stream.measurements()``.

    `every_n_steps`: the number n of steps; None for the trainer's number.
    """

    def __init__(self, every_n_steps: int | None) -> None:
        self._wanted = (None if every_n_steps is None
                        else positive('every_n_steps', every_n_steps))
        self._last: Measurements | None = None

    def begin(self, stream: Any, usual: int) -> None:
        """Measure a stream from now on, every `usual` steps unless another
        number was given."""
        self._stream = stream
        self._every = self._wanted or max(1, usual)
        self._steps = 0
        self._last = measure(stream)
        self._is_checked = False

    def step(self) -> Measurements | None:
        """Count a step; return the measurements of the last n steps after each
        n-th step, and None otherwise."""
        if self._last is None:
            return None
        self._steps += 1
        if self._steps % self._every:
            return None
        now = measure(self._stream)
        last, self._last = self._last, now
        if not (now.items or self._is_checked):
            warnings.warn(
                f'the trainer has made {self._every} steps, and no batch of '
                f'{type(self._stream).__name__} was read in this process: '
                'workers of a DataLoader are not measured. Use num_workers=0, '
                'and MultiProcessing(stream, num_workers=...), which is',
                stacklevel=2)
        self._is_checked = True
        return now - last


def flat_step(measured: Measurements) -> dict[str, float]:
    """Return the few numbers that a trainer logs while it trains."""
    return {name: value for name, value in as_flat(measured).items()
            if name.partition('/')[0] in _OF_A_STEP}
