"""The attribute `order` of streams."""
from __future__ import annotations

from typing import Any


class OrderAttribute:
    """The order of the epoch that is running, or that the next iterator
    begins (:class:`fuel.orders.StreamOrder`).

    It is the order of all ranks, and is known without reading data. A class of
    a user may have, or assign, an attribute with the same name.
    """

    # Without a setter, so that an object's own attribute comes first.
    def __get__(self, stream: Any, cls: type) -> Any:
        if stream is None:
            return self
        from fuel.orders.order import order_of
        return order_of(stream)
