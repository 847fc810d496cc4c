"""Readers that make examples of what other readers read."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import h5py
import numpy
from numpy.typing import NDArray

from fuel.datasets.row_orders import IndexArray
from fuel.kernels.batches import Part, PlainRows, RangeRows
from fuel.storage import Reader
from fuel.storage.reader import (
    DerivedReader, StoredPieces, as_objects, rows_of_ranges, split_ranges)

Places: TypeAlias = Callable[[IndexArray], IndexArray]
Change: TypeAlias = Callable[[NDArray[Any], IndexArray], NDArray[Any]]


class ChangedReader(DerivedReader):
    """Examples that are each made from one row of another reader.

    `shape`: shape of all examples. Without `change`, rows are reshaped to it.
        Defaults to the shape of the other reader.
    `places`: takes numbers of examples; returns the rows of the other reader
        that they are made from. None if the numbers are the same.
    `change`: takes rows, which it may write to, and the numbers of the
        examples; returns the examples. None if rows stay as they are.
    `bounds`: see :attr:`Reader.part_bounds`. Defaults to the bounds of the
        other reader.
    `rows_of_runs`: takes numbers of runs; returns the row of the other reader
        that all rows of each run share. None if rows of a run differ.
    """

    def __init__(self, reader: Reader, shape: tuple[int, ...] | None = None,
                 dtype: numpy.dtype[Any] | None = None, *,
                 places: Places | None = None,
                 change: Change | None = None,
                 bounds: IndexArray | None = None,
                 rows_of_runs: Places | None = None) -> None:
        super().__init__([reader], shape or reader.shape,
                         dtype or reader.dtype)
        self.layout = reader.layout
        self.part_bounds = reader.part_bounds if bounds is None else bounds
        self.is_per_run = rows_of_runs is not None
        self._reader = reader
        self._places, self._change = places, change
        self._rows_of_runs = rows_of_runs
        if places is None:
            self.rows_of_chunk = reader.rows_of_chunk

    def places(self, rows: IndexArray) -> IndexArray:
        """Return the rows of the other reader that examples are made from."""
        return rows if self._places is None else self._places(rows)

    def change(self, rows: NDArray[Any], numbers: IndexArray) -> NDArray[Any]:
        """Return examples made from rows; the rows may be written to."""
        if self._change is None:
            return rows.reshape(len(rows), *self.shape[1:])
        return self._change(rows, numbers)

    def needed(self, rows: IndexArray) -> Sequence[IndexArray]:
        """See :meth:`DerivedReader.needed`."""
        return [self.places(rows)]

    def span(self, rows: slice | IndexArray) -> slice | IndexArray:
        """See :meth:`DerivedReader.span`."""
        return rows if self._places is None else self.places(
            numpy.arange(len(self))[rows])

    def direct(self) -> Part | None:
        """See :meth:`Reader.direct`."""
        if self._places is not None or self._change is not None:
            return None
        part = self._reader.direct()
        return PlainRows(part.rows, self.shape[1:], self.dtype) if (
            type(part) is PlainRows) else None

    def read_ranges(self, starts: IndexArray,
                    counts: IndexArray) -> NDArray[Any]:
        """See :meth:`Reader.read_ranges`."""
        if self._places is not None:
            return super().read_ranges(starts, counts)
        return self.change(self._reader.read_ranges(starts, counts),
                           rows_of_ranges(starts, counts))

    def read_runs(self, runs: IndexArray) -> Any:
        """See :meth:`Reader.read_runs`."""
        assert self._rows_of_runs is not None
        return self._reader.read(self._rows_of_runs(runs))

    def _read_list(self, rows: IndexArray) -> NDArray[Any]:
        self._check_list(rows)
        return self.change(self._reader.read(self.places(rows)), rows)

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        if self._places is not None:
            return super()._read_range(start, stop)
        if start < stop:
            self._check_rows(start, stop - 1)
        return self.change(self._reader.read(slice(start, stop)),
                           numpy.arange(start, stop, dtype=numpy.intp))

    def pieces(self, rows: NDArray[numpy.intp]) -> StoredPieces | None:
        """See :meth:`Reader.pieces`."""
        return self._reader.pieces(self.places(rows))


def with_text(reader: Reader, array: h5py.Dataset) -> Reader:
    """Return a reader whose text of variable length is ``str``."""
    strings = h5py.check_string_dtype(array.dtype)
    is_text = strings is not None and strings.length is None
    return ChangedReader(reader, change=_as_text) if is_text else reader


def _as_text(rows: NDArray[Any], _: IndexArray) -> NDArray[Any]:
    """Return text of variable length as ``str``."""
    flat = rows.reshape(-1)
    for place, text in enumerate(flat.tolist()):
        if isinstance(text, bytes):
            flat[place] = text.decode('utf-8', 'surrogateescape')
    return rows


class RangesReader(DerivedReader):
    """Examples that are made from ranges of rows of other readers: arrays of
    different lengths, unless a subclass makes other examples.

    `readers`: the other readers; the same ranges are read from each.
    `starts`, `stops`: shape (examples,); the range of rows of each example.
    `bounds`: see :attr:`Reader.part_bounds`.
    `describe`: takes the number of a part; returns its name for errors.
    """

    def __init__(self, readers: Sequence[Reader], shape: tuple[int, ...],
                 dtype: numpy.dtype[Any], starts: IndexArray,
                 stops: IndexArray, bounds: IndexArray,
                 describe: Callable[[int], str]) -> None:
        super().__init__(readers, shape, dtype)
        self.part_bounds = bounds
        self._starts, self._stops = starts, stops
        self._describe = describe

    @property
    def rows(self) -> Reader:
        """The reader of the rows that examples are made from (Reader)."""
        return self._readers[0]

    def make(self, found: Sequence[NDArray[Any]],
             counts: IndexArray,
             rows: IndexArray) -> Any:
        """Return examples: an array of arrays, each with memory of its own.

        `found`: the rows of each reader, one after the other.
        `counts`: number of rows of each example.
        `rows`: the numbers of the examples.
        """
        joined, = found
        return as_objects(split_ranges(joined, counts))

    def direct(self) -> Part | None:
        """See :meth:`Reader.direct`."""
        parts = [part for part in [
            reader.direct() for reader in self._readers]
            if type(part) is PlainRows]
        if len(parts) < len(self._readers):
            return None
        return RangeRows(parts, self._starts, self._stops, self.make)

    def _read_list(self, rows: IndexArray) -> Any:
        self._check_list(rows)
        starts = self._starts[rows]
        counts = self._stops[rows] - starts
        return self.make([reader.read_ranges(starts, counts)
                          for reader in self._readers], counts, rows)

    def _place_of(self, row: int) -> str:
        """See :meth:`Reader._place_of`."""
        part = int(numpy.searchsorted(self.part_bounds, row, 'right')) - 1
        inside = row - int(self.part_bounds[part])
        return f'{self._describe(part)}, source {self.name!r}, row {inside}'

    def needed(self, rows: IndexArray) -> Sequence[IndexArray]:
        """See :meth:`DerivedReader.needed`."""
        # Mostly one step: arrays of one group have chunks of equal length.
        steps = [reader.rows_of_chunk for reader in self._readers]
        found = {step: self._every(step, rows) for step in set(steps)}
        return [found[step] for step in steps]

    def _every(self, step: int,
               rows: IndexArray) -> IndexArray:
        starts, stops = self._starts[rows], self._stops[rows]
        # The first row of each range, every further row at a distance of
        # `step`, and the last row.
        counts = numpy.where(
            stops > starts, -(-(stops - starts - 1) // step) + 1, 0)
        places = rows_of_ranges(numpy.zeros_like(counts), counts)
        found: IndexArray = numpy.minimum(
            starts.repeat(counts) + places * step, stops.repeat(counts) - 1)
        return found

    def span(self, rows: slice | IndexArray) -> slice:
        """Return a range of rows that contains the rows of some examples."""
        starts, stops = self._starts[rows], self._stops[rows]
        return slice(int(starts.min(initial=0)), int(stops.max(initial=0)))

    def pieces(self, rows: NDArray[numpy.intp]) -> StoredPieces | None:
        """Return the pieces of the reader that costs most to read; see
        :meth:`Reader.pieces`."""
        starts, stops = self._starts[rows], self._stops[rows]
        found = [pieces for pieces in [
            # Examples without rows may begin after the last row.
            reader.pieces(numpy.minimum(starts, len(reader) - 1))
            for reader in self._readers if len(reader)]
            if pieces is not None]
        if not found:
            return None
        most = max(found, key=lambda pieces: pieces.cost)
        mean = float((stops - starts).sum()) / max(1, len(rows))
        return most._replace(row_nbytes=mean * sum([
            pieces.row_nbytes for pieces in found]))
