"""Leaving out items of an epoch without making them."""
from __future__ import annotations

from typing import Any

from fuel.epochs.pipeline import child_iterators
from fuel.schemes.requests import RequestIterator
from fuel.streams import DataStream
from fuel.transformers.base import Transformer
from fuel.transformers.seeded import SeededStage
from fuel.utils import rng_state


def check_skips(stream: Any) -> None:
    """Refuse a pipeline of which not every item can be made by itself."""
    name = type(stream).__name__
    if definer_of(stream) is DataStream:
        if stream.iteration_scheme is None:
            raise ValueError(
                f'the stream over {type(stream.dataset).__name__} is read in '
                'order, so several workers cannot share it: give it an '
                'iteration scheme, or use num_workers=1')
        return
    definer = definer_of(stream)
    if definer not in (Transformer, SeededStage) and not (
            'one_to_one' in vars(definer or object) and stream.one_to_one):
        raise ValueError(
            f'the stage {name} does not make one item of each that it reads, '
            'so several workers cannot share it: put it behind '
            'MultiProcessing, or use num_workers=1')
    if not isinstance(stream, SeededStage) and rng_state.is_generator(
            getattr(stream, 'rng', None)):
        raise ValueError(
            f'what the stage {name} draws depends on the batches before, so '
            'several workers would draw something else: use a stage that '
            'takes seed=, or num_workers=1')
    own = {*SeededStage.epoch_attributes}
    if not own.issuperset(stream.epoch_attributes):
        raise ValueError(
            f'the stage {name} keeps things from one item to the next, so '
            'several workers cannot share it: put it behind '
            'MultiProcessing, or use num_workers=1')
    check_skips(stream.data_stream)


def definer_of(stream: Any) -> Any:
    """Return the class whose `get_data` a stream has.

    Returns
    -------
    type or None
        None if it was assigned to the stream itself.

    """
    if 'get_data' in vars(stream):
        return None
    return next((cls for cls in type(stream).__mro__
                 if 'get_data' in vars(cls)), None)


def skip(iterator: Any, count: int) -> None:
    """Leave out the next items of an epoch."""
    if not count:
        return
    epoch = iterator.epoch
    epoch.drop_prefetched()
    epoch.position += count
    if '_item' in epoch.attributes:
        epoch.attributes['_item'] += count
    requests = epoch.request_iterator
    if requests is not None:
        if isinstance(requests, RequestIterator):
            requests.advance(count)
        else:
            for _ in range(count):
                next(requests, None)
        epoch.requested += count
        return
    epoch.bind(iterator.data_stream)
    for child in child_iterators(iterator.data_stream):
        skip(child, count)
