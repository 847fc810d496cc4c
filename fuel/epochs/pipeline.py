"""The stages of a pipeline: its streams, and what each answers of itself."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fuel.epochs.runtime import lock_of
from fuel.utils import rng_state
from fuel.utils.overrides import covers

if TYPE_CHECKING:
    from fuel.iterator import DataIterator


def child_streams(stream: Any) -> list[Any]:
    """Return the streams that a stream reads."""
    if hasattr(stream, 'data_streams'):
        return list(stream.data_streams)
    return [stream.data_stream] if hasattr(stream, 'data_stream') else []


def child_iterators(stream: Any) -> list[Any]:
    """Return the epoch iterators that a stream shows at present."""
    if hasattr(stream, 'child_epoch_iterators'):
        return list(stream.child_epoch_iterators)
    iterator = getattr(stream, 'child_epoch_iterator', None)
    return [] if iterator is None else [iterator]


class SourceExamples(NamedTuple):
    """The examples of the data set that items were made of.

    `in_order`: whether no stage may have changed their order.
    """

    indices: list[Any]
    in_order: bool


def is_one_to_one(stream: Any) -> bool:
    """Return whether a stage makes each item of one of its stream."""
    return bool(covers(stream, 'one_to_one', ('get_data',))
                and stream.one_to_one)


# What follows for the stages that are run by workers.
_NOT_SHARED = 'so several workers cannot share it'
_NOT_SHARED_INSTEAD = ('put it behind MultiProcessing', 'use num_workers=1')


def check_one_to_one(stream: Any, consequence: str = _NOT_SHARED,
                     instead: Sequence[str] = _NOT_SHARED_INSTEAD) -> None:
    """Refuse a pipeline of which not every item can be made by itself."""
    if not is_one_to_one(stream):
        reason, remedies = _why_not_one_to_one(stream)
        ways = ', or '.join([*remedies, *instead])
        raise ValueError(f'{reason}, {consequence}{ways and f": {ways}"}')
    for child in child_streams(stream):
        check_one_to_one(child, consequence, instead)


def is_skippable(stream: Any) -> bool:
    """Return whether items of a pipeline can be skipped without reading."""
    return is_one_to_one(stream) and all(
        map(is_skippable, child_streams(stream)))


def _why_not_one_to_one(stream: Any) -> tuple[str, list[str]]:
    """Return the reason, and what removes it."""
    name = type(stream).__name__
    dataset = getattr(stream, 'dataset', None)
    if dataset is not None:
        return (f'the stream {name} over {type(dataset).__name__} is read in '
                'order'), ['give it an iteration scheme']
    if rng_state.is_generator(getattr(stream, 'rng', None)):
        return (f'what the stage {name} draws depends on the batches before',
                ['give it seed= instead', 'use a stage that takes seed='])
    # Batches of examples, which a data set can make as well.
    makes_batches = not stream.produces_examples and any(
        child.produces_examples for child in child_streams(stream))
    return (f'the stage {name} does not make one item of each that it reads, '
            'or keeps things from one item to the next'), (
        ['let the data stream make batches, by its batch_size']
        if makes_batches else [])


def skip(iterator: DataIterator, count: int) -> None:
    """Skip the next items of an epoch of a one-to-one pipeline."""
    if not count:
        return
    epoch, stream = iterator.epoch, iterator.data_stream
    epoch.skip(stream, count)
    with lock_of(stream):
        epoch.bind(stream)
        stream.skip(count)
        epoch.unbind(stream)


def source_examples(iterator: DataIterator,
                    count: int) -> SourceExamples | None:
    """Return the examples that the last items of an epoch were made of."""
    epoch, stream = iterator.epoch, iterator.data_stream
    requests = _last_requests(epoch, count)
    if requests is None:
        return None
    with lock_of(stream):
        epoch.bind(stream)
        found: SourceExamples | None = stream.source_examples(requests)
    return found


def _last_requests(epoch: Any, count: int) -> Sequence[Any] | None:
    """Return the last requests of an epoch, None if they are not kept.

    Where there are none, the numbers of the items stand for them.
    """
    requests = epoch.request_iterator
    if requests is None:
        return range(epoch.position - count, epoch.position)
    if not requests.is_random_access:
        return None
    return [requests.request_at(number) for number in range(
        epoch.requested - count, epoch.requested)]
