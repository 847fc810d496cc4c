"""Interface of readers, which read rows of one source by their places."""
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy
from numpy.typing import NDArray

from fuel.exceptions import DamagedFileError
from fuel.kernels.batches import Part
from fuel.storage.chunk_cache import Ahead
from fuel.storage.file_bytes import Ends, RemoteBytes, Versioned
from fuel.storage.layout import Layout, native_type
from fuel.utils.hdf5_errors import damaged

# Types of objects that contain other objects, and types of objects that
# contain none.
NESTED = numpy.ndarray, list, tuple, dict
PLAIN = frozenset((int, float, bool, str, bytes, type(None)))

Places = int | slice | NDArray[numpy.intp]


class StoredPieces(NamedTuple):
    """The pieces of files in which rows are decoded or fetched.

    `numbers`: shape (rows,), dtype intp; for each row, the number of the piece
        in which it begins.
    `are_chunks`: whether the pieces are chunks of the file; otherwise they are
        the bytes of a contiguous source that one request fetches.
    `are_decoded`: whether each piece is decoded as a whole.
    `row_nbytes`: mean number of bytes of a row.
    """

    numbers: NDArray[numpy.intp]
    are_chunks: bool
    are_decoded: bool
    row_nbytes: float

    @property
    def cost(self) -> tuple[bool, bool, float]:
        """A key that is larger if reading costs more (tuple)."""
        return (self.are_chunks, self.are_decoded,
                self.row_nbytes if self.are_chunks else 0.)


