"""Epochs that leave out the examples that cannot be made.

An example that fails is taken out of its batch. A copy of the pipeline reads
the examples of the batch again, one by one, to find those that fail. Then the
copy makes the batch of the other examples. The place of the batch in the
order, and the random draws for the other examples, do not change. A stream of
single examples continues with the next example. A stage that makes several
pieces of an item leaves out all pieces of the item.
"""
from __future__ import annotations

from typing import Any

from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import is_skippable, skip, source_examples
from fuel.epochs.skipped import (
    LeftOut, Skipped, SkippedExample, SkipLimit, error_text, is_of_data)
from fuel.epochs.stage import children_of, Stage, stage_of
from fuel.epochs.state import Position, as_state
from fuel.schemes.shard import BatchPart
from fuel.schemes.sharded_requests import RowRequests, as_splittable
from fuel.sharding.shard_pipeline import copied_pipeline
from fuel.sharding.planned import source_of
from fuel.typing import Batch, StreamLike
from fuel.utils.arguments import try_call


# First words of the note that an error gets if no example was left out.
_REFUSED = "on_error='skip' does not leave it out: "


def recover(stage: Stage, epoch: Epoch, number: int,
            error: Exception) -> tuple[bool, Batch | None]:
    """Leave out the examples that caused an error.

    Returns: Whether examples were left out, and the rest of the item, if any.
        If no examples were left out, the error has a note that says why.
    """
    if isinstance(error, LeftOut):
        _leave_out_item(epoch, error)
        return True, None
    if not is_of_data(error) or _is_refused(error):
        return False, None
    reason = _why_not(stage, epoch, number)
    batch = None
    if not reason and stage.stream.makes_pieces:
        # All pieces of the item are left out; none was delivered.
        _count(epoch, [
            SkippedExample(number, example, stage.name, error_text(error))
            for example in _examples_below(epoch)])
    elif not reason and stage.stream.produces_examples:
        assert epoch.limit is not None
        _count(epoch, [SkippedExample(
            number, _example_of(stage, epoch.limit, number), stage.name,
            error_text(error))])
    elif not reason:
        batch, reason = _make_again(stage, epoch, number)
    if reason:
        error.add_note(_REFUSED + reason)
        return False, None
    if batch is None:
        _leave_out_item(epoch, error)
    return True, batch


def _is_refused(error: Exception) -> bool:
    """Return whether an upstream stage could not leave out an example."""
    return any(note.startswith(_REFUSED)
               for note in vars(error).get('__notes__', ()))


def _why_not(stage: Stage, epoch: Epoch, number: int) -> str:
    """Return the reason why nothing can be left out, '' if something can."""
    if epoch.request_iterator is not None and (
            epoch.request_iterator.position == number):
        return 'the iteration scheme has failed'
    if stage.dataset is not None and stage.scheme is None:
        return ('the data set is read in order, and may not go on behind an '
                'error; the stages that read it are covered')
    if stage.stream.makes_pieces:
        return ''
    if not stage.one_to_one:
        return (f'{stage.name} does not make one item of each that it reads, '
                'or draws from an rng')
    assert epoch.limit is not None
    requests = epoch.limit.requests
    if stage.stream.produces_examples or (
            is_skippable(stage.stream)
            and requests is not None and requests.is_random_access):
        return ''
    return (f'the batches that {stage.name} reads are not those of a '
            'DataStream: let that make the batches, or put this stage in '
            'front of the one that makes them')


def _leave_out_item(epoch: Epoch, error: Exception) -> None:
    """Count an item as left out.

    Raise LeftOut if a downstream stage makes one item of each item.
    """
    epoch.count_left_out()
    if epoch.is_inner:
        raise LeftOut from error


def _count(epoch: Epoch, examples: list[SkippedExample]) -> None:
    assert epoch.limit is not None
    epoch.left_out = epoch.left_out.with_more(
        Skipped(len(examples), tuple(examples)))
    epoch.limit.add(examples)


def _example_of(stage: Stage, limit: SkipLimit, number: int) -> int | None:
    """Return the index of an item's example in the data set.

    It is None if it is not known.
    """
    if stage.dataset is None:
        return (_example_of(stage_of(stage.inputs[0]), limit, number)
                if stage.one_to_one else None)
    requests = limit.requests
    if requests is None:
        shard = stage.own_shard
        return number + (0 if shard is None else shard.offset)
    return _as_number(requests.request_at(number)
                      if requests.is_random_access else None)


def _examples_below(epoch: Epoch) -> list[int | None]:
    """Return the indices, in the data set, of the examples of an item.

    The item is the one that the stage read last. The index of an unknown
    example is None.
    """
    child = epoch.attributes['child_epoch_iterator']
    found = try_call(None, source_examples, child, 1)
    return ([None] if found is None or not len(found.indices)
            else list(map(_as_number, found.indices)))


def _as_number(index: object) -> int | None:
    return int(index) if hasattr(index, '__index__') else None


