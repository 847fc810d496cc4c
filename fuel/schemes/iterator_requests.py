"""Requests that come from iterators, of a user or of several schemes."""
from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from itertools import islice
from typing import Any

from fuel.schemes.requests import RequestIterator, num_batches


class CountedRequests(RequestIterator):
    """The requests of any iterator, counted."""

    num_requests = math.inf

    def __init__(self, iterator: Iterator[Any]) -> None:
        self.iterator = iterator

    def __next__(self) -> Any:
        request = next(self.iterator)
        self.position += 1
        return request

    def __length_hint__(self) -> int:
        return operator.length_hint(self.iterator)

    def advance(self, count: int) -> None:
        """Leave out the next `count` requests."""
        for _ in islice(self, count):
            pass


class ConcatenatedRequests(RequestIterator):
    """The requests of several iterators after each other."""

    num_requests = math.inf

    def __init__(self, parts: list[Iterator[Any]]) -> None:
        self.parts = parts

    def __next__(self) -> Any:
        while self.parts:
            try:
                request = next(self.parts[0])
            except StopIteration:
                self.parts = self.parts[1:]
            else:
                self.position += 1
                return request
        raise StopIteration

    def advance(self, count: int) -> None:
        """Skip requests without making them."""
        while count and self.parts:
            part = self.parts[0]
            moved = advance(part, count)
            self.position += moved
            count -= moved
            if count:
                self.parts = self.parts[1:]


class OneShotBatches(CountedRequests):
    """Lists of the elements of an iterator that can be read only once."""

    def __init__(self, iterator: Iterator[Any], batch_size: int,
                 drop_last: bool) -> None:
        super().__init__(iterator)
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __next__(self) -> list[Any]:
        request = list(islice(self.iterator, self.batch_size))
        if not request or (
                self.drop_last and len(request) < self.batch_size):
            raise StopIteration
        self.position += 1
        return request

    def __length_hint__(self) -> int:
        return num_batches(
            super().__length_hint__(), self.batch_size, self.drop_last)


def as_requests(iterator: Iterator[Any]) -> RequestIterator:
    """Return requests that know their position."""
    if isinstance(iterator, RequestIterator):
        return iterator
    return CountedRequests(iterator)


def advance(requests: Iterator[Any], count: int) -> int:
    """Leave out `count` requests of any iterator."""
    if isinstance(requests, RequestIterator):
        before = requests.position
        requests.advance(count)
        return requests.position - before
    return sum(1 for _ in islice(requests, count))
