"""Orders: the rows from which each item of an epoch is made, without reading.

An order can be pickled, and it draws only from copies of an epoch's
generators. The order of a stage is made from the orders of its inputs.
`epoch_order`, in `fuel.sharding.asking`, returns the order of a pipeline.
"""
from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy

from fuel.schemes.shard import Shard, num_of_rank
from fuel.schemes.sharded_requests import as_splittable
from fuel.sharding.dealer import Dealer, Dealt

#: The way to find an item: by a formula; in a permutation that is drawn once;
#: by computing the items before it once; or not at all.
Kind: TypeAlias = Literal['computed', 'drawn', 'replayed', 'none']
KINDS: tuple[Kind, ...] = ('computed', 'drawn', 'replayed', 'none')

# The number of items of an epoch that never ends.
ENDLESS = 2 ** 62

#: The classes of requests for several rows.
SEVERAL = (list, tuple, range, slice, numpy.ndarray)


class DatasetRows(NamedTuple):
    """Rows of a data set.

    `dataset`: number of the data set in the pipeline, from 0 on; of items
        that were read, the data set itself.
    `rows`: the rows, as a request to the `get_data` of the data set.
    """

    dataset: Any
    rows: Any


class Joined(NamedTuple):
    """Parts of a batch whose rows are concatenated."""

    parts: tuple[Made, ...]


class Merged(NamedTuple):
    """Parts of an item whose sources are combined.

    `is_mixed`: whether there are two parts, and the examples of the second are
        mixed into those of the first.
    """

    parts: tuple[Made, ...]
    is_mixed: bool = False


class Packed(NamedTuple):
    """Single examples that are packed into one row."""

    parts: tuple[Made, ...]


#: All rows from which an item is made.
Made: TypeAlias = 'DatasetRows | Joined | Merged | Packed'


def example_ids(made: Made) -> list[tuple[int, Any]]:
    """Return the number of the data set and the index of the example, for each
    row of an item.

    If sources of several streams are merged, the first stream counts.
    """
    if isinstance(made, DatasetRows):
        rows = as_splittable(made.rows) if isinstance(
            made.rows, SEVERAL) else [made.rows]
        return [(made.dataset, row) for row in rows]
    if isinstance(made, Merged):
        return example_ids(made.parts[0])
    return [example for part in made.parts for example in example_ids(part)]


def num_rows(made: Made) -> int:
    """Return the number of rows of an item."""
    if isinstance(made, Packed):
        return 1
    if isinstance(made, DatasetRows):
        return len(as_splittable(made.rows)) if isinstance(
            made.rows, SEVERAL) else 1
    if isinstance(made, Merged):
        return num_rows(made.parts[0])
    return sum(map(num_rows, made.parts))


def join_parts(parts: Sequence[Made]) -> Made:
    """Return batches, or rows of batches, concatenated."""
    return parts[0] if len(parts) == 1 else Joined(tuple(parts))


def batch_of(examples: Sequence[Made]) -> Made:
    """Return single examples as a batch."""
    merged = [one for one in examples if isinstance(one, Merged)]
    if len(merged) == len(examples) and len({
            (len(one.parts), one.is_mixed) for one in merged}) == 1:
        return merged[0]._replace(parts=tuple([
            batch_of(column) for column in zip(
                *[one.parts for one in merged], strict=True)]))
    found: list[Made] = []
    for dataset, group in itertools.groupby(examples, _dataset_of):
        alike = list(group)
        if dataset is None:
            found += map(_as_batch, alike)
            continue
        rows = [one for one in alike if isinstance(one, DatasetRows)]
        found.append(rows[0]._replace(rows=[one.rows for one in rows]))
    return join_parts(found)


def _as_batch(made: Made) -> Made:
    """Return a single merged example as a batch; other items unchanged."""
    return batch_of([made]) if isinstance(made, Merged) else made


def _dataset_of(made: Made) -> int | None:
    """Return the identity of a single row's data set; None for several rows or
    parts."""
    return id(made.dataset) if isinstance(made, DatasetRows) and (
        not isinstance(made.rows, SEVERAL)) else None


