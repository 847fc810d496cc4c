"""Epochs of which any item can be made, at any time, from indices alone.

A stage such as Batch or Unpack gives items in an order that does not depend
on the data, if that of the stream it reads does not either. Then each item has
a number, and a rank makes those that are its own, of the examples that they
need and no others.
"""
from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from fuel.epochs.epoch import Epoch
from fuel.epochs.pipeline import skip
from fuel.epochs.stage import stage_of
from fuel.schemes.sharded_requests import RowRequests, marks
from fuel.schemes.shard import BatchPart, Round, Shard, place_of_rank
from fuel.typing import Batch, EpochReader, StreamLike

if TYPE_CHECKING:
    from fuel.iterator import DataIterator


class Standing(NamedTuple):
    """Where an epoch stands before an item: left-overs, children."""

    leftover: Any
    children: list[Any]


class ItemPlan:
    """Base of the plans, which make any item of a stage's epoch."""

    num_items: int

    def rows(self, item: int) -> int | None:
        """Return how many examples an item has; None if it is one."""
        return None

    def full_size(self, item: int) -> int:
        """Return how many examples an item has if it is not short."""
        return 1

    def read(self, item: int) -> Batch:
        """Return an item."""
        raise NotImplementedError

    def read_rows(self, item: int, rows: slice, padding: int) -> Batch:
        """Return rows of a batch to which `padding` ones are added."""
        raise NotImplementedError

    def end(self) -> None:
        """Do what the stage does when all items were read."""

    def finish(self) -> None:
        """Leave the streams that are read where the whole epoch ends."""

    def standing(self, item: int) -> Standing:
        """Return where the stage stands before an item."""
        raise NotImplementedError


class PlannedReader:
    """Reads a rank's items of an epoch that has a plan."""

    def __init__(self, epoch: Epoch, stream: StreamLike, plan: ItemPlan,
                 shard: Shard) -> None:
        # Held weakly, since the epoch has this reader.
        self._epoch = weakref.ref(epoch)
        self._stream = weakref.ref(stream)
        self.plan = plan
        self.shard = shard
        self._repeats = False
        self._is_over = False
        # The batch that ranks split which was read last, and the rank's rows.
        self.number = -1
        self._rows: BatchPart | None = None

    @property
    def epoch(self) -> Any:
        """The epoch that is read (Epoch)."""
        return self._epoch()

    def read(self) -> Batch:
        """Return the rank's next item."""
        with self._bound():
            return (self._read_rows() if self.shard.splits
                    else self._read_item())

    def _bound(self) -> AbstractContextManager[None]:
        """Let the stream show the attributes of the epoch."""
        return stage_of(self._stream()).showing(self.epoch)

    def _read_item(self) -> Batch:
        first, total = self.epoch.requested, self.plan.num_items
        place = place_of_rank(first, total, self.shard)
        if place is None:
            self._end(first)
        self._count(self.shard.num_shards)
        self._repeats = first + self.shard.rank >= total
        return self.plan.read(place)

    def _read_rows(self) -> Batch:
        step = Round(self.shard)
        rows = self._deal(step)
        if rows is None:
            self._end(self.epoch.requested)
        assert isinstance(rows.rows, slice)
        try:
            batch = self.plan.read_rows(
                self.number, rows.rows, rows.total - rows.real)
        finally:
            # Behind it, since a mixture may not go back.
            self._deal(step)
        if step.left:
            self._end(self.epoch.requested)
        return batch

    def _deal(self, step: Round) -> BatchPart | None:
        """Return the rank's rows of the batches that a step has left, up to
        the one that they are of; None if none has any."""
        while step.left and self.epoch.requested < self.plan.num_items:
            item = self.epoch.requested
            real = self.plan.rows(item)
            assert real is not None
            rows = step.deal(real, self.plan.full_size(item),
                             item + 1 == self.plan.num_items)
            self._count(1)
            if rows is not None:
                self.number, self._rows = item, rows
                return rows
        return None

    def rows_at(self, item: int) -> BatchPart | None:
        """Return which rows of a batch were read, None if none were."""
        return self._rows if item == self.number else None

    def padding(self, count: int | None) -> Any:
        """Return which rows of the item read last repeat some."""
        return marks(count, self._repeats, self._rows)

    def _count(self, count: int) -> None:
        requests = self.epoch.request_iterator
        if requests is not None:
            requests.advance(count)

    def _end(self, first: int) -> NoReturn:
        if first >= self.plan.num_items:
            self.plan.end()
        self.plan.finish()
        self._is_over = True
        raise StopIteration

    def standing(self) -> Standing:
        """Return where the stage stands."""
        items = self.plan.num_items
        return self.plan.standing(
            items if self._is_over else min(self.epoch.requested, items))

    def skip(self, count: int) -> None:
        """Leave out the rank's next items."""
        epoch = self.epoch
        if not self.shard.splits:
            epoch.position += count * epoch.step
            self._count(count * self.shard.num_shards)
            return
        with self._bound():
            for _ in range(count):
                step = Round(self.shard)
                rows = self._deal(step)
                self._deal(step)
                epoch.position += rows is not None and not step.left

    def close(self) -> None:
        """Release nothing."""


