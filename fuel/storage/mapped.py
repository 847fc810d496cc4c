"""Rows of contiguous data, and of chunks without filters, out of a map."""
from __future__ import annotations

import math
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.kernels.gather import OUTSIDE, MappedRows, Rows
from fuel.kernels.memory import empty
from fuel.kernels.tiles import Tiles
from fuel.storage.chunk_table import UnreadableTableError, read_chunk_table
from fuel.storage.layout import Layout, fill_value, name_of, stored_type
from fuel.storage.prefetch import PageAhead, fits, is_resident, read_rows
from fuel.storage.raw_file import RawFile, raw_file
from fuel.storage.reader import Reader
from fuel.storage.sequential_prefetch import OrderedRead
from fuel.utils.threads import map_chunks


class DirectReader(Reader):
    """What the readers of bytes share: where rows lie, and the file."""

    _rows: Rows

    def __init__(self, file: RawFile, name: str, shape: tuple[int, ...],
                 dtype: numpy.dtype[Any],
                 chunk_shape: tuple[int, ...] | None = None,
                 fill_value: Any = 0) -> None:
        super().__init__(file.path, name, shape, dtype)
        self._file = file
        self._stored_type = dtype
        self._is_native = dtype == self.dtype
        self._tiles = Tiles(shape, chunk_shape or shape, dtype.itemsize)
        self._row_shape = shape[1:]
        self._fill = numpy.full(self._row_shape, fill_value, dtype)

    def direct(self) -> Rows | None:
        """See :meth:`Reader.direct`."""
        if self._is_native and self.dtype.subdtype is None:
            return self._rows
        return None

    def _new_batch(self, count: int) -> NDArray[Any]:
        return empty((count, *self._row_shape), self._stored_type)

    def _in_native_order(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Swap the bytes of a new array, in its place where possible."""
        if self._is_native:
            return batch
        if batch.dtype.names is None:
            return batch.byteswap(inplace=True).view(self.dtype)
        return batch.astype(self.dtype)


# Bytes of rows whose pages may be asked for before they are needed.
PAGES_AHEAD = 256 << 20


class MappedReader(DirectReader):
    """Rows copied out of the mapped file."""

    _rows: MappedRows

    # Measured on two cores, for random rows of 3 KB: where both were free,
    # two threads took 1/1.5 of the time of one from 8 MB on, and gained
    # little or lost below 4 MB; where others used a core, they lost.
    THREADS_FROM = 8 << 20

    def __init__(self, file: RawFile, name: str, shape: tuple[int, ...],
                 dtype: numpy.dtype[Any], addresses: NDArray[numpy.int64],
                 **kwargs: Any) -> None:
        super().__init__(file, name, shape, dtype, **kwargs)
        self._rows = MappedRows(
            self._tiles, addresses, self._fill, file.memory)
        self._addresses = self._rows.addresses
        file.watch(self._rows)
        # Of a source that is not in memory: it is read in order if it fits
        # there, and row by row if it does not.
        self._ordered: OrderedRead | None = None
        self._by_rows: PageAhead | None = None

    def needs_ahead(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.needs_ahead`."""
        stored = self._addresses[self._addresses >= 0]
        if not stored.size:
            return None
        first = int(stored.min())
        last = int(stored.max()) + self._tiles.chunk_nbytes
        ordered = by_rows = None
        if not is_resident(self._file, first, last - first):
            if fits(last - first):
                ordered = OrderedRead(self._file, first, last - first)
            else:
                by_rows = PageAhead(self._file)
        self._ordered, self._by_rows = ordered, by_rows
        self._rows.declines = self._is_cold()
        return PAGES_AHEAD if by_rows else None

    def _is_cold(self) -> bool:
        """Tell whether rows have to be in memory before they are copied."""
        # Looked up once: another thread may begin an epoch meanwhile.
        ordered = self._ordered
        return self._by_rows is not None or (
            ordered is not None and not ordered.is_done)

    def expect(self, rows: NDArray[numpy.intp], room: int) -> int | None:
        """See :meth:`Reader.expect`."""
        nbytes = self._tiles.row_nbytes
        if len(rows) * nbytes > room:
            return None
        by_rows = self._by_rows
        if by_rows is not None:
            by_rows.expect(self._starts(rows), nbytes)
        return len(rows) * nbytes

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
        self._rows.declines = self._is_cold()
        if self._rows.declines and rows.size:
            self._check_rows(int(rows.min()), int(rows.max()))
            self._bring(self._starts(rows))
        return self._copy(rows, self._new_batch(len(rows)))

    def _bring(self, starts: NDArray[numpy.int64]) -> None:
        """Bring rows into memory."""
        nbytes = self._tiles.row_nbytes
        ordered = self._ordered
        if ordered is None:
            read_rows(self._file, starts, nbytes)
        else:
            ordered.wait(starts, nbytes)

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        return self._copy((start, stop), self._new_batch(stop - start))

    def _copy(self, rows: NDArray[numpy.intp] | tuple[int, int],
              batch: NDArray[Any]) -> NDArray[Any]:
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
        return self._in_native_order(batch)

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
        file, name_of(dataset), dataset.shape, dtype, addresses,
        chunk_shape=layout.chunk_shape, fill_value=fill_value(dataset))
    reader.layout = layout
    return reader
