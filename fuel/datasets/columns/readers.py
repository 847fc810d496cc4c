"""Readers that make examples of what other readers read."""
from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.storage import Reader
from fuel.storage.file_bytes import Ends
from fuel.storage.reader import rows_of_ranges


class ChangedReader(Reader):
    """Rows of another reader, each changed into another value.

    What is read in advance is what the other reader needs for them.
    """

    def __init__(self, reader: Reader, shape: tuple[int, ...] | None = None,
                 dtype: numpy.dtype[Any] | None = None) -> None:
        super().__init__(reader.path, reader.name, shape or reader.shape,
                         dtype or reader.dtype)
        self.layout = reader.layout
        self.files = reader.files
        self.part_bounds = reader.part_bounds
        self._reader = reader

    @abstractmethod
    def change(self, rows: NDArray[Any],
               numbers: NDArray[numpy.intp]) -> NDArray[Any]:
        """Return examples made of rows.

        `rows`: new, and may be written to.
        `numbers`: of the rows.
        """

    def read_ranges(self, starts: NDArray[numpy.intp],
                    counts: NDArray[numpy.intp]) -> NDArray[Any]:
        """See :meth:`Reader.read_ranges`."""
        return self.change(self._reader.read_ranges(starts, counts),
                           rows_of_ranges(starts, counts))

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        return self.change(self._reader.read(rows), rows)

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        if start < stop:
            self._check_rows(start, stop - 1)
        return self.change(self._reader.read(slice(start, stop)),
                           numpy.arange(start, stop, dtype=numpy.intp))

    def prefetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.prefetch_budget`."""
        return self._reader.prefetch_budget(rows)

    def prefetch(self, rows: NDArray[numpy.intp], budget: int) -> int | None:
        """See :meth:`Reader.prefetch`."""
        return self._reader.prefetch(rows, budget)

    def fetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.fetch_budget`."""
        return self._reader.fetch_budget(rows)

    def fetch(self, rows: NDArray[numpy.intp], budget: int) -> int | None:
        """See :meth:`Reader.fetch`."""
        return self._reader.fetch(rows, budget)

    def byte_ranges(self, rows: NDArray[numpy.intp],
                    ) -> tuple[Ends, Ends] | None:
        """See :meth:`Reader.byte_ranges`."""
        return self._reader.byte_ranges(rows)
