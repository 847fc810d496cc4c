"""Batches encoded as a short description and the memory of their arrays.

It uses pickle, so it is only for a process and its own child. :mod:`fuel.wire`
encodes batches for a network.
"""
from __future__ import annotations

import functools
import io
import pickle
import struct
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeGuard

import numpy
from numpy.typing import NDArray

# Smaller arrays are copied into the description. Otherwise a small array that
# the user keeps would keep its whole slot in use.
SMALL = 1 << 14


class ArrayPickler(pickle.Pickler):
    """Pickles plain arrays of any layout as buffers of their memory.

    `makes_writable`: whether read-only arrays are loaded as writable ones.
    """

    makes_writable = True

    def reducer_override(self, instance: object) -> Any:
        """Return the function, with its arguments, that rebuilds an array from
        its memory."""
        if type(instance) not in (numpy.ndarray, numpy.memmap):
            return NotImplemented
        array = numpy.asarray(instance)
        if array.dtype.hasobject:
            return NotImplemented
        order = 'C'
        if not array.flags.c_contiguous and array.flags.f_contiguous:
            order = 'F'
        if array.nbytes == 0:
            return numpy.empty, (array.shape, array.dtype, order)
        memory: Any = self._as_bytes(array, order)
        return _rebuild, (pickle.PickleBuffer(memory), array.dtype,
                          array.shape, order)

    def _as_bytes(self, array: NDArray[Any], order: str) -> NDArray[Any]:
        """Return the memory of an array as bytes; a copy if the array is not
        contiguous, or is read-only and must become writable."""
        if order == 'F':
            array = array.T
        # A read-only buffer is loaded as a read-only array.
        is_writable = array.flags.writeable or self.makes_writable
        if not (array.flags.c_contiguous
                and array.flags.writeable == is_writable):
            array = array.copy()
            array.flags.writeable = is_writable
        return array.reshape(-1).view(numpy.uint8)


def _rebuild(buffer: bytes | memoryview, dtype: numpy.dtype[Any],
             shape: tuple[int, ...], order: Literal['C', 'F']) -> NDArray[Any]:
    return numpy.frombuffer(buffer, dtype).reshape(shape, order=order)


def dump_batch(batch: object,
               small: int = SMALL) -> tuple[bytes, list[NDArray[Any]]]:
    """Return a description of a batch, and the memory of its large arrays.

    Returns: the description, and one-dimensional arrays of uint8, which are
    views of the data where possible.
    """
    if _is_plain(batch):
        return _dump_plain(batch, small)
    buffers: list[NDArray[Any]] = []

    def take_buffer(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < small or raw.readonly:
            return True
        buffers.append(numpy.frombuffer(raw, numpy.uint8))
        return False

    stream = io.BytesIO()
    ArrayPickler(stream, protocol=5, buffer_callback=take_buffer).dump(batch)
    return stream.getvalue(), buffers


def load_batch(description: bytes | memoryview, buffers: Sequence[Any]) -> Any:
    """Rebuild a batch from the results of :func:`dump_batch`."""
    if description[0] == _PLAIN:
        return _load_plain(description, buffers)
    return pickle.loads(description, buffers=buffers)


# Nearly all batches are tuples of arrays with the types and shapes of the
# batch before. They are encoded without pickle. No pickle begins with this
# byte.
_PLAIN = 0
# Type, shape and size of each array, and whether it is in the description.
_Kinds: TypeAlias = tuple[
    tuple[numpy.dtype[Any], tuple[int, ...], int, bool], ...]
_HEAD = struct.Struct('<BI')


def _is_plain(batch: object) -> TypeGuard[tuple[NDArray[Any], ...]]:
    """Return whether a batch is a tuple of distinct ordinary arrays."""
    if type(batch) is not tuple:
        return False
    for part in batch:
        if type(part) is not numpy.ndarray or not part.flags.carray \
                or part.dtype.hasobject:
            return False
    return len(batch) == 1 or len(set(map(id, batch))) == len(batch)


def _dump_plain(batch: tuple[NDArray[Any], ...],
                small: int) -> tuple[bytes, list[NDArray[Any]]]:
    small = max(small, 1)  # An empty array has no memory to lend.
    buffers = []
    description = [_head_of(tuple([
        (part.dtype, part.shape, part.nbytes, part.nbytes < small)
        for part in batch]))]
    for part in batch:
        if part.nbytes < small:
            description.append(part.tobytes())
        else:
            buffers.append(part.reshape(-1).view(numpy.uint8))
    return b''.join(description), buffers


@functools.lru_cache(64)
def _head_of(kinds: _Kinds) -> bytes:
    head = pickle.dumps(kinds)
    return _HEAD.pack(_PLAIN, len(head)) + head


@functools.lru_cache(64)
def _kinds_of(head: bytes) -> Any:
    return pickle.loads(head)


def _load_plain(description: bytes | memoryview,
                buffers: Sequence[Any]) -> tuple[NDArray[Any], ...]:
    place = _HEAD.size + _HEAD.unpack_from(description)[1]
    batch = []
    others = iter(buffers)
    for dtype, shape, nbytes, is_small in _kinds_of(
            bytes(description[_HEAD.size:place])):
        if not nbytes:
            batch.append(numpy.empty(shape, dtype))
            continue
        if is_small:
            memory: Any = bytearray(description[place:place + nbytes])
            place += nbytes
        else:
            memory = next(others)
        batch.append(numpy.ndarray(shape, dtype, memory))
    return tuple(batch)
