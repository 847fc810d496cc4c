"""Sets of batch indices, kept as intervals."""
from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from fuel.wire.header import WireError

_MOST_RANGES = 1 << 16
_LARGEST = 1 << 48


class IndexSet:
    """A set of non-negative integers, kept as intervals."""

    def __init__(self, ranges: Iterable[Iterable[int]] = ()) -> None:
        # Start and stop of each interval, in ascending order. The number of
        # bounds up to an index is odd inside of an interval and even outside.
        self._bounds: list[int] = []
        for start, stop in ranges:
            self.add(start, stop)

    def add(self, start: int, stop: int | None = None) -> None:
        """Add the index `start`, or all indices from `start` up to, but not
        including, `stop`."""
        stop = start + 1 if stop is None else stop
        if start < stop:
            bounds = self._bounds
            left = bisect_left(bounds, start)
            right = bisect_right(bounds, stop)
            bounds[left:right] = (
                [start][left % 2:] + [stop][right % 2:])

    def remove(self, start: int, stop: int | None = None) -> None:
        """Remove the index `start`, or all indices from `start` up to, but not
        including, `stop`."""
        stop = start + 1 if stop is None else stop
        if start < stop:
            bounds = self._bounds
            left = bisect_left(bounds, start)
            right = bisect_right(bounds, stop)
            bounds[left:right] = (
                [start][:left % 2] + [stop][:right % 2])

    def update(self, other: IndexSet) -> None:
        """Add all indices of another set."""
        for start, stop in other.ranges():
            self.add(start, stop)

    def difference_update(self, other: IndexSet) -> None:
        """Remove all indices of another set."""
        for start, stop in other.ranges():
            self.remove(start, stop)

    def __sub__(self, other: IndexSet) -> IndexSet:
        result = self.copy()
        result.difference_update(other)
        return result

    def __and__(self, other: IndexSet) -> IndexSet:
        return self - (self - other)

    def __or__(self, other: IndexSet) -> IndexSet:
        result = self.copy()
        result.update(other)
        return result

    def __contains__(self, index: int) -> bool:
        return bisect_right(self._bounds, index) % 2 == 1

    def __len__(self) -> int:
        return sum(self._bounds[1::2]) - sum(self._bounds[::2])

    def __iter__(self) -> Iterator[int]:
        for start, stop in self.ranges():
            yield from range(start, stop)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IndexSet) and self._bounds == other._bounds

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f'IndexSet({self.ranges()})'

    def copy(self) -> IndexSet:
        """Return another set with the same indices."""
        other = IndexSet()
        other._bounds = self._bounds.copy()
        return other

    def first_missing(self, start: int = 0) -> int:
        """Return the first index from `start` on that is not in the set."""
        place = bisect_right(self._bounds, start)
        return self._bounds[place] if place % 2 else start

    def end(self) -> int:
        """Return the number after the highest index; 0 for an empty set."""
        return self._bounds[-1] if self._bounds else 0

    def ranges(self) -> list[list[int]]:
        """Return ``[start, stop]`` of each interval, ready for JSON."""
        bounds = self._bounds
        return [bounds[place:place + 2] for place in range(0, len(bounds), 2)]


def from_ranges(ranges: object) -> IndexSet:
    """Check ranges from outside the process, and return them as a set."""
    if not isinstance(ranges, list) or len(ranges) > _MOST_RANGES:
        raise WireError('not a list of ranges')
    last = -1
    for pair in ranges:
        if not isinstance(pair, list) or len(pair) != 2 or not all(
                type(end) is int and 0 <= end < _LARGEST for end in pair) \
                or not last <= pair[0] < pair[1]:
            raise WireError(f'not a range: {str(pair)[:40]}')
        last = pair[1]
    return IndexSet(ranges)
