"""Readers of rows from chunks, which are decoded whole and cached."""
from __future__ import annotations

import contextlib
import itertools
import sys
from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels.gather import MISSING, OUTSIDE, DecodedRows
from fuel.storage.buffers import scratch
from fuel.storage.chunk_cache import Ahead, ChunkStore, Decoded, cache_of
from fuel.storage.chunk_table import corner_of
from fuel.storage.file_bytes import Ends, FileBytes, Versioned, files_at
from fuel.storage.filters import (
    OnlyHDF5Error, check_filter_lengths, codes, decode_chunk,
    raise_unless_damage)
from fuel.storage.layout import is_known
from fuel.storage.mapped import (
    DirectReader, IndexArray, PartNames, Parts, Wanted)
from fuel.storage.paging import BLOCK, Blocks
from fuel.storage.part_index import PartIndex
from fuel.storage.reader import StoredPieces
from fuel.utils.background import Background
from fuel.utils.threads import map_chunks, number_of_threads

# Number of requests during which prefetched chunks count as more recently used
# than chunks that are read. So they are not evicted before they are read.
PROTECTED = 1000
# The most bytes of chunks that are decoded together, to fit a core's cache.
TOGETHER = 3 << 18

#: Consecutive rows of a chunk for a batch: place in the batch, number of rows,
#: first row.
Piece: TypeAlias = tuple[int, int, int]


