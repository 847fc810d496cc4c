"""Requests of one of several ranks that share the order of an epoch.

Their position is that of the whole order, so it is equal on all ranks after
each step, and any number of ranks can resume from it.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

import numpy

from fuel.schemes.requests import IndexRequests, RequestIterator, as_requests
from fuel.schemes.shard import BatchPart, Shard
from fuel.sharding.dealer import Dealer, Dealt, ReadInOrder
from fuel.typing import Request


class ChosenRequests(RequestIterator):
    """Base class of iterators that choose from the requests of another
    iterator.

    Subclasses implement :meth:`_next` and :meth:`_at`. Their argument
    `compact` says whether to return an array if possible.
    """

    requests: RequestIterator

    def _next(self, compact: bool) -> Any:
        """Return the next request."""
        raise NotImplementedError

    def _at(self, position: int, compact: bool) -> Any:
        """Return the request at a position, None after the last."""
        raise NotImplementedError

    @property
    def is_random_access(self) -> bool:
        """Whether each request can be made by its number (bool)."""
        return self.requests.is_random_access

    @property
    def batch_size(self) -> Any:
        """Number of indices of a whole request, None if it is not known."""
        return self.requests.batch_size

    def __next__(self) -> Any:
        return self._next(False)

    def next_compact(self) -> Any:
        """Return the next request, as an array if possible."""
        return self._next(True)

    def request_at(self, position: int) -> Any:
        """Return the request at a position, None after the last."""
        return self._at(position, False)

    def compact_at(self, position: int) -> Any:
        """Return the request of :meth:`request_at`, as an array if
        possible."""
        return self._at(position, True)


class RowRequests(ChosenRequests):
    """Requests of another iterator; the next request is cut to chosen rows.

    `rows`: rows of the next request, or their numbers; None for all of them.
    """

    def __init__(self, requests: RequestIterator) -> None:
        self.requests = requests
        self.num_requests = requests.num_requests
        self.position = requests.position
        self.rows: slice | list[int] | None = None

    def _at(self, position: int, compact: bool) -> Any:
        request = (self.requests.compact_at(position) if compact
                   else self.requests.request_at(position))
        if self.rows is None or position != self.position or request is None:
            return request
        return self._cut(request, self.rows)

    @staticmethod
    def _cut(request: Any, chosen: slice | list[int]) -> Any:
        """Return the chosen rows of a request."""
        indices = as_splittable(request)
        if isinstance(chosen, list) and not isinstance(
                indices, numpy.ndarray):
            return [indices[row] for row in chosen]
        rows = indices[chosen]
        return (numpy.ascontiguousarray(rows)
                if isinstance(rows, numpy.ndarray) else rows)

    def _next(self, compact: bool) -> Any:
        request = self._at(self.position, compact)
        if request is None:
            raise StopIteration
        self.position += 1
        return request

    def made_last(self, count: int) -> list[Any] | None:
        """Return the last requests that were made; the last one is cut."""
        found = self.requests.made_last(1) if (
            not self.is_random_access) else [
                self.request_at(self.position - back)
                for back in range(count, 0, -1)]
        if found and self.rows is not None:
            found[-1] = self._cut(found[-1], self.rows)
        return found

    def last_compact(self) -> Any:
        """Return the last request that was made, cut."""
        found = self.made_last(1)
        return found and found[0]

    def rows_at(self, position: int) -> BatchPart:
        """Return the chosen rows as a part of the request at a position."""
        total = len(as_splittable(self.requests.compact_at(position)))
        rows = slice(None) if self.rows is None else self.rows
        return BatchPart(rows, total, total)


def as_splittable(request: Request) -> Any:
    """Return a request as a sequence whose parts are requests."""
    if isinstance(request, slice) and request.stop is not None:
        return range(*request.indices(request.stop))
    if isinstance(request, (list, tuple, range, numpy.ndarray)):
        return request
    raise TypeError(
        'only lists of indices can be split over ranks, but the scheme '
        f"requested {request!r:.80} ({type(request).__name__}): use "
        "by='batch'")


def marks(count: int | None, repeats: bool, rows: BatchPart | None) -> Any:
    """Return a mask of the rows of a batch that repeat earlier examples.

    `count`: number of rows; None for a single example, which gets one bool.
    `repeats`: whether the whole item is a repeat.
    `rows`: the rank's rows of the batch, None if the batch is not split.
    """
    if count is None:
        return repeats
    found = numpy.full(count, repeats)
    if rows is not None:
        found |= numpy.arange(rows.total)[rows.rows] >= rows.real
    return found


class SoughtRequests:
    """Requests with random access, to be dealt to ranks.

    `full`: number of examples of a full batch. Of batches that are split, only
        the last may have fewer.
    """

    def __init__(self, requests: RequestIterator, full: int) -> None:
        self.requests = requests
        self.full = full
        # Number of the request whose size was computed last, and the request.
        self._sized: tuple[int, Any] = -1, None

    def count(self, stop: int, wanted: int) -> float:
        """Return the number of requests."""
        return self.requests.num_requests

    def sizes(self, item: int) -> tuple[int, int]:
        """Return the size of a request, and the size of a full request."""
        full = self.full
        if item + 1 < self.requests.num_requests:
            return full, full
        request = self.requests.compact_at(item)
        self._sized = item, request
        return len(as_splittable(request)), full

    def take(self, item: int, compact: bool) -> Any:
        """Return a request."""
        if not compact:
            return self.requests.request_at(item)
        number, request = self._sized
        return request if number == item else self.requests.compact_at(item)

    @property
    def num_first(self) -> int:
        """Number of the epoch's first requests that can be repeated (int)."""
        return int(min(self.requests.num_requests, self.full))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_sized': (-1, None)}