def seek(iterator: DataIterator, number: int) -> None:
    """Go to an item of an epoch of a one-to-one pipeline."""
    skip(iterator, number - iterator.epoch.requested)


def read_at(iterator: DataIterator, number: int) -> Batch:
    """Return an item of an epoch of a one-to-one pipeline."""
    seek(iterator, number)
    item: Batch = next(iterator)
    return item


def read_rows_at(iterator: DataIterator, number: int, rows: slice) -> Batch:
    """Return rows of a batch of an epoch of a one-to-one pipeline."""
    seek(iterator, number)
    requests = _narrowed(iterator)
    requests.rows = rows
    try:
        batch: Batch = next(iterator)
    finally:
        requests.rows = None
    return batch


def source_of(iterator: DataIterator) -> Any:
    """Return the epoch that makes the requests of a one-to-one pipeline."""
    while True:
        below = child_iterators_of(iterator)
        if not below:
            return iterator.epoch
        iterator = below[0]


def child_iterators_of(iterator: DataIterator) -> Sequence[Any]:
    """Return the iterators that an epoch iterator reads."""
    kept = iterator.epoch.attributes
    if 'child_epoch_iterators' in kept:
        found: Sequence[Any] = kept['child_epoch_iterators']
        return found
    child = kept.get('child_epoch_iterator')
    return [] if child is None else [child]


def _narrowed(iterator: DataIterator) -> RowRequests:
    """Let the requests of a pipeline be cut to rows."""
    source = source_of(iterator)
    requests = source.request_iterator
    if not isinstance(requests, RowRequests):
        requests = source.request_iterator = RowRequests(requests)
        source.drop_prefetched()
    return requests


# How many items an epoch has that never ends.
ENDLESS = 2 ** 62


def items_of(iterator: DataIterator) -> int:
    """Return how many items an epoch of a one-to-one pipeline has."""
    counted = stage_of(iterator.data_stream).count_items(iterator.epoch)
    if counted is not None:
        return counted
    below = child_iterators_of(iterator)
    if below:
        return min(map(items_of, below))
    requests: Any = iterator.epoch.request_iterator
    return int(requests.num_requests)


def rows_at(iterator: DataIterator, number: int) -> BatchPart | None:
    """Return which rows of a whole batch come, None if all do."""
    short = iterator.epoch.short.get(number)
    if short is not None:
        return short
    _, owner = _owner_of(iterator, 'rows_at')
    found: BatchPart | None = None if owner is None else owner.rows_at(number)
    return found


def numbers_read(iterator: DataIterator) -> tuple[int, int] | None:
    """Return the number of the batch read last, of those that ranks split,
    and that of the one which the next step begins with."""
    split, owner = _owner_of(iterator, 'number')
    return None if owner is None else (
        owner.number, int(split.epoch.requested))


def padding_of(iterator: DataIterator, count: int | None) -> Any:
    """Return which rows of the item read last repeat some, True for each.

    Of an example, `count` is None and one boolean is returned.
    """
    _, owner = _owner_of(iterator, 'padding')
    return (marks(count, False, None) if owner is None
            else owner.padding(count))


def _owner_of(iterator: DataIterator, method: str) -> tuple[Any, Any]:
    """Return the iterator whose reader or requests have a method, and that.

    It is the nearest below that one. Both are None if there is none.
    """
    for owner in (iterator.epoch.reader, iterator.epoch.request_iterator):
        if hasattr(owner, method):
            return iterator, owner
    below = child_iterators_of(iterator)
    return _owner_of(below[0], method) if below else (None, None)


class ShareReader:
    """Reads every n-th of the items that another reader gives.

    Each rank reads them all. To know whether the last round is complete, the
    items behind the rank's own are read before that is returned.
    """

    def __init__(self, reader: EpochReader, shard: Shard) -> None:
        self.reader = reader
        self.shard = shard
        # How many items of the present round were read.
        self.found = 0
        self.own: list[Batch] = []

    def read(self) -> Batch:
        """Return the rank's next item."""
        shard = self.shard
        while self.found < shard.num_shards:
            try:
                item = self.reader.read()
            except StopIteration:
                break
            if self.found == shard.rank:
                self.own.append(item)
            self.found += 1
        own, place = self.own, place_of_rank(0, self.found, shard)
        self.own, self.found = [], 0
        if place is None:
            raise StopIteration
        return own[0]

    def skip(self, count: int) -> None:
        """Read items of the rank and drop them."""
        for _ in range(count):
            self.read()

    def close(self) -> None:
        """Release what the other reader holds."""
        self.reader.close()
