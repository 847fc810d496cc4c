"""Rows of chunks that are decoded whole, each once."""
from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels.gather import MISSING, DecodedRows
from fuel.storage.background import Background
from fuel.storage.chunk_cache import ChunkStore, Decoded
from fuel.storage.file_bytes import Ends, Versioned
from fuel.storage.mapped import (
    DirectReader, IndexArray, PartNames, Wanted)
from fuel.storage.paging import BLOCK
from fuel.storage.parts import Parts
from fuel.storage.reader import StoredPieces
from fuel.utils.threads import map_chunks, number_of_threads

# For so many requests, chunks that are expected count as used later than
# those that were: they must not be forgotten before they are read.
PROTECTED = 1000
# Of so many bytes, chunks are decoded together: a core's cache holds them.
TOGETHER = 3 << 18

#: Of a batch, rows that follow each other in a chunk: place in the batch,
#: number of rows, first row.
Piece: TypeAlias = tuple[int, int, int]


class ChunkReader(DirectReader):
    """Base of the readers that copy rows out of decoded chunks.

    Chunks are decoded on all cores and remembered within a budget.

    `store`: what is remembered.
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
    def decode(self, chunks: Sequence[int], outs: Sequence[Decoded]) -> None:
        """Fill arrays with decoded chunks, of the state of the files that
        the store remembers.

        Raises: ValueError if one is damaged.
        """

    def _ranges(self, chunks: IndexArray) -> tuple[Ends, Ends]:
        """Return what to fetch for chunks of a remote file: begin and end of
        ranges."""
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
        """Return whether all chunks of some rows are remembered."""
        if isinstance(rows, slice):
            rows = self._parts.rows_of_blocks(rows.start, rows.stop)
        chunks = self._parts.chunks_of(rows)
        needed = chunks[self._parts.addresses[chunks] >= 0]
        slots = self.store.slots
        return all(slots[chunk] is not None for chunk in needed.tolist())

    def prefetch(self, rows: IndexArray, budget: int) -> int | None:
        """See :meth:`Reader.prefetch`."""
        soon = self.store.cache.clock.tick() + PROTECTED
        nbytes, absent = self._rows.expect(
            numpy.ascontiguousarray(rows, numpy.intp), budget, soon)
        if nbytes > budget:
            return None
        # In the order of their numbers, which is mostly that of the file.
        wanted = [(chunk, soon) for chunk in sorted(absent)]
        if self._remote is None:
            self._decode_later(*wanted)
            return nbytes
        for one in wanted:
            self._remote.when_here(*self._ranges(numpy.array(one[:1])),
                                   partial(self._decode_later, one))
        return nbytes

    def _decode_later(self, *wanted: tuple[int, int]) -> None:
        """Have chunks decoded in the background: of each its number, and
        when it is expected to be used."""
        self._wanted.extend(wanted)
        self._background.add(*[self._decode_ahead] * len(wanted))

    def _decode_ahead(self) -> None:
        """Decode chunks, unless they were used since they were expected.

        If many wait, several: what Python does for each takes longer than it
        seems, since decoding pushes its data out of the processor's cache.
        """
        wanted, slots = self._wanted, self.store.slots
        if not wanted:
            # Another task took its chunk.
            return
        count = 1 + len(wanted) // (2 * max(1, self._background.num_workers))
        chunks: list[int] = []
        nbytes = 0
        with contextlib.suppress(IndexError):
            while len(chunks) < count and nbytes < TOGETHER:
                chunk, expected = wanted.popleft()
                # It may be expected by later requests as well.
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
        # A file may be another now, if all chunks were remembered too.
        if not are_current or self._remote is not None:
            self._file.check()

    def _fetch_all(self, absent: list[tuple[int, list[Piece]]],
                   batch: NDArray[Any]) -> None:
        """Decode the chunks that a batch lacks."""
        # In the order of the file, which is that of the disk.
        addresses = self._parts.addresses
        absent.sort(key=lambda found: int(addresses[found[0]]))
        if self._remote is not None:
            # All of them, before the first is waited for.
            self._remote.request(*self._ranges(numpy.array([
                chunk for chunk, _ in absent])), is_urgent=True)

        def fetch(begin: int, end: int) -> None:
            for chunk, pieces in absent[begin:end]:
                self._fetch(chunk, pieces, batch)

        # Threads that decode ahead leave no core for more of them.
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
