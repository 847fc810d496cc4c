"""Rows of chunks that went through filters, each decoded once."""
from __future__ import annotations

from functools import partial
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.kernels.gather import MISSING, OUTSIDE, DecodedRows
from fuel.storage.background import Background
from fuel.storage.chunk_cache import Decoded, cache_of
from fuel.storage.chunk_table import read_chunk_table
from fuel.storage.errors import raise_lack
from fuel.storage.file_bytes import Ends, is_remote
from fuel.storage.filter_lengths import check_filter_lengths
from fuel.storage.filters import decode_chunk
from fuel.storage.layout import (Layout, fill_value, is_known, dataset_name,
                                 stored_type)
from fuel.storage.mapped import DirectReader
from fuel.storage.paging import Blocks
from fuel.storage.raw_file import raw_file
from fuel.utils.threads import map_chunks

# For so many requests, chunks that are expected count as used later than
# those that were: they must not be forgotten before they are read.
PROTECTED = 1000


class DecodedReader(DirectReader):
    """Rows copied out of decoded chunks.

    Chunks are read and decoded on all cores and remembered within the
    budget of the file.

    `store`: what is remembered.
    """

    _rows: DecodedRows

    # Rows of a range that are looked up at once.
    PORTION = 1 << 16

    def __init__(self, dataset: h5py.Dataset, layout: Layout,
                 cache_bytes: int) -> None:
        super().__init__(
            raw_file(dataset), dataset_name(dataset), dataset.shape,
            stored_type(dataset), layout.chunk_shape, fill_value(dataset))
        self.layout = layout
        self._filters = layout.filters
        self._chunk_shape = layout.chunk_shape or ()
        self._dataset = dataset
        self._table = read_chunk_table(dataset, self._file)
        self._num_stored = int((self._table.addresses != MISSING).sum())
        self._known = is_known(layout.filters)
        self._blocks = self._find_blocks()
        self._background = Background()
        # Without a name a data set cannot be told from others of the file.
        name = dataset.name or object()
        self.store = cache_of(self._file.identity, cache_bytes).store(
            name, self._table.addresses.size, self._tiles.chunk_nbytes)
        self._rows = DecodedRows(
            self._tiles, self._table.addresses, self._fill,
            self.store.slots, self.store.cache.clock)
        self._watch()

    def prefetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.prefetch_budget`."""
        if self._remembers_all() or self._remembers(rows):
            return None
        return self.store.cache.budget // 2

    def _remembers_all(self) -> bool:
        return self.store.used_bytes == (
            self._num_stored * self._tiles.chunk_nbytes)

    def _remembers(self, rows: slice | NDArray[numpy.intp]) -> bool:
        """Return whether all chunks of some rows are remembered."""
        tiles = self._tiles
        wanted = numpy.zeros(-(-len(self) // tiles.block_rows), bool)
        if isinstance(rows, slice):
            wanted[rows.start // tiles.block_rows:
                   (rows.stop - 1) // tiles.block_rows + 1] = True
        else:
            wanted[rows // tiles.block_rows] = True
        stored = self._table.addresses >= 0
        needed = numpy.flatnonzero(numpy.repeat(
            wanted, tiles.num_tiles) & stored[:wanted.size * tiles.num_tiles])
        slots = self.store.slots
        return all(slots[chunk] is not None for chunk in needed.tolist())

    def prefetch(self, rows: NDArray[numpy.intp], budget: int) -> int | None:
        """See :meth:`Reader.prefetch`."""
        nbytes = self._tiles.chunk_nbytes
        soon = self.store.cache.clock.tick() + PROTECTED
        count, absent = self.store.slots.expect(
            self._tiles, rows, self._table.addresses, budget // nbytes, soon)
        if count * nbytes > budget:
            return None
        # In the order of their numbers, which is mostly that of the file.
        for chunk in sorted(absent):
            task = partial(self._background.add, partial(
                self._decode_in_background, chunk, soon))
            if self._remote is not None:
                self._remote.when_here(*self._ranges([chunk]), task)
            else:
                task()
        return count * nbytes

    def fetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.fetch_budget`."""
        if self._remote is None or self._remembers_all():
            return None
        blocks = self._blocks
        if blocks is None or self._remote.is_settled(
                blocks.first, blocks.last):
            return None
        return self._remote.prefetch_budget()

    def _find_blocks(self) -> Blocks | None:
        """Return what widens ranges, None if there is nothing to fetch."""
        addresses, sizes = self._table.addresses, self._table.sizes
        stored = addresses >= 0
        if self._remote is None or not stored.any():
            return None
        return Blocks(self._remote, int(addresses[stored].min()), int(
            (addresses + sizes)[stored].max()), int(sizes[stored].sum()))

    def byte_ranges(self, rows: NDArray[numpy.intp]) -> tuple[Ends, Ends]:
        """See :meth:`Reader.byte_ranges`."""
        return self._ranges(self._chunks_of(rows))

    def _missing_ranges(self, rows: NDArray[numpy.intp]) -> tuple[Ends, Ends]:
        """Return the byte ranges of the chunks that are not remembered."""
        slots = self.store.slots
        return self._ranges([chunk for chunk in self._chunks_of(rows)
                             if slots[chunk] is None])

    def _chunks_of(self, rows: NDArray[numpy.intp]) -> list[int]:
        """Return the chunks of rows."""
        tiles = self._tiles
        blocks = numpy.unique(rows // tiles.block_rows).tolist()
        return [chunk for block in blocks for chunk in range(
            block * tiles.num_tiles, (block + 1) * tiles.num_tiles)]

    def _ranges(self, chunks: list[int]) -> tuple[Ends, Ends]:
        """Return what to fetch for chunks: begin and end of ranges."""
        places = numpy.array(chunks, numpy.intp)
        starts, sizes = self._table.addresses[places], self._table.sizes[
            places]
        stored = starts >= 0
        ends = starts[stored], (starts + sizes)[stored]
        return ends if self._blocks is None else self._blocks.widen(*ends)

    def _decode_in_background(self, chunk: int, expected: int) -> None:
        """Decode a chunk, unless it was used since it was expected."""
        if self.store.slots.last_used[chunk] == expected:
            self.store.get(chunk, self.decode)

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        batch = self._new_batch(stop - start)
        for low in range(start, stop, self.PORTION):
            high = min(stop, low + self.PORTION)
            self._copy((low, high), batch[low - start:high - start])
        return self._in_native_order(batch)

    def _read_list(self, rows: NDArray[numpy.intp]) -> NDArray[Any]:
        batch = self._new_batch(len(rows))
        self._copy(rows, batch)
        return self._in_native_order(batch)

    def _copy(self, rows: NDArray[numpy.intp] | tuple[int, int],
              batch: NDArray[Any]) -> None:
        try:
            absent = self._rows.copy(rows, batch)
        except IndexError as error:
            raise IndexError(
                f'{self.path}, source {self.name!r}: {error}') from None
        if absent:
            self._fetch_all(absent, rows, batch)
        # Also if all chunks were remembered: the file may be another now.
        self._file.check()

    def _fetch_all(self, absent: list[tuple[int, list[int]]],
                   rows: NDArray[numpy.intp] | tuple[int, int],
                   batch: NDArray[Any]) -> None:
        """Decode the chunks that a batch lacks."""
        # In the order of the file, which is that of the disk.
        addresses = self._table.addresses
        absent.sort(key=lambda found: int(addresses[found[0]]))
        if is_remote(self._file):
            # All of them, before the first is waited for.
            self._file.request(*self._ranges([
                chunk for chunk, _ in absent]), is_urgent=True)

        def fetch(begin: int, end: int) -> None:
            for chunk, places in absent[begin:end]:
                self._fetch(chunk, rows, places, batch)

        map_chunks(fetch, len(absent))

    def _fetch(self, chunk: int, rows: NDArray[numpy.intp] | tuple[int, int],
               places: list[int], batch: NDArray[Any]) -> None:
        """Decode a chunk that a batch lacks and copy its rows."""
        try:
            decoded = self.store.get(chunk, self.decode)
        except ValueError as error:
            row = (rows[0] + places[0] if isinstance(rows, tuple)
                   else int(rows[places[0]]))
            raise self._damaged(row, str(error)) from error
        self._rows.copy_chunk(chunk, decoded, rows, places, batch)

    def decode(self, chunk: int) -> Decoded:
        """Return the bytes of a chunk as they were before the filters.

        The file is checked afterwards: what is remembered was read in the
        state that it is remembered under.
        """
        try:
            decoded = self._decode(chunk)
        except ValueError:
            # If the file was changed, that is the reason.
            self._file.check()
            raise
        self._file.check()
        return decoded

    def _decode(self, chunk: int) -> Decoded:
        address = int(self._table.addresses[chunk])
        nbytes = int(self._table.sizes[chunk])
        if address == OUTSIDE:
            raise ValueError(
                f'the file has {self._file.size} bytes and ends before its '
                f'chunk, or says it is elsewhere')
        stored = self._file.read(address, nbytes)
        if len(stored) < nbytes:
            raise ValueError(f'the disk gave {len(stored)} of the {nbytes} '
                             f'bytes of its chunk')
        mask = int(self._table.masks[chunk])
        # A chunk at the edge may have been left as it is, without a mask;
        # a filtered one of exactly this size is rare.
        doubtful = nbytes == self._tiles.chunk_nbytes and not mask
        if doubtful and not self._dataset.dtype.hasobject:
            return self._decode_with_h5py(chunk)
        try:
            if not self._known:
                check_filter_lengths(stored, mask, self._filters,
                                     self._tiles.chunk_nbytes)
                return self._decode_with_h5py(chunk)
            return decode_chunk(stored, mask, self._filters,
                                self._tiles.chunk_nbytes,
                                self._stored_type.itemsize)
        except ValueError as error:
            raise ValueError(f'its chunk cannot be decoded: {error}'
                             ) from error

    def _decode_with_h5py(self, chunk: int) -> Decoded:
        """Let HDF5 decode, which knows more filters than Fuel."""
        corner = self._table.corner(chunk, self._chunk_shape)
        try:
            part = self._dataset[tuple(
                slice(start, start + length) for start, length in zip(
                    corner, self._chunk_shape, strict=True))]
        except (OSError, RuntimeError) as error:
            raise_lack(error, self.path, self.name, self._filters)
            raise ValueError(f'HDF5 cannot decode its chunk: {error}'
                             ) from error
        # At the edge of the data set, a chunk is larger than its content.
        whole = numpy.zeros(self._chunk_shape, self._stored_type)
        whole[tuple(map(slice, part.shape))] = part
        decoded: Decoded = whole.reshape(-1).view(numpy.uint8)
        return decoded
