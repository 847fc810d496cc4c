"""Plans of the stages whose order does not depend on the data."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fuel.sharding.made import Made
from fuel.sharding.order import (
    EpochOrder, GivenOrder, ItemPart, UnknownOrderError)
from fuel.sharding.planned import (
    ItemPlan, items_of, read_at, read_rows_at, seek, source_of)
from fuel.sharding.stage_orders import CutOrder, MergedOrder, RowOrder
from fuel.epochs.state import position_of
from fuel.iterator import DataIterator
from fuel.schemes.requests import BatchSizeRequests
from fuel.streams import AbstractDataStream
from fuel.typing import Batch


class OrderPlan(ItemPlan):
    """Items made of those parts of streams that an order names.

    `order`: the order of the stage.
    `children`: the iterators that it reads.
    `make`: makes an item of the parts.
    """

    def __init__(self, order: EpochOrder, children: list[Any],
                 make: Callable[[list[Any]], Batch]) -> None:
        self.order: Any = order
        self.children = children
        self.num_items = order.num_items
        self.make = make

    def size(self, item: int) -> int:
        """Return how many examples an item has."""
        size: int = self.order.size(item)
        return size

    def full_size(self, item: int) -> int:
        """Return how many examples an item has if it is not short."""
        return self.order.full_size(item) or 1

    def read(self, item: int) -> Batch:
        """Return an item."""
        return self._make(self.order.parts(item))

    def read_rows(self, item: int, rows: slice, padding: int) -> Batch:
        """Return rows of a batch, padded from the start of the epoch."""
        return self._make(self.order.parts_of_rows(item, rows, padding))

    def _make(self, parts: Iterable[ItemPart]) -> Batch:
        children = self.children
        return self.make([
            read_at(children[place], item) if rows is None
            else read_rows_at(children[place], item, rows)
            for place, items, rows in parts for item in items])

    def standing(self, item: int) -> tuple[object, list[Any]]:
        """Return the left-overs before an item, and where inputs stand."""
        leftover, places = self.order.before(item)
        for child, place in zip(self.children, places, strict=True):
            seek(child, place)
        return leftover, list(map(position_of, self.children))


def only(parts: list[Any]) -> Any:
    """Return the one part that an item is made of."""
    part, = parts
    return part


def counted(child: DataIterator) -> EpochOrder:
    """Return an order of as many examples as a stream has."""
    return GivenOrder(0, items_of(child))


class ExamplePlan(OrderPlan):
    """Items made of examples of a stream that can be sought.

    `requests`: how many examples each item has.
    """

    def __init__(self, child: DataIterator, requests: BatchSizeRequests,
                 strictness: int,
                 make: Callable[[list[Any]], Batch]) -> None:
        super().__init__(
            CutOrder(counted(child), requests, strictness), [child], make)

    def end(self, item: int) -> None:
        """Leave the stream where the stage does."""
        order, child = self.order, self.children[0]
        seek(child, order.total if order.reads_all
             else order.places(self.num_items - 1).stop)
        # A mixture goes there when it is asked where it stands.
        position_of(child)


class BatchesBelow(GivenOrder):
    """Batches of a stream whose rows can be read by themselves."""

    def __init__(self, child: DataIterator) -> None:
        self._requests: Any = source_of(child).request_iterator
        super().__init__(0, int(self._requests.num_requests))
        self.batch_size = self._requests.batch_size

    def size(self, item: int) -> int:
        """Return how many rows a batch has."""
        return len(self._requests.compact_at(item))


class RowPlan(OrderPlan):
    """Items made of the rows of batches of a stream that can be sought."""

    def __init__(self, child: DataIterator, requests: BatchSizeRequests,
                 make: Callable[[list[Any]], Batch]) -> None:
        super().__init__(
            RowOrder(BatchesBelow(child), requests), [child], make)


class ExamplesOfRows(RowPlan):
    """Single examples out of batches; one rank's of a batch at a time."""

    def __init__(self, child: DataIterator, step: int,
                 make: Callable[[Batch], Iterator[Batch]]) -> None:
        super().__init__(child, BatchSizeRequests(1), only)
        self.step = step
        self.split = make
        self.expected = -1
        self.examples: Iterator[Batch] = iter(())

    def read(self, item: int) -> Batch:
        """Return an example."""
        part, = self.order.parts(item)
        batch, row = part.items[0], part.rows.start
        if item != self.expected or row < self.step:
            self.expected = -1
            self.examples = self.split(read_rows_at(
                self.children[0], batch, slice(row, None, self.step)))
        example = next(self.examples)
        self.expected = item + self.step
        return example


