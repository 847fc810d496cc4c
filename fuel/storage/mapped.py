"""Rows of contiguous data, and of chunks without filters, out of a map."""
from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.kernels.gather import OUTSIDE, MappedRows, Rows
from fuel.kernels.memory import empty
from fuel.kernels.tiles import Tiles
from fuel.storage.chunk_table import UnreadableTableError, read_chunk_table
from fuel.storage.file_bytes import Ends, FileBytes, is_remote
from fuel.storage.layout import Layout, fill_value, dataset_name, stored_type
from fuel.storage.paging import paging_of
from fuel.storage.raw_file import RawFile, raw_file
from fuel.storage.reader import Reader
from fuel.utils.threads import map_chunks


class DirectReader(Reader):
    """What the readers of bytes share: where rows lie, and the file."""

    _rows: Rows

    def __init__(self, file: FileBytes, name: str, shape: tuple[int, ...],
                 dtype: numpy.dtype[Any],
                 chunk_shape: tuple[int, ...] | None = None,
                 fill_value: object = 0) -> None:
        super().__init__(file.path, name, shape, dtype)
        self._file = file
        self._remote = file if is_remote(file) else None
        self.files = (file,)
        self._stored_type = dtype
        self._is_native = dtype == self.dtype
        self._tiles = Tiles(shape, chunk_shape or shape, dtype.itemsize)
        self._row_shape = shape[1:]
        self._fill = numpy.full(self._row_shape, fill_value, dtype)

    def _watch(self) -> None:
        """Let the rows decline batches once a local file was changed."""
        if isinstance(self._file, RawFile):
            self._file.watch(self._rows)

    def direct(self) -> Rows | None:
        """See :meth:`Reader.direct`."""
        if self._is_native and self.dtype.subdtype is None:
            return self._rows
        return None

    @abstractmethod
    def byte_ranges(self, rows: NDArray[numpy.intp]) -> tuple[Ends, Ends]:
        """See :meth:`Reader.byte_ranges`."""

    def _missing_ranges(self, rows: NDArray[numpy.intp]) -> tuple[Ends, Ends]:
        """Return the byte ranges that rows need and nobody holds decoded."""
        return self.byte_ranges(rows)

    def fetch(self, rows: NDArray[numpy.intp], budget: int) -> int | None:
        """See :meth:`Reader.fetch`."""
        assert self._remote is not None
        ranges = self._missing_ranges(rows)
        missing = self._remote.missing_bytes(*ranges)
        if missing > budget:
            return None
        if missing:
            self._remote.request(*ranges)
        return missing

    def _new_batch(self, count: int) -> NDArray[Any]:
        return empty((count, *self._row_shape), self._stored_type)

    def _in_native_order(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Swap the bytes of a new array, in its place where possible."""
        if self._is_native:
            return batch
        if batch.dtype.names is None:
            return batch.byteswap(inplace=True).view(self.dtype)
        return batch.astype(self.dtype)


# Of a range of rows of a remote file, what is fetched at once; of a chunk,
# what is fetched as a whole.
PORTION = 32 << 20
LARGEST_CHUNK = 16 << 20


class MappedReader(DirectReader):
    """Rows copied out of the mapped file."""

    _rows: MappedRows

    # Measured on two cores, for random rows of 3 KB: where both were free,
    # two threads took 1/1.5 of the time of one from 8 MB on, and gained
    # little or lost below 4 MB; where others used a core, they lost.
    THREADS_FROM = 8 << 20

    def __init__(self, file: FileBytes, name: str, shape: tuple[int, ...],
                 dtype: numpy.dtype[Any], addresses: NDArray[numpy.int64],
                 **kwargs: Any) -> None:
        super().__init__(file, name, shape, dtype, **kwargs)
        self._rows = MappedRows(
            self._tiles, addresses, self._fill, file.memory)
        self._addresses = self._rows.addresses
        self._paging = paging_of(file)
        # First and last byte, and how many in between are its own.
        self._extent: tuple[int, int, int] | None = None
        stored = self._addresses[self._addresses >= 0]
        if stored.size:
            nbytes = self._tiles.chunk_nbytes
            self._extent = (int(stored.min()), int(stored.max()) + nbytes,
                            stored.size * nbytes)
        if self._remote is not None:
            self.prefetch_budget(slice(None))
        self._watch()

    def prefetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.prefetch_budget`."""
        budget = (None if self._extent is None
                  else self._paging.begin(*self._extent))
        self._rows.declines = self._paging.is_cold
        return budget

    def prefetch(self, rows: NDArray[numpy.intp], budget: int) -> int | None:
        """See :meth:`Reader.prefetch`."""
        nbytes = self._tiles.row_nbytes
        if len(rows) * nbytes > budget:
            return None
        self._paging.prefetch(self._starts(rows), nbytes)
        return len(rows) * nbytes

    def byte_ranges(self, rows: NDArray[numpy.intp]) -> tuple[Ends, Ends]:
        """See :meth:`Reader.byte_ranges`."""
        return self._paging.widen(*self._pieces(rows))

    def fetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.fetch_budget`."""
        if self._remote is None or not self._paging.is_cold:
            return None
        return self._remote.prefetch_budget()

    def _pieces(self, rows: NDArray[numpy.intp],
                ) -> tuple[NDArray[numpy.int64], int]:
        """Return where the bytes start that rows need, and how many bytes
        each piece has: a row, or a chunk of a remote file."""
        tiles = self._tiles
        by_rows = tiles.num_tiles == 1 and (
            self._addresses.size == 1 or tiles.chunk_nbytes > LARGEST_CHUNK)
        if by_rows or not self._paging.is_remote:
            return self._starts(rows), tiles.row_nbytes
        blocks = numpy.unique(rows // tiles.block_rows)
        chunks = (blocks[:, None] * tiles.num_tiles
                  + numpy.arange(tiles.num_tiles)).ravel()
        starts = self._addresses[chunks]
        return starts[starts >= 0], tiles.chunk_nbytes

    def _starts(self, rows: NDArray[numpy.intp]) -> NDArray[numpy.int64]:
        """Return where rows start in the file, without those that were
        never written."""
        tiles = self._tiles
        blocks, inside = numpy.divmod(rows, tiles.block_rows)
        # Of a row in several tiles the first is enough: others follow.
        starts = self._addresses[blocks * tiles.num_tiles]
        stride = tiles.chunk_nbytes // tiles.block_rows
        places: NDArray[numpy.int64] = (
            starts + inside * stride)[starts >= 0]
        return places

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        batch = self._new_batch(len(rows))
        self._rows.declines = self._paging.is_cold
        if not (self._rows.declines and rows.size):
            return self._copy(rows, batch)
        self._check_rows(int(rows.min()), int(rows.max()))
        with self._paging.bring(*self._pieces(rows)):
            return self._copy(rows, batch)

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        batch = self._new_batch(stop - start)
        if not (self._paging.is_remote and self._paging.is_cold
                and start < stop):
            return self._copy((start, stop), batch)
        self._check_rows(start, stop - 1)
        step = max(1, PORTION // max(1, self._tiles.row_nbytes))
        for low in range(start, stop, step):
            high = min(stop, low + step)
            rows = numpy.arange(low, high, dtype=numpy.intp)
            with self._paging.bring(*self._pieces(rows)):
                self._copy((low, high), batch[low - start:high - start],
                           is_part=True)
        return self._in_native_order(batch)

    def _copy(self, rows: NDArray[numpy.intp] | tuple[int, int],
              batch: NDArray[Any], is_part: bool = False) -> NDArray[Any]:
        try:
            if batch.nbytes < self.THREADS_FROM:
                intact = self._rows.copy(rows, batch)
            else:
                intact = all(map_chunks(
                    lambda begin, end: self._rows.copy(
                        rows, batch, begin, end), len(batch)))
        except IndexError as error:
            raise IndexError(
                f'{self.path}, source {self.name!r}: {error}') from None
        except LookupError as error:
            raise self._damaged(
                self._first_row(rows, error.args[0]),
                f'the file has {self._file.size} bytes and ends before '
                f'this row, or says it is elsewhere') from None
        # What was read is good if the file is still what it was.
        self._file.check()
        if not intact:
            raise self._damaged(
                rows[0], 'the disk could not read this or a later row')
        return batch if is_part else self._in_native_order(batch)

    def _first_row(self, rows: NDArray[numpy.intp] | tuple[int, int],
                   chunk: int) -> int:
        """Return the first row of a request that lies in a chunk."""
        block = chunk // self._tiles.num_tiles
        if isinstance(rows, tuple):
            return max(rows[0], block * self._tiles.block_rows)
        return int(rows[rows // self._tiles.block_rows == block][0])


def map_dataset(dataset: h5py.Dataset, layout: Layout) -> MappedReader:
    """Return a reader of unfiltered HDF5 data."""
    file = raw_file(dataset)
    dtype = stored_type(dataset)
    if layout.chunk_shape is None:
        offset = dataset.id.get_offset()
        if offset + dataset.id.get_storage_size() > file.size:
            offset = OUTSIDE
        addresses = numpy.array([offset], numpy.int64)
    else:
        table = read_chunk_table(dataset, file)
        nbytes = math.prod(layout.chunk_shape) * dtype.itemsize
        if ((table.addresses >= 0) & (table.sizes < nbytes)).any():
            raise UnreadableTableError('its chunks have an unexpected size')
        addresses = table.addresses
    reader = MappedReader(
        file, dataset_name(dataset), dataset.shape, dtype, addresses,
        chunk_shape=layout.chunk_shape, fill_value=fill_value(dataset))
    reader.layout = layout
    return reader
