"""Orders: the rows from which each item of an epoch is made, without reading.

An order can be pickled, and it draws only from copies of an epoch's
generators. The order of a stage is made from the orders of its inputs.
`epoch_order`, in `fuel.sharding.asking`, returns the order of a pipeline.
"""
from __future__ import annotations

import copy
import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from fuel.exceptions import UnknownOrderError
from fuel.schemes.shard import Shard, num_of_rank
from fuel.sharding.dealer import Dealer, Dealt
from fuel.sharding.far_epochs import epochs_to_draw
from fuel.sharding.made import (
    Made, batch_of, cut_rows, join_parts, num_rows)
from fuel.sharding.places import ItemPlace, ItemPlaces, ScannedPlaces

#: The way to find an item: by a formula; in a permutation that is drawn once;
#: by computing the items before it once; or not at all.
Kind: TypeAlias = Literal['computed', 'drawn', 'replayed', 'none']
KINDS: tuple[Kind, ...] = ('computed', 'drawn', 'replayed', 'none')

# The number of items of an epoch that never ends.
ENDLESS = 2 ** 62


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
    `name`: name of the stage, if it may change the rows of a batch.
    """

    own_kind: Any = 'computed'
    reason = ''
    name = ''
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
    # Rounds of a step, if the number of ranks decides the numbers of items.
    rounds_of_step: int | None = None
    # True if items are made of rows of several items.
    joins_rows = False
    # Places that only a scan finds, from the first question on.
    _scanned: ScannedPlaces | None = None
    # The later epoch that was asked for last: how much later, and its order.
    _later: tuple[int, EpochOrder] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Another order, of other inputs, may begin as a copy.
        return {name: value for name, value in vars(self).items()
                if name not in ('_counted', '_scanned', '_later')}

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

    def make_all(self, items: Sequence[int]) -> list[Made]:
        """Return the rows of several items, which must exist."""
        return list(map(self.make, items))

    def made_of(self, parts: Iterable[ItemPart]) -> Made:
        """Return an item that joins parts of the inputs."""
        found: list[Made] = []
        for part in parts:
            made = self.inputs[part.input].make_all(part.items)
            found += made if part.rows is None else [
                cut_rows(one, part.rows) for one in made]
        return self.joined(found)

    def joined(self, found: Sequence[Made]) -> Made:
        """Return an item that joins items of the inputs."""
        return (batch_of(found) if self.inputs[0].is_single
                and not self.is_single else join_parts(found))

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Yield the places at which an example comes, in order.

        An example that several merged streams have comes with each of them.
        In an order without an end, the search goes on without one: ask with
        `stop`, or take what is needed.

        `dataset`: number of the data set in the pipeline.
        `row`: the index of the example in the data set.
        `stop`: number of an item; places from there on may be left out.
        """
        self.check_rows()
        if stop >= ENDLESS and not self.ends:
            raise UnknownOrderError(
                'where an example comes is only known from all items of the '
                'epoch, and this epoch has no known end')
        if self._scanned is None:
            self._scanned = ScannedPlaces()
        return self._scanned.find(self._scan, dataset, row, stop)

    def _scan(self, start: int) -> Iterator[Made]:
        """Yield the items from a number on."""
        count = self.num_items
        for item in itertools.count(start) if count is None else (
                range(start, int(min(count, ENDLESS)))):
            try:
                made = self.make(item)
            except IndexError:
                return
            yield made

    def check_rows(self) -> None:
        """Raise UnknownOrderError if a stage may change the rows of an
        item."""
        for part in self.inputs:
            part.check_rows()

    def with_kept_rows(self) -> EpochOrder:
        """Return the order without the stages that may change rows."""
        return self.with_inputs([
            part.with_kept_rows() for part in self.inputs])

    def has_dataset(self, dataset: int) -> bool:
        """Return whether rows come from a data set."""
        return dataset == self.dataset or any(
            part.has_dataset(dataset) for part in self.inputs)

    @property
    def ends(self) -> bool:
        """True if the items can be counted to an end."""
        count = self.num_items
        return all(part.ends for part in self.inputs) if count is None else (
            bool(count < ENDLESS))

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
        for number in itertools.cycle(range(
                self.count_to(ENDLESS) if self.ends else len(self))):
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

    def share(self, shard: Shard, begin: int = 0) -> EpochOrder:
        """Return the order of a rank's share.

        `begin`: see :class:`RankOrder`.
        """
        if self.takes_share or not self.inputs:
            return RankOrder(self, shard, begin)
        if len(self.inputs) > 1:
            raise UnknownOrderError(
                'ranks cannot share the items of several streams that can '
                'only be read in order')
        return self.with_inputs([self.inputs[0].share(shard, begin)])

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

    def unsized_by(self) -> str:
        """Return the name of the stage for which the number of rows of an item
        is unknown."""
        return next((part.unsized_by() for part in self.inputs
                     if part.unsized), self.name)

    def epoch(self, count: int, number: int | None = None) -> EpochOrder:
        """Return the order of the epoch `count` epochs later, or earlier if
        negative.

        `number`: number of that epoch; None if it is not known.
        """
        draws = self.find_draws()
        if draws is None or not count:
            return self
        if count < 0 and self.goes_on:
            raise UnknownOrderError(
                'of an epoch before, it is not known where it began: a '
                'mixture goes on in the next epoch where one leaves it: load '
                'a state that was saved in that epoch')
        if count < 0:
            return self.following(draws.earlier(-count, number))
        later = None if self.goes_on else draws.later(count)
        if later is not None:
            return self.following(later)
        done, order = 0, self
        if self._later is not None and self._later[0] <= count:
            done, order = self._later
        for _ in epochs_to_draw(count - done):
            order.check_end()
            order = order.following(order.find_draws().following())
        self._later = count, order
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
    def has_fixed_length(self) -> bool:
        """Whether all epochs have the same number of items (bool)."""
        return bool(self.inputs) and all(
            part.has_fixed_length and (
                part.has_fixed_sizes or not self.joins_rows)
            for part in self.inputs)

    @property
    def has_fixed_sizes(self) -> bool:
        """True if the item of each number has as many rows in all epochs."""
        return self.is_single or (bool(self.inputs) and all(
            part.has_fixed_sizes for part in self.inputs))

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

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Raise UnknownOrderError with the reason."""
        raise UnknownOrderError(self.reason)

    def share(self, shard: Shard, begin: int = 0) -> EpochOrder:
        """Return the same order."""
        return self

    def following(self, draws: Any) -> EpochOrder:
        """Return the same order."""
        return self


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

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Raise UnknownOrderError if rows come from the data set."""
        if self.has_dataset(dataset):
            self.check_rows()
        return iter(())

    def check_rows(self) -> None:
        """Raise UnknownOrderError: the rows are not known."""
        raise UnknownOrderError(self.unsized)

    def with_kept_rows(self) -> EpochOrder:
        """Return the order of the input."""
        return self.inputs[0].with_kept_rows()


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
    """Order of the items that a rank gets.

    `begin`: number of an item with which a step begins.
    """

    def __init__(self, whole: EpochOrder, shard: Shard, begin: int = 0,
                 ) -> None:
        if shard.splits:
            shard.check_split(
                'the order has', whole.is_single, whole.batch_size)
        self.inputs = whole,
        self.is_single = whole.is_single
        self.shard = shard
        self._begin = begin
        # The number of items that the first step lacks.
        self._lacking = -begin % shard.step
        # Numbers of the items with which the known steps begin, and the
        # number of all steps in which the rank gets an item.
        self._starts = [0]
        self._num_steps: int | None = None
        self._padded: tuple[int, ItemPlaces] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), '_starts': [0],
                '_num_steps': None, '_padded': None}

    @property
    def own_kind(self) -> Kind:
        """The way to find an item: by a formula, if all steps take the same
        number of items."""
        return 'replayed' if self.is_uneven else 'computed'

    @property
    def is_uneven(self) -> bool:
        """True if the number of batches may differ between steps."""
        return self.shard.splits and self.inputs[0].batch_size is None

    @property
    def num_items(self) -> Any:
        """The number of items that the rank gets."""
        shard, count = self.shard, self.inputs[0].num_items
        if count is None or count >= ENDLESS:
            return count
        if not shard.splits:
            return num_of_rank(count + self._lacking, shard)
        if not self.is_uneven:
            return count - bool(count and self.deal(count - 1) is None)
        if self._num_steps is None:
            self._num_steps = next(
                item for item in itertools.count() if self.dealt(item) is None)
        return self._num_steps

    def dealt(self, item: int) -> Dealt | None:
        """Return the part of the whole order that is the rank's item; None
        after the last item."""
        if not self.is_uneven:
            return self.deal(self.first_item(item))
        while len(self._starts) <= item:
            if self.deal(self._starts[-1]) is None:
                return None
        return self.deal(self._starts[item])

    def first_item(self, step: int) -> int:
        """Return the number of the first item of a step in the order of all
        ranks; that after the last item, of a step that does not come."""
        if not self.is_uneven:
            return max(0, int(step * self.shard.step) - self._lacking)
        known = 0
        while known < len(self._starts) <= step:
            known = len(self._starts)
            self.deal(self._starts[-1])
        return self._starts[min(step, len(self._starts) - 1)]

    def step_of(self, item: int) -> int:
        """Return the number of the step that takes an item of the order of
        all ranks."""
        if not self.is_uneven:
            return (item + self._lacking) // self.shard.step
        while self._starts[-1] <= item and self.deal(self._starts[-1]):
            pass
        return bisect_right(self._starts, item) - 1

    def deal(self, first: int) -> Dealt | None:
        """Deal the items of a step to the rank."""
        dealer = Dealer(_Whole(self.inputs[0], self.shard), self.shard)
        try:
            return dealer.take(first, lambda dealt: dealt)
        except StopIteration:
            return None
        finally:
            if first == self._starts[-1] < dealer.next:
                self._starts.append(
                    min(dealer.next, self._begin) if first < self._begin
                    else dealer.next)

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

    @property
    def ends(self) -> bool:
        """True if the items can be counted to an end."""
        return self.inputs[0].ends

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Yield the places at which the rank gets an example, in order."""
        if self.is_uneven:
            yield from super().places_of(dataset, row, stop)
            return
        if self._padded is None:
            self._padded = self._find_padded()
        padded, step = self._padded[0], self.shard.step
        for place in self.inputs[0].places_of(dataset, row, stop * step):
            item = place.item // step
            dealt = None if item == padded or (
                place.item % step != self.shard.offset) else self.dealt(item)
            if dealt is None:
                continue
            if dealt.rows is None:
                yield ItemPlace(item, place.offset)
            elif place.offset in dealt.rows.places:
                yield ItemPlace(item, dealt.rows.places.index(place.offset))
        yield from self._padded[1].find(dataset, row)

    def _find_padded(self) -> tuple[int, ItemPlaces]:
        """Return the number of the item that repeats examples, -1 if none
        does; and the places in it."""
        whole = self.inputs[0]
        count = whole.count_to(ENDLESS) if (
            self.shard.uneven == 'pad' and whole.ends) else 0
        last = (count - 1) // self.shard.step
        dealt = self.dealt(last) if count else None
        if dealt is None or not (dealt.repeats or (
                dealt.rows is not None
                and dealt.rows.total > dealt.rows.real)):
            return -1, ItemPlaces((), 0)
        return last, ItemPlaces((self.make(last),), last)
