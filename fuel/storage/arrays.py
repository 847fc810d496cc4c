"""Rows of arrays in memory, copied in C where they hold plain values."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.kernels import native, take
from fuel.kernels.batches import Part, PlainRows
from fuel.kernels.gather import MappedRows
from fuel.storage.file_bytes import Ends, Versioned
from fuel.storage.joined_file import states_of
from fuel.storage.parts import copies_as_bytes, parts_of_lengths
from fuel.storage.reader import Reader, no_ranges, own_objects


class ArrayReader(Reader):
    """Rows of an array in memory.

    `files`: those that its rows were read from.
    `lengths`: how many rows are of each file. Defaults to all of the only
        one.
    """

    def __init__(self, path: str, name: str, array: NDArray[Any],
                 files: Sequence[Versioned] = (),
                 lengths: Sequence[int] | None = None) -> None:
        super().__init__(path, name, array.shape, array.dtype)
        self.files = files
        self.array = numpy.ascontiguousarray(native(array))
        self._rows = _mapped(self.array, files, [len(array)] if (
            lengths is None) else lengths) if copies_as_bytes(
                self.dtype, self.shape[1:]) else None

    def direct(self) -> Part | None:
        """See :meth:`Reader.direct`."""
        return None if self._rows is None else PlainRows(
            self._rows, self.shape[1:], self.dtype)

    def byte_ranges(self, rows: NDArray[numpy.intp]) -> tuple[Ends, Ends]:
        """Return nothing: all of it is in memory."""
        return no_ranges()

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        self._check_list(rows)
        return own_objects(take(self.array, rows))

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        if start < stop:
            self._check_rows(start, stop - 1)
        return own_objects(self.array[start:stop].copy())


def _mapped(array: NDArray[Any], files: Sequence[Versioned],
            lengths: Sequence[int]) -> MappedRows:
    """Return what copies rows of an array, and declines those of files that
    have changed."""
    num_files = max(1, len(files))
    parts = parts_of_lengths(
        array.shape[1:], array.dtype, lengths,
        range(len(lengths)) if files else None, num_files)
    rows = MappedRows(parts.kernel, numpy.cumsum(parts.nbytes) - parts.nbytes,
                      [(0, array.reshape(-1).view(numpy.uint8))] * num_files)
    if files:
        rows.watch(states_of(files))
    return rows
