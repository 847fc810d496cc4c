"""Plans of the stages whose order does not depend on the data."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fuel.sharding.planned import (
    ItemPlan, Standing, items_of, read_at, read_rows_at, seek, source_of)
from fuel.epochs.state import position_of
from fuel.iterator import DataIterator
from fuel.schemes.requests import BatchSizeRequests
from fuel.streams import AbstractDataStream
from fuel.typing import Batch


class ExamplePlan(ItemPlan):
    """Items made of examples of a stream that can be sought.

    `requests`: how many examples each item has.
    """

    def __init__(self, child: DataIterator, requests: BatchSizeRequests,
                 strictness: int,
                 make: Callable[[list[Any]], Batch]) -> None:
        self.child = child
        size = self.full = int(requests.batch_size)
        num_requests = requests.num_requests
        self.total = self._count_examples()
        self.make = make
        self.strictness = strictness
        most = -(-self.total // size)
        if strictness == 1:
            most = self.total // size
        self.num_items = int(min(most, num_requests))
        self.last = (int(num_requests) - 1 if num_requests <= most
                     else None, requests.last_size)
        # Whether the stage finds that its stream has ended.
        self._reads_all = num_requests > most

    def _count_examples(self) -> int:
        return items_of(self.child)

    def _places(self, item: int) -> range:
        start = item * self.full
        size = self.last[1] if item == self.last[0] else self.full
        return range(start, min(start + size, self.total))

    def size(self, item: int) -> int:
        """Return how many examples an item has."""
        return len(self._places(item))

    def full_size(self, item: int) -> int:
        """Return how many examples an item has if it is not short."""
        return self.full

    def read(self, item: int) -> Batch:
        """Return a batch."""
        return self._make([self._places(item)])

    def read_rows(self, item: int, rows: slice, padding: int) -> Batch:
        """Return rows of a batch, padded from the start of the epoch."""
        parts = [self._places(item)]
        while padding > 0:
            parts.append(range(min(padding, self.total)))
            padding -= self.total
        return self._make(_cut(parts, rows))

    def _make(self, parts: Iterable[range]) -> Batch:
        return self.make([read_at(self.child, place)
                          for part in parts for place in part])

    def end(self, item: int) -> None:
        """Leave the stream where the stage does."""
        seek(self.child, self.total if self._reads_all
             else self._places(self.num_items - 1).stop)
        # A mixture goes there when it is asked where it stands.
        position_of(self.child)

    def standing(self, item: int) -> Standing:
        """Return where the stage stands before an item."""
        seek(self.child, min(item * self.full, self.total))
        return Standing(None, [position_of(self.child)])


class RowPlan(ExamplePlan):
    """Items made of the rows of batches of a stream that can be sought."""

    def _count_examples(self) -> int:
        requests: Any = source_of(self.child).request_iterator
        self.below: int = requests.batch_size
        count = int(requests.num_requests)
        if not count:
            return 0
        last: int = len(requests.compact_at(count - 1))
        total: int = (count - 1) * self.below + last
        return total

    def _make(self, parts: Iterable[range]) -> Batch:
        return self.make([self._read_rows(batch, rows)
                          for part in parts for batch, rows
                          in self._by_batch(part)])

    def _by_batch(self, places: range) -> Iterable[tuple[int, slice]]:
        """Yield the batches that some rows are in, and which rows of each."""
        place = places.start
        while place < places.stop:
            batch, first = divmod(place, self.below)
            stop = min(first + places.stop - place, self.below)
            yield batch, slice(first, stop)
            place += stop - first

    def end(self, item: int) -> None:
        """Do nothing: the streams of rows begin each epoch anew."""

    def _read_rows(self, batch: int, rows: slice) -> Batch:
        return read_rows_at(self.child, batch, rows)

    def standing(self, item: int) -> Standing:
        """Return where the stage stands before an item."""
        row = min(item * self.full, self.total)
        batch, used = divmod(row, self.below)
        if row == self.total and used:
            batch, used = batch + 1, 0
        seek(self.child, batch)
        return Standing({'used': used} if used else None,
                        [position_of(self.child)])


def _cut(parts: Iterable[range], rows: slice) -> Iterator[range]:
    """Yield what is left of ranges, one after another, within some rows."""
    passed = 0
    for part in parts:
        found = part[max(0, rows.start - passed):max(0, rows.stop - passed)]
        passed += len(part)
        if found:
            yield found


class ExamplesOfRows(RowPlan):
    """Single examples out of batches; one rank's of a batch at a time."""

    def __init__(self, child: DataIterator, step: int,
                 make: Callable[[Batch], Iterator[Batch]]) -> None:
        super().__init__(
            child, BatchSizeRequests(1), 0, lambda parts: parts[0])
        self.step = step
        self.split = make
        self.expected = -1
        self.examples: Iterator[Batch] = iter(())

    def read(self, item: int) -> Batch:
        """Return an example."""
        batch, row = divmod(item, self.below)
        if item != self.expected or row < self.step:
            self.expected = -1
            self.examples = self.split(self._read_rows(
                batch, slice(row, None, self.step)))
        example = next(self.examples)
        self.expected = item + self.step
        return example


