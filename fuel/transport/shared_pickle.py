"""Objects that are pickled once for several processes, which share the arrays.

It uses pickle, so it is only for a process and the workers that it starts.
"""
from __future__ import annotations

import bisect
import io
import mmap
import os
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.exceptions import DamagedFileError
from fuel.transport.batches import ArrayPickler
from fuel.transport.segment import (
    DescriptorOwner, map_privately, write_segment)
from fuel.transport.slots import align

Reducer: TypeAlias = Callable[[Any], Any]

# Arrays of at least so many bytes are shared; smaller ones are copied for each
# process.
SHARED_BYTES = 1 << 20
# Number of bytes that can be sent through a socket before the other side
# reads.
_INLINE = 1 << 15
# The file in which the system lists the mappings of this process.
_MAPS = Path('/proc/self/maps')


class SharedExtent(NamedTuple):
    """Offset and size of an array in the segment.

    `offset`, `size`: offset and size in bytes.
    """

    offset: int
    size: int
    is_readonly: bool


class Shared(NamedTuple):
    """The description of an object and the extents of its arrays, from which a
    process loads the object.

    `description`: the pickle; empty if the last extent contains it.
    `size`: size of the segment in bytes; 0 if there is none.
    """

    description: bytes
    extents: tuple[SharedExtent, ...]
    size: int

    def load(self, descriptor: int | None) -> Any:
        """Load the object, and return it.

        Its large arrays lie in shared memory, which is mapped copy-on-write:
        the other processes do not see changes that this process makes.

        `descriptor`: descriptor of the segment, which this method closes; None
            if there is none.
        """
        buffers: list[memoryview] = []
        if descriptor is not None:
            try:
                memory = memoryview(map_privately(descriptor, self.size))
            finally:
                os.close(descriptor)
            for extent in self.extents:
                part = memory[extent.offset:extent.offset + extent.size]
                buffers.append(part.toreadonly() if extent.is_readonly
                               else part)
        description = self.description or buffers.pop()
        return pickle.loads(description, buffers=buffers)