class RequestsInOrder(ReadInOrder):
    """Requests without random access, to be dealt to ranks."""

    def __init__(self, requests: RequestIterator, full: int,
                 first: int) -> None:
        super().__init__(requests.position, first)
        self.requests = requests
        self.full = full

    def read(self) -> Any:
        """Return the next request."""
        return next(self.requests)

    def skip(self, count: int) -> None:
        """Leave out the next `count` requests."""
        try:
            self.requests.advance(count)
        finally:
            self.position = self.requests.position

    def sizes(self, item: int) -> tuple[int, int]:
        """Return the size of a request that was read, and of a full one."""
        return len(as_splittable(self._kept[item])), self.full

    def take(self, item: int, compact: bool) -> Any:
        """Return a request that was read."""
        return self.take_kept(item)

    @property
    def num_first(self) -> int:
        """Number of the epoch's first requests that are kept (int)."""
        return min(self.position, self.first)


class RankRequests(ChosenRequests):
    """The requests of a rank, or the rank's parts of all requests."""

    _is_compact = False
    # The position before the last request that was made by Python code, not by
    # a compiled reader.
    _begin = 0

    def __init__(self, requests: Iterator[Any], shard: Shard) -> None:
        self.requests = inner = as_requests(requests)
        self.shard = shard
        self.num_requests = inner.num_requests
        self.requests_examples = inner.requests_examples
        self.position = inner.position
        full = inner.batch_size or shard.num_shards
        first = 0 if shard.uneven != 'pad' else (
            full if shard.splits else shard.num_shards - 1)
        # If the batch size is not known, any batch may be short, and a step
        # may take several batches.
        is_sought = inner.is_random_access and (
            not shard.splits or inner.batch_size is not None)
        self._order: Any = (
            SoughtRequests(inner, full) if is_sought
            else RequestsInOrder(inner, full, first))
        self.dealer = Dealer(self._order, shard)
        self._set_step()

    def _set_step(self) -> None:
        shard = self.shard
        self.step, self.offset = shard.step, shard.offset
        if not shard.splits and not math.isinf(self.num_requests):
            # A round that begins at the limit or later is not complete.
            self.limit = max(
                0, int(self.num_requests) - shard.num_shards + 1)

    @property
    def is_random_access(self) -> bool:
        """Whether each request can be made by its number (bool)."""
        return isinstance(self._order, SoughtRequests)

    @property
    def batch_size(self) -> Any:
        """Number of indices of a whole request, None if it is not known."""
        if self.shard.splits:
            return -(-self._order.full // self.shard.num_shards)
        return self.requests.batch_size

    def plain_order(self) -> Any:
        """Return the indices of all ranks, None if batches are split."""
        return None if self.shard.splits else self.requests.plain_order()

    @property
    def last_position(self) -> int:
        """The position before the request that was made last (int)."""
        # The last round may have been short.
        return max(self._begin, self.position - self.step)

    def _next(self, compact: bool) -> Any:
        self._is_compact, self._begin = compact, self.position
        try:
            self.last = self.dealer.take(self.position, self._part)
            return self.last
        finally:
            self.position = self.dealer.next

    def _at(self, position: int, compact: bool) -> Any:
        self._is_compact = compact
        dealt = self.dealer.find(position)
        return None if dealt is None else self._part(dealt)

    def _part(self, dealt: Dealt) -> Any:
        """Return the rank's part of a request."""
        request = self._order.take(dealt.item, self._is_compact)
        rows = dealt.rows
        if rows is None:
            return request
        indices = as_splittable(request)
        if rows.total > rows.real:
            indices = self._padded(indices, rows.total)
        return indices[rows.rows]

    def _padded(self, indices: Any, total: int) -> Any:
        """Return indices, padded with indices from the epoch's start."""
        found, more = list(indices), total - len(indices)
        first: list[Any] = []
        for place in range(self._order.num_first):
            first += list(self._order.take(place, False))[:more - len(first)]
        if not first:
            raise ValueError(
                "uneven='pad' repeats examples from the start of an epoch, "
                f'but its first {self._order.num_first} batches are empty: '
                "use uneven='drop' or 'uneven'")
        found += islice(cycle(first), more)
        return (numpy.array(found, dtype=numpy.intp)
                if isinstance(indices, numpy.ndarray) else found)

    def advance(self, count: int) -> None:
        """Leave out `count` requests of the whole order."""
        stop, order = self.position + count, self._order
        if isinstance(order, SoughtRequests):
            self.position = int(min(stop, self.num_requests))
            return
        try:
            order.count(stop, -1)
        finally:
            self.position = min(stop, order.position)

    def skip(self, count: int) -> None:
        """Leave out the requests of the next steps."""
        if self.is_random_access or not self.shard.splits:
            # Each step is one batch, or one round.
            super().skip(count)
            return
        try:
            self.dealer.skip(self.position, count)
        finally:
            self.position = self.dealer.next

    def rows_at(self, item: int) -> BatchPart | None:
        """Return the rank's rows of a request, None if it is not split.

        Without random access, only the rows of the last request are known.
        """
        last = self.dealer.last
        if last.item == item:
            return last.rows
        if not (self.shard.splits and self.is_random_access):
            return None
        # A compiled reader may have made the request without the dealer.
        dealt = self.dealer.find(item)
        return None if dealt is None else dealt.rows

    @property
    def number(self) -> int:
        """The number of the batch whose rows were requested last (int)."""
        return (self.position - 1 if self.is_random_access
                else self.dealer.last.item)

    def padding(self, count: int | None) -> Any:
        """Return a mask of the rows of the last request that are repeats."""
        return marks(count, self.dealer.last.repeats,
                     self.rows_at(self.number))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._set_step()


class RankIndices(RankRequests, IndexRequests):
    """The single indices of a rank."""

    def peek(self, count: int) -> list[Any]:
        """Return the next requests of the rank without advancing."""
        found = []
        for place in range(count):
            request = self._at(self.position + place * self.step, False)
            if request is None:
                break
            found.append(request)
        return found


def sharded_requests(requests: Iterator[Any], shard: Shard,
                     requests_examples: bool) -> RankRequests:
    """Return the requests of a rank."""
    return (RankIndices if requests_examples else RankRequests)(
        requests, shard)