def cut_rows(made: Made, rows: slice) -> Made:
    """Return consecutive rows of a batch."""
    if isinstance(made, DatasetRows):
        return made._replace(rows=as_splittable(made.rows)[rows])
    if isinstance(made, Merged):
        return made._replace(
            parts=tuple([cut_rows(part, rows) for part in made.parts]))
    if isinstance(made, Packed):
        return made if len(range(1)[rows]) else Joined(())
    start, stop, _ = rows.indices(num_rows(made))
    found, passed = [], 0
    for part in made.parts:
        count = num_rows(part)
        first, end = max(start - passed, 0), min(stop - passed, count)
        if first < end:
            found.append(cut_rows(part, slice(first, end)))
        passed += count
    return join_parts(found)


def single_row(made: Made, row: int) -> Made:
    """Return a row of a batch as a single example."""
    if isinstance(made, DatasetRows):
        return made._replace(rows=as_splittable(made.rows)[row])
    if isinstance(made, Merged):
        return made._replace(parts=tuple([
            single_row(part, row) for part in made.parts]))
    if isinstance(made, Packed):
        return made
    for part in made.parts:
        count = num_rows(part)
        if row < count:
            return single_row(part, row)
        row -= count
    raise IndexError('a batch has fewer rows')


class UnknownOrderError(ValueError):
    """Error that an order, or a part of it, is not known before reading."""


class ItemPart(NamedTuple):
    """Items of an input, or rows of one of them, from which an item is made.

    `input`: number of the input.
    `items`: numbers of the input's items.
    `rows`: rows of each of them; None for all rows.
    """

    input: int
    items: Sequence[int]
    rows: slice | None = None


