"""Splits as they are given: what their numbers count."""
from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy
from numpy.typing import NDArray


class ExampleSplits(dict[str, NDArray[numpy.intp]]):
    """The numbers of the examples of each split.

    `counted`: what they are examples of, where those are not the rows of a
        data set; else ''.
    """

    counted = ''


def check_splits(splits: Mapping[str, Any], num_rows: int) -> None:
    """Refuse splits that are not meant as rows.

    `num_rows`: how many rows there are.

    Raises: ValueError for numbers of other examples, and for lists of two
        numbers in the place of tuples, as JSON makes them.
    """
    if isinstance(splits, ExampleSplits) and splits.counted:
        raise ValueError(
            f'splits must be of the rows, and these count the '
            f'{splits.counted}: split the data set that has all rows, '
            f"random_split(dataset, ..., groups='runs'), or give the numbers "
            f'to a scheme, ShuffledScheme(splits[{next(iter(splits), "")!r}]'
            f', ...)')
    ranges = sorted(rows for rows in splits.values() if _may_be_range(rows))
    if len(ranges) < len(splits) or not ranges:
        return
    count = sum(stop - start for start, stop in ranges)
    if 2 * count > num_rows and all(
            first[1] <= second[0] for first, second in pairwise(ranges)):
        name = next(iter(splits))
        raise ValueError(
            f'splits are lists of two rows, {dict(splits)}, and seem to be '
            f'meant as ranges: write {name!r}: {tuple(splits[name])}, a '
            f'tuple, for the rows {splits[name][0]} to before '
            f'{splits[name][1]}, or numpy.array({splits[name]}) for these '
            f'two rows')


def _may_be_range(rows: object) -> bool:
    """Return whether rows are a list of two numbers, others between them."""
    return isinstance(rows, list) and len(rows) == 2 and all(
        isinstance(row, int) and not isinstance(row, bool)
        for row in rows) and rows[0] + 1 < rows[1]
