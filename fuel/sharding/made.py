"""Rows of data sets, joined and merged, that an item is made of."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy

from fuel.schemes.sharded_requests import as_splittable


# The classes of requests for several rows.
_SEVERAL = (list, tuple, range, slice, numpy.ndarray)


class DatasetRows(NamedTuple):
    """DatasetRows of a data set.

    `dataset`: which of the data sets of the pipeline, counted from 0 on.
    `rows`: as its `get_data` takes them.
    """

    dataset: int
    rows: Any


class Joined(NamedTuple):
    """Parts whose rows follow each other in a batch."""

    parts: tuple[Made, ...]


class Merged(NamedTuple):
    """Parts whose sources stand beside each other."""

    parts: tuple[Made, ...]


#: All rows that an item is made of.
Made: TypeAlias = 'DatasetRows | Joined | Merged'


def example_ids(made: Made) -> list[tuple[int, Any]]:
    """Return the data set and the row of each row of an item.

    Of sources that stand beside each other, those of the first.
    """
    if isinstance(made, DatasetRows):
        rows = as_splittable(made.rows) if isinstance(
            made.rows, _SEVERAL) else [made.rows]
        return [(made.dataset, row) for row in rows]
    if isinstance(made, Merged):
        return example_ids(made.parts[0])
    return [example for part in made.parts for example in example_ids(part)]


def num_rows(made: Made) -> int:
    """Return how many rows an item has."""
    if isinstance(made, DatasetRows):
        return len(as_splittable(made.rows)) if isinstance(
            made.rows, _SEVERAL) else 1
    if isinstance(made, Merged):
        return num_rows(made.parts[0])
    return sum(map(num_rows, made.parts))


def join_parts(parts: Sequence[Made]) -> Made:
    """Return batches, or rows of them, one behind the other."""
    return parts[0] if len(parts) == 1 else Joined(tuple(parts))


def batch_of(examples: Sequence[Made]) -> Made:
    """Return single examples as a batch."""
    merged = [one.parts for one in examples if isinstance(one, Merged)]
    if len(merged) == len(examples) and len(set(map(len, merged))) == 1:
        return Merged(tuple([
            batch_of(column) for column in zip(*merged, strict=True)]))
    found: list[Made] = []
    for dataset, group in itertools.groupby(examples, _dataset_of):
        alike = list(group)
        found += [_as_batch(one) for one in alike] if dataset is None else [
            DatasetRows(dataset, [one.rows for one in alike
                           if isinstance(one, DatasetRows)])]
    return join_parts(found)


def _as_batch(made: Made) -> Made:
    """Return a single example of several parts or rows as a batch."""
    return batch_of([made]) if isinstance(made, Merged) else made


def _dataset_of(made: Made) -> int | None:
    """Return the data set of a row, None of several rows or parts."""
    return made.dataset if isinstance(made, DatasetRows) and not isinstance(
        made.rows, _SEVERAL) else None


def cut_rows(made: Made, rows: slice) -> Made:
    """Return consecutive rows of a batch."""
    if isinstance(made, DatasetRows):
        return made._replace(rows=as_splittable(made.rows)[rows])
    if isinstance(made, Merged):
        return Merged(tuple([cut_rows(part, rows) for part in made.parts]))
    start, stop, _ = rows.indices(num_rows(made))
    found, passed = [], 0
    for part in made.parts:
        count = num_rows(part)
        first, end = max(start - passed, 0), min(stop - passed, count)
        if first < end:
            found.append(cut_rows(part, slice(first, end)))
        passed += count
    return join_parts(found)
