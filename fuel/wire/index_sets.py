"""Sets of batch indices that are dense at the bottom."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fuel.wire.header import WireError

_MOST_RANGES = 1 << 16
_LARGEST = 1 << 48


class Indices:
    """All numbers below a floor, and some above it."""

    def __init__(self, floor: int = 0, above: Iterable[int] = ()) -> None:
        self.floor = floor
        self.above: set[int] = set()
        for index in above:
            self.add(index)

    def __contains__(self, index: int) -> bool:
        return index < self.floor or index in self.above

    def add(self, index: int) -> None:
        """Add a number."""
        if index < self.floor:
            return
        self.above.add(index)
        while self.floor in self.above:
            self.above.remove(self.floor)
            self.floor += 1

    def raise_floor(self, floor: int) -> None:
        """Add all numbers below `floor`."""
        if floor > self.floor:
            self.floor = floor
            self.above = {index for index in self.above if index >= floor}
            while self.floor in self.above:
                self.above.remove(self.floor)
                self.floor += 1

    def discard(self, indices: set[int]) -> None:
        """Take numbers out again."""
        if not indices:
            return
        lowest = min(indices)
        if lowest < self.floor:
            self.above.update(range(lowest, self.floor))
            self.floor = lowest
        self.above -= indices


def as_ranges(indices: Iterable[int]) -> list[list[int]]:
    """Return numbers as ``[start, stop]`` pairs, ready for JSON."""
    ranges: list[list[int]] = []
    for index in sorted(indices):
        if ranges and ranges[-1][1] == index:
            ranges[-1][1] += 1
        else:
            ranges.append([index, index + 1])
    return ranges


def from_ranges(ranges: Any) -> set[int]:
    """Return the numbers that :func:`as_ranges` was given."""
    indices: set[int] = set()
    if not isinstance(ranges, list) or len(ranges) > _MOST_RANGES:
        raise WireError('not a list of ranges')
    for pair in ranges:
        if not isinstance(pair, list) or len(pair) != 2 or not all(
                type(end) is int and 0 <= end < _LARGEST for end in pair):
            raise WireError(f'not a range: {str(pair)[:40]}')
        if len(indices) + pair[1] - pair[0] > _MOST_RANGES * 16:
            raise WireError('too many indices')
        indices.update(range(*pair))
    return indices
