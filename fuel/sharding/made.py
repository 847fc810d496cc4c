"""The rows from which items are made, and how items are joined and cut."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy

from fuel.schemes.sharded_requests import as_splittable

#: The classes of requests for several rows.
SEVERAL = (list, tuple, range, slice, numpy.ndarray)


class DatasetRows(NamedTuple):
    """Rows of a data set.

    `dataset`: number of the data set in the pipeline, from 0 on; of items
        that were read, the data set itself.
    `rows`: the rows, as a request to the `get_data` of the data set.
    """

    dataset: Any
    rows: Any


class Joined(NamedTuple):
    """Parts of a batch whose rows are concatenated."""

    parts: tuple[Made, ...]


class Merged(NamedTuple):
    """Parts of an item whose sources are combined.

    `kind`: what the parts are: the items of several streams; two, and the
        examples of the second are mixed into those of the first; or the
        examples, and for each the number of tokens of its step.
    """

    parts: tuple[Made, ...]
    kind: Literal['streams', 'mixed', 'tokens'] = 'streams'


class Packed(NamedTuple):
    """Single examples that are packed into one row."""

    parts: tuple[Made, ...]


#: All rows from which an item is made.
Made: TypeAlias = 'DatasetRows | Joined | Merged | Packed'


def example_ids(made: Made) -> list[tuple[int, Any]]:
    """Return the number of the data set and the index of the example, for each
    row of an item.

    If sources of several streams are merged, the first stream counts.
    """
    if isinstance(made, DatasetRows):
        rows = as_splittable(made.rows) if isinstance(
            made.rows, SEVERAL) else [made.rows]
        return [(made.dataset, row) for row in rows]
    if isinstance(made, Merged):
        return example_ids(made.parts[0])
    return [example for part in made.parts for example in example_ids(part)]


def num_rows(made: Made) -> int:
    """Return the number of rows of an item."""
    if isinstance(made, Packed):
        return 1
    if isinstance(made, DatasetRows):
        return len(as_splittable(made.rows)) if isinstance(
            made.rows, SEVERAL) else 1
    if isinstance(made, Merged):
        return num_rows(made.parts[0])
    return sum(map(num_rows, made.parts))


def join_parts(parts: Sequence[Made]) -> Made:
    """Return batches, or rows of batches, concatenated."""
    return parts[0] if len(parts) == 1 else Joined(tuple(parts))


def batch_of(examples: Sequence[Made]) -> Made:
    """Return single examples as a batch."""
    merged = [one for one in examples if isinstance(one, Merged)]
    if len(merged) == len(examples) and len({
            (len(one.parts), one.kind) for one in merged}) == 1:
        return merged[0]._replace(parts=tuple([
            batch_of(column) for column in zip(
                *[one.parts for one in merged], strict=True)]))
    found: list[Made] = []
    for dataset, group in itertools.groupby(examples, _dataset_of):
        alike = list(group)
        if dataset is None:
            found += map(_as_batch, alike)
            continue
        rows = [one for one in alike if isinstance(one, DatasetRows)]
        found.append(rows[0]._replace(rows=[one.rows for one in rows]))
    return join_parts(found)


def _as_batch(made: Made) -> Made:
    """Return a single merged example as a batch; other items unchanged."""
    return batch_of([made]) if isinstance(made, Merged) else made


def _dataset_of(made: Made) -> int | None:
    """Return the identity of a single row's data set; None for several rows or
    parts."""
    return id(made.dataset) if isinstance(made, DatasetRows) and (
        not isinstance(made.rows, SEVERAL)) else None


def cut_rows(made: Made, rows: slice) -> Made:
    """Return consecutive rows of a batch."""
    if isinstance(made, DatasetRows):
        return made._replace(rows=as_splittable(made.rows)[rows])
    if isinstance(made, Merged):
        return made._replace(
            parts=tuple([cut_rows(part, rows) for part in made.parts]))
    if isinstance(made, Packed):
        return made if len(range(1)[rows]) else Joined(())
    start, stop, _ = rows.indices(num_rows(made))
    found, passed = [], 0
    for part in made.parts:
        count = num_rows(part)
        first, end = max(start - passed, 0), min(stop - passed, count)
        if first < end:
            found.append(cut_rows(part, slice(first, end)))
        passed += count
    return join_parts(found)


def single_row(made: Made, row: int) -> Made:
    """Return a row of a batch as a single example."""
    if isinstance(made, DatasetRows):
        return made._replace(rows=as_splittable(made.rows)[row])
    if isinstance(made, Merged):
        return made._replace(parts=tuple([
            single_row(part, row) for part in made.parts]))
    if isinstance(made, Packed):
        return made
    for part in made.parts:
        count = num_rows(part)
        if row < count:
            return single_row(part, row)
        row -= count
    raise IndexError('a batch has fewer rows')
