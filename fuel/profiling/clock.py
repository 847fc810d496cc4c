"""Epoch iterators that measure themselves, put between the stages."""
from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sized
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.iterator import DataIterator
from fuel.typing import StreamLike

Extents = list[tuple[int, int]]
#: Shape (stages, columns).
Rows = NDArray[numpy.float64]
COLUMNS = ('seconds', 'items', 'examples', 'written')


class Totals:
    """What the probes in several workers said last, added up."""

    def __init__(self) -> None:
        self._last: dict[int, Rows] = {}

    def add(self, rows: Rows) -> None:
        """Keep the rows of a probe, in the place of its earlier ones."""
        self._last[int(rows[0, 0])] = rows[1:].copy()

    def rows(self) -> Rows | None:
        """Return the sums over the workers, None if none said anything."""
        found = list(self._last.values())
        return numpy.sum(found, axis=0) if found else None


NO_TOTALS: Mapping[int, Totals] = {}


class Clock(DataIterator):
    """An epoch iterator that counts its time, items and new bytes.

    It stands in for another, whose epoch it shares.

    `totals`: of the worker processes whose items these are; each item has
        the measures of one at its end.
    `seconds`: from each call to its end, those of its children included.
    `written`: bytes of the items that are not in those of the children.
    """

    def __init__(self, iterator: DataIterator,
                 totals: Totals | None = None) -> None:
        self.data_stream = iterator.data_stream
        self.as_dict = iterator.as_dict
        self.epoch = iterator.epoch
        # The epoch is left where its first iterator is gone.
        self._iterator = iterator
        self.children: list[Clock] = []
        self.seconds = 0.
        self.items = 0
        self.examples = 0
        self.written = 0
        self._extents: Extents = []
        self._totals = totals

    def __next__(self) -> Any:
        begin = time.perf_counter()
        try:
            item = super().__next__()
        finally:
            self.seconds += time.perf_counter() - begin
        if self._totals is not None:
            self._totals.add(item[-1])
            item = item[:-1]
        self.items += 1
        self._measure(item)
        return item

    def _measure(self, item: Any) -> None:
        parts = item.values() if self.as_dict else item
        known = [extent for child in self.children
                 for extent in child._extents]
        self._extents = []
        if not isinstance(parts, (tuple, list)):
            return
        examples = 1
        for part in parts:
            for array in _arrays(part):
                extent = _extent(array)
                self._extents.append(extent)
                if not any(low <= extent[0] < high for low, high in known):
                    self.written += array.nbytes
        if not _produces_examples(self.data_stream) and len(parts):
            examples = _length(parts[0])
        self.examples += examples

    def own_seconds(self) -> float:
        """Return the time that is not that of the children."""
        return max(0., self.seconds - sum(
            child.seconds for child in self.children))


def _produces_examples(stream: StreamLike) -> bool:
    try:
        return bool(stream.produces_examples)
    except ValueError:
        return False


def _length(part: Sized) -> int:
    try:
        return len(part)
    except TypeError:
        return 1


def _arrays(part: object) -> Iterator[Any]:
    """Yield the arrays of a part of an item; lists hold one an example."""
    if isinstance(part, numpy.ndarray):
        if not part.dtype.hasobject:
            yield part
            return
        part = part.ravel().tolist()
    if isinstance(part, (list, tuple)):
        for element in part:
            if isinstance(element, numpy.ndarray):
                yield element


def _extent(array: NDArray[Any]) -> tuple[int, int]:
    """Return the first address of an array, and that behind its last."""
    first = array.__array_interface__['data'][0]
    steps = [(length - 1) * stride for length, stride in zip(
        array.shape, array.strides, strict=True) if array.size]
    return (first + sum(step for step in steps if step < 0),
            first + sum(step for step in steps if step > 0) + array.itemsize)


def instrument(iterator: DataIterator,
               remote: Mapping[int, Totals] = NO_TOTALS) -> Clock:
    """Return a clock for an epoch iterator, with one for each child.

    `remote`: totals of streams whose items come with measures, by `id`.
    """
    clock = Clock(iterator, remote.get(id(iterator.data_stream)))
    attributes = iterator.epoch.attributes

    def add(child: object) -> Any:
        if not isinstance(child, DataIterator):
            return child
        clock.children.append(instrument(child, remote))
        return clock.children[-1]

    if 'child_epoch_iterator' in attributes:
        attributes['child_epoch_iterator'] = add(
            attributes['child_epoch_iterator'])
    if 'child_epoch_iterators' in attributes:
        children = attributes['child_epoch_iterators']
        attributes['child_epoch_iterators'] = type(children)(
            [add(child) for child in children])
    return clock


def walk(clock: Clock) -> Iterator[Clock]:
    """Yield the clocks of a pipeline, outermost first."""
    yield clock
    for child in clock.children:
        yield from walk(child)


def rows_of(clock: Clock) -> Rows:
    """Return `COLUMNS` of each stage of a pipeline, outermost first."""
    return numpy.array([
        [one.own_seconds(), one.items, one.examples, one.written]
        for one in walk(clock)], float)