class SharedPickle(DescriptorOwner):
    """A pickled object for several processes to load.

    If its arrays change before :meth:`write`, the processes may or may not get
    the changes.

    `reducers`: maps types to their reducers. Defaults to None: those of
        :mod:`copyreg`.
    `inline`: maximum number of bytes of a description that is sent through a
        socket. A longer description is in the segment.
    `shared`: description and extents, from which each process loads the
        object.
    `descriptor`: descriptor of the segment; None before :meth:`write`, and if
        no segment is needed.
    """

    def __init__(self, instance: object,
                 reducers: Mapping[type, Reducer] | None = None,
                 inline: int = _INLINE) -> None:
        for reads_once in (True, False):
            self._buffers: list[memoryview] = []
            stream = io.BytesIO()
            pickler = _Pickler(stream, protocol=5,
                               buffer_callback=self._take_buffer)
            pickler.maps = _Maps(reads_once)
            if reducers is not None:
                pickler.dispatch_table = reducers
            pickler.dump(instance)
            # The pickler keeps the arrays, and so their mappings, until here.
            if not reads_once or pickler.maps.are_true():
                break
        description = stream.getvalue()
        if len(description) > inline:
            self._buffers.append(memoryview(description))
            description = b''
        extents, size = [], 0
        for buffer in self._buffers:
            extents.append(SharedExtent(size, buffer.nbytes, buffer.readonly))
            size = align(size + buffer.nbytes)
        self.shared = Shared(description, tuple(extents), size)

    def _take_buffer(self, buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < SHARED_BYTES:
            return True
        self._buffers.append(raw)
        return False

    def has_arrays_of(self, other: SharedPickle) -> bool:
        """Return whether the segment of another object has the same arrays."""
        return (self.shared.extents == other.shared.extents
                and all(map(_is_same, self._buffers, other._buffers)))

    def write(self) -> None:
        """Copy the arrays to a new segment, which the processes will share."""
        if self._buffers:
            self.descriptor = write_segment(
                [(extent.offset, buffer) for extent, buffer in zip(
                    self.shared.extents, self._buffers, strict=True)],
                self.shared.size)


def _is_same(one: memoryview, other: memoryview) -> bool:
    """Return whether two views begin at the same address."""
    return bool(numpy.frombuffer(one, numpy.uint8).ctypes.data
                == numpy.frombuffer(other, numpy.uint8).ctypes.data)


class _Pickler(ArrayPickler):
    """Pickles an array in a mapped file as its place in the file."""

    makes_writable = False
    maps: _Maps

    def reducer_override(self, instance: object) -> Any:
        """Return the function, with its arguments, that rebuilds an array or
        opens its file again."""
        if type(instance) in (numpy.ndarray, numpy.memmap):
            assert isinstance(instance, numpy.ndarray)
            place = _find_in_file(instance, self.maps)
            if place is not None:
                return _open_in_file, (place, type(instance))
        return super().reducer_override(instance)


class _Place(NamedTuple):
    """File, offset and strides of an array in a mapped file.

    `identity`: device and number of the file; empty if unknown.
    `start`, `stop`: range of the file's bytes that contains the array.
    `first`: offset of its first element from `start`.
    """

    path: str
    identity: tuple[int, ...]
    is_writable: bool
    start: int
    stop: int
    first: int
    dtype: numpy.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _find_in_file(array: NDArray[Any], maps: _Maps) -> _Place | None:
    """Return the place of an array in a mapped file.

    None if it is in other memory, or in a mapping that does not write its
    changes to the file.
    """
    owner: Any = array
    file: numpy.memmap[Any, Any] | None = None
    while isinstance(owner, numpy.ndarray):
        if isinstance(owner, numpy.memmap):
            file = owner
        owner = owner.base
    if isinstance(owner, memoryview):
        owner = owner.obj
    if not isinstance(owner, mmap.mmap) or not array.size:
        return None
    reach = [(count - 1) * stride for count, stride
             in zip(array.shape, array.strides, strict=True)]
    before = -sum(min(0, step) for step in reach)
    after = sum(max(0, step) for step in reach) + array.itemsize
    address = array.__array_interface__['data'][0]
    found = (maps.find(address - before) if _MAPS.exists()
             else _find_in_memmap(file, address - before))
    if found is None:
        return None
    path, identity, start = found
    return _Place(path, identity, array.flags.writeable, start,
                  start + before + after, before, array.dtype, array.shape,
                  array.strides)


class _Maps:
    """The files that this process has mapped, by address.

    `reads_once`: whether to read the system's list of mappings once for many
        arrays. Then it may be out of date: see :meth:`are_true`.
    """

    def __init__(self, reads_once: bool) -> None:
        self._reads_once = reads_once
        self._lines: list[str] = []
        self._starts: list[int] = []
        self._used: dict[int, str] = {}

    def _read(self) -> None:
        self._lines = os.fsdecode(_MAPS.read_bytes()).split('\n')[:-1]
        self._starts = [int(line.partition('-')[0], 16)
                        for line in self._lines]

    def _line_at(self, address: int) -> str:
        place = bisect.bisect(self._starts, address) - 1
        line = self._lines[place] if place >= 0 else ''
        return line if line and address < int(
            line.split(None, 1)[0].partition('-')[2], 16) else ''

    def find(self, address: int) -> tuple[str, tuple[int, ...], int] | None:
        """Return the path and the identity of the file that is mapped at an
        address, and the offset of the address in the file; None if there is no
        such file."""
        line = self._line_at(address) if self._reads_once else ''
        if not line:
            self._read()
            line = self._line_at(address)
        self._used[address] = line
        return _file_of(line, address)

    def are_true(self) -> bool:
        """Return whether all mappings that were found still exist."""
        if self._used:
            self._read()
        return all(line == self._line_at(address)
                   for address, line in self._used.items())


def _file_of(line: str, address: int,
             ) -> tuple[str, tuple[int, ...], int] | None:
    """Return the result of :meth:`_Maps.find` for a line of the system's
    list."""
    where, rights, offset, _, number, *path = line.split(None, 5)
    low = int(where.partition('-')[0], 16)
    if not path or not path[0].startswith('/') or 's' not in rights:
        return None
    try:
        status = os.stat(path[0])
    except OSError:
        return None
    if status.st_ino != int(number):
        return None
    return (path[0], (status.st_dev, status.st_ino),
            address - low + int(offset, 16))


def _find_in_memmap(file: numpy.memmap[Any, Any] | None, address: int,
                    ) -> tuple[str, tuple[int, ...], int] | None:
    """Return the result of :meth:`_Maps.find` by the attributes of a
    :class:`numpy.memmap`."""
    if file is None or file.filename is None or file.mode == 'c':
        return None
    start = file.__array_interface__['data'][0]
    return (os.path.abspath(file.filename), (),
            file.offset + address - start)


def _open_in_file(place: _Place, cls: type[NDArray[Any]]) -> NDArray[Any]:
    """Map a file that another process has mapped, and return an array over
    it."""
    with open(place.path, 'r+b' if place.is_writable else 'rb') as file:
        status = os.fstat(file.fileno())
        if place.identity not in ((), (status.st_dev, status.st_ino)) \
                or status.st_size < place.stop:
            raise DamagedFileError(
                f'{place.path} was replaced or cut since the process that '
                'started this worker mapped it: map it again, and start the '
                'workers anew')
        memory = numpy.memmap(
            file, numpy.uint8, 'r+' if place.is_writable else 'r',
            place.start, (place.stop - place.start,))
    array: NDArray[Any] = numpy.ndarray(
        place.shape, place.dtype, memory, place.first, place.strides)
    return array.view(cls)
