"""What compressed formats of plug-in filters say of their lengths.

The plug-ins trust what they read: a chunk that was cut gives rows of the bytes
that lay behind it, keeps a loop waiting for ever, or ends the process. So its
lengths are compared with those that are known before it is given to them.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TypeAlias

import h5py

from fuel.storage.layout import ChunkFilter, used_filters

BLOSC, LZ4, BITSHUFFLE, ZSTD, BLOSC2 = 32001, 32004, 32008, 32015, 32026

#: What a filter made of a chunk.
Stored: TypeAlias = bytes | memoryview

# Bytes of content and of all.
_BLOSC = struct.Struct('<4xI4xI')
_ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
# How long identifiers of dictionaries and contents' sizes are, by two bits.
_DICTIONARY = 0, 1, 2, 4
_CONTENT = 0, 2, 4, 8


def check_filter_lengths(stored: Stored, mask: int,
                         filters: tuple[ChunkFilter, ...],
                         nbytes: int) -> None:
    """Check what the filter that comes last made of a chunk."""
    used = used_filters(filters, mask)
    if not used:
        return
    *before, last = used
    if all(one.code in (h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32)
           for one in before):
        check_stored_lengths(stored, last, nbytes + 4 * sum(
            one.code == h5py.h5z.FILTER_FLETCHER32 for one in before))


def check_stored_lengths(stored: Stored, used: ChunkFilter,
                         nbytes: int) -> None:
    """Check what a filter made of `nbytes` bytes."""
    if used.code not in _CHECKS:
        return
    content, end = 0, 0
    try:
        content, end = _CHECKS[used.code](stored, used, nbytes)
    except IndexError:
        end = len(stored) + 1
    if end > len(stored):
        raise ValueError(f'it is cut: it has {len(stored)} bytes and goes on')
    if content != nbytes:
        raise ValueError(f'it says that it decodes to {content} bytes instead '
                         f'of {nbytes}')


def _number(stored: Stored, start: int, size: int, order: str) -> int:
    """Return a number; IndexError if it is not all there."""
    if start + size > len(stored):
        raise IndexError
    return int.from_bytes(
        stored[start:start + size],
        'big' if order == '>' else 'little')


def _blosc(stored: Stored, _: ChunkFilter, nbytes: int) -> tuple[int, int]:
    if len(stored) < _BLOSC.size:
        raise IndexError
    content, length = _BLOSC.unpack_from(stored)
    return content, length


def _lz4(stored: Stored, _: ChunkFilter, nbytes: int) -> tuple[int, int]:
    content = _number(stored, 0, 8, '>')
    block = _number(stored, 8, 4, '>')
    if content != nbytes:
        return content, 0
    return content, _end_of_blocks(stored, _sizes(content, block))


def _bitshuffle(stored: Stored, used: ChunkFilter,
                nbytes: int) -> tuple[int, int]:
    compresses = len(used.options) > 4 and used.options[4] > 0
    if not compresses:
        return len(stored), 0
    itemsize = max(1, used.options[2])
    content = _number(stored, 0, 8, '>')
    block = _number(stored, 8, 4, '>')
    if content != nbytes:
        return content, 0
    # Eight elements at a time; those that are left are as they were.
    left = content % (8 * itemsize)
    return content, left + _end_of_blocks(
        stored, _sizes(content - left, block, 8 * itemsize))


def _sizes(content: int, block: int, unit: int = 1) -> Iterator[int]:
    """Yield how much each block decodes to."""
    if not block or block % unit:
        raise ValueError(f'its blocks have {block} bytes')
    while content > 0:
        yield min(block, content)
        content -= block


def _end_of_blocks(stored: Stored, sizes: Iterator[int]) -> int:
    """Return where the blocks end: each tells its length, then comes."""
    place = 12
    for _ in sizes:
        place += 4 + _number(stored, place, 4, '>')
    return place


def _zstd(stored: Stored, _: ChunkFilter, nbytes: int) -> tuple[int, int]:
    if stored[:4] != _ZSTD_MAGIC:
        raise ValueError('it does not begin as Zstandard does')
    flags = stored[4]
    is_single = flags >> 5 & 1
    place = 5 + (not is_single) + _DICTIONARY[flags & 3]
    size = max(_CONTENT[flags >> 6], is_single)
    content = nbytes
    if size:
        content = _number(stored, place, size, '<') + 256 * (size == 2)
    place += size
    is_last = False
    while not is_last:
        head = _number(stored, place, 3, '<')
        is_last = bool(head & 1)
        # A block of one byte many times stores that byte alone.
        place += 3 + (1 if head >> 1 & 3 == 1 else head >> 3)
    return content, place + 4 * (flags >> 2 & 1)


_CHECKS: dict[int, Callable[[Stored, ChunkFilter, int], tuple[int, int]]] = {
    BLOSC: _blosc, LZ4: _lz4, BITSHUFFLE: _bitshuffle, ZSTD: _zstd}
