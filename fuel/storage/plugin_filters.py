"""Undoing filters that HDF5 has as plug-ins, with the package imagecodecs.

It does so on all cores, where HDF5 decodes one chunk at a time. What is found
in a chunk is compared with what is known before the package sees it.
"""
from __future__ import annotations

import functools
import itertools
import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy

from fuel.storage.buffers import scratch
from fuel.storage.chunk_cache import Decoded
from fuel.storage.filter_lengths import (
    BITSHUFFLE, BLOSC, BLOSC2, LZ4, ZSTD, check_stored_lengths)
from fuel.storage.layout import ChunkFilter


class OnlyHDF5Error(Exception):
    """A chunk is in a form that HDF5's plug-in alone may know."""


@functools.cache
def codes() -> frozenset[int]:
    """Return the codes of the filters that can be undone here."""
    return frozenset(DECODERS if _functions() else ())


@functools.cache
def _functions() -> dict[str, Callable[..., Decoded]]:
    """Return the functions of imagecodecs that are used; none where it is
    missing, or was built without one."""
    try:
        import imagecodecs
        return {'bitshuffle': imagecodecs.bitshuffle_decode,
                'blosc': imagecodecs.blosc_decode,
                'blosc2': imagecodecs.blosc2_decode,
                'lz4': imagecodecs.lz4_decode,
                'zstd': imagecodecs.zstd_decode}
    except ImportError:
        return {}


def undo_plugin(stored: Any, used: ChunkFilter, out: Decoded) -> None:
    """Undo a filter of `codes`; fill `out` with what it was given.

    Raises: ValueError if it is damaged.
    """
    data = memoryview(stored)
    check_stored_lengths(data, used, out.nbytes)
    try:
        DECODERS[used.code](data, used, out)
    except struct.error:
        raise ValueError(
            f'it is cut: it has {len(data)} bytes and goes on') from None


def _call(name: str, data: memoryview, out: Decoded, **options: int) -> None:
    """Let imagecodecs fill an array."""
    try:
        made = _functions()[name](data, out=out, **options)
    except (RuntimeError, ValueError) as error:
        raise ValueError(f'{name} cannot decode it: {error}') from error
    if len(made) != len(out):
        raise ValueError(f'it decodes to {len(made)} bytes instead of '
                         f'{len(out)}')


def _blosc(data: memoryview, used: ChunkFilter, out: Decoded) -> None:
    _call('blosc', data, out, numthreads=1)


def _zstd(data: memoryview, used: ChunkFilter, out: Decoded) -> None:
    _call('zstd', data, out)


def _lz4(data: memoryview, used: ChunkFilter, out: Decoded) -> None:
    _fill_blocks('lz4', data, out, struct.unpack_from('>I', data, 8)[0])


