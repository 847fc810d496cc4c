"""Make any item of an epoch directly, from its number.

The order of the items of a stage such as Batch or Unpack does not depend on
the data, if the order of its input does not. Then each item has a number. A
rank makes only its own items, and reads only the examples that they need.
"""
from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from fuel.epochs.epoch import Epoch
from fuel.epochs.examples import SourceExamples
from fuel.epochs.pipeline import can_seek, examples_behind, skip
from fuel.epochs.stage import Stage, children_of, stage_of
from fuel.schemes.iteration_scheme import batch_size_of
from fuel.schemes.sharded_requests import RowRequests, marks
from fuel.schemes.shard import BatchPart, Shard
from fuel.sharding.dealer import Dealer, Dealt, ReadInOrder
from fuel.typing import Batch, EpochReader, StreamLike
from fuel.utils.overrides import covers

if TYPE_CHECKING:
    from fuel.iterator import DataIterator


class ItemPlan:
    """Base of plans, which make any item of a stage's epoch from its number.

    The class of the stage names the class of its plan in ``__fuel_plan__``.
    """

    num_items: int
    # True if a stage above asks for the examples of each item; the examples of
    # the item that was read last.
    is_asked = False
    examples: SourceExamples | None = None
    # True if the stream sets the attributes of the epoch by itself.
    is_shown = False
    # True if ranks cannot share the input of the stage instead of its items.
    is_needed = False
    # True if the plan seeks items of stages that are not one-to-one.
    seeks_below = False

    @classmethod
    def open(cls, stream: StreamLike, epoch: Epoch) -> ItemPlan:
        """Return the plan of an epoch of a stage."""
        raise NotImplementedError

    @staticmethod
    def fits(stream: StreamLike) -> bool:
        """Return whether a plan can make the items of a stage."""
        return all(map(can_seek, stage_of(stream).inputs))

    @staticmethod
    def goes_back(stream: StreamLike) -> bool:
        """Return whether an epoch can read items again that it has passed."""
        return True

    @staticmethod
    def count_items(stream: StreamLike, epoch: Epoch) -> int | None:
        """Return the number of items of an epoch of a one-to-one stage; None
        if the input has the same number of items."""
        return None

    @staticmethod
    def split_size(stream: StreamLike) -> int | None:
        """Return the size of the batches that ranks can split; None if they
        cannot split batches."""
        return batch_size_of(stage_of(stream).scheme)

    @staticmethod
    def check_share(stream: StreamLike, shard: Shard) -> None:
        """Raise nothing: ranks can share the items of any such stage."""

    @staticmethod
    def count_shared(stream: StreamLike, shard: Shard) -> int | None:
        """Return the number of items that ranks share; None if it does not
        depend on them."""
        return None

    @staticmethod
    def resume(stream: StreamLike, leftover: object) -> None:
        """Restore nothing: the plan needs no left-overs."""

    def first_item(self, epoch: Epoch) -> int:
        """Return the number of the item from which an epoch continues."""
        return epoch.requested

    def count(self, stop: int, wanted: int) -> float:
        """Return the number of items."""
        return self.num_items

    def sizes(self, item: int) -> tuple[int, int]:
        """Return the number of examples of a batch, and of a full one."""
        raise NotImplementedError

    def take(self, dealt: Dealt) -> Batch:
        """Read the rank's part of an item."""
        rows = dealt.rows
        if rows is None:
            return self.read(dealt.item)
        assert isinstance(rows.rows, slice)
        return self.read_rows(dealt.item, rows.rows, rows.total - rows.real)

    def read(self, item: int) -> Batch:
        """Return an item."""
        raise NotImplementedError

    def read_rows(self, item: int, rows: slice, padding: int) -> Batch:
        """Return rows of a batch that is padded with `padding` rows."""
        raise NotImplementedError

    def part_of(self, dealt: Dealt) -> BatchPart | None:
        """Return the rows of a whole batch that the rank gets; None for all
        rows."""
        return dealt.rows

    def end(self, item: int) -> None:
        """Move the inputs to their positions at the end of the whole epoch.

        It is called when the rank gets no further item.  The base class does
        nothing.

        `item`: number of the item with which the next step would begin.
        """

    def resume_point(self, item: int) -> tuple[object, list[Any]]:
        """Return the left-overs and the inputs' positions at an item."""
        raise NotImplementedError

    def close(self) -> None:
        """Release nothing: the stage holds the iterators."""