class MergedPlan(ItemPlan):
    """Items made of one of each of several streams that can be sought."""

    def __init__(self, children: list[Any], stage: AbstractDataStream) -> None:
        self.children = children
        self.stage = weakref.ref(stage)
        self.num_items = min(map(items_of, children))

    def read(self, item: int) -> Batch:
        """Return an item."""
        self._seek(item)
        joined: Batch = self._join()
        return joined

    def _join(self) -> Any:
        stage: Any = self.stage()
        return stage.get_data()

    def _seek(self, item: int) -> None:
        for child in self.children:
            seek(child, item)

    def end(self, item: int) -> None:
        """Say what the stage says of streams that end at other places."""
        if item >= self.num_items:
            self._seek(self.num_items)
            self._join()

    def standing(self, item: int) -> Standing:
        """Return where the stage stands before an item."""
        self._seek(item)
        return Standing(None, list(map(position_of, self.children)))


class PiecePlan(ItemPlan):
    """Pieces of the items of a stream that can be sought, as many of each.

    `stage`: makes the pieces (Expand).
    """

    def __init__(self, stage: Any, child: DataIterator, times: int) -> None:
        # Held weakly, since its epoch has this plan.
        self.stage = weakref.ref(stage)
        self.child = child
        self.times = times
        self.num_items = times * items_of(child)
        self.number = -1
        self.used = 0

    def read(self, item: int) -> Batch:
        """Return a piece."""
        stage: Any = self.stage()
        number, piece = divmod(item, self.times)
        is_new = number != self.number or piece < self.used
        if is_new:
            seek(self.child, number)
        self.number = -1
        found: Batch = stage.read_piece(number, piece, is_new)
        self.number, self.used = number, piece + 1
        return found

    def end(self, item: int) -> None:
        """Leave the stream where the stage does."""
        if self.times:
            seek(self.child, self.num_items // self.times)
            position_of(self.child)

    def standing(self, item: int) -> Standing:
        """Return where the stage stands before a piece."""
        stage: Any = self.stage()
        number, used = divmod(item, self.times) if self.times else (0, 0)
        besides = stage.besides_at(number)
        seek(self.child, number)
        return Standing({**(besides or {}), 'used': used} if used
                        else besides, [position_of(self.child)])


class TakePlan(ItemPlan):
    """The first items of a stream that can be sought."""

    def __init__(self, child: DataIterator, count: int) -> None:
        self.child = child
        self.num_items = min(count, items_of(child))

    def read(self, item: int) -> Batch:
        """Return an item."""
        return read_at(self.child, item)

    def standing(self, item: int) -> Standing:
        """Return where the stage stands before an item."""
        seek(self.child, item)
        return Standing(item, [position_of(self.child)])


class ChainedPlan(ItemPlan):
    """The items of several streams that can be sought, one after another."""

    def __init__(self, children: list[Any]) -> None:
        self.children = children
        self.lengths = list(map(items_of, children))
        self.num_items = sum(self.lengths)

    def _find(self, item: int) -> tuple[int, int]:
        """Return the stream of an item, and its number there."""
        for place, length in enumerate(self.lengths):
            if item < length:
                return place, item
            item -= length
        return len(self.lengths), 0

    def read(self, item: int) -> Batch:
        """Return an item."""
        place, number = self._find(item)
        return read_at(self.children[place], number)

    def standing(self, item: int) -> Standing:
        """Return where the stage stands before an item."""
        current, number = self._find(item)
        for place, child in enumerate(self.children):
            if place == current:
                seek(child, number)
            else:
                seek(child, self.lengths[place] if place < current else 0)
        return Standing(current, list(map(position_of, self.children)))
