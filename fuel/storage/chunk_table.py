"""The table of a data set's chunks: where each is, and how long."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import h5py
import numpy
from numpy.typing import NDArray

from fuel.kernels.gather import MISSING, OUTSIDE
from fuel.storage.file_bytes import FileBytes

# Larger tables would take more memory than they are worth.
MOST_CHUNKS = 1 << 26

# More would take seconds where HDF5 needs quadratic time.
MOST_CHUNKS_SEARCHED = 2000


class UnreadableTableError(ValueError):
    """The chunks cannot be found without HDF5."""


class ChunkTable(NamedTuple):
    """Where the chunks of a data set are, in the order of the grid.

    `addresses`: places in the file; `MISSING` for chunks that were never
        written, `OUTSIDE` for those that would begin or end outside of the
        file.
    `sizes`: stored bytes.
    `masks`: bit i is set where a chunk skipped filter i.
    """

    addresses: NDArray[numpy.int64]
    sizes: NDArray[numpy.int64]
    masks: NDArray[numpy.uint32]


def corner_of(chunk: int, shape: tuple[int, ...],
              chunk_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of the first element of a chunk, by its number."""
    place = numpy.unravel_index(chunk, grid_of(shape, chunk_shape))
    return tuple(int(index) * length
                 for index, length in zip(place, chunk_shape, strict=True))


def grid_of(shape: tuple[int, ...],
            chunk_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return how many chunks there are along each axis."""
    return tuple(-(-length // part)
                 for length, part in zip(shape, chunk_shape, strict=True))


def read_chunk_table(dataset: h5py.Dataset, file: FileBytes) -> ChunkTable:
    """Read the table of a chunked data set, in one pass over its index."""
    shape, chunk_shape = dataset.shape, dataset.chunks
    grid = grid_of(shape, chunk_shape)
    count = math.prod(grid)
    if count > MOST_CHUNKS:
        raise UnreadableTableError(f'it has {count} chunks')
    table = ChunkTable(
        numpy.full(count, MISSING, numpy.int64),
        numpy.zeros(count, numpy.int64), numpy.zeros(count, numpy.uint32))
    strides = [math.prod(grid[axis + 1:]) for axis in range(len(grid))]

    def keep(chunk: h5py.h5d.StoreInfo) -> None:
        if chunk.byte_offset is None or chunk.size == 0:
            return
        place = 0
        for start, part, length, stride in zip(
                chunk.chunk_offset, chunk_shape, grid, strides,
                strict=True):
            if start // part >= length:
                # Left from a time when the data set was larger.
                return
            place += start // part * stride
        # An address of all ones stands for none.
        address = min(chunk.byte_offset, (1 << 63) - 1)
        table.addresses[place] = address
        table.sizes[place] = chunk.size
        table.masks[place] = chunk.filter_mask

    _list_chunks(dataset, keep)
    _add_user_block(dataset, file, table)
    present = table.addresses != MISSING
    outside = present & (
        (table.addresses > file.size) | (table.addresses < 0)
        | (table.sizes > file.size - table.addresses))
    table.addresses[outside] = OUTSIDE
    return table


def can_iterate(dataset: h5py.Dataset) -> bool:
    """Return whether HDF5 can list the chunks in one pass."""
    return hasattr(dataset.id, 'chunk_iter')


def _list_chunks(dataset: h5py.Dataset, keep: Callable[[Any], None],
                 ) -> None:
    """Call a function for each chunk that was written."""
    if can_iterate(dataset):
        dataset.id.chunk_iter(keep)
        return
    # HDF5 before 1.12.3 searches from the first chunk for every one.
    count = dataset.id.get_num_chunks()
    if count > MOST_CHUNKS_SEARCHED:
        raise UnreadableTableError(
            f'this version of HDF5 takes too long to list {count} chunks')
    for number in range(count):
        keep(dataset.id.get_chunk_info(number))


def _add_user_block(dataset: h5py.Dataset, file: FileBytes,
                    table: ChunkTable) -> None:
    """Count addresses from the start of the file, not of its HDF5 part.

    Some versions of HDF5 leave a user block out of them. Which this one
    does is seen by comparing a few chunks with what HDF5 reads.
    """
    creation = h5py.h5i.get_file_id(dataset.id).get_create_plist()
    block = creation.get_userblock()
    if not block:
        return
    chunk_shape = dataset.chunks
    possible = {0, block}
    for chunk in numpy.flatnonzero(table.addresses != MISSING)[:8]:
        stored = dataset.id.read_direct_chunk(
            corner_of(int(chunk), dataset.shape, chunk_shape))[1]
        for shift in sorted(possible):
            address = int(table.addresses[chunk]) + shift
            if file.read(address, len(stored)) != stored:
                possible.discard(shift)
    if len(possible) != 1:
        raise UnreadableTableError(
            'its file begins with a user block and the chunks do not tell '
            'whether their addresses count it')
    table.addresses[table.addresses != MISSING] += possible.pop()
