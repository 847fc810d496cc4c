"""The streams that the points of a mixture's epoch choose."""
from __future__ import annotations

from bisect import bisect_right

import numpy
from numpy.typing import NDArray

from fuel.schemes.mixing import BITS, CHUNK, MixingRequests, Points

# Number of chunks that are kept: a range of items may end in the next one.
_KEPT = 2


class Choices:
    """The streams that points choose by fixed thresholds.

    Of the chunks of points that were looked at last, the chosen streams are
    kept, so that neighbouring items are found at once.

    `points`: the points of the epoch.
    `thresholds`: the end of each stream's interval.
    """

    def __init__(self, points: MixingRequests, thresholds: Points) -> None:
        self._points = points
        self._thresholds = thresholds
        self._ends: list[int] = thresholds.tolist()
        self._chunks: dict[int, NDArray[numpy.intp]] = {}
        # By chunk and stream, the number of the stream's items before it.
        self._before: dict[tuple[int, int], int] = {}

    def streams(self, start: int, stop: int) -> NDArray[numpy.intp]:
        """Return the stream of each item of a range."""
        first, last = start // CHUNK, max(start, stop - 1) // CHUNK
        parts = [self._chunk(number) for number in range(first, last + 1)]
        found = parts[0] if len(parts) == 1 else numpy.concatenate(parts)
        return found[start - first * CHUNK:stop - first * CHUNK]

    def count(self, place: int, position: int) -> int:
        """Return how many items before a position come from a stream."""
        number, rest = divmod(position, CHUNK)
        found = self._count_before(number, place)
        return found + int(numpy.count_nonzero(
            self._chunk(number)[:rest] == place)) if rest else found

    def find(self, place: int, number: int) -> int:
        """Return the position of an item of a stream, by its number among the
        stream's items."""
        width = self._ends[place] - (self._ends[place - 1] if place else 0)
        # Points are so even that the item is near this position.
        guess = (number << BITS) // width // CHUNK
        for chunk in (guess, guess + 1, guess - 1):
            position = self._find_in(chunk, place, number)
            if position is not None:
                return position
        reach = 2
        while self._count_before(
                max(0, guess - reach), place) > number or (
                    self._count_before(guess + reach, place) <= number):
            reach *= 2
        chunk = max(0, guess - reach) - 1 + bisect_right(
            range(max(0, guess - reach), guess + reach), number,
            key=lambda chunk: self._count_before(chunk, place))
        position = self._find_in(chunk, place, number)
        assert position is not None
        return position

    def _find_in(self, chunk: int, place: int, number: int) -> int | None:
        """Return the position of an item of a stream; None if it is not in a
        chunk."""
        left = number - self._count_before(chunk, place) if chunk >= 0 else -1
        if left < 0:
            return None
        found = numpy.flatnonzero(self._chunk(chunk) == place)
        return chunk * CHUNK + int(found[left]) if left < len(found) else None

    def _chunk(self, number: int) -> NDArray[numpy.intp]:
        """Return the streams of the items of a chunk."""
        found = self._chunks.pop(number, None)
        if found is None:
            found = numpy.searchsorted(
                self._thresholds, self._points.chunk_at(number * CHUNK),
                side='right')
            while len(self._chunks) >= _KEPT:
                # The one that was looked at first.
                del self._chunks[next(iter(self._chunks))]
        self._chunks[number] = found
        return found

    def _count_before(self, number: int, place: int) -> int:
        """Return how many items before a chunk come from a stream."""
        found = self._before.get((number, place))
        if found is None:
            found = self._points.count_below(
                number, self._ends[place]) - (self._points.count_below(
                    number, self._ends[place - 1]) if place else 0)
            if len(self._before) > _KEPT * len(self._ends):
                self._before.clear()
            self._before[number, place] = found
        return found