class ChunkReader(DirectReader):
    """Base of readers that copy rows out of decoded chunks.

    Chunks are decoded on all cores and cached within a budget.

    `store`: the cached chunks.
    """

    _rows: DecodedRows

    # Rows of a range that are looked up at once.
    PORTION = 1 << 16

    def __init__(self, file: Versioned, name: str, parts: Parts,
                 store: ChunkStore, part_names: PartNames | None = None,
                 ) -> None:
        super().__init__(file, name, parts, part_names)
        self._num_stored = int((parts.addresses != MISSING).sum())
        self.rows_of_chunk = int(parts.table['block_rows'].min())
        self._background = Background()
        self._wanted: deque[tuple[int, int]] = deque()
        self.store = store
        self._rows = DecodedRows(
            parts.kernel, parts.addresses, store.slots, store.cache.clock)
        self._watch()

    @abstractmethod
    def decode(self, chunks: Sequence[int], outs: list[Any]) -> None:
        """Fill arrays with decoded chunks; see
        :data:`~fuel.storage.chunk_cache.Decode`.

        The chunks must come from the state of the files from which all chunks
        in the store come.

        Raises: ValueError if a chunk is damaged.
        """

    def _ranges(self, chunks: IndexArray) -> tuple[Ends, Ends]:
        """Return the starts and ends of the byte ranges to fetch for chunks of
        a remote file."""
        raise NotImplementedError

    def pieces(self, rows: IndexArray) -> StoredPieces:
        """See :meth:`Reader.pieces`."""
        return StoredPieces(self._parts.numbers_of_pieces(rows, BLOCK), True,
                            True, self.row_nbytes)

    def prefetch_budget(self, rows: slice | NDArray[numpy.intp]) -> int | None:
        """See :meth:`Reader.prefetch_budget`."""
        if self._remembers_all() or self._remembers(rows):
            return None
        return self.store.cache.budget // 2

    def _remembers_all(self) -> bool:
        return self.store.slots.num_held == self._num_stored

    def _remembers(self, rows: slice | IndexArray) -> bool:
        """Return whether all chunks of `rows` are cached."""
        if isinstance(rows, slice):
            rows = self._parts.rows_of_blocks(rows.start, rows.stop)
        chunks = self._parts.chunks_of(rows)
        needed = chunks[self._parts.addresses[chunks] >= 0]
        slots = self.store.slots
        return all(slots[chunk] is not None for chunk in needed.tolist())

    def prefetch(self, rows: IndexArray, budget: int,
                 ahead: Ahead | None = None) -> int | None:
        """See :meth:`Reader.prefetch`."""
        soon = self.store.cache.clock.tick() + PROTECTED
        rows = numpy.ascontiguousarray(rows, numpy.intp)
        if ahead is None:
            nbytes, absent = self._rows.expect(rows, budget, soon)
            # Sort by number; this is mostly the order in the file.
            absent.sort()
        else:
            chunks = self._parts.chunks_of(rows)
            new = ahead.need(self.store, chunks[
                self._parts.addresses[chunks] >= 0].tolist(), budget)
            if new is None:
                return None
            nbytes = new
            _, absent = self._rows.expect(rows, sys.maxsize, soon)
        if nbytes > budget:
            return None
        wanted = [(chunk, soon) for chunk in absent]
        if self._remote is None:
            self._decode_later(*wanted)
            return nbytes
        for one in wanted:
            self._remote.call_when_fetched(*self._ranges(numpy.array(one[:1])),
                                           partial(self._decode_later, one))
        return nbytes

    def _decode_later(self, *wanted: tuple[int, int]) -> None:
        """Queue chunks for decoding in the background.

        `wanted`: number of each chunk, and the time at which it will be used.
        """
        self._wanted.extend(wanted)
        self._background.add(*[self._decode_ahead] * len(wanted))

    def _decode_ahead(self) -> None:
        """Decode queued chunks, unless they were used in the meantime.

        If many chunks are queued, several are decoded together. With one chunk
        at a time, Python's work for each chunk would take long, since decoding
        pushes Python's data out of the processor's cache.
        """
        wanted, slots = self._wanted, self.store.slots
        if not wanted:
            # Another task has removed the chunk of this task from the queue.
            return
        count = 1 + len(wanted) // (2 * max(1, self._background.num_workers))
        chunks: list[int] = []
        nbytes = 0
        with contextlib.suppress(IndexError):
            while len(chunks) < count and nbytes < TOGETHER:
                chunk, expected = wanted.popleft()
                # The time is later if later requests expect the chunk too.
                if slots.last_used[chunk] >= expected:
                    chunks.append(chunk)
                    nbytes += slots.nbytes(chunk)
        if chunks:
            self.store.fill(chunks, self.decode)

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        batch = self._new_batch(stop - start)
        for low in range(start, stop, self.PORTION):
            high = min(stop, low + self.PORTION)
            self._copy((low, high), batch[low - start:high - start])
        return self._in_native_order(batch)

    def _read_list(self, rows: IndexArray) -> NDArray[Any]:
        batch = self._new_batch(len(rows))
        self._copy(rows, batch)
        return self._in_native_order(batch)

    def _read_ranges(self, starts: IndexArray,
                     counts: IndexArray) -> NDArray[Any]:
        batch = self._new_batch(int(counts.sum()))
        self._copy((starts, counts), batch)
        return self._in_native_order(batch)

    def _copy(self, rows: Wanted, batch: NDArray[Any]) -> None:
        try:
            absent, are_current = self._rows.copy(rows, batch)
        except IndexError as error:
            raise IndexError(
                f'{self.path}, source {self.name!r}: {error}') from None
        if absent:
            self._fetch_all(absent, batch)
        # A file may have changed, even if all chunks were cached.
        if not are_current or self._remote is not None:
            self._file.check()

    def _fetch_all(self, absent: list[tuple[int, list[Piece]]],
                   batch: NDArray[Any]) -> None:
        """Decode the chunks that a batch lacks."""
        # In the order of the file, which is that of the disk.
        addresses = self._parts.addresses
        absent.sort(key=lambda found: int(addresses[found[0]]))
        if self._remote is not None:
            # Request all of them before waiting for the first.
            self._remote.request(*self._ranges(numpy.array([
                chunk for chunk, _ in absent])), is_urgent=True)

        def fetch(begin: int, end: int) -> None:
            for chunk, pieces in absent[begin:end]:
                self._fetch(chunk, pieces, batch)

        # The threads that decode ahead already use as many cores.
        map_chunks(fetch, len(absent), num_threads=max(
            1, number_of_threads() - self._background.num_workers))

    def _fetch(self, chunk: int, pieces: list[Piece],
               batch: NDArray[Any]) -> None:
        """Decode a chunk that a batch lacks and copy its rows."""
        try:
            decoded = self.store.get(chunk, self.decode)
        except ValueError as error:
            raise self._damaged(pieces[0][2], str(error)) from error
        self._rows.copy_chunk(chunk, decoded, pieces, batch)


