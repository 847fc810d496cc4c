"""Plain batches straight from the readers."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuel.datasets.row_orders import Order
from fuel.kernels.batches import Batches
from fuel.storage import Reader
from fuel.storage.mapped import MappedReader


def direct_batches(parts: Sequence[tuple[Reader, Reader | None, Order]],
                   num_examples: int, held: Any) -> Batches | None:
    """Return what reads plain batches in one call."""
    plain = []
    for reader, shape_reader, order in parts:
        rows = reader.direct()
        if (rows is None or shape_reader is not None
                or not isinstance(order, slice)):
            return None
        plain.append((rows, order.start, reader.shape[1:], reader.dtype))
    return Batches(plain, num_examples, MappedReader.THREADS_FROM,
                   (held, parts))
