"""Table of a data set's chunks: the place and the size of each."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import h5py
import numpy
from numpy.typing import NDArray

from fuel.exceptions import DamagedFileError
from fuel.kernels.gather import MISSING, OUTSIDE
from fuel.storage.file_bytes import FileBytes
from fuel.utils.h5py_file import H5PYFile
from fuel.utils.hdf5_errors import damaged

# The most chunks in a table; a larger table would need too much memory.
MOST_CHUNKS = 1 << 26

# The most chunks that are listed with a version of HDF5 that needs quadratic
# time: more would take seconds.
MOST_CHUNKS_SEARCHED = 2000


class UnreadableTableError(ValueError):
    """Error that chunks cannot be found without HDF5."""


class ChunkTable(NamedTuple):
    """Places of the chunks of a data set, in the order of the grid.

    `addresses`: places of the chunks in the file; `MISSING` for a chunk that
        was never written, `OUTSIDE` for a chunk that would begin or end
        outside of the file.
    `sizes`: number of bytes of each chunk in the file.
    `masks`: bit i of a chunk's mask is set if the chunk skipped filter i.
    """

    addresses: NDArray[numpy.int64]
    sizes: NDArray[numpy.int64]
    masks: NDArray[numpy.uint32]


def corner_of(chunk: int, shape: tuple[int, ...],
              chunk_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of the first element of chunk number `chunk`."""
    place = numpy.unravel_index(chunk, grid_of(shape, chunk_shape))
    return tuple(int(index) * length
                 for index, length in zip(place, chunk_shape, strict=True))


def grid_of(shape: tuple[int, ...],
            chunk_shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the number of chunks along each axis."""
    return tuple([-(-length // part)
                  for length, part in zip(shape, chunk_shape, strict=True)])


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
    is_ordered = _lists_in_order(dataset, file)
    last: tuple[int, ...] = ()

    def keep(chunk: h5py.h5d.StoreInfo) -> None:
        nonlocal last
        if chunk.byte_offset is None or chunk.size == 0:
            return
        place, before, last = 0, last, chunk.chunk_offset
        is_inside = True
        for start, part, length, stride in zip(
                last, chunk_shape, grid, strides, strict=True):
            if start % part:
                raise _damaged(dataset, f'a chunk begins at {last}, which is '
                               f'not a corner of chunks of {chunk_shape}')
            # A chunk outside of the grid was written when the data set was
            # larger.
            is_inside = is_inside and start // part < length
            place += start // part * stride
        if before == last or (is_ordered and before > last):
            raise _damaged(dataset, f'the index of its chunks has {last} '
                           f'after {before}, which should ascend')
        if not is_inside:
            return
        # If all bits of an address are set, there is no address.
        address = min(chunk.byte_offset, (1 << 63) - 1)
        if table.addresses[place] != MISSING:
            raise _damaged(dataset, f'two chunks claim the place {last}')
        table.addresses[place] = address
        table.sizes[place] = chunk.size
        table.masks[place] = chunk.filter_mask

    try:
        _list_chunks(dataset, keep)
    except RuntimeError as error:
        raise _damaged(
            dataset, f'HDF5 cannot list its chunks: {error}') from error
    _add_user_block(dataset, file, table)
    present = table.addresses != MISSING
    outside = present & (
        (table.addresses > file.size) | (table.addresses < 0)
        | (table.sizes > file.size - table.addresses))
    table.addresses[outside] = OUTSIDE
    _check_apart(dataset, table)
    return table


def _check_apart(dataset: h5py.Dataset, table: ChunkTable) -> None:
    """Raise DamagedFileError if two chunks share bytes of the file."""
    stored = numpy.flatnonzero(table.addresses >= 0)
    stored = stored[numpy.argsort(table.addresses[stored], kind='stable')]
    starts = table.addresses[stored]
    ends = starts + table.sizes[stored]
    shared = numpy.flatnonzero(ends[:-1] > starts[1:])
    if len(shared):
        first, second = (
            corner_of(int(stored[number]), dataset.shape, dataset.chunks)
            for number in (shared[0], shared[0] + 1))
        raise _damaged(dataset, f'its chunks at {first} and {second} share '
                       f'bytes of the file')


def _damaged(dataset: h5py.Dataset, reason: str) -> DamagedFileError:
    return damaged(
        f'{dataset.file.filename}, data set {dataset.name!r}: {reason}')


def _lists_in_order(dataset: h5py.Dataset, file: FileBytes) -> bool:
    """Return whether HDF5 lists the chunks in the order of the grid.

    In the newer format, if a data set may grow along exactly one axis, and
    this is not the first axis, HDF5 lists the chunks in the order in which
    they were added.

    Raises: UnreadableTableError if HDF5 lists these chunks at wrong places.
    """
    growing = [axis for axis, length in enumerate(dataset.maxshape)
               if length is None]
    if len(growing) != 1 or growing[0] == 0 or _has_old_header(dataset, file):
        return True
    if _confuses_places():
        raise UnreadableTableError(
            'this version of HDF5 lists chunks at wrong places where an axis '
            'other than the first may grow')
    return False


def _has_old_header(dataset: h5py.Dataset, file: FileBytes) -> bool:
    """Return whether a data set has a header of the older format.

    In this format, a tree with keys lists the chunks.
    """
    block = h5py.h5i.get_file_id(dataset.id).get_create_plist().get_userblock()
    address = h5py.h5o.get_info(dataset.id).addr
    # The version, and a byte that is not used.
    return file.read(block + address, 2) == b'\x01\0'


@functools.cache
def _confuses_places() -> bool:
    """Return whether HDF5 exchanges axes when it lists chunks (2.0 does)."""
    with H5PYFile('probe', 'w', driver='core', backing_store=False,
                  libver='latest') as file:
        probe = file.create_dataset(
            'x', (2, 2), 'u1', chunks=(1, 1), maxshape=(2, None))
        probe[0, 1] = 1
        file.flush()
        found: list[tuple[int, ...]] = []
        _list_chunks(probe, lambda chunk: found.append(chunk.chunk_offset))
        return found != [(0, 1)]


def can_iterate(dataset: h5py.Dataset) -> bool:
    """Return whether HDF5 can list the chunks in one pass."""
    return hasattr(dataset.id, 'chunk_iter')


def _list_chunks(dataset: h5py.Dataset, keep: Callable[[Any], None],
                 ) -> None:
    """Call a function for each chunk that was written."""
    if can_iterate(dataset):
        dataset.id.chunk_iter(keep)
        return
    # HDF5 before 1.12.3 begins the search for each chunk at the first chunk.
    count = dataset.id.get_num_chunks()
    if count > MOST_CHUNKS_SEARCHED:
        raise UnreadableTableError(
            f'this version of HDF5 takes too long to list {count} chunks')
    for number in range(count):
        keep(dataset.id.get_chunk_info(number))


def _add_user_block(dataset: h5py.Dataset, file: FileBytes,
                    table: ChunkTable) -> None:
    """Change the addresses of a table, if necessary, so that they count from
    the start of the file.

    In some versions of HDF5, addresses do not include the user block at the
    start of the file. To find out what this version does, a few chunks are
    compared with the same chunks as HDF5 reads them.
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
            'its file begins with a user block, and the chunks do not show '
            'whether their addresses include this block')
    table.addresses[table.addresses != MISSING] += possible.pop()
