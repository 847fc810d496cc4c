"""The share of an order that a rank gets: all shares are dealt here.

The rule for one step of all ranks is arithmetic, in `fuel.schemes.shard`.
An order is sought, so that any item of it is known by its number, or it is
read in order, and what ranks need of it is kept.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from fuel.schemes.shard import BatchPart, Round, Shard, place_of_rank

Item = TypeVar('Item')


class Dealt(NamedTuple):
    """The part of an order that a rank gets in one step.

    `item`: number of an item of the whole order.
    `rows`: which rows of it; None for all of them.
    `repeats`: whether it was given before, since ranks are padded.
    """

    item: int
    rows: BatchPart | None = None
    repeats: bool = False


class DealtOrder(Protocol):
    """An order whose items are dealt to ranks."""

    def count(self, stop: int, wanted: int) -> float:
        """Return the number of items; any larger number if there are `stop` of
        them.

        An order that is read in order is read up to there, and keeps the item
        with the number `wanted`; -1 for none.
        """

    def sizes(self, item: int) -> tuple[int, int]:
        """Return the number of examples of a batch, and of a full one."""


class Dealer:
    """Deals the items of an order to ranks, and gives one rank its share.

    `next`: number of the item that the next step begins with.
    `last`: what the rank got last.
    """

    def __init__(self, order: DealtOrder, shard: Shard) -> None:
        self.order = order
        self.shard = shard
        self._splits = shard.splits
        self.next = 0
        self.last = Dealt(-1)

    def take(self, first: int, read: Callable[[Dealt], Item]) -> Item:
        """Return the rank's share of a step; StopIteration if it has none.

        `first`: number of the item that the step begins with.
        `read`: returns what was dealt.
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
            # Behind it, since a mixture may not go back.
            self._deal(step)
        if step.left:
            raise StopIteration
        return item

    def skip(self, first: int, count: int) -> int:
        """Leave out steps; return how many of them gave the rank a share."""
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
        """Return the part of a rank in a step, or in its first batch."""
        before, self.next = self.next, first
        try:
            return (self._deal(Round(self.shard)) if self._splits
                    else self._deal_whole(first))
        finally:
            self.next = before

    def _deal_whole(self, first: int) -> Dealt | None:
        """Return the rank's item of a round, None if none is."""
        shard = self.shard
        place, stop = first + shard.rank, first + shard.num_shards
        total = self.order.count(stop, place)
        item = place_of_rank(first, total, shard)
        self.next = first if item is None else (
            stop if stop <= total else int(total))
        return None if item is None else Dealt(item, None, place >= total)

    def _deal(self, step: Round) -> Dealt | None:
        """Deal the batches that a step has left, until the rank gets rows of
        one; None if it gets none."""
        order = self.order
        while step.left:
            item = self.next
            if order.count(item + 1, item) <= item:
                return None
            self.next = item + 1
            real, full = order.sizes(item)
            # Only after one that is short, the order may have ended.
            rows = step.deal(real, full, real < full and order.count(
                item + 2, item + 1) <= item + 1)
            if rows is not None:
                return Dealt(item, rows)
        return None


class ReadInOrder:
    """The items that a function returns, one after another.

    `position`: how many were read.
    `first`: so many from the start are kept, to be repeated.
    """

    def __init__(self, position: int, first: int) -> None:
        self.position = position
        self.first = first
        self._kept: dict[int, Any] = {}

    def read(self) -> Any:
        """Return the next item; StopIteration behind the last."""
        raise NotImplementedError

    def skip(self, count: int) -> None:
        """Move the position on, at most to the end."""
        raise NotImplementedError

    def sizes(self, item: int) -> tuple[int, int]:
        """Return the number of examples of a kept batch, and of a full one."""
        raise NotImplementedError

    def count(self, stop: int, wanted: int) -> float:
        """Read up to an item, and return the number of items; infinity before
        the end."""
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
        """Return an item that was wanted, or one of the first."""
        return self._kept[item] if item < self.first else (
            self._kept.pop(item))