def _bitshuffle(data: memoryview, used: ChunkFilter, out: Decoded) -> None:
    itemsize, _, compressor = (*used.options, 0, 0, 0, 0, 0)[2:5]
    if compressor not in _OF_BITSHUFFLE or not itemsize or (
            out.nbytes % itemsize):
        raise OnlyHDF5Error
    block, = struct.unpack_from('>I', data, 8)
    shuffled = scratch.take(out.nbytes)
    # Eight elements at a time; those that are left are as they were.
    whole = out.nbytes - out.nbytes % (8 * itemsize)
    end = _fill_blocks(
        _OF_BITSHUFFLE[compressor], data, shuffled[:whole], block)
    shuffled[whole:] = data[end:end + len(shuffled) - whole]
    _call('bitshuffle', shuffled.data, out, itemsize=itemsize,
          blocksize=block // itemsize)


# By the number of what compresses blocks.
_OF_BITSHUFFLE = {2: 'lz4', 3: 'zstd'}


def _fill_blocks(name: str, data: memoryview, out: Decoded, block: int,
                 ) -> int:
    """Decode blocks, each after its length; return where they end."""
    place = 12
    for start in range(0, len(out), block):
        part = out[start:start + block]
        length, = struct.unpack_from('>I', data, place)
        place += 4
        stored = data[place:place + length]
        place += length
        if name == 'lz4' and length == len(part):
            # It would not have become shorter.
            part[:] = stored
        else:
            _call(name, stored, part)
    return place


class _Frame(NamedTuple):
    """A frame of Blosc2, which holds one chunk.

    `chunk_shape`, `block_shape`: in elements, of an array of several axes;
        empty where bytes are in their order.
    """

    place: int
    nbytes: int
    stored_nbytes: int
    itemsize: int
    chunk_shape: tuple[int, ...]
    block_shape: tuple[int, ...]


def _blosc2(data: memoryview, used: ChunkFilter, out: Decoded) -> None:
    frame = _frame(data)
    chunk, block = frame.chunk_shape, frame.block_shape
    expected = out.nbytes
    if chunk:
        if math.prod(chunk) * frame.itemsize != out.nbytes:
            raise ValueError(f'it says that it is an array of shape {chunk}')
        if not all(0 < part <= length for part, length in zip(
                block, chunk, strict=True)):
            raise ValueError(f'its blocks have the shape {block}')
        # Blocks at the edge are filled up.
        expected = frame.itemsize * math.prod(
            -(-length // part) * part for part, length in zip(
                block, chunk, strict=True))
    if frame.nbytes != expected:
        raise ValueError(f'it says that it decodes to {frame.nbytes} bytes '
                         f'instead of {expected}')
    if not frame.stored_nbytes:
        _check_zeros(data[frame.place:])
        out[:] = 0
        return
    stored = data[frame.place:frame.place + frame.stored_nbytes]
    _check_blosc2_chunk(stored, expected)
    blocks = out if block == chunk else scratch.take(expected)
    _call('blosc2', stored, blocks, numthreads=1)
    if blocks is not out:
        _copy_blocks(blocks, frame, out)


def _frame(data: memoryview) -> _Frame:
    """Read the header of a frame: MessagePack, of a fixed form."""
    (mark, place, size, _, kind, _, nbytes, stored_nbytes, itemsize,
     chunk_nbytes) = _HEADER.unpack_from(data)
    if mark != _MARK:
        raise ValueError('it does not begin as a frame of Blosc2 does')
    # After the chunk come an index, which is a chunk too, and a trailer.
    index = place + stored_nbytes
    if not place <= index <= size - 23 <= len(data) - 23 or size != index + (
            struct.unpack_from('<i', data, index + 12)[0]
            + struct.unpack_from('>i', data, size - 22)[0]):
        raise ValueError('its frame of Blosc2 does not end where it says')
    count, = struct.unpack_from('>H', data, 92)
    if kind or nbytes > chunk_nbytes or count > 1:
        raise OnlyHDF5Error
    if not count:
        return _Frame(place, nbytes, stored_nbytes, itemsize, (), ())
    if bytes(data[94:99]) != b'\xa4b2nd':
        raise OnlyHDF5Error
    start, = struct.unpack_from('>I', data, 100)
    num_axes = data[start + 7] if start + 7 < len(data) else 0
    arrays = struct.Struct('>7xBx' + num_axes * 'xq' + 2 * (
        'x' + num_axes * 'xi'))
    shapes = arrays.unpack_from(data, start)[1 + num_axes:]
    return _Frame(place, nbytes, stored_nbytes, itemsize,
                  shapes[:num_axes], shapes[num_axes:])


# What begins every frame, the lengths of its header and of all, version,
# kind, codec, bytes before and after compression, bytes of an element, of a
# block and of a chunk.
_HEADER = struct.Struct('>11sIxQxBBBxxqxqxi6xi')
_MARK = b'\x9e\xa8b2frame\0\xd2'


def _check_blosc2_chunk(stored: memoryview, nbytes: int) -> None:
    """Compare what a chunk says; HDF5 may have more codecs."""
    flags, content, length = struct.unpack_from('<xxBxixxxxi', stored)
    filters = stored[16:22]
    if content != nbytes:
        raise ValueError(f'it says that it decodes to {content} bytes instead '
                         f'of {nbytes}')
    if length > len(stored):
        raise ValueError(f'it is cut: it has {len(stored)} bytes and goes on')
    if flags >> 5 > 4 or max(filters, default=0) > 4:
        raise OnlyHDF5Error


def _check_zeros(index: memoryview) -> None:
    """See to it that a chunk of which a frame only has an entry is zeros."""
    _check_blosc2_chunk(index, 8)
    entry = numpy.empty(8, numpy.uint8)
    _call('blosc2', index, entry, numthreads=1)
    if int.from_bytes(entry.tobytes(), 'little') >> 56 != 0x81:
        raise OnlyHDF5Error


def _copy_blocks(blocks: Decoded, frame: _Frame, out: Decoded) -> None:
    """Put the elements of blocks, one block after the other, in order."""
    *axes, last = frame.block_shape
    block = *axes, last * frame.itemsize
    *axes, last = frame.chunk_shape
    whole = out.reshape(*axes, last * frame.itemsize)
    corners = itertools.product(*(
        range(0, length, part)
        for length, part in zip(whole.shape, block, strict=True)))
    for corner, content in zip(
            corners, blocks.reshape(-1, *block), strict=True):
        place = whole[tuple(
            slice(start, start + part)
            for start, part in zip(corner, block, strict=True))]
        place[...] = content[tuple(map(slice, place.shape))]


#: How each filter is undone.
DECODERS: dict[int, Callable[[memoryview, ChunkFilter, Decoded], None]] = {
    BLOSC: _blosc, BLOSC2: _blosc2, LZ4: _lz4, BITSHUFFLE: _bitshuffle,
    ZSTD: _zstd}
