"""Plans of the stages whose order does not depend on the data."""
from __future__ import annotations

import functools
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Self

from fuel.epochs.epoch import Epoch
from fuel.epochs.stage import children_of, stage_of
from fuel.epochs.state import position_of
from fuel.iterator import DataIterator
from fuel.sharding.asking import Asked, Begun
from fuel.sharding.order import EpochOrder, GivenOrder, ItemPart
from fuel.sharding.planned import (
    ItemPlan, items_of, read_at, read_rows_at, seek, source_of)
from fuel.typing import Batch


class OrderPlan(ItemPlan):
    """Items made of those parts of streams that an order names.

    `order`: the order of the stage.
    `children`: the iterators that it reads.
    """

    def __init__(self, order: EpochOrder, children: Sequence[Any],
                 stream: Any) -> None:
        # Held weakly, since its epoch has this plan.
        self._stream = weakref.ref(stream)
        self.order: Any = order
        self.children = children
        self.num_items: Any = order.num_items

    @classmethod
    def open(cls, stream: Any, epoch: Epoch) -> Self:
        """Return the plan of an epoch of a stage."""
        children = children_of(epoch)
        return cls(stream.order_items(
            list(map(cls.order_below, children)),
            Begun(Asked(), stage_of(stream), epoch)), children, stream)

    @staticmethod
    def order_below(child: DataIterator) -> EpochOrder:
        """Return an order of as many examples as a stream has."""
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
        """Return an item that is made of parts of the streams."""
        part: Batch
        part, = parts
        return part

    def size(self, item: int) -> int:
        """Return how many examples an item has."""
        size: int = self.order.size(item)
        return size

    def full_size(self, item: int) -> int:
        """Return how many examples an item has if it is not short."""
        return self.order.full_size(item) or 1

    def read(self, item: int) -> Batch:
        """Return an item."""
        return self._read_parts(self.order.parts(item))

    def read_rows(self, item: int, rows: slice, padding: int) -> Batch:
        """Return rows of a batch, padded from the start of the epoch."""
        return self._read_parts(self.order.parts_of_rows(item, rows, padding))

    def _read_parts(self, parts: Iterable[ItemPart]) -> Batch:
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

    order_below = BatchesBelow

    @staticmethod
    def resume(stream: Any, leftover: Any) -> None:
        """Give a stage what a plan needs of its left-overs."""
        stream.resume_plan(leftover)
