"""A stage that makes batches of equal work for all ranks."""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, Self, TypeAlias, Unpack

from fuel.describe.source_types import SourceTypes, types_of
from fuel.epochs.epoch import Epoch, asking
from fuel.epochs.examples import Asked, SourceExamples
from fuel.epochs.pipeline import can_seek, length_of, source_examples
from fuel.epochs.stage import children_of
from fuel.epochs.state import position_of
from fuel.epochs.step_count import StepCount
from fuel.exceptions import StateMismatchError
from fuel.iterator import DataIterator
from fuel.schemes.shard import BatchPart, Shard
from fuel.sharding.asking import OrderQuery, StageEpoch, epoch_order
from fuel.sharding.dealer import Dealt
from fuel.sharding.order import EpochOrder, Unordered
from fuel.sharding.planned import read_at, seek
from fuel.sharding.shard_pipeline import sharding_of
from fuel.sharding.stage_orders import OrderPlan
from fuel.streams.arguments import LabelOptions
from fuel.transformers.balanced.lengths import (
    Given, LengthTable, datasets_below)
from fuel.transformers.balanced.order import (
    BalancedOrder, RoundPlace, Splitting, check_share, count_items, counted)
from fuel.transformers.balanced.parts import Lengths, cost_function
from fuel.transformers.base import Transformer
from fuel.transformers.batch import join_examples
from fuel.transformers.source_names import labels_of_batches
from fuel.typing import Batch, Request, StreamLike
from fuel.utils.checks import one_of, positive, saved_count

#: The cost of an example, from its length.
Cost: TypeAlias = (
    'Literal["linear", "attention"] | tuple[str, float] '
    '| Callable[[Lengths], Any]')

_UNCOUNTED = ('BalancedBatches needs to know how many examples an epoch has, '
              'which is not known before it is over: use a data set that '
              'takes indices, with a scheme of its examples')


#: An example, and the examples of data sets from which it was made, if asked.
KeptExample: TypeAlias = 'tuple[tuple[Any, ...], SourceExamples | None]'


class KeptStep:
    """The examples of a step that were read and not delivered.

    `number`: number of the step; -1 if no step was read.
    `examples`: the examples, by their numbers in the order below; each with
        the examples of data sets that it was made of, if a stage above asks.
    `tried`: numbers of the examples that were read, or failed.
    `position`: position of the input before the step, None if not known.
    `reader`: the reader of an epoch of a stream that takes no share; a pickle
        leaves it out.
    """

    reader: StepReader | None = None

    def __init__(self) -> None:
        self.number = -1
        self.examples: dict[int, KeptExample] = {}
        self.tried: set[int] = set()
        self.position: object = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), 'reader': None}


