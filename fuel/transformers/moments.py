"""Means, deviations and covariances of columns that come in batches."""
from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.kernels.exact_sums import add_exactly, limbs_of

# Limb 0 of the kernel counts 2 ** LOWEST.
LOWEST = -1088
# Number of rows that can be added to limbs of 64 bits before carries must be
# passed on.
MOST_ROWS = 2 ** 26
# Number of columns that share limbs: an outlier of one column costs memory and
# time in all columns that share its limbs.
COLUMNS = 4096
# Limbs above the highest of a number, for the carries of 2 ** 63 numbers.
SPARE = 2
# Roots are computed to this many bits, more than a double has.
ROOT_BITS = 66


class Moments:
    """Mean and deviation of columns of numbers, in one pass.

    Sums and sums of squares are kept exactly, and only the results are
    rounded. So the results depend neither on the order of the rows nor on the
    size of the batches.

    `num_columns`: number of columns of the rows.
    """

    def __init__(self, num_columns: int) -> None:
        # Number of values that were added to each column.
        self.counts = numpy.zeros(num_columns, numpy.int64)
        self._blocks = [
            _Sums(min(COLUMNS, num_columns - start))
            for start in range(0, num_columns, COLUMNS)]

    def add(self, rows: NDArray[Any],
            missing: NDArray[numpy.bool_] | None = None) -> None:
        """Add rows of finite numbers.

        `missing`: a mask of the numbers to leave out.
        """
        for start in range(0, len(rows), MOST_ROWS):
            part = slice(start, start + MOST_ROWS)
            self._add(rows[part], None if missing is None else missing[part])

    def _add(self, rows: NDArray[Any],
             missing: NDArray[numpy.bool_] | None) -> None:
        if missing is None:
            self.counts += len(rows)
        else:
            self.counts += (~missing).sum(axis=0)
            rows = numpy.where(missing, rows.dtype.type(0), rows)
        rows = as_exact(rows)
        for number, block in enumerate(self._blocks):
            block.add(rows[:, number * COLUMNS:(number + 1) * COLUMNS])

    def means(self) -> list[float]:
        """Return the mean of each column; NaN for a column without numbers."""
        return [_quotient(total, count, block.unit) if count else math.nan
                for block, counts in self._parts()
                for total, count in zip(block.sums(), counts, strict=True)]

    def deviations(self) -> list[float]:
        """Return the standard deviation of each column, NaN for an empty one.

        It is the deviation of the population: sums are divided by the number
        of values.
        """
        return [_root(count * square - total * total, count, block.unit)
                if count else math.nan for block, counts in self._parts()
                for total, square, count in zip(
                    block.sums(), block.squares(), counts, strict=True)]

    def _parts(self) -> Iterator[tuple[_Sums, list[int]]]:
        """Yield each block, and how many numbers its columns had."""
        for number, block in enumerate(self._blocks):
            yield block, self.counts[
                number * COLUMNS:(number + 1) * COLUMNS].tolist()


class _Sums:
    """Exact sums of the numbers of some columns, and of their squares.

    All columns have the same limbs, enough for the widest column.
    """

    def __init__(self, num_columns: int) -> None:
        self._first = 0
        self._sums = numpy.zeros((num_columns, 0), numpy.int64)
        self._squares = numpy.zeros((num_columns, 0), numpy.int64)
        self._num_uncarried = 0

    @property
    def unit(self) -> int:
        """Exponent of the power of two that is the unit of the sums (int)."""
        return LOWEST + 32 * self._first

    def add(self, rows: NDArray[Any]) -> None:
        """Add rows that :func:`as_exact` has returned."""
        low, high = limbs_of(rows)
        if low < 0:
            return
        self._make_room(low, high + SPARE)
        if self._num_uncarried + len(rows) > MOST_ROWS:
            for limbs in (self._sums, self._squares):
                _carry(limbs)
            self._num_uncarried = 0
        self._num_uncarried += len(rows)
        add_exactly(rows, self._first, self._sums, self._squares)

    def _make_room(self, low: int, high: int) -> None:
        """Make room for limbs from `low` to `high`."""
        count = self._sums.shape[1]
        first = min(low, self._first) if count else low
        last = max(high, self._first + count - 1)
        if (first, last - first + 1) == (self._first, count):
            return
        below, above = self._first - first, last - self._first - count + 1
        if not count:
            below, above = 0, last - first + 1
        self._sums = numpy.pad(self._sums, ((0, 0), (below, above)))
        self._squares = numpy.pad(
            self._squares, ((0, 0), (2 * below, 2 * above)))
        self._first = first

    def sums(self) -> Iterator[int]:
        """Return the sum of each column, in multiples of ``2 ** unit``."""
        return _integers(self._sums)

    def squares(self) -> Iterator[int]:
        """Return the sum of the squares of each column.

        It is given in multiples of ``4 ** unit``.
        """
        return _integers(self._squares)


