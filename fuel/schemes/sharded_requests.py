"""Requests of one of several ranks that share the order of an epoch.

Their position is that of the whole order, so it is equal on all ranks after
each step, and any number of ranks can go on from it.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy

from fuel.schemes.iterator_requests import as_requests
from fuel.schemes.requests import IndexRequests, RequestIterator
from fuel.schemes.row_requests import Rows, as_rows, marks
from fuel.schemes.shard import Shard
from fuel.typing import Request


class Known:
    """Requests of an epoch by their number, where those are known.

    Of other iterators the first `most` are kept, for padding.
    """

    def __init__(self, requests: RequestIterator, most: int) -> None:
        self.requests = requests
        self.most = most
        self.first: list[Any] = []

    @property
    def is_random_access(self) -> bool:
        """Whether any request is known by its number (bool)."""
        return self.requests.is_random_access

    def at(self, place: int, compact: bool = False) -> Any:
        """Return a request by its number, None after the last."""
        if place >= self.requests.num_requests:
            return None
        return (self.requests.compact_at(place) if compact
                else self.requests.request_at(place))

    def take(self) -> Any:
        """Return the next request; StopIteration after the last."""
        place = self.requests.position
        request = next(self.requests)
        if place < self.most:
            self.first.append(request)
        return request

    def skip(self, count: int) -> int:
        """Leave out requests, and return how many there were."""
        before = self.requests.position
        while count and self.requests.position < self.most:
            try:
                self.take()
            except StopIteration:
                return self.requests.position - before
            count -= 1
        self.requests.advance(count)
        return self.requests.position - before


class ShardedRequests(RequestIterator):
    """Every n-th request of an order."""

    def __init__(self, requests: Iterator[Any], shard: Shard) -> None:
        inner = as_requests(requests)
        pads = shard.uneven == 'pad'
        self.known = Known(inner, shard.num_shards - 1 if pads else 0)
        self.shard = shard
        self.num_requests = inner.num_requests
        self.requests_examples = inner.requests_examples
        self.position = inner.position
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

    @property
    def batch_size(self) -> Any:
        """Number of indices of a request, where the requests have one."""
        return getattr(self.known.requests, 'batch_size', None)

    @property
    def is_random_access(self) -> bool:
        """Whether any request is known by its number (bool)."""
        return self.known.is_random_access

    def plain_order(self) -> Any:
        """Return the indices of the whole epoch, of all ranks."""
        return self.known.requests.plain_order()

    def __next__(self) -> Any:
        return self._next(False)

    def next_compact(self) -> Any:
        """Return the next request, as an array where there is one."""
        return self._next(True)

    def _next(self, compact: bool) -> Any:
        if not self.is_random_access:
            return self._take()
        request = self._at(self.position, compact)
        if request is None:
            raise StopIteration
        self._repeats = (
            self.position + self.offset >= self.num_requests)
        self.position = int(min(self.position + self.step,
                                self.num_requests))
        return request

    def _at(self, position: int, compact: bool) -> Any:
        """Return the request of the round that begins at a position."""
        total = self.num_requests
        if position + self.step > total:
            place = self._place_in_last(position, int(total))
            return None if place is None else self.known.at(place, compact)
        return self.known.at(position + self.offset, compact)

    def _place_in_last(self, position: int, total: int) -> int | None:
        """Return the rank's request in a round that is not complete."""
        policy, place = self.shard.uneven, position + self.offset
        if position >= total or policy == 'drop':
            return None
        if place >= total:
            return place % total if policy == 'pad' else None
        return place

    def request_at(self, position: int) -> Any:
        """Return the request of the round that begins at a position."""
        return self._at(position, False)

    def compact_at(self, position: int) -> Any:
        """Return what :meth:`request_at` does, as an array if possible."""
        return self._at(position, True)

    def _take(self) -> Any:
        """Return the next request of an order that is read in order."""
        known, shard = self.known, self.shard
        found = known.skip(shard.rank)
        request = None
        if found == shard.rank:
            try:
                request = known.take()
            except StopIteration:
                pass
            else:
                found += 1 + known.skip(shard.num_shards - 1 - shard.rank)
        self.position = known.requests.position
        if found < shard.num_shards:
            return self._take_of_last(request, found)
        self._repeats = False
        return request

    def _take_of_last(self, request: Request, found: int) -> Any:
        policy = self.shard.uneven
        has_own = found > self.shard.rank
        if not found or policy == 'drop' or (
                policy == 'uneven' and not has_own):
            raise StopIteration
        self._repeats = not has_own
        if has_own:
            return request
        first = self.known.first
        return first[(self.shard.rank - found) % len(first)]

    def padding(self, count: int | None) -> Any:
        """Return which rows of the request made last repeat some."""
        return marks(count, self._repeats, None)

    def advance(self, count: int) -> None:
        """Leave out `count` requests of the whole order."""
        if self.is_random_access:
            super().advance(count)
        else:
            self.known.skip(count)
            self.position = self.known.requests.position

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