class StepReader:
    """Reads a rank's examples of steps from an iterator.

    `order`: the order of the batches.
    `child`: the iterator that is read.
    `kept`: the examples that were read and not delivered.
    `goes_back`: whether earlier examples are sought, rather than kept.
    `is_asked`: whether a stage above asks for the examples of data sets.
    `seeks`: whether examples are sought, rather than all read in order.
    """

    is_asked = False

    def __init__(self, order: BalancedOrder, child: DataIterator,
                 kept: KeptStep, goes_back: bool) -> None:
        self.order = order
        self.child = child
        self.kept = kept
        self.seeks = can_seek(child.data_stream, forward=True)
        self.goes_back = goes_back

    @property
    def position(self) -> int:
        """The number of the example that is read next."""
        return int(self.child.epoch.requested)

    def read(self, item: int) -> list[KeptExample]:
        """Return the examples of an item, without those that have failed.

        If one fails, the next call continues with the others.
        """
        order, kept = self.order, self.kept
        step, places = order.locate(item).step, order.places(item)
        if kept.number != step:
            self._begin(step)
        if self.goes_back:
            self._read(places)
        else:
            # Those of later rounds are behind the last of this one.
            stop = min((step + 1) * order.items_per_step, order.num_items)
            self._read([place for other in range(
                item, stop, order.shard.num_shards)
                for place in order.places(other)])
        found = [kept.examples[place] for place in places
                 if place in kept.examples]
        if self.goes_back:
            # Another item may repeat them.
            kept.examples, kept.tried = {}, set()
        elif order.shard.uneven != 'pad':
            for place in places:
                kept.examples.pop(place, None)
        return found

    def _begin(self, step: int) -> None:
        """Move the input to a step, and forget the examples of another."""
        kept = self.kept
        self.go_to_step(step)
        kept.position = None if self.goes_back else position_of(self.child)
        kept.number, kept.examples, kept.tried = step, {}, set()

    def _read(self, places: Sequence[int]) -> None:
        """Read examples that were not tried before; keep them."""
        kept = self.kept
        wanted = {place for place in places if place not in kept.tried}
        if self.seeks:
            for place in sorted(wanted):
                if place in kept.tried or place in kept.examples:
                    continue
                try:
                    self._keep(read_at(self.child, place), wanted)
                except StopIteration:
                    break
                finally:
                    # One that failed before a state was saved is passed.
                    kept.tried.update(range(place, self.position))
            return
        self._read_to(max(wanted, default=-1) + 1, wanted)
        kept.tried |= wanted

    def _read_to(self, stop: int, wanted: Collection[int]) -> None:
        """Read examples in order, up to a number; keep those wanted.

        The others are read by other ranks, which raise their errors.
        """
        while self.position < stop:
            place = self.position
            try:
                example = next(self.child)
            except StopIteration:
                return
            except Exception:
                if place in wanted or self.position == place:
                    raise
            else:
                self._keep(example, wanted)

    def _keep(self, example: Batch, wanted: Collection[int]) -> None:
        """Keep an example that was just read, if it is wanted.

        The input leaves out examples that failed before a state was saved.
        """
        place = self.position - 1
        if place in wanted:
            self.kept.examples[place] = tuple(example), (
                source_examples(self.child, 1) if self.is_asked else None)

    def go_to_step(self, step: int) -> None:
        """Move the input to the first example of a step."""
        start = self.order.first_example(step)
        if self.seeks:
            seek(self.child, start)
        else:
            self._read_to(start, ())

    def resume_point(self, item: int) -> Any:
        """Return the input's position at an item: where its step begins."""
        step = self.order.locate(item).step
        if not self.goes_back and self.kept.number == step:
            return self.kept.position
        self.go_to_step(step)
        return position_of(self.child)

    def finish(self) -> None:
        """Move the input to its end."""
        if self.seeks:
            seek(self.child, self.order.total)
            # A mixture moves there only when its position is requested.
            position_of(self.child)
        else:
            self._read_to(self.order.total, ())


def move_epoch(epoch: Epoch, item: int) -> None:
    """Let a restored epoch count the items of the present ranks."""
    failed = epoch.requested - epoch.position
    epoch.go_to(max(0, item - failed), item, [
        number - epoch.requested for number in epoch.skipped])


class BalancedPlan(OrderPlan):
    """Makes a batch by its number, from a stream whose order is known."""

    order: BalancedOrder
    seeks_below = True

    def __init__(self, order: EpochOrder, children: Sequence[Any],
                 stream: StreamLike, kept: KeptStep | None = None) -> None:
        super().__init__(order, children, stream)
        # A replayed order is computed again, from its start, to go back.
        self.reader = StepReader(
            self.order, children[0], kept or KeptStep(),
            order.kind != 'replayed' and can_seek(children[0].data_stream))

    @classmethod
    def open(cls, stream: Any, epoch: Epoch) -> Self:
        """Return the plan of an epoch of a stage."""
        children = children_of(epoch)
        return cls(stream.order_over(children[0]), children, stream,
                   epoch.attributes['_kept'])

    @staticmethod
    def fits(stream: Any) -> bool:
        """Return True: the constructor refuses what has no order."""
        return True

    @staticmethod
    def split_size(stream: Any) -> None:
        """Return None: ranks cannot split the batches of the stage."""

    @staticmethod
    def count_shared(stream: Any, shard: Shard) -> int | None:
        """Return the number of items of all ranks, None if not known."""
        total = length_of(stream.data_stream)
        return None if total is None else count_items(
            total, stream.splitting, shard)

    @staticmethod
    def check_share(stream: Any, shard: Shard) -> None:
        """Raise ValueError if ranks cannot share the items of a stage."""
        check_share(stream.splitting, shard)
        if shard.uneven == 'pad' and not can_seek(stream.data_stream):
            raise ValueError(
                "uneven='pad' repeats examples from the start of an epoch, "
                f'but {type(stream.data_stream).__name__} can only be read '
                "in order: use uneven='drop'")

    @staticmethod
    def resume(stream: Any, leftover: Any) -> None:
        """Restore the left-overs that the plan needs in a stage."""
        stream.set_leftover(leftover)

    def first_item(self, epoch: Epoch) -> int:
        """Return the number of the item from which an epoch continues."""
        start = epoch.attributes.get('_start')
        epoch.attributes['_start'] = None
        if start is not None:
            move_epoch(epoch, min(
                self.order.items_per_step * start[0]
                + self.order.shard.num_shards * start[1], self.num_items))
        return epoch.requested

    def part_of(self, dealt: Dealt) -> BatchPart | None:
        """Return the rows of the step that the rank gets."""
        return self.order.rows_of(dealt.item) if dealt.item >= 0 else None

    def read(self, item: int) -> Batch:
        """Return an item."""
        stream = self.stream
        self.reader.is_asked = self.is_asked
        found = self.reader.read(item)
        if not found:
            raise ValueError(
                f'{type(stream.data_stream).__name__} has none of the '
                f'examples {self.order.places(item)!r:.80} of its order, '
                'which make the batch of a rank: all were left out by '
                "on_error='skip', so raise batch_size, or the data have "
                'changed')
        tokens = self.order.tokens(item)
        stream._step_count.set(tokens)
        if self.is_asked:
            self.examples = counted(found, tokens)
        return join_examples([example for example, _ in found], self.sources)

    def end(self, item: int) -> None:
        """Move the stream to where the stage leaves it at the end."""
        self.reader.finish()

    def resume_point(self, item: int) -> tuple[object, list[Any]]:
        """Return the left-overs and the input's position at an item."""
        return (self.stream.leftover_at(self.order.locate(item)),
                [self.reader.resume_point(item)])


