"""Digests of orders: sums of hashes of the examples and of their places."""
from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.sharding.made import example_ids
from fuel.sharding.order import EpochOrder

# Examples that are hashed at once.
_CHUNK = 65536


def digest_of(order: EpochOrder, start: int, stop: int | None) -> int:
    """Return the sum, modulo 2 ** 64, of the hashes of examples.

    `start`, `stop`: numbers of the first example, and of the example after
        the last one; None for the end of the epoch.
    """
    total = 0
    for first, pairs in _chunks(order, start, stop):
        total += int(_hashes(first, pairs).sum(dtype=numpy.uint64))
    return total % 2 ** 64


def _chunks(order: EpochOrder, start: int, stop: int | None,
            ) -> Iterator[tuple[int, list[tuple[int, Any]]]]:
    """Yield parts of the examples, each with the number of its first one."""
    size = order.batch_size or (1 if order.is_single else None)
    item = 0
    if size is not None:
        # Items of one size can be passed without looking at them; the last
        # one is looked at.
        item = start // size
        item = max(0, min(item, order.count_to(item + 1) - 1))
    place = 0 if size is None else item * size
    first, pairs = start, []
    while (stop is None or place < stop) and order.count_to(item + 1) > item:
        ids = example_ids(order.make(item))
        pairs += ids[max(0, start - place):
                     None if stop is None else max(0, stop - place)]
        place += len(ids)
        item += 1
        if len(pairs) >= _CHUNK:
            yield first, pairs
            first, pairs = first + len(pairs), []
    last = start if stop is None else stop
    if place < last:
        asked = '' if stop is not None else (
            f', and the range from {start} on is beyond its end: start may be '
            f'at most {place}')
        raise IndexError(
            f'the epoch has {place} examples, so example {last - 1} does not '
            f'come{asked}')
    yield first, pairs


def _hashes(first: int, pairs: list[tuple[int, Any]]) -> NDArray[Any]:
    """Return the hash of each example, at consecutive places from `first`
    on."""
    datasets = numpy.array([number for number, _ in pairs], numpy.uint64)
    rows = numpy.array([_as_number(row) for _, row in pairs], numpy.uint64)
    places = numpy.arange(first, first + len(pairs), dtype=numpy.uint64)
    return _mix(_mix(_mix(rows) + datasets) + places)


def _as_number(row: Any) -> int:
    """Return a row as an integer below 2 ** 64."""
    if isinstance(row, numpy.generic):
        # Releases of NumPy differ in the text of a scalar.
        row = row.item()
    if isinstance(row, int):
        return row % 2 ** 64
    return int.from_bytes(
        blake2b(repr(row).encode(), digest_size=8).digest(), 'little')


def _mix(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return a hash of each number: the finalizer of SplitMix64."""
    x = numbers + numpy.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    mixed: NDArray[Any] = x ^ (x >> numpy.uint64(31))
    return mixed