class MergedPlan(OrderPlan):
    """Items made of one of each of several streams that can be sought."""

    def __init__(self, children: list[Any], stage: AbstractDataStream) -> None:
        super().__init__(
            MergedOrder(list(map(counted, children))), children, tuple)
        self.stage = weakref.ref(stage)

    def read(self, item: int) -> Batch:
        """Return an item."""
        for child in self.children:
            seek(child, item)
        stage: Any = self.stage()
        joined: Batch = stage.get_data()
        return joined

    def end(self, item: int) -> None:
        """Say what the stage says of streams that end at other places."""
        if item >= self.num_items:
            self.read(self.num_items)


class PieceOrder(EpochOrder):
    """Pieces of the items of an input, as many of each.

    All rows of an item are those that each of its pieces is made of.

    `times`: how many pieces an item makes.
    `is_single`: whether they are single examples.
    `name`: of the stage.
    """

    def __init__(self, below: EpochOrder, times: int, is_single: bool,
                 name: str) -> None:
        self.inputs = below,
        self.times = times
        self.is_single = is_single
        self.name = name

    @property
    def num_items(self) -> Any:
        """The number of pieces."""
        count = self.inputs[0].num_items
        return count and count * self.times

    @property
    def unsized(self) -> str:
        """Why it is not known which rows a piece has, '' if it is."""
        if self.is_single and self.inputs[0].is_single:
            return ''
        return (f'which rows a piece of {self.name} has is not known, since '
                'expand makes it')

    def size(self, item: int) -> int:
        """Raise an error unless a piece is a single example."""
        if self.unsized:
            raise UnknownOrderError(self.unsized)
        return 1

    def make(self, item: int) -> Made:
        """Return all rows that a piece is made of."""
        number, _ = self.find(item)
        if not self.times or self.inputs[0].count_to(number + 1) <= number:
            raise IndexError(f'the epoch has no item {item}')
        return super().make(item)

    def find(self, item: int) -> tuple[int, int]:
        """Return the item of a piece, and the number of the piece there."""
        return divmod(item, self.times) if self.times else (0, 0)

    def parts(self, item: int) -> Iterable[ItemPart]:
        """Return the item that a piece is of."""
        return ItemPart(0, (self.find(item)[0],)),


class PiecePlan(ItemPlan):
    """Pieces of the items of a stream that can be sought, as many of each.

    `stage`: makes the pieces (Expand).
    `order`: the order of the pieces.
    """

    def __init__(self, stage: Any, child: DataIterator, order: PieceOrder,
                 ) -> None:
        # Held weakly, since its epoch has this plan.
        self.stage = weakref.ref(stage)
        self.child = child
        self.order = order
        self.num_items: Any = order.num_items
        self.number = -1
        self.used = 0

    def read(self, item: int) -> Batch:
        """Return a piece."""
        stage: Any = self.stage()
        number, piece = self.order.find(item)
        is_new = number != self.number or piece < self.used
        if is_new:
            seek(self.child, number)
        self.number = -1
        found: Batch = stage.read_piece(number, piece, is_new)
        self.number, self.used = number, piece + 1
        return found

    def end(self, item: int) -> None:
        """Leave the stream where the stage does."""
        if self.num_items:
            seek(self.child, self.order.find(self.num_items)[0])
            position_of(self.child)

    def standing(self, item: int) -> tuple[object, list[Any]]:
        """Return the left-overs before a piece, and where the input stands."""
        stage: Any = self.stage()
        number, used = self.order.find(item)
        besides = stage.besides_at(number)
        seek(self.child, number)
        return ({**(besides or {}), 'used': used} if used else besides,
                [position_of(self.child)])
