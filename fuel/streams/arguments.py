"""The arguments of streams: a scheme, or what one is made of."""
from __future__ import annotations

from typing import Any, TypedDict

import numpy

from fuel.schemes.iteration_scheme import is_scheme, num_examples_of
from fuel.epochs.readers import takes_requests
from fuel.schemes import (
    IterationScheme,
    SequentialScheme,
    ShuffledExampleScheme,
    ShuffledScheme,
)
from fuel.typing import AxisLabels, DatasetLike, SchemeLike


class LabelOptions(TypedDict, total=False):
    """The keyword arguments of streams that make their own scheme."""

    axis_labels: AxisLabels | None


class StreamOptions(LabelOptions, total=False):
    """The keyword arguments that streams hand on to `AbstractDataStream`."""

    iteration_scheme: SchemeLike | None


def refuse_no_scheme(stream: object, scheme: object) -> None:
    """Refuse what is no iteration scheme."""
    if scheme is None or is_scheme(scheme):
        return
    name = type(stream).__name__
    if isinstance(scheme, int) and not isinstance(scheme, bool):
        advice = (f'for batches of {scheme} examples write {name}(dataset, '
                  f'batch_size={scheme}), or iteration_scheme='
                  f'SequentialScheme(dataset.num_examples, {scheme})')
    elif isinstance(scheme, type):
        advice = f'make one, {scheme.__name__}(...)'
    else:
        advice = 'such as SequentialScheme(dataset.num_examples, batch_size)'
    raise TypeError(
        f'iteration_scheme of {name} must be an IterationScheme, got '
        f'{scheme!r:.80} ({type(scheme).__name__}): {advice}')


def refuse_positional(stream: object, arguments: tuple[object, ...]) -> None:
    """Refuse arguments behind the data set that have no name."""
    if not arguments:
        return
    name, value = type(stream).__name__, arguments[0]
    if isinstance(value, int):
        written = f'batch_size={value!r}'
    elif is_scheme(value):
        written = f'iteration_scheme={type(value).__name__}(...)'
    else:
        written = '...=...'
    raise TypeError(
        f'{name} takes one argument without a name, the data set; write the '
        f'{type(value).__name__} behind it as {name}(dataset, {written})')


def scheme_of(dataset: DatasetLike, batch_size: int | None, shuffle: bool,
              drop_last: bool) -> IterationScheme | None:
    """Return the scheme that these arguments of a stream stand for."""
    if batch_size is None and not shuffle:
        if drop_last:
            raise ValueError('drop_last=True leaves out a short batch, so it '
                             'needs batch_size')
        return None
    name = type(dataset).__name__
    count: Any = num_examples_of(dataset)
    if takes_requests(dataset) is False or not isinstance(
            count, (int, numpy.integer)):
        batches = '' if batch_size is None else (
            '; batches come from a stage, Batch(DataStream(dataset), '
            f'iteration_scheme=ConstantScheme({batch_size}))')
        shuffled = (
            '; a stage shuffles, ShuffleBuffer(stream, buffer_size)'
            if shuffle else '')
        raise ValueError(
            f'{name} is read in order and takes neither batch_size nor '
            f'shuffle{batches}{shuffled}')
    count = int(count)
    if batch_size is None:
        return ShuffledExampleScheme(count)
    if shuffle:
        return ShuffledScheme(count, batch_size, drop_last=drop_last)
    return SequentialScheme(count, batch_size, drop_last=drop_last)
