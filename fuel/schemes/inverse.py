"""The positions of each value in a sequence."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray


class Inverse:
    """The positions of each value of a sequence.

    Integers are looked up in arrays, other values in a dict. Both are made
    once; a range needs neither.
    """

    def __init__(self, values: Any) -> None:
        self._range = values if isinstance(values, range) else None
        self._order: NDArray[Any] | None = None
        # The positions of integers that are all different, the first one at
        # 0; and all integers in order, if some come more than once.
        self._single: NDArray[Any] | None = None
        self._sorted: NDArray[Any] | None = None
        self._places: dict[Any, list[int]] = {}
        self._unhashable: list[tuple[int, Any]] = []
        if self._range is None:
            self._load(values)

    def _load(self, values: Any) -> None:
        integers = _as_integers(values)
        if integers is not None:
            self._single = _scattered(integers)
            if self._single is None:
                self._order = numpy.argsort(integers, kind='stable')
                self._sorted = integers[self._order]
            return
        for position, value in enumerate(values):
            try:
                self._places.setdefault(value, []).append(position)
            except TypeError:
                self._unhashable.append((position, value))

    def find(self, value: Any) -> Sequence[int]:
        """Return the positions at which a value is, in order."""
        value = as_index(value)
        if self._single is not None or self._sorted is not None or (
                self._range is not None):
            return self._find_integer(value) if isinstance(value, int) else ()
        try:
            return self._places.get(value, ())
        except TypeError:
            return [position for position, other in self._unhashable
                    if other == value]

    def _find_integer(self, value: int) -> Sequence[int]:
        if self._range is not None:
            return (self._range.index(value),) if (
                value in self._range) else ()
        if self._single is not None:
            position = int(self._single[value]) if (
                0 <= value < len(self._single)) else -1
            return () if position < 0 else (position,)
        assert self._sorted is not None
        assert self._order is not None
        if not self._sorted[0] <= value <= self._sorted[-1]:
            return ()
        first, stop = (int(self._sorted.searchsorted(value, side))
                       for side in ('left', 'right'))
        found: list[int] = self._order[first:stop].tolist()
        return found


def as_index(value: Any) -> Any:
    """Return an index as an int of Python, if it is equal to one."""
    try:
        return operator.index(value)
    except TypeError:
        return int(value) if isinstance(value, float) and (
            value.is_integer()) else value


def _as_integers(values: Any) -> NDArray[Any] | None:
    """Return values as an array of integers, None if some are none."""
    # Of tuples of several lengths, NumPy before 1.24 makes an array with a
    # warning.
    if isinstance(values, (list, tuple)) and not all(
            issubclass(kind, (int, numpy.integer))
            for kind in {*map(type, values)}):
        return None
    try:
        found = numpy.asarray(values)
    except ValueError:
        return None
    return found if found.ndim == 1 and len(found) and (
        found.dtype.kind in 'iu') else None


def _scattered(values: NDArray[Any]) -> NDArray[Any] | None:
    """Return the position of each number, -1 of one that is missing; None if
    the numbers repeat, or are not about those from 0 on."""
    count = len(values)
    if values.min() < 0 or values.max() > 2 * count:
        return None
    found = numpy.full(int(values.max()) + 1, -1, numpy.intp)
    numbers = numpy.arange(count)
    found[values] = numbers
    return found if (found[values] == numbers).all() else None
