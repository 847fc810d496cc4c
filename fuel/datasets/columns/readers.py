"""Readers that make examples of what other readers read."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.exceptions import DamagedFileError
from fuel.kernels.batches import Part, PlainRows, RangeRows
from fuel.storage import Reader
from fuel.storage.file_bytes import Ends
from fuel.storage.reader import rows_of_ranges


class ChangedReader(Reader):
    """Rows of another reader, each changed into another value.

    What is read in advance is what the other reader needs for them. Subclasses
    may take other rows for an example, by `places`.
    """

    def __init__(self, reader: Reader, shape: tuple[int, ...] | None = None,
                 dtype: numpy.dtype[Any] | None = None) -> None:
        super().__init__(reader.path, reader.name, shape or reader.shape,
                         dtype or reader.dtype)
        self.layout = reader.layout
        self.files = reader.files
        self.part_bounds = reader.part_bounds
        self._reader = reader

    def places(self, rows: NDArray[numpy.intp]) -> NDArray[numpy.intp]:
        """Return which rows of the other reader some examples are made of;
        unless a class says otherwise, the same."""
        return rows

    @abstractmethod
    def change(self, rows: NDArray[Any],
               numbers: NDArray[numpy.intp]) -> NDArray[Any]:
        """Return examples made of rows.

        `rows`: new, and may be written to.
        `numbers`: of the examples.
        """

    def read_ranges(self, starts: NDArray[numpy.intp],
                    counts: NDArray[numpy.intp]) -> NDArray[Any]:
        """See :meth:`Reader.read_ranges`."""
        if type(self).places is not ChangedReader.places:
            return super().read_ranges(starts, counts)
        return self.change(self._reader.read_ranges(starts, counts),
                           rows_of_ranges(starts, counts))

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        if rows.size:
            self._check_rows(int(rows.min()), int(rows.max()))
        return self.change(self._reader.read(self.places(rows)), rows)

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        return self._read_list(numpy.arange(start, stop, dtype=numpy.intp))

    def prefetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.prefetch_budget`."""
        return self._reader.prefetch_budget(self._all_places(rows))

    def prefetch(self, rows: NDArray[numpy.intp], budget: int) -> int | None:
        """See :meth:`Reader.prefetch`."""
        return self._reader.prefetch(self.places(rows), budget)

    def fetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.fetch_budget`."""
        return self._reader.fetch_budget(self._all_places(rows))

    def fetch(self, rows: NDArray[numpy.intp], budget: int) -> int | None:
        """See :meth:`Reader.fetch`."""
        return self._reader.fetch(self.places(rows), budget)

    def byte_ranges(self, rows: NDArray[numpy.intp],
                    ) -> tuple[Ends, Ends] | None:
        """See :meth:`Reader.byte_ranges`."""
        return self._reader.byte_ranges(self.places(rows))

    def _all_places(self, rows: slice | NDArray[numpy.intp],
                    ) -> slice | NDArray[numpy.intp]:
        if type(self).places is ChangedReader.places:
            return rows
        return self.places(numpy.arange(len(self))[rows])


def with_text(reader: Reader, array: h5py.Dataset) -> Reader:
    """Return a reader whose text of variable length is ``str``."""
    strings = h5py.check_string_dtype(array.dtype)
    is_text = strings is not None and strings.length is None
    return TextReader(reader) if is_text else reader


class TextReader(ChangedReader):
    """Text of variable length, as ``str``."""

    def change(self, rows: NDArray[Any], _: Any) -> NDArray[Any]:
        """See :meth:`ChangedReader.change`."""
        flat = rows.reshape(-1)
        for place, text in enumerate(flat.tolist()):
            if isinstance(text, bytes):
                flat[place] = text.decode('utf-8', 'surrogateescape')
        return rows


class SingleReader(ChangedReader):
    """The only element of each row of another reader."""

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader, reader.shape[:1])
        self.rows_of_chunk = reader.rows_of_chunk

    def change(self, rows: NDArray[Any], _: Any) -> NDArray[Any]:
        """See :meth:`ChangedReader.change`."""
        return rows.reshape(len(rows))

    def direct(self) -> Part | None:
        """See :meth:`Reader.direct`."""
        part = self._reader.direct()
        return PlainRows(part.rows, (), self.dtype) if (
            type(part) is PlainRows) else None

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        return self.change(self._reader.read(slice(start, stop)), None)


class RangesReader(Reader):
    """Examples that are made of ranges of rows of other readers.

    `readers`: of which each has the same rows.
    `starts`, `stops`: shape (examples,); the rows of each example.
    `bounds`: see :attr:`Reader.part_bounds`.
    `describe`: returns what a part is called in errors.
    """

    def __init__(self, readers: Sequence[Reader], shape: tuple[int, ...],
                 dtype: numpy.dtype[Any], starts: NDArray[numpy.intp],
                 stops: NDArray[numpy.intp], bounds: NDArray[numpy.intp],
                 describe: Callable[[int], str]) -> None:
        first = readers[0]
        super().__init__(first.path, first.name, shape, dtype)
        self.files = tuple({id(file): file for reader in readers
                            for file in reader.files}.values())
        self.part_bounds = bounds
        self._readers = readers
        self._starts, self._stops = starts, stops
        self._describe = describe

    @abstractmethod
    def make(self, found: Sequence[NDArray[Any]],
             counts: NDArray[numpy.intp],
             rows: NDArray[numpy.intp]) -> Any:
        """Return examples.

        `found`: what each reader has for them, one after the other.
        `counts`: how many rows belong to each example.
        `rows`: which examples they are.
        """

    def direct(self) -> Part | None:
        """See :meth:`Reader.direct`."""
        parts = [part for part in [
            reader.direct() for reader in self._readers]
            if type(part) is PlainRows]
        if len(parts) < len(self._readers):
            return None
        return RangeRows(parts, self._starts, self._stops, self.make)

    def _read_list(self, rows: NDArray[numpy.intp]) -> Any:
        if rows.size:
            self._check_rows(int(rows.min()), int(rows.max()))
        starts = self._starts[rows]
        counts = self._stops[rows] - starts
        return self.make([reader.read_ranges(starts, counts)
                          for reader in self._readers], counts, rows)

    def _read_range(self, start: int, stop: int) -> Any:
        return self._read_list(numpy.arange(start, stop, dtype=numpy.intp))

    def _damaged(self, row: int, reason: str) -> DamagedFileError:
        part = int(numpy.searchsorted(self.part_bounds, row, 'right')) - 1
        inside = row - int(self.part_bounds[part])
        return DamagedFileError(
            f'{self._describe(part)}, source {self.name!r}, row {inside}: '
            f'{reason}; the file is damaged: restore it from its origin')

    def _elements(self, rows: NDArray[numpy.intp],
                  ) -> list[NDArray[numpy.intp]]:
        """Return of each reader rows in all chunks that some examples
        need."""
        # Mostly one: arrays beside each other have chunks of one length.
        steps = [reader.rows_of_chunk for reader in self._readers]
        found = {step: self._every(step, rows) for step in set(steps)}
        return [found[step] for step in steps]

    def _every(self, step: int,
               rows: NDArray[numpy.intp]) -> NDArray[numpy.intp]:
        starts, stops = self._starts[rows], self._stops[rows]
        # Each first row, every so manyth from there on, and the last.
        counts = numpy.where(
            stops > starts, -(-(stops - starts - 1) // step) + 1, 0)
        places = rows_of_ranges(numpy.zeros_like(counts), counts)
        found: NDArray[numpy.intp] = numpy.minimum(
            starts.repeat(counts) + places * step, stops.repeat(counts) - 1)
        return found

    def _span(self, rows: slice | NDArray[numpy.intp]) -> slice:
        """Return a range of rows of the readers that has all of examples."""
        starts, stops = self._starts[rows], self._stops[rows]
        return slice(int(starts.min(initial=0)), int(stops.max(initial=0)))

    def prefetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.prefetch_budget`."""
        return _least(reader.prefetch_budget(self._span(rows))
                      for reader in self._readers)

    def prefetch(self, rows: NDArray[numpy.intp], budget: int) -> int | None:
        """See :meth:`Reader.prefetch`."""
        return _spent([
            partial(reader.prefetch, elements) for reader, elements in zip(
                self._readers, self._elements(rows), strict=True)], budget)

    def fetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.fetch_budget`."""
        return _least(reader.fetch_budget(self._span(rows))
                      for reader in self._readers)

    def fetch(self, rows: NDArray[numpy.intp], budget: int) -> int | None:
        """See :meth:`Reader.fetch`."""
        return _spent([
            partial(reader.fetch, elements) for reader, elements in zip(
                self._readers, self._elements(rows), strict=True)], budget)

    def byte_ranges(self, rows: NDArray[numpy.intp],
                    ) -> tuple[Ends, Ends] | None:
        """See :meth:`Reader.byte_ranges`."""
        found = [reader.byte_ranges(elements) for reader, elements in zip(
            self._readers, self._elements(rows), strict=True)]
        known = [ends for ends in found if ends is not None]
        if len(known) < len(found):
            return None
        return (numpy.concatenate([begins for begins, _ in known]),
                numpy.concatenate([ends for _, ends in known]))


def _least(budgets: Iterable[int | None]) -> int | None:
    """Return the least of the budgets that there are."""
    return min((budget for budget in budgets if budget is not None),
               default=None)


def _spent(calls: Sequence[Callable[[int], int | None]],
           budget: int) -> int | None:
    """Return what several readers spend; None if one cannot."""
    total = 0
    for call in calls:
        cost = call(budget - total)
        if cost is None:
            return None
        total += cost
    return total


def part_numbers(bounds: NDArray[numpy.intp],
                 rows: NDArray[numpy.intp]) -> NDArray[numpy.intp]:
    """Return the part that each of some rows lies in."""
    return numpy.searchsorted(bounds, rows, 'right') - 1