def _make_again(stage: Stage, epoch: Epoch, number: int,
                ) -> tuple[Batch | None, str]:
    """Make a batch without the examples that fail.

    Returns: The batch and ''. None and the reason if no batch can be made.
        None and '' if the failing example is the only one of the epoch's last
        batch, which is then left out.
    """
    try:
        again = _Again(stage, epoch, number)
    except Exception as error:  # noqa: BLE001 - a note of the one that failed
        return None, f'its position cannot be restored ({error_text(error)})'
    try:
        return _without_failures(stage, epoch, again)
    finally:
        again.close()


def _without_failures(stage: Stage, epoch: Epoch, again: _Again,
                      ) -> tuple[Batch | None, str]:
    good: list[int] = []
    failed: list[SkippedExample] = []
    for row in range(len(again.examples)):
        text, is_data = _failure_of(again, row)
        if text and is_data:
            # Read the example again: an error that occurs in only one read,
            # such as the first read of a file, is not an error of the example.
            text, is_data = _failure_of(again, row)
        if not text:
            good.append(row)
        elif not is_data:
            return None, f'example by example, {text}'
        elif again.is_own_failure():
            failed.append(SkippedExample(
                again.number, _as_number(again.examples[row]), stage.name,
                text))
    if not good and failed and epoch.step == 1 and again.is_rest_of_one():
        _count(epoch, failed)
        return None, ''
    if not good:
        return None, ('each example of the batch fails, so it may be the '
                      'stage that is at fault')
    if not failed:
        return None, 'each example of the batch alone is made without an error'
    try:
        batch = again.read(good)
    except Exception as error:  # noqa: BLE001 - a note of the one that failed
        return None, (f'the batch fails without the {len(failed)} examples '
                      f'that fail alone ({error_text(error)})')
    size = len(again.examples)
    epoch.short[again.number] = BatchPart(good, size, size)
    _count(epoch, failed)
    if stage.dataset is not None:
        # The reader has not converted the data of this batch.
        epoch.drop_prefetched()
    return batch, ''


def _failure_of(again: _Again, row: int) -> tuple[str, bool]:
    """Return the error of making an example alone, '' if there is none.

    The second value says whether the error is due to the data.
    """
    try:
        again.read([row])
    except Exception as error:  # noqa: BLE001 - counted
        return error_text(error), is_of_data(error)
    return '', False


class _Again:
    """Makes one batch of an epoch again, from some of its examples.

    It uses a copy of the pipeline at the position of the epoch.

    `examples`: indices of the examples that are requested for the batch.
    """

    def __init__(self, stage: Stage, epoch: Epoch, number: int) -> None:
        self.number = number
        state = as_state(_without_dataset(stage.position(epoch)))
        if stage.dataset is None:
            # The read that failed is not counted yet.
            state['requested'] += epoch.step
        self._stream: Any = copied_pipeline(stage.stream)
        _measure_as(self._stream, stage.stream)
        _bottom(self._stream).on_error = 'raise'
        ours = stage_of(self._stream)
        ours.load(state)
        # This batch is not left out.
        ours.omitted = ()
        self._iterator = self._stream.get_epoch_iterator()
        if stage.dataset is None:
            self._iterator.epoch.options = epoch.options
        source = source_of(self._iterator)
        # A data set may have a single state, which the epoch uses too.
        self._is_shared = source.attributes.get('data_state') is (
            vars(_bottom(stage.stream)).get('data_state'))
        self._requests = source.request_iterator = RowRequests(
            source.request_iterator)
        self.examples = as_splittable(
            self._requests.requests.request_at(number))
        self._delivered = 0

    def read(self, rows: list[int]) -> Batch:
        """Return the batch that is made of the given rows of the request."""
        skip(self._iterator, -1)
        self._requests.position = self.number
        self._requests.rows = rows
        self._delivered = self._below()
        batch: Batch = next(self._iterator)
        return batch

    def _below(self) -> int:
        """Return the number of items that the input has delivered."""
        below = children_of(self._iterator.epoch)
        return below[0].epoch.position if below else 0

    def is_own_failure(self) -> bool:
        """Return whether the stage itself failed last, not its input.

        The stage itself failed if it has no input, or if the input delivered
        its item.
        """
        return not children_of(self._iterator.epoch) or (
            self._below() > self._delivered)

    def is_rest_of_one(self) -> bool:
        """Return whether this is a short last batch of one example."""
        return (len(self.examples) == 1 < (self._requests.batch_size or 0)
                and self.number + 1 == self._requests.num_requests)

    def close(self) -> None:
        """Close the files of the copy."""
        self._iterator = None
        if not self._is_shared:
            self._stream.close()


def _without_dataset(position: Any) -> Any:
    """Return a position without the positions of data sets.

    The data set takes requests. So its position is not needed, and it may be
    an error.
    """
    if not isinstance(position, Position):
        return position
    return position._replace(
        dataset_position=None,
        children=list(map(_without_dataset, position.children)))


def _measure_as(copy: StreamLike, stream: StreamLike) -> None:
    """Add the work of a pipeline's copy to the meters of the original."""
    stage_of(copy).meter.owner = stage_of(stream).meter
    for ours, theirs in zip(
            stage_of(copy).inputs, stage_of(stream).inputs, strict=True):
        _measure_as(ours, theirs)


def _bottom(stream: StreamLike) -> Any:
    """Return the stream that reads the data set."""
    inputs = stage_of(stream).inputs
    return _bottom(inputs[0]) if inputs else stream