def can_make_items(plan: type[ItemPlan], stream: StreamLike) -> bool:
    """Return whether plans of a class can make any item of a stage from its
    number."""
    return plan.fits(stream) and covers(
        stream, '__fuel_plan__',
        ('get_data', 'get_leftover', 'get_epoch_iterator'))


def has_numbered_items(stage: Stage) -> bool:
    """Return whether the stage's plan can make any item from its number."""
    return stage.plan is not None and can_make_items(
        stage.plan, stage.stream)


class ItemsInOrder(ReadInOrder):
    """Items that are read in order; each rank reads all of them.

    `ask`: function that returns the examples of the item that was read last,
        by its number; None unless a stage above asks for them.
    `examples`: those of the item that the rank got last.
    """

    is_shown = True
    ask: Callable[[int], SourceExamples | None] | None = None
    examples: SourceExamples | None = None

    def __init__(self, reader: EpochReader, position: int = 0) -> None:
        super().__init__(position, 0)
        self.reader = reader
        self._found: dict[int, SourceExamples | None] = {}

    def first_item(self, epoch: Epoch) -> int:
        """Return the number of the item that is read next."""
        return self.position

    def read(self) -> Any:
        """Return the next item."""
        item = self.read_item()
        if self.ask is not None:
            self._found[self.position] = self.ask(self.position)
        return item

    def read_item(self) -> Any:
        """Return the next item from the reader."""
        return self.reader.read()

    def skip(self, count: int) -> None:
        """Read items and drop them."""
        read = self.reader.read
        try:
            for _ in range(count):
                read()
                self.position += 1
        except StopIteration:
            # The position is the number of items.
            return

    def take(self, dealt: Dealt) -> Batch:
        """Return a kept item; the rank gets whole items only."""
        item: Batch = self.take_kept(dealt.item)
        return item

    def part_of(self, dealt: Dealt) -> BatchPart | None:
        """Return None: the rank gets whole items only."""
        return None

    def take_kept(self, item: int) -> Any:
        """Return a kept item, and find its examples."""
        if self.ask is not None:
            self.examples = self._found[item]
            # Those of items that other ranks get are dropped.
            self._found = {number: found for number, found
                           in self._found.items() if number > item}
        return super().take_kept(item)

    def end(self, item: int) -> None:
        """Do nothing: the items were read to their end."""

    def close(self) -> None:
        """Release what the reader holds."""
        self.reader.close()


class DealtItems:
    """Reader of a rank's items of an epoch.

    `order`: the items of all ranks; they are sought, or read in order.
    `dealer`: deals these items to the ranks.
    """

    def __init__(self, epoch: Epoch, stream: StreamLike,
                 order: ItemPlan | ItemsInOrder, shard: Shard) -> None:
        # Held weakly, since the epoch has this reader.
        self._epoch = weakref.ref(epoch)
        self._stream = weakref.ref(stream)
        self._requests = epoch.request_iterator
        self.order: Any = order
        self.dealer = Dealer(order, shard)
        self.dealer.next = order.first_item(epoch)
        self._is_over = False
        self._is_asked = epoch.is_asked
        if isinstance(order, ItemPlan):
            order.is_asked = epoch.is_asked
        elif epoch.is_asked:
            order.ask = functools.partial(
                _examples_read, self._epoch, self._stream, order.is_shown)

    @property
    def epoch(self) -> Any:
        """The epoch that is read (Epoch)."""
        return self._epoch()

    @property
    def number(self) -> int:
        """The number of the batch whose rows were read last (int)."""
        return self.dealer.last.item

    def read(self) -> Batch:
        """Return the rank's next item."""
        if not self.order.is_shown:
            with self._bound():
                return self._read()
        return self._read()

    def _read(self) -> Batch:
        dealer = self.dealer
        first = dealer.next
        try:
            item: Batch = dealer.take(first, self.order.take)
            if self._is_asked:
                self.epoch.dealt = self.order.examples
            return item
        except StopIteration:
            self._is_over = True
        finally:
            if self._requests is not None:
                self._requests.advance(dealer.next - first)
        self.order.end(dealer.next)
        raise StopIteration

    def _bound(self) -> AbstractContextManager[None]:
        """Return a context that sets the epoch's attributes on the stream."""
        return stage_of(self._stream()).showing(self.epoch)

    def rows_at(self, item: int) -> BatchPart | None:
        """Return the rows of a batch that the last read returned; None if it
        returned no part of this batch, or the whole batch."""
        last = self.dealer.last
        return last.rows if item == last.item else None

    def padding(self, count: int | None) -> Any:
        """Return a mask of the rows of the last item that are repeats."""
        last = self.dealer.last
        return marks(count, last.repeats, self.order.part_of(last))

    def resume_point(self) -> tuple[object, list[Any]]:
        """Return the left-overs and the inputs' positions at the next item."""
        items = self.order.num_items
        point: tuple[object, list[Any]] = self.order.resume_point(
            items if self._is_over else min(self.dealer.next, items))
        return point

    def skip(self, count: int) -> None:
        """Skip the rank's next items."""
        epoch, first = self.epoch, self.dealer.next
        with self._bound():
            epoch.move(self.dealer.skip(first, count))
        if self._requests is not None:
            self._requests.advance(self.dealer.next - first)

    def close(self) -> None:
        """Close the reader."""
        self.order.close()