class SplitRequests(RequestIterator):
    """A rank's part of each batch of an order."""

    def __init__(self, requests: Iterator[Any], shard: Shard) -> None:
        inner = as_requests(requests)
        self.shard = shard
        self.full_size = getattr(inner, 'batch_size', None)
        self.known = Known(inner, (
            self._size() if shard.uneven == 'pad' else 0))
        self.num_requests = inner.num_requests
        self.position = inner.position
        # Of the request made last, unless any is known by its number.
        self._last: Rows | None = None

    def _size(self) -> int:
        """Return how many examples a batch has that is not short."""
        return self.full_size or self.shard.num_shards

    @property
    def is_random_access(self) -> bool:
        """Whether any request is known by its number (bool)."""
        return self.known.is_random_access

    @property
    def batch_size(self) -> int:
        """Number of indices of a request at most."""
        return -(-self._size() // self.shard.num_shards)

    def __next__(self) -> Any:
        return self._next(False)

    def next_compact(self) -> Any:
        """Return the next request, as an array where there is one."""
        return self._next(True)

    def _next(self, compact: bool) -> Any:
        while True:
            if self.is_random_access:
                whole = self.known.at(self.position, compact)
                if whole is None:
                    raise StopIteration
                self.position += 1
            else:
                whole = self.known.take()
                self.position = self.known.requests.position
            request, self._last = self._cut(whole)
            if request is not None:
                return request

    def rows_at(self, position: int) -> Rows | None:
        """Return the rank's rows of a request: of any, or of the last."""
        if self.is_random_access:
            return self._cut(self.known.at(position, True))[1]
        return self._last

    def _cut(self, whole: Request) -> tuple[Any, Rows | None]:
        """Return the rank's part of a request, None if it has none."""
        indices = as_rows(whole)
        real = len(indices)
        if real < self._size():
            if self.shard.uneven == 'drop':
                return None, None
            if self.shard.uneven == 'pad':
                indices = self._padded(indices)
        part = self.shard.part(len(indices))
        rows = Rows(part, len(indices), real)
        return (indices[part] if part.start < part.stop else None), rows

    def _padded(self, indices: Any) -> Any:
        """Return indices with those from the start of the epoch behind."""
        found = list(indices)
        place, missing = 0, self._size() - len(found)
        while missing > 0:
            first = (self.known.at(place) if self.is_random_access
                     else self.known.first[place])
            found += list(first)[:missing]
            missing = self._size() - len(found)
            place = (place + 1) % max(1, self._number_of_first())
        return (numpy.array(found, dtype=numpy.intp)
                if isinstance(indices, numpy.ndarray) else found)

    def _number_of_first(self) -> int:
        if self.is_random_access:
            return int(self.num_requests)
        return len(self.known.first)

    def request_at(self, position: int) -> Any:
        """Return the rank's part of a request, None if it has none."""
        whole = self.known.at(position)
        return None if whole is None else self._cut(whole)[0]

    def compact_at(self, position: int) -> Any:
        """Return what :meth:`request_at` does, as an array if possible."""
        whole = self.known.at(position, True)
        return None if whole is None else self._cut(whole)[0]

    def padding(self, count: int | None) -> Any:
        """Return which rows of the request made last repeat some."""
        return marks(count, False, self.rows_at(self.position - 1))

    def advance(self, count: int) -> None:
        """Leave out `count` requests."""
        if self.is_random_access:
            super().advance(count)
        else:
            self.known.skip(count)
            self.position = self.known.requests.position


def sharded_requests(requests: Iterator[Any], shard: Shard,
                     requests_examples: bool) -> RequestIterator:
    """Return the requests of a rank."""
    if shard.splits:
        return SplitRequests(requests, shard)
    if requests_examples:
        return ShardedIndexRequests(requests, shard)
    return ShardedRequests(requests, shard)
