"""Columns of which several rows share a value."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.base import PathColumn
from fuel.datasets.columns.parts import FileParts
from fuel.datasets.columns.readers import (
    ChangedReader, Places, part_numbers)
from fuel.datasets.row_orders import IndexArray
from fuel.describe import SourceType
from fuel.storage import Reader
from fuel.storage.file_bytes import Ends
from fuel.storage.reader import no_ranges, own_objects
from fuel.utils.progress import progress


@dataclass(frozen=True, repr=False)
class Constant(PathColumn):
    """One value for each part, which all of its rows have.

    Parameters
    ----------
    path : str
        Of an array, or a single value, in each part: the whole of it is the
        value. Where parts have values of different shapes, a batch is an
        array of arrays.

    Notes
    -----
    The values are read when the data set is made. In
    :class:`~fuel.datasets.Runs` and :class:`~fuel.datasets.Windows` the value
    comes once.
    """

    counts_rows: ClassVar[bool] = False

    def open(self, parts: FileParts, name: str) -> Reader:
        """Return a reader of the value of each row."""
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
        return ConstantReader(parts, name, values)

    def type_of(self, reader: Reader) -> SourceType:
        """Return type and shape of an example of its reader."""
        if isinstance(reader, ConstantReader) and reader.is_ragged:
            return SourceType(reader.element_type)
        return super().type_of(reader)


def _value_of(value: NDArray[Any]) -> NDArray[Any]:
    """Return a value in native byte order, text as ``str``."""
    if value.dtype.kind != 'O':
        return value.astype(value.dtype.newbyteorder('='), copy=False)
    texts = numpy.empty(value.shape, object)
    for place, text in numpy.ndenumerate(value):
        texts[place] = text.decode('utf-8', 'surrogateescape') if (
            isinstance(text, bytes)) else text
    return texts


class ConstantReader(Reader):
    """The value of the part that each row lies in.

    `element_type`: of what a value has.
    `is_ragged`: whether values have different shapes.
    """

    def __init__(self, parts: FileParts, name: str,
                 values: Sequence[NDArray[Any]]) -> None:
        assert parts.bounds is not None
        shapes = {value.shape for value in values}
        self.is_ragged = len(shapes) > 1
        self.element_type = values[0].dtype
        if self.is_ragged:
            self._values = numpy.empty(len(values), object)
            for place, value in enumerate(values):
                self._values[place] = value
        else:
            self._values = numpy.stack(values)
        super().__init__(parts.path_of(0), name, (
            int(parts.bounds[-1]), *self._values.shape[1:]),
            self._values.dtype)
        self.part_bounds = parts.bounds
        self.files = parts.files.all_bytes()
        # Unless a run goes through several parts.
        self.is_per_run = bool(numpy.isin(
            parts.bounds, parts.find_runs()).all())
        self._parts_of_runs = parts.parts_of_runs()

    def read_runs(self, runs: NDArray[numpy.intp]) -> Any:
        """See :meth:`Reader.read_runs`."""
        return own_objects(self._values.take(
            self._parts_of_runs[runs], axis=0))

    def byte_ranges(self, rows: NDArray[numpy.intp]) -> tuple[Ends, Ends]:
        """Return nothing: all of it is in memory."""
        return no_ranges()

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        self._check_list(rows)
        return own_objects(self._values.take(
            part_numbers(self.part_bounds, rows), axis=0))


@dataclass(frozen=True, repr=False)
class RunColumn(PathColumn):
    """Base of columns of which the rows of runs share rows."""

    counts_rows: ClassVar[bool] = False

    def open(self, parts: FileParts, name: str) -> Reader:
        """Return a reader of what each row of the data set shares."""
        reader = parts.open(self.path, name)
        self._check(parts, numpy.diff(reader.part_bounds))
        return self._shared(reader, parts)

    def _check(self, parts: FileParts, counts: NDArray[numpy.intp]) -> None:
        """Raise ValueError if parts have other rows than their runs need.

        `counts`: the rows of the column in each part.
        """
        raise NotImplementedError

    def _shared(self, reader: Reader, parts: FileParts) -> Reader:
        """Return a reader of the rows that other rows share.

        `reader`: of the rows of the column.
        """
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class PerRun(RunColumn):
    """A row for each run, which all rows of the run have.

    Parameters
    ----------
    path : str
        Of an array with a row for each run of the part.

    Notes
    -----
    In :class:`~fuel.datasets.Runs` and :class:`~fuel.datasets.Windows` the
    row comes once.
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
        return RunValueReader(
            reader, parts, partial(part_numbers, parts.find_runs()))


class SharedReader(ChangedReader):
    """Rows that the rows of runs share."""

    def __init__(self, reader: Reader, parts: FileParts,
                 places: Places) -> None:
        assert parts.bounds is not None
        super().__init__(reader, (int(parts.bounds[-1]), *reader.shape[1:]),
                         places=places)
        self.part_bounds = parts.bounds


class RunValueReader(SharedReader):
    """The row of the run that each row lies in."""

    is_per_run = True

    def read_runs(self, runs: NDArray[numpy.intp]) -> Any:
        """See :meth:`Reader.read_runs`."""
        return self._reader.read(runs)


@dataclass(frozen=True, repr=False)
class PerStep(RunColumn):
    """A row for each step of a run, the same in all runs of a part.

    Parameters
    ----------
    path : str
        Of an array that is as long as the longest run of the part, or
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
            """Return the row of the step of a run that each row is."""
            runs = part_numbers(bounds, rows)
            return first_rows[runs] + rows - bounds[runs]

        return SharedReader(reader, parts, places)
