"""Statistics of the columns of batches with missing values."""
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.transformers.moments import Moments
from fuel.utils.masked import is_masked, mask_of, without_hidden


def missing_in(batch: NDArray[Any], mask: Any = None) -> NDArray[numpy.bool_]:
    """Return a mask that is true where a value is missing.

    `mask`: a mask that is false where a value is missing, or None.
    """
    if is_masked(batch):
        hidden: NDArray[numpy.bool_] = mask_of(batch)
        return hidden | missing_in(without_hidden(batch), mask)
    found: NDArray[numpy.bool_] = numpy.zeros(batch.shape, bool)
    if batch.dtype.kind in 'fc':
        found = numpy.isnan(batch)
    elif batch.dtype.kind in 'US':
        found = batch == numpy.zeros((), batch.dtype)
    elif batch.dtype.hasobject:
        for place in numpy.ndindex(batch.shape):
            value = batch[place]
            found[place] = value is None or (
                isinstance(value, (str, bytes)) and not value) or (
                isinstance(value, float) and math.isnan(value))
    if mask is None:
        return found
    there = (mask.filled(0) if is_masked(mask)
             else numpy.asarray(mask)).astype(bool)
    # An example may have one mask for all of its elements.
    there = there.reshape(there.shape + (1,) * (batch.ndim - there.ndim))
    found |= ~there
    return found


class Statistic(ABC):
    """Base class of statistics of columns of batches, made in one pass."""

    is_numeric = True

    @abstractmethod
    def add(self, rows: NDArray[Any], missing: NDArray[numpy.bool_]) -> None:
        """Add some rows."""

    @abstractmethod
    def result(self) -> list[Any]:
        """Return a value for each column, None or NaN for an empty column."""


class Mean(Statistic):
    """The mean of each column, rounded only once."""

    def __init__(self) -> None:
        self._moments: Moments | None = None
        self._are_infinite: Any = False

    def add(self, rows: NDArray[Any], missing: NDArray[numpy.bool_]) -> None:
        """Add some rows."""
        if self._moments is None:
            self._moments = Moments(rows.shape[1])
        are_infinite = ~(missing | numpy.isfinite(rows))
        self._are_infinite = self._are_infinite | are_infinite.any(axis=0)
        self._moments.add(rows, missing | are_infinite)

    def result(self) -> list[Any]:
        """Return a mean for each column."""
        means = self._moments.means() if self._moments else []
        return [mean if math.isfinite(mean) and not is_infinite else None
                for mean, is_infinite in zip(
                    means, numpy.broadcast_to(
                        self._are_infinite, len(means)), strict=True)]


class Median(Statistic):
    """The median of each column; all numbers are kept in memory."""

    def __init__(self) -> None:
        self._rows: list[NDArray[Any]] = []

    def add(self, rows: NDArray[Any], missing: NDArray[numpy.bool_]) -> None:
        """Add some rows."""
        kept = rows.astype(numpy.float64)
        kept[missing] = numpy.nan
        self._rows.append(kept)

    def result(self) -> list[Any]:
        """Return a median for each column."""
        rows = numpy.concatenate(self._rows)
        found = []
        for column in rows.T:
            there = column[~numpy.isnan(column)]
            median = float(numpy.median(there)) if len(there) else numpy.nan
            found.append(median if math.isfinite(median) else None)
        return found


class MostFrequent(Statistic):
    """The most frequent value of each column."""

    is_numeric = False

    def __init__(self) -> None:
        self._counts: list[Counter[Any]] = []

    def add(self, rows: NDArray[Any], missing: NDArray[numpy.bool_]) -> None:
        """Add some rows."""
        if not self._counts:
            self._counts = [Counter() for _ in range(rows.shape[1])]
        for counts, column, gaps in zip(
                self._counts, rows.T, missing.T, strict=True):
            there = column[~gaps]
            found: Iterable[tuple[Any, int]]
            if there.dtype.hasobject:
                # numpy.unique sorts, and cannot compare numbers with text.
                found = Counter(there.tolist()).items()
            else:
                values, numbers = numpy.unique(there, return_counts=True)
                found = zip(values.tolist(), numbers.tolist(), strict=True)
            for value, number in found:
                counts[value.decode('utf-8') if isinstance(
                    value, bytes) else value] += number

    def result(self) -> list[Any]:
        """Return the most frequent value of each column.

        Of equally frequent values it is the least one, numbers before text.
        """
        return [min(counts, key=lambda value, counts=counts: (  # type: ignore[misc]
            -counts[value], isinstance(value, str), value)) if counts else None
                for counts in self._counts]
