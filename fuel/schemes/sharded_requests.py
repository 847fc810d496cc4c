"""Requests of one of several ranks that share the order of an epoch.

Their position is that of the whole order, so it is equal on all ranks after
each step, and any number of ranks can go on from it.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy

from fuel.schemes.iterator_requests import as_requests
from fuel.schemes.requests import IndexRequests, RequestIterator
from fuel.schemes.shard import BatchPart, Round, Shard, place_of_rank
from fuel.typing import Request


class ChosenRequests(RequestIterator):
    """Base of the iterators over requests, or parts, of another.

    Subclasses implement :meth:`_next` and :meth:`_at`, whose argument
    `compact` says whether an array is returned where there is one.
    """

    requests: RequestIterator

    def _next(self, compact: bool) -> Any:
        """Return the next request."""
        raise NotImplementedError

    def _at(self, position: int, compact: bool) -> Any:
        """Return the request at a position, None after the last."""
        raise NotImplementedError

    def _whole_at(self, place: int, compact: bool) -> Any:
        """Return a request of the whole order, None after the last."""
        return (self.requests.compact_at(place) if compact
                else self.requests.request_at(place))

    @property
    def is_random_access(self) -> bool:
        """Whether any request is known by its number (bool)."""
        return self.requests.is_random_access

    @property
    def batch_size(self) -> Any:
        """Number of indices of a whole request, None if it is not known."""
        return self.requests.batch_size

    def __next__(self) -> Any:
        return self._next(False)

    def next_compact(self) -> Any:
        """Return the next request, as an array where there is one."""
        return self._next(True)

    def request_at(self, position: int) -> Any:
        """Return the request at a position, None after the last."""
        return self._at(position, False)

    def compact_at(self, position: int) -> Any:
        """Return what :meth:`request_at` does, as an array if possible."""
        return self._at(position, True)


class RowRequests(ChosenRequests):
    """Requests of which the next one is cut to the rows that are wanted.

    `rows`: rows of the next request, or their numbers; None for all of them.
    """

    def __init__(self, requests: RequestIterator) -> None:
        self.requests = requests
        self.num_requests = requests.num_requests
        self.position = requests.position
        self.rows: slice | list[int] | None = None

    def _at(self, position: int, compact: bool) -> Any:
        request = self._whole_at(position, compact)
        if self.rows is None or position != self.position or request is None:
            return request
        indices = as_splittable(request)
        if isinstance(self.rows, list) and not isinstance(
                indices, numpy.ndarray):
            return [indices[row] for row in self.rows]
        rows = indices[self.rows]
        return (numpy.ascontiguousarray(rows)
                if isinstance(rows, numpy.ndarray) else rows)

    def _next(self, compact: bool) -> Any:
        request = self._at(self.position, compact)
        if request is None:
            raise StopIteration
        self.position += 1
        return request

    def rows_at(self, position: int) -> BatchPart:
        """Return which rows of a request were wanted last."""
        total = len(as_splittable(self.requests.compact_at(position)))
        rows = slice(None) if self.rows is None else self.rows
        return BatchPart(rows, total, total)


def as_splittable(request: Request) -> Any:
    """Return a request as something whose parts are requests."""
    if isinstance(request, slice) and request.stop is not None:
        return range(*request.indices(request.stop))
    if isinstance(request, (list, tuple, range, numpy.ndarray)):
        return request
    raise TypeError(
        'only lists of indices can be split over ranks, but the scheme '
        f"requested {request!r:.80} ({type(request).__name__}): use "
        "by='batch'")


def marks(count: int | None, repeats: bool, rows: BatchPart | None) -> Any:
    """Return which rows of an item repeat some, True for each.

    Of an example, `count` is None and one boolean is returned.
    """
    if count is None:
        return repeats
    found = numpy.full(count, repeats)
    if rows is not None:
        found |= numpy.arange(rows.total)[rows.rows] >= rows.real
    return found


class RankRequests(ChosenRequests):
    """Base of the requests of a rank, or its parts of requests.

    Of iterators whose requests are not known by their number, the first
    `_most` are kept, for padding.
    """

    shard: Shard
    _most = 0

    def _share(self, requests: Iterator[Any], shard: Shard) -> None:
        self.requests = inner = as_requests(requests)
        self.shard = shard
        self.num_requests = inner.num_requests
        self.position = inner.position
        self._first: list[Any] = []

    def _take(self) -> Any:
        """Return the next request of an order that is read in order."""
        place = self.requests.position
        request = next(self.requests)
        if place < self._most:
            self._first.append(request)
        return request

    def _skip(self, count: int) -> int:
        """Leave out requests of such an order, and return how many."""
        before = self.requests.position
        while count and self.requests.position < self._most:
            try:
                self._take()
            except StopIteration:
                return self.requests.position - before
            count -= 1
        self.requests.advance(count)
        return self.requests.position - before

    def advance(self, count: int) -> None:
        """Leave out `count` requests of the whole order."""
        if self.is_random_access:
            super().advance(count)
        else:
            self._skip(count)
            self.position = self.requests.position


class ShardedRequests(RankRequests):
    """Every n-th request of an order."""

    def __init__(self, requests: Iterator[Any], shard: Shard) -> None:
        self._share(requests, shard)
        if shard.uneven == 'pad':
            self._most = shard.num_shards - 1
        self.requests_examples = self.requests.requests_examples
        # Whether the request made last repeats one.
        self._repeats = False
        self._set_step()

    def _set_step(self) -> None:
        shard = self.shard
        self.step, self.offset = shard.num_shards, shard.rank
        if not math.isinf(self.num_requests):
            # Behind it lies the last round, if that is not complete.
            self.limit = max(
                0, int(self.num_requests) - shard.num_shards + 1)

    def plain_order(self) -> Any:
        """Return the indices of the whole epoch, of all ranks."""
        return self.requests.plain_order()

    def _next(self, compact: bool) -> Any:
        if not self.is_random_access:
            return self._take_round()
        request = self._at(self.position, compact)
        if request is None:
            raise StopIteration
        self._repeats = (
            self.position + self.offset >= self.num_requests)
        self.position = int(min(self.position + self.step,
                                self.num_requests))
        return request

    def _at(self, position: int, compact: bool) -> Any:
        place = place_of_rank(position, self.num_requests, self.shard)
        return None if place is None else self._whole_at(place, compact)

    def _take_round(self) -> Any:
        """Return the next request of an order that is read in order."""
        shard = self.shard
        found = self._skip(shard.rank)
        request = None
        if found == shard.rank:
            try:
                request = self._take()
            except StopIteration:
                pass
            else:
                found += 1 + self._skip(shard.num_shards - 1 - shard.rank)
        self.position = self.requests.position
        if found < shard.num_shards:
            return self._take_of_last(request, found)
        self._repeats = False
        return request

    def _take_of_last(self, request: Request, found: int) -> Any:
        place = place_of_rank(0, found, self.shard)
        if place is None:
            raise StopIteration
        self._repeats = found <= self.shard.rank
        if not self._repeats:
            return request
        return self._first[(self.shard.rank - found) % len(self._first)]

    def padding(self, count: int | None) -> Any:
        """Return which rows of the request made last repeat some."""
        return marks(count, self._repeats, None)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._set_step()


class ShardedIndexRequests(ShardedRequests, IndexRequests):
    """Every n-th index of an order."""

    requests_examples = True

    def peek(self, count: int) -> list[Any]:
        """Return the next requests of the rank without advancing."""
        found = []
        for place in range(count):
            request = self._at(self.position + place * self.step, False)
            if request is None:
                break
            found.append(request)
        return found


class SplitRequests(RankRequests):
    """A rank's part of each batch of an order.

    Where any request is known by its number, only the last is short. Of
    others, the one behind a short one is read to see whether there is any.
    """

    def __init__(self, requests: Iterator[Any], shard: Shard) -> None:
        self._share(requests, shard)
        # How many examples a batch has that is not short.
        self._size: int = self.requests.batch_size or shard.num_shards
        if shard.uneven == 'pad':
            self._most = self._size
        # The request behind the next one of an order that is read in order.
        self._ahead: list[Any] = []
        # Of such an order: which request was dealt last, and its rows.
        self._number = -1
        self._rows: BatchPart | None = None

    @property
    def batch_size(self) -> int:
        """Number of indices of a request at most, unless one is short."""
        return -(-self._size // self.shard.num_shards)

    @property
    def number(self) -> int:
        """The number of the batch whose rows were requested last (int)."""
        return self.position - 1 if self.is_random_access else self._number

    def _next(self, compact: bool) -> Any:
        if not self.is_random_access:
            return self._take_rows()
        request = self._at(self.position, compact)
        if request is None:
            self.position = max(self.position, int(self.num_requests))
            raise StopIteration
        self.position += 1
        return request

    def _take_rows(self) -> Any:
        """Return the rank's part of a request of the next step."""
        step, part = Round(self.shard), None
        while step.left:
            try:
                whole = self._ahead.pop() if self._ahead else self._take()
            except StopIteration:
                break
            number, self.position = self.position, self.position + 1
            indices = as_splittable(whole)
            if len(indices) < self._size:
                self._look_ahead()
            rows = step.deal(len(indices), self._size, bool(
                len(indices) < self._size and not self._ahead))
            if rows is not None:
                self._number, self._rows = number, rows
                part = self._part(indices, rows)
        if part is None or step.left:
            raise StopIteration
        return part

    def _look_ahead(self) -> None:
        try:
            self._ahead = [self._take()]
        except StopIteration:
            self._ahead = []

    def skip(self, count: int) -> None:
        """Leave out the requests of the next steps."""
        if self.is_random_access:
            self.advance(count)
            return
        for _ in islice(self, count):
            pass

    def rows_at(self, position: int) -> BatchPart | None:
        """Return the rank's rows of a request: of any, or of the last."""
        if self.is_random_access:
            return self._deal(self._whole_at(position, True), position)
        return self._rows if position == self._number else None

    def _deal(self, whole: Request, position: int) -> BatchPart | None:
        return Round(self.shard).deal(
            len(as_splittable(whole)), self._size,
            position + 1 == self.num_requests)

    def _part(self, indices: Any, rows: BatchPart) -> Any:
        if rows.total > rows.real:
            indices = self._padded(indices)
        return indices[rows.rows]

    def _padded(self, indices: Any) -> Any:
        """Return indices with those from the start of the epoch behind."""
        found = list(indices)
        place, missing = 0, self._size - len(found)
        number = (int(self.num_requests) if self.is_random_access
                  else len(self._first))
        while missing > 0:
            first = (self._whole_at(place, False) if self.is_random_access
                     else self._first[place])
            found += list(first)[:missing]
            missing = self._size - len(found)
            place = (place + 1) % max(1, number)
        return (numpy.array(found, dtype=numpy.intp)
                if isinstance(indices, numpy.ndarray) else found)

    def _at(self, position: int, compact: bool) -> Any:
        whole = self._whole_at(position, compact)
        rows = None if whole is None else self._deal(whole, position)
        return None if rows is None else self._part(as_splittable(whole), rows)

    def padding(self, count: int | None) -> Any:
        """Return which rows of the request made last repeat some."""
        return marks(count, False, self.rows_at(self.number))


def sharded_requests(requests: Iterator[Any], shard: Shard,
                     requests_examples: bool) -> RankRequests:
    """Return the requests of a rank."""
    if shard.splits:
        return SplitRequests(requests, shard)
    if requests_examples:
        return ShardedIndexRequests(requests, shard)
    return ShardedRequests(requests, shard)
