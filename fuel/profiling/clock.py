"""Epoch iterators that measure themselves, put between the stages."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from numpy import ndarray
from numpy.typing import NDArray

from fuel.epochs.ahead import ReadAhead, TaskReader
from fuel.iterator import DataIterator
from fuel.kernels.stage_reader import StageReader
from fuel.typing import StreamLike
from fuel.utils.sparse import arrays_of, count_rows, is_sparse

Extents = list[tuple[int, int]]


class Tally:
    """What one stage took so far, in all epochs that were measured.

    `seconds`: from each call to its end, those of the stages below included.
    `written`: bytes of its items that are not in those of the stages below.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.seconds = 0.
        self.items = 0
        self.examples = 0
        self.written = 0


class Clock(DataIterator):
    """An epoch iterator that counts its time, items and new bytes.

    It stands in for another, whose epoch it shares.
    """

    def __init__(self, iterator: DataIterator, tally: Tally) -> None:
        self.data_stream = iterator.data_stream
        self.as_dict = iterator.as_dict
        self.epoch = iterator.epoch
        # The epoch is left where its first iterator is gone.
        self.iterator = iterator
        self.tally = tally
        self.children: list[Clock] = []
        self._extents: Extents = []

    def __next__(self) -> Any:
        begin = time.perf_counter()
        try:
            item = super().__next__()
        finally:
            reader = self.epoch.reader
            # What threads make was waited for, not made, meanwhile.
            self.tally.seconds += (
                reader.seconds if isinstance(reader, TaskReader)
                else time.perf_counter() - begin)
        self.tally.items += 1
        self._measure(item)
        return item

    def __reduce__(self) -> Any:
        # Pickles are of what it stands for.
        return self.iterator.__reduce__()

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
                    self.tally.written += array.nbytes
        if not _produces_examples(self.data_stream) and len(parts):
            examples = _length(parts[0])
        self.tally.examples += examples


def _produces_examples(stream: StreamLike) -> bool:
    try:
        return bool(stream.produces_examples)
    except ValueError:
        return False


def _length(part: object) -> int:
    try:
        return count_rows(part)
    except TypeError:
        return 1


def _arrays(part: object) -> Iterator[Any]:
    """Yield the arrays of a part of an item; lists hold one an example."""
    if is_sparse(part):
        yield from arrays_of(part)
        return
    if isinstance(part, ndarray):
        if not part.dtype.hasobject:
            yield part
            return
        part = part.ravel().tolist()
    if isinstance(part, (list, tuple)):
        for element in part:
            if isinstance(element, ndarray):
                yield element


def _extent(array: NDArray[Any]) -> tuple[int, int]:
    """Return the first address of an array, and that behind its last."""
    first = array.__array_interface__['data'][0]
    steps = [(length - 1) * stride for length, stride in zip(
        array.shape, array.strides, strict=True) if array.size]
    return (first + sum(step for step in steps if step < 0),
            first + sum(step for step in steps if step > 0) + array.itemsize)


def instrument(iterator: DataIterator,
               tally_of: Callable[[Any], Tally]) -> Clock:
    """Return a clock for an epoch iterator, with one for each child.

    `tally_of`: returns where the measures of a stream go.
    """
    clock = Clock(iterator, tally_of(iterator.data_stream))

    def measured(child: object) -> Any:
        if isinstance(child, ReadAhead):
            child.source = measured(child.source)
            return child
        if not isinstance(child, DataIterator):
            return child
        clock.children.append(instrument(child, tally_of))
        return clock.children[-1]

    _replace_children(iterator, measured)
    return clock


def remove(clock: Clock) -> DataIterator:
    """Return the epoch iterator that a clock stands for, without clocks."""
    def plain(child: object) -> Any:
        if isinstance(child, ReadAhead):
            child.source = plain(child.source)
            return child
        return remove(child) if isinstance(child, Clock) else child

    _replace_children(clock.iterator, plain)
    return clock.iterator


def _replace_children(iterator: DataIterator,
                      new: Callable[[object], Any]) -> None:
    """Put other iterators in the place of those that an epoch reads."""
    epoch = iterator.epoch
    attributes = epoch.attributes
    if 'child_epoch_iterator' in attributes:
        child = new(attributes['child_epoch_iterator'])
        attributes['child_epoch_iterator'] = child
        if isinstance(epoch.reader, (StageReader, TaskReader)):
            # It has read before.
            epoch.reader.child = child
    if 'child_epoch_iterators' in attributes:
        children = attributes['child_epoch_iterators']
        attributes['child_epoch_iterators'] = type(children)(
            map(new, children))
