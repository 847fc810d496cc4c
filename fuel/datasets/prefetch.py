"""Prefetch what the next requests of an epoch need, by examples."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fuel.datasets.row_orders import Order, pick
from fuel.datasets.rows import as_rows, is_batch
from fuel.storage import BytePrefetcher, Reader, RequestPrefetcher


def prefetcher_of(upcoming: Callable[[int], Any],
                  readers: Sequence[Reader], orders: Sequence[Order],
                  num_examples: int) -> Callable[[int], None] | None:
    """Return what reads the next requests of an epoch in the background, to
    be called with the number of the present one.

    `upcoming`: takes the number of a request in the epoch and returns it, None
        after the last.
    `orders`: for each source, its rows in the order of the examples.
    """
    fetch = byte_prefetcher_of(upcoming, readers, orders, num_examples)
    budgets = [reader.prefetch_budget(order)
               for reader, order in zip(readers, orders, strict=True)]
    decode = _make_prefetcher(RequestPrefetcher, upcoming, readers, orders,
                              num_examples, budgets, 'prefetch')
    if fetch is None or decode is None:
        return fetch or decode
    both = fetch, decode

    def fetch_and_decode(position: int) -> None:
        for one in both:
            one(position)

    return fetch_and_decode


def byte_prefetcher_of(upcoming: Callable[[int], Any],
                       readers: Sequence[Reader], orders: Sequence[Order],
                       num_examples: int) -> BytePrefetcher | None:
    """Return what fetches the bytes of the next requests, if they are in a
    remote file."""
    budgets = [reader.needs_fetching() for reader in readers]
    return _make_prefetcher(BytePrefetcher, upcoming, readers, orders,
                            num_examples, budgets, 'fetch')


Prefetcher = TypeVar('Prefetcher', bound=RequestPrefetcher)


def _make_prefetcher(kind: type[Prefetcher], upcoming: Callable[[int], Any],
                     readers: Sequence[Reader], orders: Sequence[Order],
                     num_examples: int, budgets: Sequence[int | None],
                     method: str) -> Prefetcher | None:
    """Return what prepares the next requests, by a method of the readers
    that have a budget for it."""
    # Whoever closes the file in the middle of an epoch does not wait for
    # its end.
    needed = [(weakref.ref(reader), order) for reader, order, budget in zip(
        readers, orders, budgets, strict=True) if budget is not None]
    if not needed:
        return None

    def prefetch(request: Any, budget: int) -> int | None:
        if not is_batch(request):
            return None
        try:
            positions = as_rows(request, num_examples)
        except ValueError:
            # It is raised when the request is made.
            return None
        total = 0
        for reference, order in needed:
            reader = reference()
            cost = None if reader is None else getattr(reader, method)(
                pick(order, positions), budget - total)
            if cost is None:
                return None
            total += cost
        return total

    return kind(upcoming, prefetch, min(
        budget for budget in budgets if budget is not None))
