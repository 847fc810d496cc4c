"""Questions about a whole pipeline: from which examples its items were made,
and whether its items can be skipped or sought without reading.

Items can be skipped if each stage is one-to-one: it makes item n from item n
of its input. Items can be sought if, in addition, each request is known by its
number.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fuel.epochs.ahead import ReadAhead
from fuel.epochs.epoch import Epoch
from fuel.epochs.examples import SourceExamples
from fuel.epochs.stage import Stage, stage_of
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.sharding.made import cut_rows
from fuel.typing import Batch, DatasetLike, SchemeLike, StreamLike
from fuel.utils.overrides import covers, hook_covers_method
from fuel.utils.sparse import count_rows

if TYPE_CHECKING:
    from fuel.iterator import DataIterator
from fuel.schemes.iteration_scheme import (
    batch_size_of, chooses_examples, is_random_access, num_requests_of)


def child_streams(stream: object) -> list[StreamLike]:
    """Return the streams that a stream reads."""
    return list(stage_of(stream).inputs)


def datasets_of(stream: StreamLike) -> list[DatasetLike]:
    """Return the data sets of a pipeline, each once; a data set's place is
    its number in the pipeline."""
    found: dict[int, DatasetLike] = {}
    waiting = [stream]
    while waiting:
        stage = stage_of(waiting.pop())
        inputs = stage.inputs
        dataset = None if inputs else stage.dataset
        if dataset is not None:
            found.setdefault(id(dataset), dataset)
        waiting += inputs[::-1]
    return list(found.values())


def length_of(stream: object) -> int | None:
    """Return the number of items of an epoch of a stream, None if unknown."""
    stage = stage_of(stream)
    if stage.is_foreign or covers(
            stream, 'num_items', ('__len__',)):
        return stage.num_items()
    try:
        return len(stage.stream)
    except TypeError:
        return None


# The most examples that an error lists.
SHOWN = 10


def skip(iterator: DataIterator, count: int) -> None:
    """Skip the next items of an epoch of a one-to-one pipeline."""
    if count:
        stage_of(iterator.data_stream).skip(iterator.epoch, count)


def skip_delivered(iterator: DataIterator, count: int) -> None:
    """Skip the next items of an epoch of a one-to-one pipeline, and those
    among them that are left out.

    `count`: number of items that are not left out.
    """
    skip(iterator, rounds_of(iterator, count))


def rounds_of(iterator: DataIterator, count: int) -> int:
    """Return the number of the next rounds of an epoch that have some items,
    with those that are left out.

    `count`: number of items that are not left out.
    """
    if not count or not iterator.epoch.omitted:
        return count
    reader: Any = stage_of(iterator.data_stream).reader_of(iterator.epoch)
    rounds: int = reader.rounds_of(count)
    return rounds


def source_examples(iterator: Iterator[Any] | ReadAhead,
                    count: int) -> SourceExamples | None:
    """Return the examples from which the last items of an epoch were made;
    None if they are not known.

    `count`: number of items.
    """
    if isinstance(iterator, ReadAhead):
        return iterator.examples if iterator.note and count == 1 else (
            _examples_before(iterator.source, iterator.num_ahead, count))
    if not isinstance(iterator, EpochIterator):
        # A stream of another library's makes its own.
        return None
    epoch, stage = iterator.epoch, stage_of(iterator.data_stream)
    if epoch.is_asked and epoch.shard is not None and (
            stage.own_shard is not None):
        dealt: SourceExamples | None = epoch.dealt if count == 1 else None
        return dealt
    if stage.is_remote and not (epoch.is_asked and count == 1):
        return None
    requests = _last_requests(epoch, count)
    if requests is None:
        return None
    found = examples_behind(stage, epoch, requests)
    made = epoch.request_iterator
    if found is not None and made is not None and (
            epoch.short and stage.dataset is not None):
        part = epoch.short.get(made.last_position)
        if part is not None and count == 1:
            found = found.pick(part.rows)
    return found


def examples_behind(stage: Stage, epoch: Epoch, requests: Sequence[Any],
                    ) -> SourceExamples | None:
    """Return the examples from which the items of the last requests of an
    epoch were made; None if they are not known."""
    if stage.is_foreign:
        return None
    stream = stage.stream
    with stage.showing(epoch):
        found: SourceExamples | None = stream.source_examples(requests)
    if found is not None and not stage.one_to_one and not hook_covers_method(
            type(stream), 'get_data', 'source_examples'):
        # A user's class makes other items than the class that it is from.
        return found.unordered(stage.name)
    return found


def _examples_before(iterator: DataIterator, later: int,
                     count: int) -> SourceExamples | None:
    """Return the examples of the `count` items before the last `later`
    items."""
    if iterator.epoch.finished and stage_of(
            iterator.data_stream).dataset is None:
        # It was read to its end, and has released its iterators.
        return None
    found = source_examples(iterator, count + later)
    after = source_examples(iterator, later) if later else None
    if found is None or (after is None and later):
        return None
    end = len(found.indices) - (0 if after is None else len(after.indices))
    return SourceExamples(
        cut_rows(found.made, slice(end)), found.in_order, found.stage)


def _last_requests(epoch: Epoch, count: int) -> Sequence[Any] | None:
    """Return the last requests of an epoch, None if they are not kept.

    If the epoch has no requests, the numbers of the items are returned.
    """
    requests = epoch.request_iterator
    if requests is None:
        step, shard = epoch.step, epoch.shard
        first = epoch.requested + (0 if shard is None else shard.offset)
        return range(first - count * step, first, step)
    # The last request alone is kept, for a stage that asks after each item.
    return requests.made_last(count) if (
        requests.is_random_access or epoch.is_asked) else None


def note_examples(error: Exception, child: DataIterator | ReadAhead,
                  data: Batch) -> None:
    """Add a note to an error: the examples of the data set that caused it.

    `child`: the iterator that the failing stage reads.
    `data`: the item that the failing stage was given.
    """
    place = getattr(error, 'place', None)
    name = name_examples(child, data, None if place is None else [place])
    if name:
        error.add_note(name)


def name_examples(child: DataIterator | ReadAhead, data: Batch,
                  places: list[int] | None = None) -> str:
    """Return a description of the examples that a stage has just read; '' if
    they are not known.

    `places`: which rows of the batch are meant; None if not known.
    """
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


# The consequence and the remedies for stages that workers run.
_NOT_SHARED = 'so several workers cannot share it'
_NOT_SHARED_INSTEAD = ('put it behind MultiProcessing', 'use num_workers=1')


# The reason and the remedy if a stream may leave out single examples.
_LEAVES_OUT = (
    "a stream of examples with on_error='skip' leaves out some",
    ['let the data stream make batches, by its batch_size'])


# The same for a stream that leaves out steps.
_OMITS = ('the stream leaves out steps', [
    'let leave_out(stream, ...) take the last stage of the pipeline'])


def require_one_to_one(stream: StreamLike, consequence: str = _NOT_SHARED,
                     instead: Sequence[str] = _NOT_SHARED_INSTEAD,
                     may_omit: bool = False) -> None:
    """Raise ValueError if some items of a pipeline cannot be made without
    the items before them.

    `consequence`: follows the reason in the text of the error.
    `instead`: further remedies; the first one is left out if the reason is in
        the stream of the data set.
    `may_omit`: whether the last stage may leave out steps, if the caller
        skips by :func:`skip_delivered`.
    """
    stage = stage_of(stream)
    omits_steps = bool(stage.omitted) and (not may_omit or stage.is_remote)
    leaves_out = (stage.dataset is not None and stage.most_skipped > 0
                  and stage.stream.produces_examples)
    if omits_steps or leaves_out or not stage.one_to_one or (
            stage.counts_epochs):
        reason, remedies = _OMITS if omits_steps else (
            _LEAVES_OUT if leaves_out else why_not_one_to_one(stage))
        ways = ', or '.join([*remedies, *instead[
            stage.dataset is not None:]])
        raise ValueError(f'{reason}, {consequence}{ways and f": {ways}"}')
    for child in stage.inputs:
        require_one_to_one(child, consequence, instead)


def is_skippable(stream: StreamLike) -> bool:
    """Return whether items of a pipeline can be skipped without reading."""
    stage = stage_of(stream)
    return stage.one_to_one and all(map(is_skippable, stage.inputs))


def omits(stream: StreamLike) -> bool:
    """Return whether a stream, or one that it reads, leaves out steps."""
    stage = stage_of(stream)
    return bool(stage.omitted) or any(map(omits, stage.inputs))


def marks_repeats(stream: StreamLike) -> bool:
    """Return whether a stage of a pipeline marks examples that padding
    repeats."""
    stage = stage_of(stream)
    return (not stage.is_foreign and bool(stage.stream.__fuel_marks__)) or any(
        map(marks_repeats, stage.inputs))


def why_not_one_to_one(stage: Stage) -> tuple[str, list[str]]:
    """Return the reason why a stage is not one-to-one, and the remedies."""
    if stage.dataset is not None:
        return (f'the stream {stage.name} over '
                f'{type(stage.dataset).__name__} is read in order'), [
                    'give it an iteration scheme']
    if stage.draws == 'in_order':
        return (f'the draws of the stage {stage.name} depend on the batches '
                'before'), [
                    'give it seed= instead', 'use a stage that takes seed=']
    # Batches of examples, which a data set can make as well.
    makes_batches = not stage.stream.produces_examples and any(
        child.produces_examples for child in stage.inputs)
    return (f'the stage {stage.name} does not make one item of each that it '
            'reads, or keeps things from one item to the next'), (
        ['let the data stream make batches, by its batch_size']
        if makes_batches else [])


def can_seek(stream: StreamLike, forward: bool = False) -> bool:
    """Return whether an epoch can go to any of its items without reading
    others; if `forward`, whether it can go to any later item."""
    waiting = [stream]
    while waiting:
        stage = stage_of(waiting.pop())
        if stage.omitted or not (stage.one_to_one or stage.is_sought):
            return False
        if stage.dataset is not None:
            # The number of examples left out before an item is not known.
            if not _is_known(stage.scheme) or (
                    stage.most_skipped and stage.stream.produces_examples):
                return False
            continue
        inputs = stage.inputs
        if not inputs or not (forward or stage.goes_back):
            return False
        waiting += inputs
    return True


def batch_size_below(stream: StreamLike) -> int | None:
    """Return the batch size of a stream if some rows of a batch can be read
    without the other rows; None otherwise."""
    stage = stage_of(stream)
    if stage.stream.produces_examples or stage.reads_several or (
            stage.most_skipped or not can_seek(stream)):
        return None
    if stage.dataset is not None:
        return batch_size_of(stage.scheme)
    return (batch_size_below(stage.inputs[0]) if stage.keeps_rows
            else None)


def can_seek_rows(stream: StreamLike) -> bool:
    """Return whether an epoch can read only some rows of any batch."""
    return batch_size_below(stream) is not None


def _is_known(scheme: SchemeLike | None) -> bool:
    """Return whether any request of a scheme is known by its number."""
    return (is_random_access(scheme) and chooses_examples(scheme)
            and num_requests_of(scheme) is not None)