class EpochOrder:
    """Order of the items of an epoch, for all ranks.

    Subclasses implement :meth:`parts` or :meth:`make`.

    `own_kind`: how an item is found from the items of the inputs.
    `inputs`: the orders of the streams that the stage reads.
    `num_items`: number of items, None if it is not known.
    `batch_size`: number of rows of each item but the last; None if items are
        single examples, or if the number is not known.
    `is_single`: whether items are single examples.
    `dataset`: number of the data set, for the order of a stream of a data
        set; None for other orders.
    `reads_all`: whether the inputs are read to their ends.
    `draws`: the draws of the pipeline; None if this order draws nothing.
    `place`: place of this order's own draw in `draws`; None if there is none.
    `takes_share`: whether ranks share the items of this order, rather than
        the items of an input.
    """

    own_kind: Any = 'computed'
    reason = ''
    inputs: tuple[EpochOrder, ...] = ()
    num_items: Any = None
    batch_size: Any = None
    is_single = False
    dataset: int | None = None
    place: int | None = None
    draws: Any = None
    reads_all: Any = True
    # The least number of items, if the number of items is not known.
    _counted = 0
    takes_share = False

    @property
    def kind(self) -> Kind:
        """The way to find an item, over all stages."""
        return max([self.own_kind, *[part.kind for part in self.inputs]],
                   key=KINDS.index)

    def __len__(self) -> int:
        if self.num_items is None:
            raise UnknownOrderError(
                'how many items an epoch has is not known before it is over')
        return min(int(self.num_items), ENDLESS)

    def __getitem__(self, item: int) -> Made:
        """Return the rows of an item."""
        count = self.num_items
        if item < 0:
            item += len(self)
        if item < 0 or (count is not None and item >= count):
            raise IndexError(
                f'the epoch has {count} items, there is no item {item}')
        return self.make(item)

    def __iter__(self) -> Iterator[Made]:
        for item in itertools.count():
            try:
                made = self[item]
            except IndexError:
                return
            yield made

    def parts(self, item: int) -> Iterable[ItemPart]:
        """Return the items of the inputs from which an item is made."""
        raise NotImplementedError

    def before(self, item: int) -> tuple[Any, list[int]]:
        """Return the position of the stage before an item: the left-overs,
        and for each input the number of the item that is read next."""
        raise NotImplementedError

    def make(self, item: int) -> Made:
        """Return the rows of an item, which must exist."""
        return self.made_of(self.parts(item))

    def made_of(self, parts: Iterable[ItemPart]) -> Made:
        """Return an item that joins parts of the inputs."""
        found = [self.inputs[part.input].make(item) if part.rows is None
                 else cut_rows(self.inputs[part.input].make(item), part.rows)
                 for part in parts for item in part.items]
        return (batch_of(found) if self.inputs[0].is_single
                and not self.is_single else join_parts(found))

    def size(self, item: int) -> int:
        """Return the number of rows of an item."""
        return num_rows(self.make(item))

    def full_size(self, item: int) -> int | None:
        """Return the number of rows of a full item, if known."""
        size: int | None = self.batch_size
        return size

    def count_to(self, stop: int) -> int:
        """Return the number of items; counting may end at `stop`."""
        if self.num_items is not None:
            return len(self)
        while self._counted < stop:
            try:
                self.make(self._counted)
            except IndexError:
                break
            self._counted += 1
        return self._counted

    def padded(self, item: int, count: int) -> Made:
        """Return a batch padded with `count` rows from the start of the
        epoch."""
        found = [self.make(item)]
        for number in itertools.cycle(range(len(self))):
            if count <= 0:
                break
            more = cut_rows(self.make(number), slice(count))
            count -= num_rows(more)
            found.append(more)
        return join_parts(found)

    def with_inputs(self, inputs: Sequence[EpochOrder]) -> EpochOrder:
        """Return the order of the same stage over other inputs."""
        ours = copy.copy(self)
        ours.inputs = tuple(inputs)
        return ours

    def share(self, shard: Shard) -> EpochOrder:
        """Return the order of a rank's share."""
        if self.takes_share or not self.inputs:
            return RankOrder(self, shard)
        if len(self.inputs) > 1:
            raise UnknownOrderError(
                'ranks cannot share the items of several streams that can '
                'only be read in order')
        return self.with_inputs([self.inputs[0].share(shard)])

    def draw_places(self) -> set[int]:
        """Return the places in `Draws` at which this order and its inputs
        draw."""
        found = set() if self.place is None else {self.place}
        return found.union(*[part.draw_places() for part in self.inputs])

    @property
    def unsized(self) -> str:
        """The reason why the number of rows of an item is unknown, '' if it is
        known."""
        return next(filter(None, [
            part.unsized for part in self.inputs]), '')

    def epoch(self, count: int) -> EpochOrder:
        """Return the order of the epoch `count` epochs later, or earlier if
        negative."""
        draws, order = self.find_draws(), self
        if draws is None or not count:
            return self
        if count < 0:
            return self.following(draws.earlier(-count))
        for _ in range(count):
            order.check_end()
            draws = draws.following()
            order = order.following(draws)
        return order

    def check_end(self) -> None:
        """Raise UnknownOrderError if an input that continues in the next epoch
        is not read to its end."""
        for part in self.inputs:
            if not self.reads_all and part.goes_on:
                raise UnknownOrderError(
                    'a mixture goes on in the next epoch, and where this one '
                    'leaves it is not known, since it is not read to its end')
            part.check_end()

    @property
    def goes_on(self) -> bool:
        """True if an input continues in the next epoch."""
        return any(part.goes_on for part in self.inputs)

    def find_draws(self) -> Any:
        """Return the draws of the pipeline, None if it draws nothing."""
        return self.draws or next(filter(None, [
            part.find_draws() for part in self.inputs]), None)

    def following(self, draws: Any) -> EpochOrder:
        """Return the order of the next epoch.

        `draws`: the draws of the next epoch.
        """
        ours = self.with_inputs([
            part.following(draws) for part in self.inputs])
        if self.draws is not None:
            ours.draws = draws
        return ours


class Unordered(EpochOrder):
    """An order that is not known.

    `reason`: the reason, which names the stage.
    """

    own_kind = 'none'

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __len__(self) -> int:
        raise UnknownOrderError(self.reason)

    def make(self, item: int) -> Made:
        """Raise UnknownOrderError with the reason."""
        raise UnknownOrderError(self.reason)

    def share(self, shard: Shard) -> EpochOrder:
        """Return the same order."""
        return self

    def following(self, draws: Any) -> EpochOrder:
        """Return the same order."""
        return self


