"""The stages of a pipeline: its streams, and what each answers of itself."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fuel.epochs.ahead import ReadAhead
from fuel.epochs.epoch import Epoch
from fuel.epochs.stage import stage_of
from fuel.schemes.sharded_requests import RankRequests
from fuel.typing import Batch, StreamLike
from fuel.utils.overrides import covers
from fuel.utils.sparse import count_rows

if TYPE_CHECKING:
    from fuel.iterator import DataIterator


def child_streams(stream: object) -> list[StreamLike]:
    """Return the streams that a stream reads."""
    return list(stage_of(stream).inputs)


def length_of(stream: object) -> int | None:
    """Return how many items an epoch of a stream has, None if not known."""
    stage = stage_of(stream)
    if stage.is_foreign or covers(
            stream, 'num_items', ('__len__',)):
        return stage.num_items()
    try:
        return len(stage.stream)
    except TypeError:
        return None


class SourceExamples(NamedTuple):
    """The examples of the data set that items were made of.

    `in_order`: whether no stage may have changed their order.
    """

    indices: list[Any]
    in_order: bool


# Of many examples, how many an error lists.
SHOWN = 10
def skip(iterator: DataIterator, count: int) -> None:
    """Skip the next items of an epoch of a one-to-one pipeline."""
    if count:
        stage_of(iterator.data_stream).skip(iterator.epoch, count)


def source_examples(iterator: DataIterator | ReadAhead,
                    count: int) -> SourceExamples | None:
    """Return the examples that the last items of an epoch were made of."""
    if isinstance(iterator, ReadAhead):
        return _examples_before(
            iterator.source, iterator.num_ahead, count)
    epoch, stream = iterator.epoch, iterator.data_stream
    requests = _last_requests(epoch, count)
    if requests is None:
        return None
    with stage_of(stream).showing(epoch):
        found: SourceExamples | None = stream.source_examples(requests)
    return found


def _examples_before(iterator: DataIterator, later: int,
                     count: int) -> SourceExamples | None:
    """Return the examples of the items before some later ones."""
    if iterator.epoch.finished and stage_of(
            iterator.data_stream).dataset is None:
        # It was read to its end, and has let go of what it has read.
        return None
    found = source_examples(iterator, count + later)
    after = source_examples(iterator, later) if later else None
    if found is None or (after is None and later):
        return None
    end = len(found.indices) - (0 if after is None else len(after.indices))
    return found._replace(indices=found.indices[:end])


def _last_requests(epoch: Epoch, count: int) -> Sequence[Any] | None:
    """Return the last requests of an epoch, None if they are not kept.

    Where there are none, the numbers of the items stand for them.
    """
    requests = epoch.request_iterator
    if requests is None:
        step, shard = epoch.step, epoch.shard
        first = epoch.position + (0 if shard is None else shard.offset)
        return range(first - count * step, first, step)
    if not requests.is_random_access:
        return None
    if isinstance(requests, RankRequests):
        return requests.made_last(count)
    return [requests.request_at(number) for number in range(
        epoch.requested - count, epoch.requested)]


def note_examples(error: Exception, child: DataIterator | ReadAhead,
                  data: Batch) -> None:
    """Add to an error which example of the data set it came from."""
    place = getattr(error, 'place', None)
    name = name_examples(child, data, None if place is None else [place])
    if name:
        error.add_note(name)


def name_examples(child: DataIterator | ReadAhead, data: Batch,
                  places: list[int] | None = None) -> str:
    """Return a description of the examples that a stage has just read."""
    try:
        size = (1 if child.data_stream.produces_examples
                else count_rows(data[0]))
        found = source_examples(child, 1)
        if found is None or len(found.indices) != size:
            return ''
        indices = found.indices
        exact = size == 1 or (found.in_order and places is not None)
        if exact and places is not None:
            indices = [indices[place] for place in places]
    except Exception:  # noqa: BLE001 (it must not hide what it is about)
        return ''
    if len(indices) == 1:
        return f'example {indices[0]!r} of the data set'
    among = '' if exact else 'among the '
    shown = f'{indices!r:.200}'
    if len(indices) > SHOWN:
        shown = (f'{list(indices[:SHOWN])!r:.200} and {len(indices) - SHOWN} '
                 f'others')
    return f'{among}examples {shown} of the data set'
