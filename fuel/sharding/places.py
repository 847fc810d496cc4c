"""Places: where an example comes in an epoch."""
from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from typing import Any, NamedTuple

from fuel.schemes.inverse import Inverse, as_index
from fuel.sharding.made import (
    DatasetRows, Joined, Made, example_ids, num_rows)

# Number of items that are scanned first; each time as many again.
_FIRST_SCANNED = 1024


class ItemPlace(NamedTuple):
    """A place of an example in an epoch.

    `item`: number of the item.
    `offset`: number of the row in the item, 0 for a single example.
    """

    item: int
    offset: int


def every_row(made: Made, first: int = 0) -> Iterator[tuple[int, Any, int]]:
    """Yield the data set, the index and the number of each row of an item,
    also of the rows of all streams that are merged.

    `first`: number of the first row.
    """
    if isinstance(made, DatasetRows):
        for offset, (dataset, row) in enumerate(example_ids(made), first):
            yield dataset, row, offset
        return
    for part in made.parts:
        yield from every_row(part, first)
        if isinstance(made, Joined):
            first += num_rows(part)


def places_in(made: Made, item: int, dataset: int, row: object,
              ) -> list[ItemPlace]:
    """Return the places of an example in an item, whose number is given."""
    return sorted({ItemPlace(item, offset)
                   for number, other, offset in every_row(made)
                   if number == dataset and other == row})


class ItemPlaces:
    """The places of consecutive items, by example.

    `stop`: number of the item after the last.
    """

    def __init__(self, items: Iterable[Made], start: int) -> None:
        rows: dict[int, list[Any]] = {}
        self._places: dict[int, tuple[array[int], array[int]]] = {}
        self.stop = start
        for item in items:
            for dataset, row, offset in every_row(item):
                if dataset not in rows:
                    rows[dataset] = []
                    self._places[dataset] = array('q'), array('q')
                rows[dataset].append(as_index(row))
                numbers, offsets = self._places[dataset]
                numbers.append(self.stop)
                offsets.append(offset)
            self.stop += 1
        self._rows = {
            dataset: Inverse(found) for dataset, found in rows.items()}

    def find(self, dataset: int, row: object) -> list[ItemPlace]:
        """Return the places of an example, in order."""
        if dataset not in self._rows:
            return []
        numbers, offsets = self._places[dataset]
        # Merged streams may have the example at one place.
        return sorted({ItemPlace(numbers[found], offsets[found])
                       for found in self._rows[dataset].find(row)})


class ScannedPlaces:
    """The places of all examples of an epoch, found in one scan of its items.

    The scan goes only as far as places are asked for.
    """

    def __init__(self) -> None:
        self._parts: list[ItemPlaces] = []
        self._is_over = False

    def find(self, scan: Callable[[int], Iterator[Made]], dataset: int,
             row: object, stop: int) -> Iterator[ItemPlace]:
        """Yield the places of an example, in order.

        `scan`: yields the items from a number on.
        `stop`: number of an item; places from there on may be left out.
        """
        for number in count():
            if number == len(self._parts):
                start = self._parts[-1].stop if self._parts else 0
                size = min(max(start, _FIRST_SCANNED), stop - start)
                if size <= 0:
                    return
                part = ItemPlaces(islice(scan(start), size), start)
                self._parts.append(part)
                self._is_over = part.stop < start + size
            part = self._parts[number]
            yield from part.find(dataset, row)
            if part.stop >= stop or (
                    self._is_over and part is self._parts[-1]):
                return
