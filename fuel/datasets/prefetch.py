"""Telling readers of the next requests, in terms of examples."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fuel.datasets.row_orders import Order, pick
from fuel.datasets.rows import as_batch, is_batch
from fuel.storage import FetchAhead, Reader, RequestsAhead


def requests_ahead(upcoming: Callable[[int], Any],
                   readers: Sequence[Reader], orders: Sequence[Order],
                   num_examples: int) -> Callable[[int], None] | None:
    """Return what reads the next requests of an epoch in the background, to
    be called with the number of the present one.

    `upcoming`: takes the number of a request in the epoch and returns it, None
        after the last.
    `orders`: for each source, its rows in the order of the examples.
    """
    fetch = fetch_ahead(upcoming, readers, orders, num_examples)
    rooms = [reader.needs_ahead(order)
             for reader, order in zip(readers, orders, strict=True)]
    expect = _ahead(RequestsAhead, upcoming, readers, orders, num_examples,
                    rooms, 'expect')
    if fetch is None or expect is None:
        return fetch or expect
    both = fetch, expect

    def ahead(position: int) -> None:
        for one in both:
            one(position)

    return ahead


def fetch_ahead(upcoming: Callable[[int], Any], readers: Sequence[Reader],
                orders: Sequence[Order], num_examples: int,
                ) -> FetchAhead | None:
    """Return what has the bytes of the next requests fetched, if they are
    in a remote file."""
    rooms = [reader.needs_fetching() for reader in readers]
    return _ahead(FetchAhead, upcoming, readers, orders, num_examples, rooms,
                  'fetch')


Ahead = TypeVar('Ahead', bound=RequestsAhead)


def _ahead(kind: type[Ahead], upcoming: Callable[[int], Any],
           readers: Sequence[Reader], orders: Sequence[Order],
           num_examples: int, rooms: Sequence[int | None],
           method: str) -> Ahead | None:
    """Return what prepares the next requests, by a method of the readers
    that have room for it."""
    # Whoever closes the file in the middle of an epoch does not wait for
    # its end.
    needed = [(weakref.ref(reader), order) for reader, order, room in zip(
        readers, orders, rooms, strict=True) if room is not None]
    if not needed:
        return None

    def expect(request: Any, room: int) -> int | None:
        if not is_batch(request):
            return None
        try:
            positions = as_batch(request, num_examples)
        except ValueError:
            # It is raised when the request is made.
            return None
        total = 0
        for reference, order in needed:
            reader = reference()
            cost = None if reader is None else getattr(reader, method)(
                pick(order, positions), room - total)
            if cost is None:
                return None
            total += cost
        return total

    return kind(upcoming, expect, min(
        room for room in rooms if room is not None))
