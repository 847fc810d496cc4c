"""Prefetch what the next requests of an epoch need, in the background.

Readers do it: chunks are decoded, pages are read from the disk, and bytes are
fetched from where a file is.
"""
from __future__ import annotations

import collections
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy

from fuel.datasets.row_orders import Order, pick
from fuel.datasets.rows import as_rows, is_batch
from fuel.storage import Reader

#: For each source its reader, and its rows in the order of the examples.
Parts: TypeAlias = Sequence[tuple[Reader, Order]]


class RequestPrefetcher:
    """Prefetches what the next requests of an epoch need.

    `upcoming`: takes the number of a request and returns it, None after the
        last.
    `prefetch`: takes a list of requests and how many bytes may be spent on
        them; returns how many are, None if that is too little.
    `budget`: bytes that may be spent on what was prefetched and not yet read.
    """

    # How many requests are looked at beyond the present one: more than most
    # windows of blocks last, so that there is always something to decode.
    DEPTH = 32
    # How many of them at once: to look at a request takes time.
    STEPS = 8
    # How many of them together, as one request.
    GROUP = 1
    # After there was no budget for more, the part of it that is spent at most
    # when more are looked at.
    SPENT = .75
    # The first one that is looked at, beyond the present one.
    FIRST = 1
    # The method of readers that does it, and the one that says how many bytes
    # it may take.
    METHOD = 'prefetch'
    BUDGET = 'prefetch_budget'

    def __init__(self, upcoming: Callable[[int], Any],
                 prefetch: Callable[[Sequence[Any], int], int | None],
                 budget: int) -> None:
        self._upcoming = upcoming
        self._prefetch = prefetch
        self._budget = budget
        # The number of the next request to look at, and what those between
        # it and the present one cost.
        self._next = 0
        self._costs: collections.deque[int] = collections.deque()
        self._cost = 0
        # What they cost when the next one was more than the budget, so that
        # it is looked at again when they cost less; -1 if it was not yet.
        self._refused_at = -1

    def __call__(self, position: int) -> None:
        """Prefetch what comes after request number `position`."""
        if self._next <= position:
            self._next = position + self.FIRST
            self._costs.clear()
            self._cost, self._refused_at = 0, -1
        while len(self._costs) > self._next - position - self.FIRST:
            self._cost -= self._costs.popleft()
        # Not for each request, but for several at a time.
        if (0 <= self._refused_at <= self._cost
                or self._next > position + self.DEPTH - self.STEPS):
            return
        self._refused_at = -1
        last = min(position + self.DEPTH, self._next + self.STEPS)
        while self._next <= last:
            stop = min(self._next + self.GROUP, last + 1)
            requests = list(itertools.takewhile(
                lambda request: request is not None,
                map(self._upcoming, range(self._next, stop))))
            if not requests:
                return
            cost = self._prefetch(requests, self._budget - self._cost)
            while cost is None and len(requests) > 1:
                del requests[len(requests) // 2:]
                cost = self._prefetch(requests, self._budget - self._cost)
            if cost is None:
                self._refused_at = min(
                    self._cost, int(self.SPENT * self._budget))
                return
            # What they need together is spent until the last one is read.
            self._costs.extend([0] * (len(requests) - 1))
            self._costs.append(cost)
            self._cost += cost
            self._next += len(requests)


class BytePrefetcher(RequestPrefetcher):
    """Fetches the bytes of the next requests: of as many as there is a
    budget for, since a network takes long to answer and can do a lot at a
    time. Of many together, since rows of one batch are far from each other,
    and many small requests take longer than a few large ones."""

    DEPTH = 1 << 20
    STEPS = GROUP = 64
    SPENT = .5
    FIRST = 0
    METHOD = 'fetch'
    BUDGET = 'fetch_budget'


def prefetcher_of(upcoming: Callable[[int], Any], parts: Parts,
                  num_examples: int) -> Callable[[int], None] | None:
    """Return what reads the next requests of an epoch in the background, to
    be called with the number of the present one.

    `upcoming`: takes the number of a request in the epoch and returns it, None
        after the last.
    """
    fetch = make_prefetcher(BytePrefetcher, upcoming, parts, num_examples)
    decode = make_prefetcher(RequestPrefetcher, upcoming, parts, num_examples)
    if fetch is None or decode is None:
        return fetch or decode
    both = fetch, decode

    def fetch_and_decode(position: int) -> None:
        for one in both:
            one(position)

    return fetch_and_decode


def make_prefetcher(kind: type[RequestPrefetcher],
                    upcoming: Callable[[int], Any], parts: Parts,
                    num_examples: int) -> RequestPrefetcher | None:
    """Return a prefetcher over the readers that have a budget for it."""
    # Whoever closes the file in the middle of an epoch does not wait for
    # its end.
    needed, budgets = [], []
    for reader, order in parts:
        budget = getattr(reader, kind.BUDGET)(order)
        if budget is not None:
            needed.append((weakref.ref(reader), order))
            budgets.append(budget)
    if not needed:
        return None

    def prefetch(requests: Sequence[Any], budget: int) -> int | None:
        if not all(map(is_batch, requests)):
            return None
        try:
            positions = numpy.concatenate([
                as_rows(request, num_examples) for request in requests])
        except ValueError:
            # It is raised when the request is made.
            return None
        total = 0
        for reference, order in needed:
            reader = reference()
            cost = None if reader is None else getattr(reader, kind.METHOD)(
                pick(order, positions), budget - total)
            if cost is None:
                return None
            total += cost
        return total

    return kind(upcoming, prefetch, min(budgets))
