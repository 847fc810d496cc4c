"""Items that are left out of the epochs of a stream."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from fuel.epochs.omitted import Omitted, union
from fuel.epochs.pipeline import marks_repeats
from fuel.epochs.stage import stage_of
from fuel.exceptions import UnknownOrderError
from fuel.schemes.shard import Shard
from fuel.utils.checks import not_negative, positive

if TYPE_CHECKING:
    from fuel.orders.order import StreamOrder

#: Steps, as numbers or ranges of numbers.
Steps: TypeAlias = 'Iterable[int | range]'
#: Ranges of examples: pairs of positions in the same epoch.
Positions: TypeAlias = 'Iterable[tuple[tuple[int, int], tuple[int, int]]]'
#: A name of some items, their epoch, the first one and the one after them.
Named: TypeAlias = tuple[str, int, int, int]


def steps_as_list(steps: Steps) -> list[int | range]:
    """Return steps as a list; raise TypeError for a single number."""
    try:
        return list(steps)
    except TypeError:
        raise TypeError(
            'steps must be a list of numbers and ranges, such as [71] or '
            f'[71, range(80, 90)], got {steps!r:.80}') from None


def find_omitted(order: StreamOrder, steps: Steps, positions: Positions,
                 accumulate: int, known: Omitted) -> Omitted:
    """Return the items of all ranks that are in some steps, or in steps that
    have examples of some ranges.

    ValueError is raised if they are before the position of the stream, and
    are not left out already.

    `known`: the items that are left out already.
    """
    accumulate = positive('accumulate', accumulate)
    found = [*_of_steps(order, steps, accumulate),
             *_of_positions(order, positions, accumulate)]
    present, item = order.epoch_number, order.next_item()
    for name, epoch, first, stop in found:
        if (epoch, first) < (present, item) and (
                union(known, [(epoch, first, stop)]) != known):
            ranks = order.num_ranks
            raise ValueError(
                f'{name} cannot be left out: counted with {ranks} '
                f'rank{"s" * (ranks > 1)} and accumulate={accumulate}, it '
                f'begins with item {first} of epoch {epoch}, but the stream '
                f'is at item {item} of epoch {present} already. Pass the '
                'accumulate of the training, or an earlier state')
    # uneven='drop' drops the items of the last round.
    return union((), [(epoch, first, stop) for _, epoch, first, stop in found
                      if first < stop])


def _of_steps(order: StreamOrder, steps: Steps, accumulate: int,
              ) -> Iterator[Named]:
    """Yield the items of steps."""
    for given in steps_as_list(steps):
        yield from _of_range(
            order, given if isinstance(given, range) else (given,), accumulate)


def _of_range(order: StreamOrder, steps: Sequence[int], accumulate: int,
              ) -> Iterator[Named]:
    """Yield the items of steps, at once if they follow each other in one
    epoch."""
    if not steps:
        return
    epoch, items = order.items_of_step(steps[0], accumulate)
    end, last = (epoch, items) if len(steps) == 1 else order.items_of_step(
        steps[-1], accumulate)
    if epoch == end and steps[-1] - steps[0] == len(steps) - 1:
        yield f'step {steps[0]}', epoch, items.start, last.stop
        return
    half = len(steps) // 2
    yield from _of_range(order, steps[:half], accumulate)
    yield from _of_range(order, steps[half:], accumulate)


def _of_positions(order: StreamOrder, positions: Positions, accumulate: int,
                  ) -> Iterator[Named]:
    """Yield the items of all steps that have examples of ranges."""
    for given in positions:
        try:
            start, after = given
        except (TypeError, ValueError):
            raise TypeError(
                'a range of positions must be ((epoch, first), (epoch, '
                f'stop)), got {given!r:.80}') from None
        epoch, first = as_position(start)
        end, stop = as_position(after)
        if epoch != end or first >= stop:
            raise ValueError(
                'a range of positions must be ((epoch, first), (epoch, stop)) '
                'in one epoch, with first below stop, got '
                f'{((epoch, first), (end, stop))}')
        items = order.epoch(epoch).items_of_examples(first, stop, accumulate)
        yield (f'the step of example {first} of epoch {epoch}', epoch,
               items.start, items.stop)


def as_position(value: Any) -> tuple[int, int]:
    """Return a position as the numbers of an epoch and of an example."""
    try:
        epoch, example = value
    except (TypeError, ValueError):
        raise TypeError(
            'position must be the number of an epoch and the number of an '
            f'example in it, such as (2, 500), got {value!r:.80}') from None
    return not_negative('epoch', epoch), not_negative('example', example)


def leave_out(stream: Any, steps: Steps = (), positions: Positions = (),
              accumulate: int = 1) -> Any:
    """Return a stream that leaves out steps of the training.

    All ranks leave out the same steps. The items of these steps are not read
    where each item is made of one item or one request below; elsewhere they
    are read and dropped. All other examples come at the step at which they
    would come otherwise, and the numbers of steps do not change. Saved states
    name what is left out, so it stays left out after a restart, on any number
    of ranks. The length of the stream counts what is left out.

    Parameters
    ----------
    stream : AbstractDataStream
        The last stage of a pipeline.
    steps : iterable of int or range, optional
        Numbers of steps, counted from 0 at the first epoch. A step is left
        out when the training comes to it, in whatever later epoch. The
        present and later epochs count as read to their ends.
    positions : iterable of tuple, optional
        Ranges of examples: ``((epoch, first), (epoch, stop))``. Each range is
        extended to whole steps.
    accumulate : int, optional
        Number of items of each rank for a step.  Defaults to 1.

    Returns
    -------
    AbstractDataStream
        A copy of the stream. It reads the same inputs and draws from the same
        generators, so use it in place of `stream`.

    Raises
    ------
    ValueError
        If a step is before the position of the stream, a step is negative, a
        range of `positions` is not in one epoch, or padding would repeat an
        example that is left out, or might do so, as behind a `ShuffleBuffer`.
    IndexError
        If the epoch of a range of `positions` ends before it.
    TypeError
        If `steps` is a single number.
    fuel.exceptions.UnknownOrderError
        If the order of the stream depends on the data, or the number of its
        epoch is not known.

    See Also
    --------
    fuel.streams.AbstractDataStream.load_state_dict : Leave out steps from a
        saved state on.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.orders import leave_out
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(list(range(6))), batch_size=2)
    >>> list(leave_out(stream, steps=[1]))
    [([0, 1],), ([4, 5],)]
    """
    # Ranks that share rows of a mixture read them in any order.
    copied = stage_of(stream).copy(bool(getattr(stream, 'is_sought', False)))
    stage_of(copied).built_omitted = union(
        stage_of(stream).built_omitted,
        omit(copied, steps, positions, accumulate))
    return copied


def renumbered(stream: Any, omitted: Omitted, saved: Shard,
               counts_steps: bool) -> Omitted:
    """Return the items that a state names, as the present ranks number them.

    `saved`: the share of any rank that saved the state.
    `counts_steps`: whether steps are left out, too.
    """
    present = (stage_of(stream).shard or Shard(0, 1)).num_shards
    if present == saved.num_shards or not (omitted or counts_steps):
        return omitted
    from fuel.sharding.asking import epoch_order
    order = epoch_order(stream)
    while order.rounds_of_step is None and len(order.inputs) == 1:
        order, = order.inputs
    rounds = order.rounds_of_step
    if rounds is None:
        return omitted
    if counts_steps:
        raise ValueError(
            f'the state was saved on {saved.num_shards} ranks, and the stage '
            'that balances batches numbers them otherwise on '
            f'{present}: load the state with leave_out on {saved.num_shards} '
            'ranks, save the state of that stream, and load it here')
    old, new = saved.num_shards * rounds, present * rounds
    return union((), [(epoch, first // old * new, -(-stop // old) * new)
                      for epoch, first, stop in omitted])


def share_omitted(stream: Any, ours: Any) -> None:
    """Let a rank's stream leave out what a state names that was loaded before;
    refuse steps of :func:`leave_out`.

    `ours`: the rank's stream, a copy of `stream`.
    """
    stage, shared = stage_of(stream), stage_of(ours)
    if stage.built_omitted and (shared.shard or Shard(0, 1)).num_shards > 1:
        raise ValueError(
            'leave_out has counted the steps of a stream that was not '
            'sharded, and those of several ranks are others: put leave_out '
            'after shard, as in leave_out(stream.shard(rank, num_shards), '
            'steps)')
    shared.built_omitted = stage.built_omitted
    shared.omitted = renumbered(ours, stage.omitted, Shard(0, 1), False)


def omit(stream: Any, steps: Steps, positions: Positions = (),
         accumulate: int = 1, shard: Shard | None = None) -> Omitted:
    """Let a stream leave out steps in the epochs that begin from now on;
    return their items.

    `shard`: the share of any of the ranks whose steps these are; None for
        that of the stream.
    """
    from fuel.orders.order import StreamOrder
    order, stage = StreamOrder.of_stream(stream, shard), stage_of(stream)
    if order.epoch_number is None:
        raise UnknownOrderError(
            'the number of the epoch is not known, since the state that was '
            'loaded was saved by an older version of Fuel: so its steps have '
            'no numbers')
    found = find_omitted(order, steps, positions, accumulate, stage.omitted)
    omitted = union(stage.omitted, found)
    if not marks_repeats(stream):
        StreamOrder.of_stream(stream).refuse_repeats(omitted)
    stage.omitted = omitted
    return found