class GivenOrder(EpochOrder):
    """Order of a data set that is read in order, example by example."""

    is_single = True
    dataset: int

    def __init__(self, dataset: int, num_items: int | None) -> None:
        self.dataset = dataset
        self.num_items = num_items

    def make(self, item: int) -> Made:
        """Return the row of the data set with the number of the item."""
        return DatasetRows(self.dataset, item)


class RemadeOrder(EpochOrder):
    """Order of batches in which a stage may add, drop or move rows.

    `name`: name of the stage.
    """

    def __init__(self, below: EpochOrder, name: str) -> None:
        self.inputs = below,
        self.name = name

    @property
    def num_items(self) -> Any:
        """The number of items."""
        return self.inputs[0].num_items

    def make(self, item: int) -> Made:
        """Return all rows from which a batch is made."""
        return self.inputs[0].make(item)

    @property
    def unsized(self) -> str:
        """The reason why the number of rows of an item is unknown."""
        return (f'how many rows a batch of {self.name} has is not known, '
                'since the stage does not say that it keeps rows '
                '(keeps_rows = True)')

    def size(self, item: int) -> int:
        """Raise UnknownOrderError: the number of rows is not known."""
        raise UnknownOrderError(self.unsized)


class _Whole:
    """Adapter of an order of all ranks for :class:`Dealer`."""

    def __init__(self, order: EpochOrder, shard: Shard) -> None:
        self.order = order
        self.shard = shard

    def count(self, stop: int, wanted: int) -> float:
        """Return the number of items."""
        return self.order.count_to(stop)

    def sizes(self, item: int) -> tuple[int, int]:
        """Return the number of rows of an item, and of a full item."""
        return self.order.size(item), (
            self.order.full_size(item) or self.shard.num_shards)


class RankOrder(EpochOrder):
    """Order of the items that a rank gets."""

    def __init__(self, whole: EpochOrder, shard: Shard) -> None:
        if shard.splits:
            shard.check_split(
                'the order has', whole.is_single, whole.batch_size)
        self.inputs = whole,
        self.is_single = whole.is_single
        self.shard = shard
        # Numbers of the items with which the known steps begin.
        self._starts = [0]

    @property
    def own_kind(self) -> Kind:
        """The way to find an item: by a formula, if all steps take the same
        number of items."""
        return 'replayed' if self._is_uneven else 'computed'

    @property
    def _is_uneven(self) -> bool:
        """True if the number of batches may differ between steps."""
        return self.shard.splits and self.inputs[0].batch_size is None

    @property
    def num_items(self) -> Any:
        """The number of items that the rank gets."""
        shard, count = self.shard, self.inputs[0].num_items
        if count is None or not shard.splits:
            return None if count is None else num_of_rank(count, shard)
        if not self._is_uneven:
            return count - bool(count and self._deal(count - 1) is None)
        for item in itertools.count():
            if self.dealt(item) is None:
                return item
        return None

    def dealt(self, item: int) -> Dealt | None:
        """Return the part of the whole order that is the rank's item; None
        after the last item."""
        if not self._is_uneven:
            return self._deal(item * self.shard.step)
        while len(self._starts) <= item:
            if self._deal(self._starts[-1]) is None:
                return None
        return self._deal(self._starts[item])

    def _deal(self, first: int) -> Dealt | None:
        """Deal the items of a step to the rank."""
        dealer = Dealer(_Whole(self.inputs[0], self.shard), self.shard)
        try:
            return dealer.take(first, lambda dealt: dealt)
        except StopIteration:
            return None
        finally:
            if first == self._starts[-1] < dealer.next:
                self._starts.append(dealer.next)

    def make(self, item: int) -> Made:
        """Return the rows of the rank's item."""
        dealt = self.dealt(item)
        if dealt is None:
            raise IndexError(f'rank {self.shard.rank} has no item {item}')
        whole, rows = self.inputs[0], dealt.rows
        if rows is None:
            return whole.make(dealt.item)
        made = (whole.padded(dealt.item, rows.total - rows.real)
                if rows.total > rows.real else whole.make(dealt.item))
        assert isinstance(rows.rows, slice)
        return cut_rows(made, rows.rows)
