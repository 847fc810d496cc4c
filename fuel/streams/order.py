"""Orders of streams: the attribute `order`, and epochs that begin at a place
or leave out steps."""
from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from fuel.epochs.omitted import of_plain, union
from fuel.epochs.past import num_epochs
from fuel.epochs.pipeline import is_skippable, skip
from fuel.epochs.stage import Stage, stage_of
from fuel.exceptions import UnknownOrderError
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.schemes.shard import Shard
from fuel.sharding.shard_pipeline import shard_pipeline
from fuel.typing import State

if TYPE_CHECKING:
    from fuel.orders.omitted import Steps
    from fuel.orders.order import StreamOrder


def order_attribute(stream: Any) -> Any:
    """Return the attribute `order` that a user has assigned to a stream, or
    the order of the stream."""
    own = vars(stream)
    if 'order' in own:
        return own['order']
    from fuel.orders.order import StreamOrder
    return StreamOrder.of_stream(stream)


def leave_out_more(stream: Any, state: State, steps: Steps | None,
                   accumulate: int) -> None:
    """Leave out the steps that a loaded state names, and further steps, in
    place of those of an earlier load."""
    from fuel.orders.omitted import omit, renumbered, steps_as_list
    stage, found = stage_of(stream), steps_as_list(
        () if steps is None else steps)
    # Steps are those of the training that saved the state.
    saved = Shard(0, *state.get('ranks', (1,)))
    stage.omitted = union(stage.built_omitted, renumbered(
        stream, of_plain(state.get('omitted', ())), saved, bool(found)))
    if found:
        omit(stream, found, (), accumulate, saved)


def current_step(self: Any, accumulate: int = 1) -> int:
    """Return the number of the step of the batch that was delivered last.

    It is the batch of the epoch iterator made last, or, after
    :meth:`load_state_dict`, the batch before the loaded position. Steps that
    are left out are counted: ``stream.order.step(stream.current_step())`` has
    the examples of the batch. Ask the outermost stream, which is iterated:
    stages below may be ahead.

    Parameters
    ----------
    accumulate : int, optional
        Number of items of each rank for a step.  Defaults to 1.

    Returns
    -------
    int
        From 0 on; -1 before the first batch of the first epoch. Between two
        epochs, the last step of the epoch that is over.

    Raises
    ------
    fuel.exceptions.UnknownOrderError
        If the order of the stream is not known, or the numbers of items of
        earlier epochs are not; see :meth:`fuel.orders.StreamOrder.step`. If
        workers make single examples and leave out those that fail.

    Notes
    -----
    The first call in an epoch makes the order of the stream, which may take a
    millisecond; later calls take microseconds.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(list(range(6))), batch_size=2)
    >>> for epoch in range(2):
    ...     for batch, in stream:
    ...         print(stream.current_step(), batch)
    0 [0, 1]
    1 [2, 3]
    2 [4, 5]
    3 [0, 1]
    4 [2, 3]
    5 [4, 5]
    """
    stage = stage_of(self)
    with stage.lock:
        resumed = stage.resumed()
        running = None if stage.pending is not None or stage.is_left() else (
            stage.epoch)
        passed = None if running is None else running.passed_steps
        if passed is None or passed.accumulate != accumulate:
            from fuel.orders.order import StreamOrder
            _check_counted(stage)
            passed = StreamOrder.of_stream(self).passed_steps(accumulate)
            if running is not None:
                running.passed_steps = passed
        return passed.last(running.requested if running is not None
                           else resumed['requested'] if resumed else 0)


def _check_counted(stage: Stage) -> None:
    """Raise UnknownOrderError if workers may leave out items: those are not
    counted."""
    if stage.is_remote and stage.most_skipped and (
            stage.stream.produces_examples):
        raise UnknownOrderError(
            f'workers of {stage.name} may leave out examples, by '
            "on_error='skip', and steps are then not counted: let them make "
            'batches')
    if stage.one_to_one:
        for stream in stage.inputs:
            _check_counted(stage_of(stream))


