"""Telling readers of the next requests, in terms of examples."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from fuel.datasets.row_orders import Order, pick
from fuel.datasets.rows import as_batch, is_batch
from fuel.storage import Reader, RequestsAhead


def requests_ahead(upcoming: Callable[[int], Any],
                   readers: Sequence[Reader], orders: Sequence[Order],
                   num_examples: int) -> RequestsAhead | None:
    """Return what reads the next requests of an epoch in the background.

    `upcoming`: takes the number of a request in the epoch and returns it, None
        after the last.
    `orders`: for each source, its rows in the order of the examples.
    """
    # Whoever closes the file in the middle of an epoch does not wait for
    # its end.
    needed = [(weakref.ref(reader), order, room) for reader, order in zip(
        readers, orders, strict=True)
        if (room := reader.needs_ahead(order)) is not None]
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
        for reference, order, _ in needed:
            reader = reference()
            cost = None if reader is None else reader.expect(
                pick(order, positions), room - total)
            if cost is None:
                return None
            total += cost
        return total

    return RequestsAhead(upcoming, expect, min(
        room for _, _, room in needed))