def _examples_read(find_epoch: Any, find_stream: Any, is_shown: bool,
                   number: int) -> SourceExamples | None:
    """Return the examples of the item of a stage that was read last.

    `is_shown`: whether the stream shows the attributes of the epoch only
        while the item is read.
    """
    epoch, stream = find_epoch(), find_stream()
    requests = epoch.request_iterator
    made = [number if requests is None else requests.request_at(number)]
    if is_shown:
        return examples_behind(stage_of(stream), epoch, made)
    found: SourceExamples | None = stream.source_examples(made)
    return found


def seek(iterator: DataIterator, number: int) -> None:
    """Seek an item of an epoch of a one-to-one pipeline, by its number."""
    skip(iterator, number - iterator.epoch.requested)


def read_at(iterator: DataIterator, number: int) -> Batch:
    """Seek and return an item of an epoch of a one-to-one pipeline."""
    seek(iterator, number)
    item: Batch = next(iterator)
    return item


def read_rows_at(iterator: DataIterator, number: int, rows: slice) -> Batch:
    """Seek a batch of a one-to-one pipeline; return some of its rows."""
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
        below = children_of(iterator.epoch)
        if not below:
            return iterator.epoch
        iterator = below[0]


def _narrowed(iterator: DataIterator) -> RowRequests:
    """Replace the requests of a pipeline by requests that can be limited to
    rows; return them."""
    source = source_of(iterator)
    requests = source.request_iterator
    if not isinstance(requests, RowRequests):
        requests = source.request_iterator = RowRequests(requests)
        source.drop_prefetched()
    return requests


def items_of(iterator: DataIterator) -> int:
    """Return the number of items of an epoch of a one-to-one pipeline."""
    stage = stage_of(iterator.data_stream)
    if stage.is_sought:
        reader: Any = stage.reader_of(iterator.epoch)
        return int(reader.order.num_items)
    counted: int | None = None if stage.plan is None else (
        stage.plan.count_items(stage.stream, iterator.epoch))
    if counted is not None:
        return counted
    below = children_of(iterator.epoch)
    if below:
        return min(map(items_of, below))
    requests: Any = iterator.epoch.request_iterator
    return int(requests.num_requests)


def rows_at(iterator: DataIterator, number: int) -> BatchPart | None:
    """Return the rows of a whole batch that the rank gets; None if it gets all
    rows."""
    short = iterator.epoch.short.get(number)
    if short is not None:
        return short
    _, owner = _owner_of(iterator, 'rows_at')
    found: BatchPart | None = None if owner is None else owner.rows_at(number)
    return found


def numbers_read(iterator: DataIterator) -> tuple[int, int] | None:
    """Return the number of the batch that was read last, and the number of the
    first batch of the next step.

    They count the batches that ranks split. None if ranks split no batches.
    """
    split, owner = _owner_of(iterator, 'number')
    return None if owner is None else (
        owner.number, int(split.epoch.requested))


def padding_of(iterator: DataIterator, count: int | None) -> Any:
    """Return a mask of the rows of the last item that are repeats.

    `count`: number of rows. None for a single example: one boolean is
        returned.
    """
    _, owner = _owner_of(iterator, 'padding')
    return (marks(count, False, None) if owner is None
            else owner.padding(count))


def _owner_of(iterator: DataIterator, method: str) -> tuple[Any, Any]:
    """Return the nearest iterator whose reader or requests have a method, and
    this reader or these requests.

    The search begins at `iterator` and continues below it. Both are None if
    there is none.
    """
    for owner in (iterator.epoch.reader, iterator.epoch.request_iterator):
        if hasattr(owner, method):
            return iterator, owner
    below = children_of(iterator.epoch)
    return _owner_of(below[0], method) if below else (None, None)