def shared_stream(stream: Any, shard: Shard) -> Any:
    """Return the stream of a rank, which leaves out the same items."""
    ours = shard_pipeline(stream, shard)
    if stage_of(stream).omitted:
        from fuel.orders.omitted import share_omitted
        share_omitted(stream, ours)
    return ours


def iterate_from(self: Any, step: int | None = None,
                 position: tuple[int, int] | None = None, accumulate: int = 1,
                 as_dict: bool = False) -> Any:
    """Return an epoch iterator that begins at a step, or at an example.

    The epochs before count as read, and their data are not read. The items
    of the epoch before the place are read and dropped if the pipeline has a
    stage that does not make each item of one item. A stage that draws from
    an `rng` does not draw for the epochs before, so its results differ from
    those of a training that read them: give the stage a `seed`.

    Parameters
    ----------
    step : int, optional
        Number of a step of the optimizer, counted from 0 at the first epoch;
        see :meth:`fuel.orders.StreamOrder.step`.
    position : tuple of int, optional
        In place of `step`: the number of the epoch, and the number of an
        example in the order of all ranks. The iterator begins with the round
        in which this example comes.
    accumulate : int, optional
        Number of items of each rank for a step.  Defaults to 1.
    as_dict : bool or 'nested', optional
        See :meth:`get_epoch_iterator`.

    Returns
    -------
    DataIterator

    Raises
    ------
    ValueError
        If the place is in an epoch that has begun, before the position of the
        stream, or both or none of `step` and `position` are given.
    TypeError
        If `position` is a single number.
    IndexError
        If an epoch ends before the example.
    fuel.exceptions.UnknownOrderError
        If the order of the stream is not known, or a mixture goes on in the
        next epoch where an epoch before the place leaves it.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(list(range(8))), batch_size=2)
    >>> list(stream.iterate_from(step=6))
    [([4, 5],), ([6, 7],)]
    >>> stream.order.epoch_number
    2
    """
    if (step is None) == (position is None):
        raise ValueError('pass either step or position')
    from fuel.orders.order import StreamOrder
    order = StreamOrder.of_stream(self)
    if position is None:
        assert step is not None
        epoch, items = order.items_of_step(step, accumulate)
    else:
        from fuel.orders.omitted import as_position
        epoch, example = as_position(position)
        items = order.epoch(epoch).items_of_examples(example, example + 1)
    return _begin_at(self, order, epoch, items.start, as_dict)


def _begin_at(stream: Any, order: StreamOrder, epoch: int, item: int,
              as_dict: bool) -> Any:
    """Return an iterator over an epoch from the round of an item on.

    `order`: the order of the stream.
    """
    stage, present = stage_of(stream), order.epoch_number
    assert present is not None
    following = present if stage.pending is not None or (
        stage.epoch is None or stage.is_left()) else present + 1
    begun = order.next_item()
    if (epoch, item) < (following, begun):
        raise ValueError(
            f'item {item} of epoch {epoch} comes before the next '
            f'item of the stream, item {begun} of epoch {following}: '
            'build the stream anew, without loading a state')
    if epoch > following and order.goes_on:
        raise UnknownOrderError(
            'a mixture goes on in the next epoch where this one leaves it, so '
            'epochs cannot be left out: read them, or load a state')
    while True:
        found = stream.get_epoch_iterator(as_dict=as_dict)
        if not isinstance(found, EpochIterator):
            raise TypeError(
                f'get_epoch_iterator() of {stage.name} must return a '
                f'DataIterator, got {type(found).__name__}: let it return '
                'super().get_epoch_iterator()')
        iterator: Any = found
        running = iterator.epoch
        if num_epochs(running.past) == epoch:
            break
        stage.end_unread(running)
    count = order.round_of(epoch, item) - (
        order.next_round() if epoch == following else 0)
    if is_skippable(stream) and not stage.is_remote:
        skip(iterator, count)
    else:
        for _ in islice(iterator, count):
            pass
    return iterator
