"""Rows of chunks that went through filters, each decoded once."""
from __future__ import annotations

import itertools
from collections.abc import Sequence

from fuel.kernels.gather import OUTSIDE
from fuel.storage import plugin_filters
from fuel.storage.buffers import scratch
from fuel.storage.chunk_cache import Decoded, cache_of
from fuel.storage.chunk_table import corner_of
from fuel.storage.chunks import ChunkReader
from fuel.storage.errors import raise_lack
from fuel.storage.file_bytes import Ends, FileBytes
from fuel.storage.filter_lengths import check_filter_lengths
from fuel.storage.filters import decode_chunk
from fuel.storage.joined_file import files_at
from fuel.storage.layout import is_known
from fuel.storage.mapped import IndexArray, PartNames
from fuel.storage.part_index import PartIndex
from fuel.storage.parts import Parts
from fuel.storage.paging import Blocks


class DecodedReader(ChunkReader):
    """Rows of chunks of HDF5, which are remembered within the budget of the
    files.

    `index`: of the arrays that chunks belong to.
    """

    def __init__(self, file: FileBytes, name: str, parts: Parts,
                 index: PartIndex, cache_bytes: int | None,
                 part_names: PartNames | None = None) -> None:
        # Loads OpenSSL, which files without filters do not need.
        from hashlib import blake2b
        # Whoever reads the same chunks in another way shares them.
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
        """Return what widens ranges, None if there is nothing to fetch."""
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
        """Return the byte ranges of the chunks that are not remembered."""
        slots, chunks = self.store.slots, self._parts.chunks_of(rows)
        return self._ranges(chunks[[
            slots[chunk] is None for chunk in chunks.tolist()]])

    def _ranges(self, chunks: IndexArray) -> tuple[Ends, Ends]:
        """Return what to fetch for chunks: begin and end of ranges."""
        starts = self._parts.addresses[chunks]
        sizes = self._index.sizes[chunks]
        stored = starts >= 0
        ends = starts[stored], (starts + sizes)[stored]
        return ends if self._blocks is None else self._blocks.widen(*ends)

    def decode(self, chunks: Sequence[int], outs: Sequence[Decoded]) -> None:
        """Fill arrays with chunks as they were before the filters.

        The file is checked afterwards: what is remembered was read in the
        state that it is remembered under.
        """
        files = files_at(self._bytes, self._parts.addresses[chunks])
        try:
            # All of them first, which is one call for neighbours.
            stored = self._read_stored(chunks, outs, len(files) == 1)
            for chunk, data, out in zip(chunks, stored, outs, strict=True):
                self._decode(chunk, data, out)
        except ValueError:
            # If a file was changed, that is the reason.
            for file in files:
                file.check()
            raise
        for file in files:
            file.check()

    def _read_stored(self, chunks: Sequence[int], outs: Sequence[Decoded],
                     of_one_file: bool) -> list[memoryview]:
        """Read chunks as they are stored."""
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
        """Return address and bytes of what is stored of `size` bytes."""
        index, address = self._index, int(self._parts.addresses[chunk])
        array = index.array_of(chunk)
        if address == OUTSIDE:
            raise ValueError(
                f'the file has {index.file_size(array)} bytes and ends '
                f'before its chunk, or says it is elsewhere')
        # Without filters, what may follow them in the file is not theirs.
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
        # A chunk at the edge may have been left as it is, without a mask;
        # a filtered one of exactly this size is rare.
        doubtful = filters and len(stored) == size and not mask
        if doubtful and not index.is_ragged:
            self._decode_with_h5py(chunk, array, out)
            return
        try:
            if filters and not is_known(filters, plugin_filters.codes()):
                check_filter_lengths(stored, mask, filters, size)
                self._decode_with_h5py(chunk, array, out)
            else:
                decode_chunk(stored, mask, filters,
                             self._parts.element.stored.itemsize, out)
        except plugin_filters.OnlyHDF5Error:
            self._decode_with_h5py(chunk, array, out)
        except ValueError as error:
            raise ValueError(f'its chunk cannot be decoded: {error}'
                             ) from error

    def _decode_with_h5py(self, chunk: int, array: int,
                          out: Decoded) -> None:
        """Let HDF5 decode, which knows more filters than Fuel."""
        dataset = self._index.dataset(array)
        shape = dataset.chunks
        corner = corner_of(chunk - self._index.first_chunk(array),
                           dataset.shape, shape)
        try:
            part = dataset[tuple(
                slice(start, start + length) for start, length in zip(
                    corner, shape, strict=True))]
        except (OSError, RuntimeError) as error:
            raise_lack(error, self.path, self.name,
                       self._index.filters(array))
            raise ValueError(f'HDF5 cannot decode its chunk: {error}'
                             ) from error
        # At the edge of the data set, a chunk is larger than its content.
        out[:] = 0
        whole = out.view(self._parts.element.stored).reshape(shape)
        whole[tuple(map(slice, part.shape))] = part