class Reader(ABC):
    """Base of readers, which read the rows of one source by their places.

    Several threads may use a reader at once, and so may a forked child. A
    reader belongs to an open file and cannot be pickled.

    `path`: path of the file, for errors.
    `name`: name of the source, for errors.
    `dtype`: type of the rows, in native byte order.
    `layout`: the storage of the data set; None if the file is not HDF5.
    `files`: the files that are read; empty if their state is not known.
    `part_bounds`: shape (parts + 1,), dtype intp; the first row of each part,
        and the number of rows.
    `element_type`: type of the elements, if rows are arrays of different
        shapes; otherwise None.
    `categories`: the names of the codes, if rows are codes; otherwise None.
    `stage`: name of the stage that decodes the rows, such as
        ``ImagesFromBytes``; '' if there is none.
    """

    layout: Layout | None = None
    files: Sequence[Versioned] = ()
    element_type: numpy.dtype[Any] | None = None
    categories: tuple[Any, ...] | None = None
    stage = ''
    #: True if all rows of a run have one value, which is read once per run.
    is_per_run = False
    #: Step with which the rows of a range are prefetched: the rows at this
    #: step, together with the last row, touch all chunks that the range needs.
    rows_of_chunk = 1

    def __init__(self, path: str, name: str, shape: tuple[int, ...],
                 dtype: numpy.dtype[Any]) -> None:
        self.path = path
        self.name = name
        self.shape = shape
        self.dtype = native_type(dtype)
        self.part_bounds = numpy.array([0, shape[0]], numpy.intp)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def row_nbytes(self) -> int:
        """Number of bytes of a row; for objects, without the data to which
        they refer (int)."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def read(self, rows: Places) -> Any:
        """Return rows of the source.

        `rows`: an array of shape (batch,) and dtype intp, with places from 0
            in any order, which may be repeated; or a slice, as for a list; or
            an integer.
        Returns: a new array, contiguous, writable and in native byte order.
            For an integer it lacks the first axis; if this is the only axis,
            it is a NumPy scalar.
        """
        if isinstance(rows, numpy.ndarray):
            return self._read_list(
                numpy.ascontiguousarray(rows, dtype=numpy.intp))
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._read_range(start, max(start, stop))
            return self._read_list(
                numpy.arange(start, stop, step, dtype=numpy.intp))
        return self._read_range(rows, rows + 1)[0]

    def __getitem__(self, rows: Places) -> Any:
        return self.read(rows)

    def read_ranges(self, starts: NDArray[numpy.intp],
                    counts: NDArray[numpy.intp]) -> NDArray[Any]:
        """Return ranges of rows, concatenated.

        `starts`, `counts`: shape (ranges,), dtype intp; the first row and the
            number of rows of each range. A count may be 0.
        Returns: an array of shape ``(counts.sum(), ...)``; see `read`.
        """
        return self._read_list(rows_of_ranges(starts, counts))

    def read_runs(self, runs: NDArray[numpy.intp]) -> Any:
        """Return for each run the value that all its rows share, also for
        empty runs.

        Only readers with `is_per_run` support this.

        `runs`: shape (batch,), dtype intp; numbers of the runs, as they were
            before splits cut them.
        """
        raise NotImplementedError

    def prefetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """Return the number of bytes that may be prefetched; None for no
        prefetching."""
        return None

    def prefetch(self, rows: NDArray[numpy.intp], budget: int,
                 ahead: Ahead | None = None) -> int | None:
        """Prefetch rows that will soon be read, in the background.

        `rows`: shape (batch,), dtype intp; as for `read`, but checked.
        `budget`: number of bytes that may be used.
        `ahead`: counts the chunks that the requests of an epoch need.
        Returns: number of bytes that are used. None if they are more than
            `budget`; then nothing is done.
        """
        return 0

    def fetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """Return the number of bytes of a remote file that may be prefetched;
        None if nothing is remote."""
        return None

    def fetch(self, rows: NDArray[numpy.intp], budget: int) -> int | None:
        """Request the bytes of rows in the background.

        Returns: number of requested bytes. None if they are more than
            `budget`; then nothing is requested.
        """
        return 0

    def byte_ranges(self, rows: NDArray[numpy.intp],
                    ) -> tuple[Ends, Ends] | None:
        """Return the starts and ends of the byte ranges that are fetched for
        rows of a remote file; None if only HDF5 knows them."""
        return None

    def pieces(self, rows: NDArray[numpy.intp]) -> StoredPieces | None:
        """Return the pieces in which rows are decoded or fetched.

        None if each row is read alone, so that any order is equally fast.
        """
        return None

    def direct(self) -> Part | None:
        """Return a compiled reader of batches, which replaces this reader;
        None if there is none."""
        return None

    @abstractmethod
    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        """Return rows in the requested order."""

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        """Return the rows ``start:stop``."""
        return self._read_list(numpy.arange(start, stop, dtype=numpy.intp))

    def _check_list(self, rows: NDArray[numpy.intp]) -> None:
        if rows.size:
            self._check_rows(int(rows.min()), int(rows.max()))

    def _check_rows(self, low: int, high: int) -> None:
        for row in (low, high):
            if not 0 <= row < len(self):
                raise IndexError(
                    f'{self.path}, source {self.name!r}: rows must lie in '
                    f'0 to {len(self) - 1}, got {row}')

    def _damaged(self, row: int, reason: str) -> DamagedFileError:
        return damaged(f'{self._place_of(row)}: {reason}')

    def _place_of(self, row: int) -> str:
        """Return a text with file, source and row, for errors."""
        return f'{self.path}, source {self.name!r}, row {row}'


class RowsOfParts(Protocol):
    """Interface of an object that reads rows of one part at a time."""

    def read(self, part: int, rows: NDArray[numpy.intp]) -> Any:
        """Return rows of a part; rows are counted from its first row."""

    def pieces(self, rows: NDArray[numpy.intp]) -> StoredPieces | None:
        """See :meth:`Reader.pieces`."""


class PartsReader(Reader):
    """Reader that reads rows part by part, and puts them into a batch.

    `parts`: reads the rows of each part.
    `bounds`: the first row of each part, and the end of the last part.
    `files`: see :class:`Reader`.
    """

    def __init__(self, path: str, name: str, shape: tuple[int, ...],
                 dtype: numpy.dtype[Any], parts: RowsOfParts,
                 bounds: NDArray[numpy.intp],
                 files: Sequence[Versioned]) -> None:
        super().__init__(path, name, (int(bounds[-1]), *shape), dtype)
        self.part_bounds = self._bounds = bounds
        self.files = files
        self._parts = parts

    def pieces(self, rows: NDArray[numpy.intp]) -> StoredPieces | None:
        """See :meth:`Reader.pieces`."""
        return self._parts.pieces(rows)

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        self._check_list(rows)
        batch = numpy.empty((len(rows), *self.shape[1:]), self.dtype)
        parts = part_numbers(self._bounds, rows)
        for part in numpy.unique(parts).tolist():
            places = numpy.flatnonzero(parts == part)
            batch[places] = self._parts.read(
                part, rows[places] - self._bounds[part])
        return batch


class DerivedReader(Reader):
    """Base of readers that make examples from rows of other readers.

    Prefetching an example prefetches the rows of the other readers.

    `readers`: the other readers; the first one names the file and the source.
    """

    def __init__(self, readers: Sequence[Reader], shape: tuple[int, ...],
                 dtype: numpy.dtype[Any]) -> None:
        first = readers[0]
        super().__init__(first.path, first.name, shape, dtype)
        self.files = first.files if len(readers) == 1 else tuple(
            {id(file): file for reader in readers
             for file in reader.files}.values())
        self._readers = readers

    @abstractmethod
    def needed(self, rows: NDArray[numpy.intp],
               ) -> Sequence[NDArray[numpy.intp]]:
        """Return for each reader at least one row in each of those chunks that
        the examples need."""

    @abstractmethod
    def span(self, rows: slice | NDArray[numpy.intp],
             ) -> slice | NDArray[numpy.intp]:
        """Return the rows of the readers that include all rows which the
        examples need."""

    def prefetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.prefetch_budget`."""
        span = self.span(rows)
        return _least(reader.prefetch_budget(span) for reader in self._readers)

    def prefetch(self, rows: NDArray[numpy.intp], budget: int,
                 ahead: Ahead | None = None) -> int | None:
        """See :meth:`Reader.prefetch`."""
        return _spent([partial(reader.prefetch, needed, ahead=ahead)
                       for reader, needed in self._each(rows)], budget)

    def fetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.fetch_budget`."""
        span = self.span(rows)
        return _least(reader.fetch_budget(span) for reader in self._readers)

    def fetch(self, rows: NDArray[numpy.intp], budget: int) -> int | None:
        """See :meth:`Reader.fetch`."""
        return _spent([partial(reader.fetch, needed)
                       for reader, needed in self._each(rows)], budget)

    def byte_ranges(self, rows: NDArray[numpy.intp],
                    ) -> tuple[Ends, Ends] | None:
        """See :meth:`Reader.byte_ranges`."""
        if len({tuple(reader.files) for reader in self._readers}) > 1:
            # An address counts through all files of its reader, so readers of
            # different files have different addresses.
            return None
        found = [reader.byte_ranges(needed)
                 for reader, needed in self._each(rows)]
        known = [ends for ends in found if ends is not None]
        if len(known) < len(found):
            return None
        return (numpy.concatenate([begins for begins, _ in known]),
                numpy.concatenate([ends for _, ends in known]))

    def _each(self, rows: NDArray[numpy.intp],
              ) -> Iterable[tuple[Reader, NDArray[numpy.intp]]]:
        return zip(self._readers, self.needed(rows), strict=True)


def _least(budgets: Iterable[int | None]) -> int | None:
    """Return the least of the budgets that are not None."""
    return min((budget for budget in budgets if budget is not None),
               default=None)


def _spent(calls: Sequence[Callable[[int], int | None]],
           budget: int) -> int | None:
    """Return the total number of bytes that `calls` use of a budget; None if a
    call needs more than is left."""
    total = 0
    for call in calls:
        cost = call(budget - total)
        if cost is None:
            return None
        total += cost
    return total


def request_missing(file: RemoteBytes, ranges: tuple[Ends, Ends],
                    budget: int) -> int | None:
    """Request those bytes of ranges that are neither cached nor requested.

    Returns: number of requested bytes. None if they are more than `budget`;
        then nothing is requested.
    """
    missing = file.missing_bytes(*ranges)
    if missing > budget:
        return None
    if missing:
        file.request(*ranges)
    return missing


def part_numbers(bounds: NDArray[numpy.intp],
                 rows: NDArray[numpy.intp]) -> NDArray[numpy.intp]:
    """Return the number of the part of each row."""
    return numpy.searchsorted(bounds, rows, 'right') - 1


def no_ranges() -> tuple[Ends, Ends]:
    """Return empty byte ranges, for data in memory."""
    return numpy.empty(0, numpy.int64), numpy.empty(0, numpy.int64)


def rows_of_ranges(starts: NDArray[numpy.intp], counts: NDArray[numpy.intp],
                   ) -> NDArray[numpy.intp]:
    """Return the rows of ranges, concatenated."""
    starts, counts = check_ranges(starts, counts)
    ends = numpy.cumsum(counts, dtype=numpy.intp)
    rows = numpy.repeat(starts - ends + counts, counts)
    rows += numpy.arange(len(rows), dtype=numpy.intp)
    return rows


def check_ranges(starts: NDArray[numpy.intp], counts: NDArray[numpy.intp],
                 ) -> tuple[NDArray[numpy.intp], NDArray[numpy.intp]]:
    """Return the starts and counts of ranges as arrays; raise ValueError if
    they are invalid."""
    starts = numpy.ascontiguousarray(starts, numpy.intp)
    counts = numpy.ascontiguousarray(counts, numpy.intp)
    if starts.ndim != 1 or starts.shape != counts.shape:
        raise ValueError(
            f'ranges need a start and a count each, in two arrays of one '
            f'axis, got the shapes {starts.shape} and {counts.shape}')
    if counts.size and counts.min() < 0:
        raise ValueError(
            f'a range cannot have {counts.min()} rows: counts must be at '
            f'least 0')
    return starts, counts


def split_ranges(rows: Any, counts: NDArray[numpy.intp]) -> list[Any]:
    """Return a list of ranges of rows that were read together.

    Arrays are copied, so that one range does not keep all rows in memory.
    """
    ends = numpy.cumsum(counts)
    return [rows[start:end].copy() if isinstance(rows, numpy.ndarray)
            else rows[start:end]
            for start, end in zip(
                (ends - counts).tolist(), ends.tolist(), strict=True)]


def as_objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return values, such as arrays of different lengths, as an array of
    objects."""
    batch = numpy.empty(len(values), object)
    for place, value in enumerate(values):
        batch[place] = value
    return batch


def own_objects(batch: NDArray[Any]) -> NDArray[Any]:
    """Replace the arrays, lists and dictionaries in a batch, at any depth, by
    copies; return the batch."""
    if batch.dtype.hasobject:
        flat = batch.reshape(-1)
        for place, element in enumerate(flat.tolist()):
            if isinstance(element, NESTED):
                flat[place] = _own(element)
    return batch


def _own(value: Any) -> Any:
    """Return a deep copy of an array, list, tuple or dictionary; any other
    object itself."""
    if isinstance(value, numpy.ndarray):
        return own_objects(value.copy())
    if isinstance(value, dict):
        return {key: _own(part) for key, part in value.items()}
    if not isinstance(value, NESTED):
        return value
    if PLAIN.issuperset(map(type, value)):
        return value[:]
    parts = list(map(_own, value))
    return tuple(parts) if isinstance(value, tuple) else parts
