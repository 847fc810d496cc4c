"""What data sets over runs ask the data set below: its runs, and what reads
its rows."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy

from fuel.datasets.dataset import Dataset
from fuel.datasets.row_orders import IndexArray, Order, same
from fuel.datasets.row_sources import (
    MemoryReader, RequestedReader, Requests, RowSource)
from fuel.datasets.run_bounds import (
    RunsGiven, cut_runs, find_bounds, rows_described, runs_in)
from fuel.describe.source_types import types_of
from fuel.schemes.iteration_scheme import num_examples_of
from fuel.storage import Reader
from fuel.typing import DatasetLike
from fuel.utils.overrides import covers


class Found(NamedTuple):
    """What reads the rows of a source: see :class:`RowSource`."""

    reader: Reader
    order: Order
    held: object


class RunRows(NamedTuple):
    """A source of the data set below.

    `reader`: returns its rows.
    `first_rows`: that of each run; shape (runs,).
    `is_once`: whether all rows of a run are one value.
    """

    reader: Reader
    first_rows: IndexArray
    is_once: bool


def dense_sources(dataset: DatasetLike,
                  chosen: Sequence[str] | None) -> tuple[str, ...]:
    """Return the sources of a data set that runs can be made of.

    Sparse rows are not chosen, or refused: an example of them is one row.
    """
    types = types_of(dataset)
    sparse = [name for name in dataset.sources
              if name in types and types[name].is_sparse]
    for name in sparse:
        if chosen is None or name in chosen or (
                len(sparse) == len(dataset.sources)):
            raise TypeError(
                f'runs and windows are of dense rows, but source {name!r} '
                'is sparse: leave it out with sources=..., or make a data set '
                f'of arrays, ToDense(stream, which_sources=({name!r},))'
                '.as_dataset(), or CSR(..., dense=True) of an HDF5Dataset')
    return tuple([name for name in dataset.sources if name not in sparse])


def find_sources(dataset: DatasetLike,
                 sources: Sequence[str]) -> dict[str, Found]:
    """Return what reads the rows of some sources of a data set."""
    stored = {name: _find_stored(dataset, name) for name in sources}
    if isinstance(dataset, Dataset) and covers(
            dataset, 'find_source', dataset.read_hooks):
        found = {name: Found(source.reader, source.order, source.held)
                 for name, source in stored.items()
                 if source is not None and source.reader is not None}
        if len(found) == len(stored):
            return found
    requests, types = Requests(dataset), types_of(dataset)
    count = int(num_examples_of(dataset))
    return {name: Found(RequestedReader(
        requests, name, count, types.get(name)), slice(0, count), None)
        for name in sources}


def is_same_reader(old: Reader, new: Reader) -> bool:
    """Return whether a reader reads what another does."""
    if isinstance(old, RequestedReader) and isinstance(new, RequestedReader):
        return True
    if isinstance(old, MemoryReader) and isinstance(new, MemoryReader):
        return old.rows is new.rows
    return old is new


def first_rows(order: Order, bounds: IndexArray) -> IndexArray:
    """Return the first row of each run."""
    first: IndexArray = bounds[:-1]
    return first + order.start if isinstance(order, slice) else order[first]


def lie_within(bounds: IndexArray, runs: IndexArray | None) -> bool:
    """Return whether runs are parts of others, each of one."""
    if runs is None:
        return False
    starts, stops = bounds[:-1], bounds[1:]
    has_rows = stops > starts
    return bool((
        numpy.searchsorted(runs, starts, 'right')
        == numpy.searchsorted(runs, stops, 'left'))[has_rows].all())


def stored_rows(dataset: DatasetLike, bounds: IndexArray) -> IndexArray:
    """Return the first row of each run, in the file."""
    source = _find_stored(dataset, dataset.sources[0])
    return bounds[:-1] if source is None else first_rows(
        source.stored, bounds)


def _find_stored(dataset: DatasetLike, source: str) -> RowSource | None:
    return dataset.find_source(source) if isinstance(
        dataset, Dataset) else None


def find_runs(dataset: Any, runs: RunsGiven | None,
              ) -> tuple[IndexArray, IndexArray]:
    """Return the bounds of the runs of a data set's examples, and the number
    that each had before splits cut it."""
    count = int(num_examples_of(dataset))
    kept: list[tuple[Order, int]] = [(slice(0, count), count)]
    for name in dataset.sources:
        source = _find_stored(dataset, name)
        if source is not None and not any(
                rows == source.num_stored and same(source.stored, order)
                for order, rows in kept):
            kept.insert(-1, (source.stored, source.num_stored))
    if runs is None:
        runs = 'all' if (given := runs_in(dataset)) is None else {
            'offsets': numpy.asarray(given)}
        bounds = find_bounds(runs, [count], _read_nothing)
        numbers = numpy.arange(len(bounds) - 1)
    elif runs == 'all':
        bounds, numbers = numpy.array([0, count]), numpy.zeros(1, numpy.intp)
    else:
        read = functools.cache(lambda part, name: _read_stored(dataset, name))
        rows = rows_described(runs, read)
        order, num_stored = next(
            (one for one in kept if one[1] == rows), kept[0])
        bounds, numbers = cut_runs(
            find_bounds(runs, [num_stored], read), order)
    for order, num_stored in kept:
        cut, _ = cut_runs(numpy.array([0, num_stored]), order)
        if len(cut) > 2:
            is_bound = numpy.zeros(count + 1, bool)
            is_bound[bounds] = is_bound[cut] = True
            joined = numpy.flatnonzero(is_bound)
            numbers = numbers[
                numpy.searchsorted(bounds, joined[:-1], 'right') - 1]
            bounds = joined
    return bounds, numbers


def _read_stored(dataset: DatasetLike, name: str) -> Any:
    if not isinstance(dataset, Dataset):
        raise ValueError(
            f"{type(dataset).__name__} is none of Fuel's classes and has no "
            f'arrays by name: pass an array in the place of {name!r}')
    return dataset.read_stored(name)


def _read_nothing(part: int, name: object) -> NoReturn:
    raise AssertionError(name)