class BalancedBatches(Transformer):
    """Makes batches of examples, with equal work for all ranks.

    Ranks that train together wait for each other in each round, so a rank
    with long sequences holds up the others. This stage takes the examples of
    each optimizer step as they come in the order, and decides by their
    lengths which rank gets which of them.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces examples in an order that is known before they are read.
    lengths : array, str or tuple, optional
        The length of each row of the data set: an array of integers, or the
        name of a source that has them, which is read alone, once. Defaults to
        None: the data set is one of :class:`~fuel.datasets.Runs` or
        :class:`~fuel.datasets.Windows`, and their lengths count. If the
        pipeline reads several data sets, as a mixture does, a tuple with one
        of these for each; a name or None may stand for all.
    batch_size : int
        Number of examples of a step, of all ranks and rounds together. It
        must be at least the number of ranks times `accumulate`.
    cost : str, tuple or callable, optional
        The work that an example is, given its length: ``'linear'``, the
        length itself (the default); ``'attention'``, the length plus its
        square divided by 1000; ``('attention', divisor)``, the same with
        another divisor; or a function of an array of lengths, which returns
        an array. It must return the same on all ranks.
    accumulate : int, optional
        Number of rounds of a step. In a round each rank gets one batch; the
        gradients of the rounds of a step are accumulated. Defaults to 1.
    limit : int, optional
        The most tokens that a rank gets in a round. Defaults to None: no
        limit.
    too_long : {'error', 'alone'}, optional
        What to do with an example that is longer than `limit`: raise
        ValueError (``'error'``, the default), or make it a batch of its own
        (``'alone'``).
    trained : array, str or tuple, optional
        The number of tokens of each row from which the loss is computed, in
        the form of `lengths`. They are counted in `step_tokens` in place of
        the lengths.
    axis_labels
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream`, with ``'batch'`` in front.

    Attributes
    ----------
    step_tokens : int
        Sum of the lengths, or of `trained`, of all examples of the step to
        which the last batch belongs: of all ranks and rounds. Each rank knows
        it without communication, as the denominator of the loss. Stages above
        that make an item of one item have it too. Before the first batch, in
        another thread than that which reads, and where other stages read the
        batches, :exc:`~fuel.exceptions.UnknownOrderError` is raised:
        :class:`MarkExamples` adds the number as a source.

    Raises
    ------
    ValueError
        If `data_stream` produces batches, or takes the share of a rank, or if
        its order is not known; if an argument is invalid; when the stream is
        sharded, if `batch_size` is too small for the ranks; when data are
        requested, if a step does not fit in `limit`.

    Notes
    -----
    Step s has the examples from ``s * batch_size`` to before ``(s + 1) *
    batch_size`` of the order, for any number of ranks and rounds. The
    costliest example is assigned first, and each one to the batch with the
    least cost so far. Batches of similar cost make a round. If one example
    costs more than the mean batch, the other ranks get more in that round, and
    less in the others. A batch has its examples in their order. No batch is
    empty. All this follows from the arguments, so ranks agree without
    communication, and a rank reads only its own examples; where the stream
    below can only be read in order, each rank reads all of them.

    What the last step lacks depends on `uneven` of
    :meth:`~fuel.streams.AbstractDataStream.shard`: ``'drop'`` leaves out a
    step that is not full, ``'pad'`` fills it with examples of the start of the
    epoch, and ``'uneven'`` makes fewer rounds, if there are too few examples
    for all, and gives some ranks no batch only if there are fewer examples
    than ranks.

    A state from the end of a step can be restored on another number of ranks,
    and with another `accumulate`; a state from within a step only on the same.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialExampleScheme
    >>> from fuel.streams import DataStream
    >>> lengths = numpy.array([9, 2, 2, 3, 2, 1, 1, 6])
    >>> stream = DataStream(
    ...     IndexableDataset([[n] * length for n, length
    ...                       in enumerate(lengths)]),
    ...     iteration_scheme=SequentialExampleScheme(8))
    >>> batches = BalancedBatches(stream, lengths, batch_size=5)
    >>> for rank in range(2):
    ...     ours = batches.shard(rank, 2, uneven='drop')
    ...     for texts, in ours:
    ...         print(list(map(len, texts)), ours.step_tokens)
    [9] 18
    [2, 2, 3, 2] 18
    """

    __fuel_plan__ = BalancedPlan
    epoch_attributes = (*Transformer.epoch_attributes, '_kept', '_start',
                        '_next', '_asked', '_step_count')
    # It may differ where a step begins.
    unsaved_arguments = ('accumulate',)
    produces_examples = False
    _step_count: StepCount | None = None
    _kept: KeptStep
    # The step and the round from which a restored epoch continues.
    _start: tuple[int, int] | None = None
    # Number of the next item, if the stream takes no share.
    _next = 0
    _asked: Asked | None = None

    def __init__(self, data_stream: StreamLike, lengths: Given = None, *,
                 batch_size: int, cost: Cost = 'linear', accumulate: int = 1,
                 limit: int | None = None,
                 too_long: Literal['error', 'alone'] = 'error',
                 trained: Given = None, **kwargs: Unpack[LabelOptions],
                 ) -> None:
        if not data_stream.produces_examples:
            raise ValueError(
                'BalancedBatches makes batches of examples, but its data '
                f'stream ({type(data_stream).__name__}) produces batches: put '
                'Unpack between them, or use a scheme of examples')
        if sharding_of(data_stream) is not None:
            raise ValueError(
                'BalancedBatches splits each step over the ranks, but the '
                'stream that it reads takes the share of one rank: shard '
                'BalancedBatches instead')
        kwargs.setdefault('axis_labels', labels_of_batches(data_stream))
        super().__init__(data_stream, False, iteration_scheme=None, **kwargs)
        self.lengths = lengths
        self.batch_size = positive('batch_size', batch_size)
        self.cost = cost
        self.accumulate = positive('accumulate', accumulate)
        self.limit = None if limit is None else positive('limit', limit)
        self.too_long = one_of('too_long', too_long, ('error', 'alone'))
        self.trained = trained
        self.splitting = Splitting(
            self.batch_size, self.accumulate, cost_function(cost),
            self.limit, too_long == 'alone')
        check_share(self.splitting, Shard(0, 1))
        datasets = datasets_below(data_stream)
        self._lengths = LengthTable('lengths', lengths, datasets)
        self._trained = None if trained is None else LengthTable(
            'trained', trained, datasets)
        refuse_unknown(epoch_order(data_stream))

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._kept, self._start, self._next = KeptStep(), None, 0
        self._asked = Asked() if asking.examples else None
        self._step_count = StepCount()
        super().start_epoch()

    def known_types(self) -> SourceTypes:
        """Return the types of batches."""
        return {source: known.in_batches(None) for source, known
                in types_of(self.data_stream).items()}

    def order_items(self, inputs: Sequence[EpochOrder], begun: StageEpoch,
                    ) -> EpochOrder:
        """Return the order of an epoch."""
        return self._order(inputs[0], begun.query)

    def order_over(self, child: Any) -> BalancedOrder:
        """Return the order of the epoch that reads an iterator."""
        query = OrderQuery()
        order = self._order(query.of_iterator(child), query)
        refuse_unknown(order)
        assert isinstance(order, BalancedOrder)
        return order

    def _order(self, below: EpochOrder, query: OrderQuery) -> EpochOrder:
        """Return the order of an epoch, given that of its input."""
        if below.own_kind == 'none':
            return below
        if below.num_items is None:
            return Unordered(_UNCOUNTED)
        numbers = [query.datasets[id(one)]
                   for one in datasets_below(self.data_stream)]
        lengths, trained = [
            {} if table is None else dict(zip(
                numbers, table.tables, strict=True))
            for table in (self._lengths, self._trained)]
        return BalancedOrder(
            below, self.splitting, self.sharding or Shard(0, 1), lengths,
            trained, query.counts_tokens)

    def _reader(self) -> StepReader:
        """Return the reader of an epoch of a stream that takes no share."""
        kept = self._kept
        if kept.reader is None:
            child = self.child_epoch_iterator
            kept.reader = StepReader(
                self.order_over(child), child, kept, False)
            kept.reader.is_asked = self._asked is not None
        return kept.reader

    def open_reader(self, epoch: Epoch) -> None:
        """Return None: the items are those of :meth:`get_data`."""
        if epoch.attributes.get('_start') is not None:
            epoch.attributes['_start'] = None
            move_epoch(epoch, epoch.attributes['_next'])

    def get_data(self, request: Request = None) -> tuple[Any, ...]:
        """Return the next batch.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        reader = self._reader()
        while self._next < reader.order.num_items:
            found = reader.read(self._next)
            self._next += 1
            # All examples of a batch may have failed.
            if found:
                tokens = reader.order.tokens(self._next - 1)
                assert self._step_count is not None
                self._step_count.set(tokens)
                if self._asked is not None:
                    self._asked.last = counted(found, tokens)
                return join_examples([example for example, _ in found],
                                     self.data_stream.sources)
        reader.finish()
        for _ in self.child_epoch_iterator:
            pass
        raise StopIteration

    def source_examples(self, requests: Sequence[Any]) -> Any:
        """Return the examples that the last batch was made of."""
        return self._asked and self._asked.last

    def num_items(self) -> int | None:
        """Return the number of items of an epoch, None if it is not known."""
        return BalancedPlan.count_shared(self, self.sharding or Shard(0, 1))

    def get_leftover(self) -> dict[str, int]:
        """Return the step, the round, and how many ranks and rounds a step
        has."""
        reader = self._kept.reader
        if reader is not None:
            return self.leftover_at(reader.order.locate(self._next))
        return self.leftover_at(
            RoundPlace(*divmod(self._next, self.accumulate), 0))

    def leftover_at(self, place: RoundPlace) -> dict[str, int]:
        """Return the left-overs at the place of an item."""
        shard = self.sharding
        return {'step': place.step, 'round': place.round,
                'ranks': 1 if shard is None else shard.num_shards,
                'accumulate': self.accumulate}

    def set_leftover(self, leftover: dict[str, int]) -> None:
        """Continue at a step, or at a round if as many ranks and rounds share
        the step."""
        step, number, ranks, rounds = [
            saved_count(leftover, name)
            for name in ('step', 'round', 'ranks', 'accumulate')]
        present = self.leftover_at(RoundPlace(0, 0, 0))
        if number and (ranks, rounds) != (
                present['ranks'], present['accumulate']):
            raise StateMismatchError(
                f'the state was saved after round {number} of {rounds} of '
                f'step {step}, which {ranks} ranks shared, and '
                f'{present["ranks"]} ranks with accumulate='
                f'{present["accumulate"]} cannot share the rest of it: only '
                'a state from the end of a step can be loaded with another '
                'number of ranks or rounds')
        self._start = step, number
        self._next = step * self.accumulate + number

    def get_child_position(self) -> Any:
        """Return the position of the input where the present step begins."""
        reader = self._kept.reader
        return None if reader is None else reader.resume_point(self._next)


def refuse_unknown(order: EpochOrder) -> None:
    """Raise ValueError if an order is not known."""
    if order.own_kind == 'none':
        raise ValueError(
            'BalancedBatches needs to know the examples of a step before '
            f'they are read, but their order is not known: {order.reason}')
