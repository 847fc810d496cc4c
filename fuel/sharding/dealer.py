"""Deal the items of an order to ranks.

The arithmetic of one step of all ranks is in `fuel.schemes.shard`. Some orders
can be sought: any item is known by its number. Other orders are read in order,
and the items that a rank needs are kept.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from fuel.schemes.shard import BatchPart, Round, Shard, place_of_rank

Item = TypeVar('Item')


class Dealt(NamedTuple):
    """The part of an order that a rank gets in one step.

    `item`: number of the item in the whole order.
    `rows`: rows of the item that the rank gets; None for all rows.
    `repeats`: whether the item is repeated to pad the rank's share.
    """

    item: int
    rows: BatchPart | None = None
    repeats: bool = False


class DealtOrder(Protocol):
    """An order whose items are dealt to ranks."""

    def count(self, stop: int, wanted: int) -> float:
        """Return the number of items of the order.

        If there are at least `stop` items, any number from `stop` on may be
        returned.

        An order that is read in order reads the items before number `stop`,
        and keeps the item `wanted`; -1 means that no item is kept.
        """

    def sizes(self, item: int) -> tuple[int, int]:
        """Return the number of examples of a batch, and of a full batch."""


class Dealer:
    """Deals the items of an order to ranks, and returns the share of one rank.

    `next`: number of the item with which the next step begins.
    `last`: the part that the rank got last.
    """

    def __init__(self, order: DealtOrder, shard: Shard) -> None:
        self.order = order
        self.shard = shard
        self._splits = shard.splits
        self.next = 0
        self.last = Dealt(-1)

    def take(self, first: int, read: Callable[[Dealt], Item]) -> Item:
        """Return the rank's share of a step; raise StopIteration if it has
        none.

        `first`: number of the item with which the step begins.
        `read`: returns the data of the part that was dealt.
        """
        if not self._splits:
            dealt = self._deal_whole(first)
            if dealt is None:
                raise StopIteration
            self.last = dealt
            return read(dealt)
        self.next, step = first, Round(self.shard)
        dealt = self._deal(step)
        if dealt is None:
            raise StopIteration
        self.last = dealt
        if not step.left:
            return read(dealt)
        try:
            item = read(dealt)
        finally:
            # Deal the rest after the read, since a mixture may not be able to
            # go back.
            self._deal(step)
        if step.left:
            raise StopIteration
        return item

    def skip(self, first: int, count: int) -> int:
        """Skip steps; return the number of skipped steps in which the rank has
        a share."""
        if not self._splits:
            stop = first + count * self.shard.num_shards
            self.next = int(min(stop, self.order.count(stop, -1)))
            return count
        self.next, found = first, 0
        for _ in range(count):
            step = Round(self.shard)
            dealt = self._deal(step)
            self._deal(step)
            found += dealt is not None and not step.left
        return found

    def find(self, first: int) -> Dealt | None:
        """Return the rank's part of a step; None if it gets nothing.

        Unlike :meth:`take`, it does not check whether each other rank gets
        rows of the step too.
        """
        before, self.next = self.next, first
        try:
            return (self._deal(Round(self.shard)) if self._splits
                    else self._deal_whole(first))
        finally:
            self.next = before

    def _deal_whole(self, first: int) -> Dealt | None:
        """Return the rank's item of a step, None if it gets none."""
        shard = self.shard
        place, stop = first + shard.rank, first + shard.num_shards
        total = self.order.count(stop, place)
        item = place_of_rank(first, total, shard)
        self.next = first if item is None else (
            stop if stop <= total else int(total))
        return None if item is None else Dealt(item, None, place >= total)

    def _deal(self, step: Round) -> Dealt | None:
        """Deal batches of a step until the rank gets rows of one.

        Returns: these rows; None if the rank gets none.
        """
        order = self.order
        while step.left:
            item = self.next
            if order.count(item + 1, item) <= item:
                return None
            self.next = item + 1
            real, full = order.sizes(item)
            # The order may end only after a batch that is not full.
            rows = step.deal(real, full, real < full and order.count(
                item + 2, item + 1) <= item + 1)
            if rows is not None:
                return Dealt(item, rows)
        return None


class ReadInOrder:
    """Items that :meth:`read` returns, one after another.

    `position`: number of items that were read.
    `first`: number of items from the start that are kept, to be repeated.
    """

    def __init__(self, position: int, first: int) -> None:
        self.position = position
        self.first = first
        self._kept: dict[int, Any] = {}

    def read(self) -> Any:
        """Return the next item; raise StopIteration after the last."""
        raise NotImplementedError

    def skip(self, count: int) -> None:
        """Skip items, at most to the end, and advance the position."""
        raise NotImplementedError

    def sizes(self, item: int) -> tuple[int, int]:
        """Return the number of examples of a kept batch, and of a full
        batch."""
        raise NotImplementedError

    def count(self, stop: int, wanted: int) -> float:
        """Read the items before number `stop`; return the number of items.

        The number is infinity if the end was not reached.

        `wanted`: number of an item to keep.
        """
        kept, first = self._kept, self.first
        if kept and wanted - 2 >= first:
            # Items before the last two were dealt to other ranks.
            kept.pop(wanted - 2, None)
        place = self.position
        while place < stop:
            if place == wanted or place < first:
                try:
                    kept[place] = self.read()
                except StopIteration:
                    return place
                self.position = place = place + 1
                continue
            until = wanted if place < wanted else stop
            self.skip(until - place)
            place = self.position
            if place < until:
                return place
        return math.inf

    def take_kept(self, item: int) -> Any:
        """Return a kept item: a wanted item or one of the first ones."""
        return self._kept[item] if item < self.first else (
            self._kept.pop(item))