class DecodedReader(ChunkReader):
    """Reader of rows from HDF5's chunks, which are cached within the budget
    of the files.

    `index`: metadata of the arrays to which the chunks belong.
    `cache_bytes`: the budget; None for the budget that all files share.
    """

    def __init__(self, file: FileBytes, name: str, parts: Parts,
                 index: PartIndex, cache_bytes: int | None,
                 part_names: PartNames | None = None) -> None:
        # This import loads OpenSSL, which files without filters do not need.
        from hashlib import blake2b
        # Readers of the same chunks share one store, even if they return
        # different data from the chunks.
        chunks = blake2b(parts.addresses.tobytes())
        chunks.update(parts.nbytes.tobytes())
        super().__init__(file, name, parts, cache_of(
            file.identity, cache_bytes).store(
                (file.identity, chunks.digest()), parts.nbytes), part_names)
        self._bytes = file
        self._index = index
        self._blocks = self._find_blocks()

    def fetch_budget(self, rows: slice | IndexArray) -> int | None:
        """See :meth:`Reader.fetch_budget`."""
        if self._remote is None or self._remembers_all():
            return None
        blocks = self._blocks
        if blocks is None or self._remote.is_settled(
                blocks.first, blocks.last):
            return None
        return self._remote.prefetch_budget()

    def _find_blocks(self) -> Blocks | None:
        """Return the object that widens byte ranges to blocks; None if there
        is nothing to fetch."""
        addresses, sizes = self._parts.addresses, self._index.sizes
        stored = addresses >= 0
        if self._remote is None or not stored.any():
            return None
        return Blocks(self._remote, int(addresses[stored].min()), int(
            (addresses + sizes)[stored].max()), int(sizes[stored].sum()))

    def byte_ranges(self, rows: IndexArray) -> tuple[Ends, Ends]:
        """See :meth:`Reader.byte_ranges`."""
        return self._ranges(self._parts.chunks_of(rows))

    def _missing_ranges(self, rows: IndexArray) -> tuple[Ends, Ends]:
        """Return the byte ranges of the chunks that are not cached."""
        slots, chunks = self.store.slots, self._parts.chunks_of(rows)
        return self._ranges(chunks[[
            slots[chunk] is None for chunk in chunks.tolist()]])

    def _ranges(self, chunks: IndexArray) -> tuple[Ends, Ends]:
        """Return the starts and ends of the byte ranges to fetch for
        chunks."""
        starts = self._parts.addresses[chunks]
        sizes = self._index.sizes[chunks]
        stored = starts >= 0
        ends = starts[stored], (starts + sizes)[stored]
        return ends if self._blocks is None else self._blocks.widen(*ends)

    def decode(self, chunks: Sequence[int], outs: list[Any]) -> None:
        """Fill arrays with decoded chunks.

        The files are checked afterwards, to ensure that all cached chunks come
        from the state of the files for which they are cached.
        """
        files = files_at(self._bytes, self._parts.addresses[chunks])
        try:
            # Read all of them first: adjacent chunks then need only one call.
            stored = self._read_stored(chunks, outs, len(files) == 1)
            for chunk, data, out in zip(chunks, stored, outs, strict=True):
                self._decode(chunk, data, out)
        except ValueError:
            # If a file was changed, `check` raises an error that says this.
            for file in files:
                file.check()
            raise
        for file in files:
            file.check()

    def _read_stored(self, chunks: Sequence[int], outs: Sequence[Decoded],
                     of_one_file: bool) -> list[memoryview]:
        """Return the bytes of chunks as they are stored in the file."""
        ranges = [self._place_of_chunk(chunk, out.nbytes)
                  for chunk, out in zip(chunks, outs, strict=True)]
        if len(ranges) > 1 and of_one_file and all(
                address + nbytes == following for (address, nbytes),
                (following, _) in itertools.pairwise(ranges)):
            sizes = [nbytes for _, nbytes in ranges]
            whole = scratch.take(sum(sizes)).data
            if self._bytes.read_into(whole, ranges[0][0]) == len(whole):
                ends = itertools.accumulate(sizes)
                return [whole[end - size:end]
                        for size, end in zip(sizes, ends, strict=True)]
        return [self._read_one(*place) for place in ranges]

    def _place_of_chunk(self, chunk: int, size: int) -> tuple[int, int]:
        """Return the address of a chunk and the number of its stored bytes.

        `size`: number of bytes of the decoded chunk.
        """
        index, address = self._index, int(self._parts.addresses[chunk])
        array = index.array_of(chunk)
        if address == OUTSIDE:
            raise ValueError(
                f'the file has {index.file_size(array)} bytes and ends before '
                f"the end of the row's chunk, or states a wrong address for "
                f'this chunk')
        # Without filters, bytes after the decoded size do not belong to the
        # chunk.
        return address, (int(index.sizes[chunk]) if index.filters(array)
                         else size)

    def _read_one(self, address: int, nbytes: int) -> memoryview:
        stored = scratch.take(nbytes).data
        count = self._bytes.read_into(stored, address)
        if count < nbytes:
            raise ValueError(f'the disk gave {count} of the {nbytes} bytes of '
                             f'its chunk')
        return stored

    def _decode(self, chunk: int, stored: memoryview, out: Decoded) -> None:
        """Undo the filters of a chunk that was read."""
        index, size = self._index, out.nbytes
        array = index.array_of(chunk)
        filters, mask = index.filters(array), int(index.masks[chunk])
        # HDF5 may have left a chunk at the edge unfiltered, although its mask
        # does not say this. A filtered chunk of exactly this size is rare.
        doubtful = filters and len(stored) == size and not mask
        if doubtful and not index.is_ragged:
            self._decode_with_h5py(chunk, array, out)
            return
        try:
            if filters and not is_known(filters, codes()):
                check_filter_lengths(stored, mask, filters, size)
                self._decode_with_h5py(chunk, array, out)
            else:
                decode_chunk(stored, mask, filters,
                             self._parts.element.stored.itemsize, out)
        except OnlyHDF5Error:
            self._decode_with_h5py(chunk, array, out)
        except ValueError as error:
            raise ValueError(f'its chunk cannot be decoded: {error}'
                             ) from error

    def _decode_with_h5py(self, chunk: int, array: int,
                          out: Decoded) -> None:
        """Decode a chunk with HDF5, which supports more filters than Fuel."""
        dataset = self._index.dataset(array)
        shape = dataset.chunks
        corner = corner_of(chunk - self._index.first_chunk(array),
                           dataset.shape, shape)
        try:
            part = dataset[tuple(
                slice(start, start + length) for start, length in zip(
                    corner, shape, strict=True))]
        except (OSError, RuntimeError) as error:
            raise_unless_damage(error, self.path, self.name,
                                self._index.filters(array))
            raise ValueError(f'HDF5 cannot decode its chunk: {error}'
                             ) from error
        # At the edge of the data set, a chunk is larger than its content.
        out[:] = 0
        whole = out.view(self._parts.element.stored).reshape(shape)
        whole[tuple(map(slice, part.shape))] = part
