"""HDF5's global heap, which stores all values of variable length.

HDF5 itself does not check the heap. If the heap is damaged, HDF5 writes beyond
its memory, or searches for an object for ever.
"""
from __future__ import annotations

import h5py
import numpy

from fuel.kernels.global_heap import HEADER_NBYTES, find_object
from fuel.storage.file_bytes import FileBytes

# Reference that is stored instead of a value of variable length: the number of
# its elements, and the place of the object in the heap.
REFERENCE = numpy.dtype([
    ('count', '<u4'), ('address', '<u8'), ('number', '<u4')])

# Collections of this size hold many small objects; larger ones were made
# for one object.
USUAL = 4096


def addressing(handle: h5py.h5f.FileID) -> tuple[int, bool]:
    """Return the size of a file's user block, and whether its addresses and
    lengths have 8 bytes."""
    properties = handle.get_create_plist()
    return properties.get_userblock(), properties.get_sizes() == (8, 8)


class Heap:
    """The global heap of a file.

    `base`: size of the file's user block, which addresses do not count.
    `for_hdf5`: whether HDF5 will read the heap too; then all objects of a
        collection are checked.
    """

    def __init__(self, file: FileBytes, base: int,
                 for_hdf5: bool = False) -> None:
        self._whole = for_hdf5
        self._file = file
        self._base = base
        # Address, size and first bytes of the collection that was read last.
        self._last: tuple[int, int, bytes] = -1, 0, b''

    def read(self, address: int, number: int, nbytes: int) -> bytes:
        """Return the bytes of an object.

        `address`: address of its collection.
        `number`: number of the object in the collection.
        """
        if not (nbytes or address or number):
            # An empty value has no object, but an empty string may have one.
            return b''
        size, data = self._collection(address, USUAL + nbytes)
        found = find_object(data, size, number, self._whole)
        if found is None:
            size, data = self._collection(address, size)
            found = find_object(data, size, number, self._whole)
        if found is None or found[1] != nbytes:
            raise ValueError(
                f'object {number} of its heap has {found and found[1]} '
                f'bytes instead of {nbytes}')
        start = found[0]
        content = data[start:start + nbytes]
        if len(content) < nbytes:
            content = self._file.read(self._base + address + start, nbytes)
        if len(content) < nbytes:
            raise ValueError(f'the disk gave {len(content)} of its {nbytes} '
                             f'bytes')
        return content

    def _collection(self, address: int, wanted: int) -> tuple[int, bytes]:
        """Return the size of a collection, and its first bytes: `wanted` bytes
        or more, unless the collection is smaller."""
        last, size, data = self._last
        if last == address and len(data) >= min(size, wanted):
            return size, data
        place = self._base + address
        left = self._file.size - place
        if left < HEADER_NBYTES:
            raise ValueError(
                f'the file has {self._file.size} bytes and ends before its '
                f'part of the heap at {place}')
        data = self._file.read(place, min(wanted, left))
        size = int.from_bytes(data[8:16], 'little')
        if data[:5] != b'GCOL\1' or not HEADER_NBYTES <= size <= left:
            raise ValueError(f'there is no part of the heap at {place}')
        data = data[:size]
        self._last = address, size, data
        return size, data
