"""Sources that lie in many data sets of HDF5 files: their parts."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.storage.layout import dataset_name, native_type
from fuel.storage.reader import Reader
from fuel.storage.reader_choice import choose_reader

#: A field of a compound type, or several.
Field = str | Sequence[str]


def open_parts(datasets: Sequence[h5py.Dataset], name: str, *,
               field: Field | None = None, axes: int = 1,
               start: int | None = None, stop: int | None = None,
               cache_bytes: int | None = None) -> Reader:
    """Return a reader of the rows of several data sets, one after the other.

    `datasets`: at least one, each of `axes` axes or more; types and shapes of
        rows must be equal.
    `name`: of the source, for errors.
    `field`: of a compound type, by its name; a list of names is a compound
        type of these. Default: whole elements.
    `axes`: how many leading axes count rows; each index of all but the last
        of them is a part.
    `start`, `stop`: of each part, which rows to read, as of a slice.
    `cache_bytes`: see :func:`~fuel.storage.choose_reader`.

    Raises: ValueError where types or shapes differ, or there is no such field.
    """
    if not len(datasets):
        raise ValueError(f'source {name!r} has no part')
    _check_equal(datasets, name, axes)
    return JoinedReader(
        [choose_reader(dataset, cache_bytes) for dataset in datasets], name,
        field, axes, slice(start, stop))


def _check_equal(datasets: Sequence[h5py.Dataset], name: str,
                 axes: int) -> None:
    """Refuse parts of unequal types or shapes of rows."""
    kinds = [(native_type(dataset.dtype), dataset.shape[axes:])
             for dataset in datasets]
    for dataset, kind in zip(datasets, kinds, strict=True):
        if len(dataset.shape) < axes:
            raise ValueError(
                f'{_where(dataset)}: rows should be counted by {axes} axes, '
                f'and there are {len(dataset.shape)}')
        if kind != kinds[0]:
            raise ValueError(
                f'source {name!r}: all parts must have rows of one type and '
                f'shape, but {_where(datasets[0])} has {kinds[0][0]} of '
                f'shape {kinds[0][1]}, and {_where(dataset)} has {kind[0]} '
                f'of shape {kind[1]}')


def _where(dataset: h5py.Dataset) -> str:
    return f'{dataset.file.filename}, data set {dataset_name(dataset)!r}'


class JoinedReader(Reader):
    """Rows of several readers, one after the other."""

    def __init__(self, readers: Sequence[Reader], name: str,
                 field: Field | None, axes: int, rows: slice) -> None:
        first = readers[0]
        self._field = field if isinstance(field, str) or field is None else (
            list(field))
        self._parts: list[tuple[Reader, tuple[int, ...], range]] = [
            (reader, place, range(reader.shape[axes - 1])[rows])
            for reader in readers
            for place in numpy.ndindex(*reader.shape[:axes - 1])]
        empty = self._pick(numpy.empty((0, *first.shape[axes:]), first.dtype))
        bounds = numpy.cumsum([0, *[len(rows) for _, _, rows in self._parts]])
        super().__init__(
            first.path, name, (int(bounds[-1]), *empty.shape[1:]),
            empty.dtype)
        self.part_bounds = bounds.astype(numpy.intp)
        self.files = tuple({id(file): file for reader in readers
                            for file in reader.files}.values())

    def _pick(self, rows: NDArray[Any]) -> NDArray[Any]:
        if self._field is None:
            return rows
        try:
            picked = rows[self._field]
            return picked if isinstance(self._field, str) else (
                picked.astype([(one, rows.dtype[one])
                               for one in self._field]))
        except (KeyError, ValueError, IndexError):
            raise ValueError(
                f'there is no field {self._field!r}; the type is '
                f'{rows.dtype}') from None

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        batch = numpy.empty((len(rows), *self.shape[1:]), self.dtype)
        if not rows.size:
            return batch
        self._check_rows(int(rows.min()), int(rows.max()))
        parts = numpy.searchsorted(self.part_bounds, rows, 'right') - 1
        for part in numpy.unique(parts).tolist():
            reader, place, inside = self._parts[part]
            wanted = parts == part
            places = rows[wanted] - self.part_bounds[part] + inside.start
            if place:
                # The row of the first axis that the part lies in.
                found = reader.read(place[0])[(*place[1:], places)]
            else:
                found = reader.read(places)
            batch[wanted] = self._pick(found)
        return batch

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        return self._read_list(numpy.arange(start, stop, dtype=numpy.intp))