class Covariance:
    """Covariance of rows that come in batches, in one pass.

    The first row is subtracted from each row. So a large offset that all rows
    have in common does not cost precision, and columns that do not vary give
    exactly 0. Batches are merged with the formula of Chan, Golub and
    LeVeque, which does not subtract large numbers from each other.

    `origin`: the first row.
    """

    def __init__(self, origin: NDArray[Any]) -> None:
        self._origin = origin.copy()
        self._count = 0
        self._mean = numpy.zeros(len(origin))
        self._scatter: NDArray[Any] = numpy.zeros(
            (len(origin), len(origin)))

    def add(self, rows: NDArray[Any]) -> None:
        """Add rows that :func:`as_exact` has returned."""
        with numpy.errstate(over='ignore', invalid='ignore'):
            distances = _differences(rows, self._origin)
            mean = distances.mean(axis=0)
            distances -= mean
            count, total = self._count, self._count + len(rows)
            step = mean - self._mean
            self._scatter += distances.T @ distances
            self._scatter += numpy.outer(step, step) * (
                count * len(rows) / total)
            self._mean += step * (len(rows) / total)
            self._count = total

    def result(self) -> NDArray[Any]:
        """Return the covariance of all rows."""
        covariance: NDArray[Any] = self._scatter / self._count
        return covariance


def as_exact(rows: NDArray[Any]) -> NDArray[Any]:
    """Return numbers in a type that the kernel reads and that can hold them.

    Long doubles are rounded to doubles.
    """
    dtype = numpy.float64 if rows.dtype.kind == 'f' else (
        numpy.uint64 if rows.dtype.kind == 'u' else numpy.int64)
    with numpy.errstate(over='ignore'):
        exact: NDArray[Any] = numpy.require(rows, dtype, 'A')
    if rows.dtype.itemsize > 8 and not numpy.isfinite(exact).all():
        raise ValueError(
            f'expected numbers that float64 holds, got {rows.dtype} with '
            f'values from {rows.min()} to {rows.max()}: scale them before')
    return exact


def _differences(rows: NDArray[Any], origin: NDArray[Any]) -> NDArray[Any]:
    """Return ``rows - origin`` as doubles, rounded once."""
    difference: NDArray[Any]
    if rows.dtype.kind == 'f':
        difference = rows - origin
        return difference
    # The halves, of 32 bits each, and their differences fit in doubles. So
    # integers beyond 2 ** 53 lose no digits before the sum is rounded.
    high, low = ((rows >> 32).astype(numpy.float64)
                 - (origin >> 32).astype(numpy.float64),
                 (rows & 0xffffffff).astype(numpy.float64)
                 - (origin & 0xffffffff).astype(numpy.float64))
    difference = high * 2. ** 32 + low
    return difference


def _carry(limbs: NDArray[numpy.int64]) -> None:
    """Reduce each limb but the highest to 32 bits, in place."""
    for place in range(limbs.shape[1] - 1):
        carried = limbs[:, place] >> 32
        limbs[:, place] &= 0xffffffff
        limbs[:, place + 1] += carried


def _integers(limbs: NDArray[numpy.int64]) -> Iterator[int]:
    """Yield the integer of each row of limbs."""
    _carry(limbs)
    # The highest limb keeps its sign, as in two's complement.
    digits, size = limbs.astype('<u4').tobytes(), 4 * limbs.shape[1]
    for place in range(len(limbs)):
        yield int.from_bytes(digits[place * size:(place + 1) * size],
                             'little', signed=True)


def _quotient(dividend: int, divisor: int, exponent: int) -> float:
    """Return ``dividend / divisor * 2 ** exponent``, rounded once."""
    if exponent < 0:
        return dividend / (divisor << -exponent)
    return (dividend << exponent) / divisor


def _root(square: int, divisor: int, exponent: int) -> float:
    """Return ``sqrt(square) / divisor * 2 ** exponent``."""
    shift = max(0, ROOT_BITS - square.bit_length() // 2)
    return _quotient(math.isqrt(square << 2 * shift), divisor,
                     exponent - shift)
