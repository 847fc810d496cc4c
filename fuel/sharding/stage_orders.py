"""Orders of stages whose items do not depend on the data, and plans that make
the items in these orders."""
from __future__ import annotations

import functools
import heapq
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile
from typing import Any, Self

from fuel.epochs.epoch import Epoch
from fuel.epochs.examples import joined
from fuel.epochs.pipeline import source_examples
from fuel.epochs.stage import children_of, stage_of
from fuel.epochs.state import position_of
from fuel.iterator import DataIterator
from fuel.schemes.requests import BatchSizeRequests
from fuel.sharding.asking import OrderQuery, StageEpoch
from fuel.sharding.made import Made, Merged, single_row
from fuel.sharding.given import GivenOrder
from fuel.sharding.order import (
    ENDLESS, EpochOrder, ItemPart, Kind, Unordered)
from fuel.sharding.places import ItemPlace, places_in
from fuel.sharding.planned import (
    ItemPlan, items_of, read_at, read_rows_at, seek, source_of)
from fuel.typing import Batch, StreamLike

_SIZES = 'batches are requested of sizes that a ConstantScheme does not give'


def cut_order(below: EpochOrder, requests: Any, strictness: int = 0,
              ) -> EpochOrder:
    """Return the order of batches that are made from single examples.

    `requests`: the requests for numbers of examples.
    `strictness`: 1 if a batch that is not full is left out.
    """
    return (CutOrder(below, requests, strictness)
            if isinstance(requests, BatchSizeRequests)
            else Unordered(_SIZES))


def row_order(below: EpochOrder, requests: Any) -> EpochOrder:
    """Return the order of batches that are cut from batches of another
    size."""
    if below.unsized or not isinstance(requests, BatchSizeRequests):
        return Unordered(below.unsized or _SIZES)
    return RowOrder(below, requests)


def example_order(below: EpochOrder) -> EpochOrder:
    """Return the order of single examples that are taken from batches."""
    return Unordered(below.unsized) if below.unsized else ExampleOrder(below)


