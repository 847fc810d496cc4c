"""Columns whose examples are ranges of rows of one array."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.parts import FileParts
from fuel.datasets.columns.readers import RangesReader
from fuel.describe import SourceType
from fuel.storage import Reader
from fuel.utils.hdf5_errors import damaged

#: Path of an array; or path of a table, and the number of a column.
Where: TypeAlias = 'str | tuple[str, int] | None'


@dataclass(frozen=True, repr=False)
class Ragged(FileColumn):
    """Examples of different lengths, stored one after the other.

    Parameters
    ----------
    values : str
        Path of the array of the rows of all examples.
    offsets, ends, lengths : str or tuple
        Exactly one of the three, with the bounds of the examples: `offsets`,
        the row of `values` where each example begins, and the end of the last
        example; `ends`, the row where each example ends; or `lengths`, the
        number of rows of each example. The value is the path of an array, or a
        pair of the path of a table and the number of a column, such as
        ``('seqLengths', 0)``.
    """

    values: str
    offsets: Where = None
    ends: Where = None
    lengths: Where = None

    def __post_init__(self) -> None:
        self.check_path('values', self.values)
        for name, where in self._given():
            if isinstance(where, tuple) and (
                    len(where) != 2 or not isinstance(where[1], int)):
                raise TypeError(
                    f'{name} of Ragged({self.values!r}) must be a path, or a '
                    f'path and the number of a column, got {where!r}')
            if where is not None:
                self.check_path(
                    name, where[0] if isinstance(where, tuple) else where)
        if sum(where is not None for _, where in self._given()) != 1:
            raise ValueError(
                f'Ragged({self.values!r}) needs one of offsets, ends and '
                f'lengths, got '
                + (', '.join(name for name, where in self._given()
                             if where is not None) or 'none'))

    def _given(self) -> list[tuple[str, Where]]:
        return [('offsets', self.offsets), ('ends', self.ends),
                ('lengths', self.lengths)]

    def paths(self) -> Sequence[str]:
        """Return the paths of the arrays."""
        return [self.values, *(
            where if isinstance(where, str) else where[0]
            for _, where in self._given() if where is not None)]

    def type_of(self, reader: Reader) -> SourceType:
        """Return type and shape of an example of its reader."""
        if isinstance(reader, RangesReader):
            return SourceType(reader.rows.dtype,
                              (None, *reader.rows.shape[1:]))
        return super().type_of(reader)

    def open(self, parts: FileParts, name: str) -> Reader:
        """Return a reader of the examples."""
        rows = parts.open(self.values, name)
        found = [self._bounds(parts, number, count) + int(first)
                 for number, (count, first) in enumerate(zip(
                     numpy.diff(rows.part_bounds).tolist(),
                     rows.part_bounds[:-1], strict=True))]
        counts = [len(bounds) - 1 for bounds in found]
        return RangesReader(
            [rows], (sum(counts),), numpy.dtype(object),
            numpy.concatenate([bounds[:-1] for bounds in found]),
            numpy.concatenate([bounds[1:] for bounds in found]),
            numpy.cumsum([0, *counts]).astype(numpy.intp), parts.describe)

    def _bounds(self, parts: FileParts, number: int,
                num_values: int) -> NDArray[numpy.intp]:
        """Return the bounds of a part's examples in its array of values."""
        kind, where = next((name, where) for name, where in self._given()
                           if where is not None)
        path, column = where if isinstance(where, tuple) else (where, None)
        given = parts.read(number, str(path))
        place = f'{parts.describe(number)}, {where!r}'
        if column is not None:
            if given.ndim != 2 or not 0 <= column < given.shape[1]:
                raise ValueError(
                    f'{place}: there is no such column, the shape is '
                    f'{given.shape}')
            given = given[:, column]
        if given.ndim != 1 or given.dtype.kind not in 'iu':
            raise ValueError(
                f'{place}: {kind} must be integers in one axis, got '
                f'{given.dtype} of shape {given.shape}')
        bounds = given.astype(numpy.intp)
        if kind == 'lengths':
            bounds = numpy.cumsum(bounds)
        if kind != 'offsets':
            bounds = numpy.concatenate([[0], bounds]).astype(numpy.intp)
        falls = numpy.flatnonzero(bounds[1:] < bounds[:-1])
        if not len(bounds) or len(falls) or bounds[0] < 0 or (
                bounds[-1] > num_values):
            example = int(falls[0]) if len(falls) else len(bounds) - 2
            raise damaged(
                f'{place}: {kind} lead from row {bounds[example:][:1]} to '
                f'{bounds[example + 1:][:1]} for example {example}, and '
                f'{self.values!r} has {num_values} rows')
        return bounds
