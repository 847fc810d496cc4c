"""Rows of parts that differ in more than their number of rows."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.parts import FileParts
from fuel.datasets.columns.readers import part_numbers
from fuel.storage import Reader
from fuel.storage.arrays import ArrayReader
from fuel.storage.chunk_cache import default_budget
from fuel.storage.layout import dataset_name, discover, stored_type
from fuel.storage.mapped import MappedReader
from fuel.storage.parts import one_part
from fuel.storage.raw_file import raw_file
from fuel.storage.reader import StoredPieces, own_objects


# Of a part, at most so many pieces have numbers of their own.
PIECES_OF_PART = 1 << 40


class PartsReader(Reader):
    """Rows of parts, each with a reader of its own, opened when needed.

    `counts`: how many rows each part has.
    `example_shape`: of a row; None if each part has another one, and a batch
        is an array of arrays.
    `element_type`: of what a row has.
    `open_part`: returns the reader of a part, by its number.
    """

    def __init__(self, parts: FileParts, name: str, counts: Sequence[int],
                 example_shape: tuple[int, ...] | None,
                 element_type: numpy.dtype[Any],
                 open_part: Callable[[int], Reader]) -> None:
        bounds = numpy.cumsum([0, *counts]).astype(numpy.intp)
        is_ragged = example_shape is None
        super().__init__(
            parts.path_of(0), name, (
                int(bounds[-1]), *(example_shape or ())),
            numpy.dtype(object) if is_ragged else element_type)
        self.part_bounds = bounds
        self.files = parts.files.all_bytes()
        self.element_type = element_type
        self._is_ragged = is_ragged
        self._parts, self._open_part = parts, open_part
        self._readers: dict[int, Reader] = {}

    def _reader(self, number: int) -> Reader:
        reader = self._readers.get(number)
        if reader is None:
            reader = self._readers[number] = self._open_part(number)
        return reader

    def pieces(self, rows: NDArray[numpy.intp]) -> StoredPieces | None:
        """See :meth:`Reader.pieces`; parts without any are one each."""
        parts = part_numbers(self.part_bounds, rows)
        numbers = parts * PIECES_OF_PART
        known: list[StoredPieces] = []
        for part in numpy.unique(parts).tolist():
            places = numpy.flatnonzero(parts == part)
            found = self._reader(part).pieces(
                rows[places] - self.part_bounds[part])
            if found is not None:
                numbers[places] += found.numbers
                known.append(found)
        if not known:
            return None
        return max(known, key=lambda found: found.cost)._replace(
            numbers=numbers)

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        return self._read_parts(self.part_bounds, rows, self._read_part)

    def _read_part(self, part: int, rows: NDArray[numpy.intp]) -> Any:
        found = self._reader(part).read(rows)
        self._parts.check(part)
        if not self._is_ragged:
            return found
        batch = numpy.empty(len(rows), object)
        for place, row in enumerate(found):
            batch[place] = numpy.array(row)
        return batch


class AxisReader(Reader):
    """Rows along another axis than the first.

    What is contiguous is copied out of the file; what is not is read whole
    once, if it fits into the budget for decoded chunks.
    """

    def __init__(self, array: h5py.Dataset, axis: int,
                 cache_bytes: int | None) -> None:
        shape = array.shape
        super().__init__(array.file.filename, dataset_name(array),
                         (shape[axis], *shape[:axis], *shape[axis + 1:]),
                         array.dtype)
        self._array, self._axis = array, axis
        self._rows = _map_axis(array, axis)
        budget = default_budget() if cache_bytes is None else cache_bytes
        self._is_kept = array.size * array.dtype.itemsize <= budget

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        self._check_list(rows)
        if self._rows is None and self._is_kept:
            self._rows = ArrayReader(
                self.path, self.name, self._moved(self._array[()]))
        if self._rows is not None:
            found: NDArray[Any] = self._rows.read(rows)
            return found
        unique, places = numpy.unique(rows, return_inverse=True)
        found = self._moved(
            self._array[(slice(None),) * self._axis + (unique,)])
        return own_objects(found.take(places, axis=0))

    def pieces(self, rows: NDArray[numpy.intp]) -> StoredPieces | None:
        """See :meth:`Reader.pieces`."""
        chunks = self._array.chunks
        if chunks is None or self._is_kept:
            return None
        return StoredPieces(rows // chunks[self._axis], True,
                            self._array.compression is not None,
                            self.row_nbytes)

    def _moved(self, found: NDArray[Any]) -> NDArray[Any]:
        moved: NDArray[Any] = numpy.ascontiguousarray(
            numpy.moveaxis(found, self._axis, 0), self.dtype)
        return moved


def _map_axis(array: h5py.Dataset, axis: int) -> Reader | None:
    """Return a reader of an array whose bytes are in one piece, None for
    others.

    To the kernel, what follows the axis lies in a chunk of all rows.
    """
    layout = discover(array)
    if layout.reader != 'mapped' or layout.chunk_shape is not None:
        return None
    file, dtype = raw_file(array), stored_type(array)
    count, before, after = (array.shape[axis], array.shape[:axis],
                            array.shape[axis + 1:])
    nbytes = count * math.prod(after) * dtype.itemsize
    offset = array.id.get_offset()
    if offset + math.prod(before) * nbytes > file.size:
        return None
    addresses = offset + nbytes * numpy.arange(
        math.prod(before), dtype=numpy.int64)
    try:
        return MappedReader(file, dataset_name(array), one_part(
            (count, *before, *after), dtype, addresses,
            (count, *[1] * len(before), *after)))
    except ValueError:
        # A row would lie in too many pieces.
        return None