class CutOrder(EpochOrder):
    """Order of batches of a size, made from single examples.

    `requests`: the requests for numbers of examples, one for each batch.
    `strictness`: 1 if a batch that is not full is left out.
    """

    def __init__(self, below: EpochOrder, requests: BatchSizeRequests,
                 strictness: int = 0) -> None:
        self.inputs = below,
        self.full = self.batch_size = int(requests.batch_size)
        self.num_requests = requests.num_requests
        self.last_size = requests.last_size
        self.strictness = strictness

    def with_inputs(self, inputs: Sequence[EpochOrder]) -> EpochOrder:
        """Return the same order over other inputs."""
        ours = super().with_inputs(inputs)
        for name in ('total', 'num_items'):
            vars(ours).pop(name, None)
        return ours

    @functools.cached_property
    def total(self) -> int | None:
        """The number of examples."""
        total: int | None = self.inputs[0].num_items
        return total

    @functools.cached_property
    def num_items(self) -> int | None:
        """The number of items."""
        most = self._most
        return None if most is None else int(min(most, self.num_requests))

    @property
    def _most(self) -> int | None:
        """The number of items for which there are examples."""
        if self.total is None or self.total >= ENDLESS:
            return self.total
        if self.strictness != 1:
            return -(-self.total // self.full)
        most, rest = divmod(self.total, self.full)
        # The last request may be for fewer examples.
        return most + (most + 1 == self.num_requests
                       and rest >= self.last_size)

    @property
    def reads_all(self) -> Any:
        """True if the stage finds that its stream has ended."""
        return self._most is not None and self.num_requests > self._most

    def places(self, item: int) -> range:
        """Return the numbers of an item's examples."""
        start = item * self.full
        stop = start + (self.last_size if item == self.num_requests - 1
                        else self.full)
        return range(start, min(stop, self.total_to(stop)))

    def total_to(self, stop: int) -> int:
        """Return the number of examples; counting may end at `stop`."""
        return (self.inputs[0].count_to(stop) if self.total is None
                else self.total)

    def make(self, item: int) -> Made:
        """Return the rows of a batch."""
        if not self._exists(item):
            raise IndexError(f'the epoch has no item {item}')
        return self.made_of(self.parts(item))

    def _exists(self, item: int) -> bool:
        """Return whether there is an item with a number."""
        count = len(self.places(item))
        return 0 < count and item < self.num_requests and not (
            self.strictness == 1 and count < (
                self.last_size if item == self.num_requests - 1
                else self.full))

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Yield the places at which an example comes, in order."""
        below, last = self.inputs[0], -1
        stop = self._stop_below(int(min(stop, self.num_requests)) * self.full)
        for place in below.places_of(dataset, row, stop):
            item, offset = divmod(self._number(place), self.full)
            if item >= self.num_requests:
                return
            if item == last or offset >= len(self.places(item)) or (
                    not self._exists(item)):
                continue
            if below.unsized:
                # An example may be made of several rows.
                last = item
                yield from places_in(self.make(item), item, dataset, row)
            else:
                yield ItemPlace(item, offset)

    def _number(self, place: ItemPlace) -> int:
        """Return the number of an example, given its place in the input."""
        return place.item

    def _stop_below(self, stop: int) -> int:
        """Return the number of the first item of the input behind a number of
        examples."""
        return stop

    @property
    def ends(self) -> bool:
        """True if the items can be counted to an end."""
        return self.num_requests < ENDLESS or super().ends

    def parts(self, item: int) -> Iterable[ItemPart]:
        """Return the examples of an item."""
        return self.parts_at(self.places(item))

    def parts_at(self, places: range) -> Iterable[ItemPart]:
        """Return consecutive examples."""
        return ItemPart(0, places),

    def parts_of_rows(self, item: int, rows: slice, padding: int
                      ) -> Iterator[ItemPart]:
        """Yield the parts of some rows of an item.

        The item is padded with `padding` rows from the start of the epoch.
        """
        assert self.total is not None
        total = int(min(self.total, (
            self.num_requests - 1) * self.full + self.last_size))
        ranges = [self.places(item)]
        while padding > 0:
            ranges.append(range(min(padding, total)))
            padding -= total
        passed = 0
        for places in ranges:
            found = places[max(0, rows.start - passed):
                           max(0, rows.stop - passed)]
            passed += len(places)
            if found:
                yield from self.parts_at(found)

    def size(self, item: int) -> int:
        """Return the number of examples of an item."""
        return len(self.places(item))

    def before(self, item: int) -> tuple[Any, list[int]]:
        """Return the stage's position before an item."""
        row = item * self.full
        return None, [row if self.total is None else min(row, self.total)]


class RowOrder(CutOrder):
    """Order of batches that are cut from batches of another size."""

    joins_rows = True

    @functools.cached_property
    def _ends(self) -> list[int]:
        """For each input batch whose size is known, the number of the row
        after its last row."""
        return []

    @property
    def _size(self) -> int | None:
        """The size of all batches but the last, None if it differs."""
        below = self.inputs[0]
        # Without the number of batches, the last batch is not known.
        size: int | None = None if below.num_items is None else (
            below.batch_size)
        return size

    def total_to(self, stop: int) -> int:
        """Return the number of rows; counting may end at `stop`."""
        ends = self._ends
        if self._size is None:
            below = self.inputs[0]
            while (ends[-1] if ends else 0) < stop and (
                    below.count_to(len(ends) + 1) > len(ends)):
                ends.append(below.size(len(ends)) + (ends[-1] if ends else 0))
            return ends[-1] if ends else 0
        return super().total_to(stop)

    @property
    def own_kind(self) -> Kind:
        """The way to find an item: by the sizes of all batches before it, or
        by a formula if the sizes are equal."""
        return 'replayed' if self._size is None else 'computed'

    def with_inputs(self, inputs: Sequence[EpochOrder]) -> EpochOrder:
        """Return the same order over other inputs."""
        ours = super().with_inputs(inputs)
        vars(ours).pop('_ends', None)
        return ours

    @functools.cached_property
    def total(self) -> int | None:
        """The number of rows."""
        below = self.inputs[0]
        count: int | None = below.num_items
        if not count:
            return count
        if count >= ENDLESS:
            return ENDLESS
        if self._size is None:
            return sum(map(below.size, range(count)))
        return int((count - 1) * self._size + below.size(count - 1))

    def _find(self, row: int) -> tuple[int, int, int]:
        """Return the number of the batch that has a row, and the numbers of
        the rows at which the batch begins and ends."""
        if self._size is not None:
            batch = row // self._size
            return batch, batch * self._size, (batch + 1) * self._size
        self.total_to(row + 1)
        batch = bisect_right(self._ends, row)
        return (batch, self._ends[batch - 1] if batch else 0,
                self._ends[batch] if batch < len(self._ends) else row)

    def _number(self, place: ItemPlace) -> int:
        """Return the number of a row, given its place in the input."""
        if self._size is not None:
            return place.item * self._size + place.offset
        ends = self._ends
        while len(ends) < place.item:
            self.total_to(ends[-1] + 1 if ends else 1)
        return (ends[place.item - 1] if place.item else 0) + place.offset

    def _stop_below(self, stop: int) -> int:
        """Return the number of the first batch behind a number of rows."""
        return ENDLESS if stop >= ENDLESS else self._find(stop)[0] + 1

    def parts_at(self, places: range) -> Iterator[ItemPart]:
        """Yield the batches that contain consecutive rows, and which rows of
        each batch these are."""
        row = places.start
        while row < places.stop:
            batch, start, end = self._find(row)
            stop = min(end, places.stop)
            yield ItemPart(0, (batch,), slice(row - start, stop - start))
            row = stop

    def before(self, item: int) -> tuple[Any, list[int]]:
        """Return the stage's position before an item."""
        _, (row,) = super().before(item)
        batch, start, _ = self._find(row)
        used = row - start
        if row == self.total and used:
            batch, used = batch + 1, 0
        return {'used': used} if used else None, [batch]


class ExampleOrder(RowOrder):
    """Order of single examples that are taken from batches."""

    is_single = True

    def __init__(self, below: EpochOrder) -> None:
        super().__init__(below, BatchSizeRequests(1))
        self.batch_size = None

    def make(self, item: int) -> Made:
        """Return a single row."""
        return single_row(super().make(item), 0)


class MergedOrder(EpochOrder):
    """Order of items that are each made of one item of every input."""

    reads_all = False

    def __init__(self, inputs: Sequence[EpochOrder]) -> None:
        self.inputs = tuple(inputs)
        self.is_single = inputs[0].is_single

    @property
    def num_items(self) -> Any:
        """The number of items."""
        counts = [part.num_items for part in self.inputs]
        return None if None in counts else min(counts)

    def count_to(self, stop: int) -> int:
        """Return the number of items; counting may end at `stop`."""
        return min([part.count_to(stop) for part in self.inputs])

    def make(self, item: int) -> Made:
        """Return the rows of an item."""
        if self.num_items is None and self.count_to(item + 1) <= item:
            raise IndexError(f'the epoch has no item {item}')
        return super().make(item)

    @property
    def batch_size(self) -> Any:
        """The size of all items but the last, None if it differs."""
        # Another of the inputs may end first.
        first, *others = [(part.batch_size, part.num_items)
                          for part in self.inputs]
        return first[0] if all(other == first for other in others) else None

    def parts(self, item: int) -> Iterable[ItemPart]:
        """Return the items that are merged."""
        return [ItemPart(place, (item,)) for place in range(len(self.inputs))]

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Yield the places at which an example comes in any of the inputs, in
        order."""
        stop = min([stop, *[part.count_to(ENDLESS) for part in self.inputs
                            if part.ends]])
        for place, _ in groupby(heapq.merge(*[
                part.places_of(dataset, row, stop) for part in self.inputs])):
            if place.item >= stop:
                return
            yield place

    @property
    def ends(self) -> bool:
        """True if the items can be counted to an end."""
        return any(part.ends for part in self.inputs)

    def made_of(self, parts: Iterable[ItemPart]) -> Made:
        """Return an item that merges parts of all inputs."""
        return Merged(tuple([super(MergedOrder, self).made_of((part,))
                             for part in parts]))

    def before(self, item: int) -> tuple[Any, list[int]]:
        """Return the stage's position before an item."""
        return None, [item] * len(self.inputs)


class TakenOrder(EpochOrder):
    """Order of the first items of an input.

    `most`: the largest number of items that are taken.
    """

    def __init__(self, below: EpochOrder, most: int) -> None:
        self.inputs = below,
        self.most = most
        self.is_single = below.is_single

    @property
    def num_items(self) -> Any:
        """The number of items."""
        count = self.inputs[0].num_items
        return None if count is None else min(count, self.most)

    @property
    def batch_size(self) -> Any:
        """The size of all items but the last, None if it differs."""
        return self.inputs[0].batch_size

    @property
    def reads_all(self) -> Any:
        """True if the input is read to its end."""
        count = self.inputs[0].num_items
        return count is not None and count <= self.most

    def make(self, item: int) -> Made:
        """Return the rows of an item."""
        if item >= self.most:
            raise IndexError(f'the epoch has no item {item}')
        return super().make(item)

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Yield the places at which an example comes, in order."""
        return takewhile(
            lambda place: place.item < self.most,
            self.inputs[0].places_of(dataset, row, min(stop, self.most)))

    @property
    def ends(self) -> bool:
        """True: the number of items has a limit."""
        return True

    def parts(self, item: int) -> Iterable[ItemPart]:
        """Return the input's item with the same number."""
        return ItemPart(0, (item,)),

    def before(self, item: int) -> tuple[Any, list[int]]:
        """Return the stage's position before an item."""
        return item, [item]


class ChainedOrder(EpochOrder):
    """Order of the items of several inputs, one input after another."""

    def __init__(self, inputs: Sequence[EpochOrder]) -> None:
        self.inputs = tuple(inputs)
        self.is_single = inputs[0].is_single

    @property
    def lengths(self) -> list[Any]:
        """The number of items of each input."""
        return [part.num_items for part in self.inputs]

    @property
    def num_items(self) -> Any:
        """The number of items."""
        lengths = self.lengths
        return None if None in lengths else sum(lengths)

    def find(self, item: int) -> tuple[int, int]:
        """Return the place of the input that has an item, and the number of
        the item in this input."""
        for place, part in enumerate(self.inputs):
            count = part.count_to(item + 1)
            if item < count:
                return place, item
            item -= count
        return len(self.inputs), 0

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Yield the places at which an example comes, in order."""
        first = 0
        for part in self.inputs:
            for place in part.places_of(dataset, row, stop - first):
                yield place._replace(item=first + place.item)
            if not part.ends or first >= stop:
                return
            first += part.count_to(ENDLESS)

    def parts(self, item: int) -> Iterable[ItemPart]:
        """Return the input's item that becomes this item."""
        place, number = self.find(item)
        return ItemPart(place, (number,)),

    def before(self, item: int) -> tuple[Any, list[int]]:
        """Return the stage's position before an item."""
        turn, number = self.find(item)
        return turn, [number if place == turn else
                      count if place < turn else 0
                      for place, count in enumerate(self.lengths)]


class OrderPlan(ItemPlan):
    """Plan that makes an item from the parts of the inputs that an order
    names.

    `order`: the order of the stage.
    `children`: the iterators that the stage reads.
    """

    def __init__(self, order: EpochOrder, children: Sequence[Any],
                 stream: StreamLike) -> None:
        # Held weakly, since its epoch has this plan.
        self._stream = weakref.ref(stream)
        self.order: Any = order
        self.children = children
        self.num_items: Any = order.num_items

    @classmethod
    def open(cls, stream: StreamLike, epoch: Epoch) -> Self:
        """Return the plan of an epoch of a stage."""
        stage, children = stage_of(stream), children_of(epoch)
        return cls(stage.stream.order_items(
            list(map(cls.order_below, children)),
            StageEpoch(OrderQuery(), stage, epoch)), children, stream)

    @staticmethod
    def order_below(child: DataIterator) -> EpochOrder:
        """Return a plain order with as many items as an input."""
        return GivenOrder(0, items_of(child))

    @property
    def stream(self) -> Any:
        """The stage."""
        return self._stream()

    @functools.cached_property
    def sources(self) -> Sequence[str]:
        """The sources of the first stream that is read."""
        sources: Sequence[str] = self.children[0].data_stream.sources
        return sources

    def make(self, parts: list[Any]) -> Batch:
        """Return an item that is made of parts of the inputs."""
        part: Batch
        part, = parts
        return part

    def sizes(self, item: int) -> tuple[int, int]:
        """Return the number of examples of an item, and of a full item."""
        return self.order.size(item), self.order.full_size(item) or 1

    def read(self, item: int) -> Batch:
        """Return an item."""
        return self._read_parts(self.order.parts(item))

    def read_rows(self, item: int, rows: slice, padding: int) -> Batch:
        """Return rows of a batch that is padded from the start of the
        epoch."""
        return self._read_parts(self.order.parts_of_rows(item, rows, padding))

    def _read_parts(self, parts: Iterable[ItemPart]) -> Batch:
        found, examples = [], []
        for place, items, rows in parts:
            child = self.children[place]
            for item in items:
                found.append(read_at(child, item) if rows is None
                             else read_rows_at(child, item, rows))
                if self.is_asked:
                    one = source_examples(child, 1)
                    examples.append(one if one is None or rows is None
                                    else one.rows(rows))
        if self.is_asked:
            self.examples = joined(
                examples, self.children[0].data_stream.produces_examples
                and not self.stream.produces_examples)
        return self.make(found)

    def resume_point(self, item: int) -> tuple[object, list[Any]]:
        """Return the left-overs and the inputs' positions at an item."""
        leftover, places = self.order.before(item)
        for child, place in zip(self.children, places, strict=True):
            seek(child, place)
        return leftover, list(map(position_of, self.children))


class BatchesBelow(GivenOrder):
    """Order of the batches of an input whose rows can be read singly."""

    def __init__(self, child: DataIterator) -> None:
        self._requests: Any = source_of(child).request_iterator
        super().__init__(0, int(self._requests.num_requests))
        self.batch_size = self._requests.batch_size

    def size(self, item: int) -> int:
        """Return the number of rows of a batch."""
        return len(self._requests.compact_at(item))


class RowPlan(OrderPlan):
    """Plan that makes items from rows of the batches of an input."""

    order_below = BatchesBelow

    @staticmethod
    def resume(stream: StreamLike, leftover: object) -> None:
        """Restore the left-overs of a stage that its plan needs."""
        stage_of(stream).stream.resume_plan(leftover)
