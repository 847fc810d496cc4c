"""Columns whose values are shared by several rows."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.base import PathColumn
from fuel.datasets.columns.parts import FileParts
from fuel.datasets.columns.readers import ChangedReader, Places
from fuel.datasets.row_orders import IndexArray
from fuel.storage import Reader
from fuel.storage.mapped import ArrayReader
from fuel.storage.reader import as_objects, part_numbers
from fuel.utils.progress import progress


@dataclass(frozen=True, repr=False)
class Constant(PathColumn):
    """One value for each part, shared by all of its rows.

    Parameters
    ----------
    path : str
        Path of an array or a single value in each part. The whole array is
        the value. If parts have values of different shapes, a batch is an
        array of arrays.

    Notes
    -----
    The values are read when the data set is made. In
    :class:`~fuel.datasets.Runs` and :class:`~fuel.datasets.Windows` an example
    has the value once.
    """

    counts_rows: ClassVar[bool] = False

    def open(self, parts: FileParts, name: str) -> Reader:
        """Return a reader of the value of each row's part."""
        values = []
        with progress(f'Reading {self.path}', len(parts), delay=True) as bar:
            for number in range(len(parts)):
                values.append(_value_of(parts.read(number, self.path)))
                bar.advance(1)
        first = values[0].dtype
        for number, value in enumerate(values):
            if value.dtype != first and (value.dtype.kind, first.kind) != (
                    'S', 'S'):
                raise ValueError(
                    f'{self.path!r} must have values of one type in all '
                    f'parts, but {parts.describe(0)} has {first}, and '
                    f'{parts.describe(number)} has {value.dtype}; choose '
                    f'other sources=..., or write a value of that type '
                    f'there')
        return _repeated(parts, name, values)


def _value_of(value: NDArray[Any]) -> NDArray[Any]:
    """Return a value in native byte order, text as ``str``."""
    if value.dtype.kind != 'O':
        return value.astype(value.dtype.newbyteorder('='), copy=False)
    texts = numpy.empty(value.shape, object)
    for place, text in numpy.ndenumerate(value):
        texts[place] = text.decode('utf-8', 'surrogateescape') if (
            isinstance(text, bytes)) else text
    return texts


def _repeated(parts: FileParts, name: str,
              values: Sequence[NDArray[Any]]) -> Reader:
    """Return a reader that returns, for each row, the value of its part.

    `values`: the value of each part.
    """
    bounds = parts.bounds
    assert bounds is not None
    is_ragged = len({value.shape for value in values}) > 1
    joined = as_objects(values) if is_ragged else numpy.stack(values)
    # A run that goes through several parts has no value of its own.
    is_per_run = numpy.isin(bounds, parts.find_runs()).all()
    reader = ChangedReader(
        ArrayReader(parts.path_of(0), name, joined),
        (int(bounds[-1]), *joined.shape[1:]),
        places=partial(part_numbers, bounds), bounds=bounds,
        rows_of_runs=parts.parts_of_runs().__getitem__ if is_per_run
        else None)
    reader.files = parts.files.all_bytes()
    reader.element_type = values[0].dtype if is_ragged else None
    return reader


@dataclass(frozen=True, repr=False)
class RunColumn(PathColumn):
    """Base of columns with rows that several rows of a run or part share."""

    counts_rows: ClassVar[bool] = False

    def open(self, parts: FileParts, name: str) -> Reader:
        """Return a reader that returns, for each row of the data set, its
        shared value."""
        reader = parts.open(self.path, name)
        self._check(parts, numpy.diff(reader.part_bounds))
        return self._shared(reader, parts)

    def _check(self, parts: FileParts, counts: NDArray[numpy.intp]) -> None:
        """Raise ValueError if a part lacks rows that its runs need.

        More rows than needed are an error too, unless the subclass allows
        them.

        `counts`: number of rows of the column in each part.
        """
        raise NotImplementedError

    def _shared(self, reader: Reader, parts: FileParts) -> Reader:
        """Return a reader that returns, for each row, its shared value.

        `reader`: reader of the rows of the column.
        """
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class PerRun(RunColumn):
    """A row for each run, shared by all rows of the run.

    Parameters
    ----------
    path : str
        Path of an array with a row for each run of the part.

    Notes
    -----
    In :class:`~fuel.datasets.Runs` and :class:`~fuel.datasets.Windows` an
    example has the row once.
    """

    def _check(self, parts: FileParts, counts: NDArray[numpy.intp]) -> None:
        wanted = numpy.bincount(parts.parts_of_runs(), minlength=len(parts))
        if (counts != wanted).any():
            number = int(numpy.flatnonzero(counts != wanted)[0])
            raise ValueError(
                f'{parts.describe(number)}: {self.path!r} should have a row '
                f'for each of {wanted[number]} runs, and has '
                f'{counts[number]}')

    def _shared(self, reader: Reader, parts: FileParts) -> Reader:
        return _shared(reader, parts, partial(
            part_numbers, parts.find_runs()), rows_of_runs=lambda runs: runs)


def _shared(reader: Reader, parts: FileParts, places: Places,
            rows_of_runs: Places | None = None) -> Reader:
    """Return a reader that returns, for each row, its shared value.

    `places`: takes numbers of rows; returns, for each of these rows, the row
        of `reader` that it shares.
    """
    assert parts.bounds is not None
    return ChangedReader(
        reader, (int(parts.bounds[-1]), *reader.shape[1:]), places=places,
        bounds=parts.bounds, rows_of_runs=rows_of_runs)


@dataclass(frozen=True, repr=False)
class PerStep(RunColumn):
    """A row for each step of a run, the same in all runs of a part.

    Parameters
    ----------
    path : str
        Path of an array that is as long as the longest run of the part, or
        longer.
    """

    def _check(self, parts: FileParts, counts: NDArray[numpy.intp]) -> None:
        lengths, numbers = (numpy.diff(parts.find_runs()),
                            parts.parts_of_runs())
        short = lengths > counts[numbers]
        if short.any():
            run = int(numpy.flatnonzero(short)[0])
            number = int(numbers[run])
            raise ValueError(
                f'{parts.describe(number)}: {self.path!r} should have a row '
                f'for each step of a run, and has {counts[number]}, but a '
                f'run has {lengths[run]}')

    def _shared(self, reader: Reader, parts: FileParts) -> Reader:
        bounds = parts.find_runs()
        first_rows = reader.part_bounds[parts.parts_of_runs()]

        def places(rows: IndexArray) -> IndexArray:
            """Return, for each row, the row of the array for its step in its
            run."""
            runs = part_numbers(bounds, rows)
            return first_rows[runs] + rows - bounds[runs]

        return _shared(reader, parts, places)
