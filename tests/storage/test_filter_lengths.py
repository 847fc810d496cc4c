"""Lengths in compressed chunks are read as their formats define them.

Frames are put together by hand, after the published formats.
"""
import itertools
import struct

import h5py
import pytest

from fuel.storage.filters import (
    BITSHUFFLE, BLOSC, LZ4, ZSTD, check_filter_lengths)
from fuel.storage.layout import ChunkFilter

DATA = bytes(range(250)) * 2


def zstd_frame(dictionary, content, is_single, has_checksum, data=DATA):
    """Return a frame of blocks as they are, and one of a repeated byte.

    `dictionary` and `content` are two bits each, which encode how many bytes
    the field of that name has.
    """
    flags = (content << 6 | is_single << 5 | has_checksum << 2 | dictionary)
    size = max((0, 2, 4, 8)[content], is_single)
    total = len(data) + 6
    fields = b'' if is_single else b'\x50'
    fields += b'\x07' * (0, 1, 2, 4)[dictionary]
    fields += (total - 256 * (size == 2)).to_bytes(size, 'little')
    half = len(data) // 2
    blocks = b''
    for part, is_last in ((data[:half], 0), (data[half:], 0)):
        blocks += (len(part) << 3 | is_last).to_bytes(3, 'little') + part
    blocks += (6 << 3 | 1 << 1 | 1).to_bytes(3, 'little') + b'a'
    return (b'\x28\xb5\x2f\xfd' + bytes([flags]) + fields + blocks
            + b'\0' * (4 * has_checksum), total)


def lz4_frame(block, data=DATA):
    """Return blocks that are stored as they are."""
    parts = [data[start:start + block]
             for start in range(0, len(data), block)]
    return struct.pack('>QI', len(data), block) + b''.join(
        struct.pack('>I', len(part)) + part for part in parts), len(data)


def bitshuffle_frame(elements, block, itemsize=4):
    """Return blocks of elements, and a rest of less than eight."""
    whole = elements // 8 * 8 * itemsize
    blocks = b''.join(
        struct.pack('>I', 5) + b'block' for _ in range(0, whole, block))
    return (struct.pack('>QI', elements * itemsize, block) + blocks
            + b'left' * (elements % 8)), elements * itemsize


FRAMES = {
    **{f'zstd-{dictionary}{content}{is_single}{has_checksum}': (
        ChunkFilter(ZSTD, 'zstd', ()),
        *zstd_frame(dictionary, content, is_single, has_checksum))
       for dictionary, content, is_single, has_checksum in itertools.product(
           range(4), range(1, 4), (0, 1), (0, 1))},
    **{f'zstd-{dictionary}010, a byte of size': (
        ChunkFilter(ZSTD, 'zstd', ()),
        *zstd_frame(dictionary, 0, 1, 0, bytes(100)))
       for dictionary in range(4)},
    **{f'lz4-{block}': (ChunkFilter(LZ4, 'lz4', ()), *lz4_frame(block))
       for block in (7, 100, 500, 1 << 20)},
    **{f'bitshuffle-{elements}-{block}': (
        ChunkFilter(BITSHUFFLE, 'bitshuffle', (0, 4, 4, 0, 2)),
        *bitshuffle_frame(elements, block))
       for elements in (16, 17, 123) for block in (32, 64, 4096)},
    'blosc': (ChunkFilter(BLOSC, 'blosc', ()),
              struct.pack('<4sIII', b'\2\1\0\4', 400, 400, 30) + b'x' * 14,
              400),
}


@pytest.mark.parametrize('name', FRAMES)
def test_whole_frame_is_taken_and_any_part_of_it_refused(name):
    """Its end is found correctly, whatever its header says."""
    last, stored, nbytes = FRAMES[name]
    check_filter_lengths(stored, 0, (last,), nbytes)
    check_filter_lengths(stored + b'more', 0, (last,), nbytes)
    for end in range(len(stored)):
        with pytest.raises(ValueError, match='it is cut off|does not begin'):
            check_filter_lengths(stored[:end], 0, (last,), nbytes)


@pytest.mark.parametrize('name', FRAMES)
@pytest.mark.parametrize('more', [-1, 1, 4])
def test_frame_of_other_contents_is_refused(name, more):
    """The bytes that a chunk decodes to are known."""
    last, stored, nbytes = FRAMES[name]
    with pytest.raises(ValueError, match=f'decodes to {nbytes} bytes instead'):
        check_filter_lengths(stored, 0, (last,), nbytes + more)


@pytest.mark.parametrize('name', ['zstd-0111', 'lz4-100', 'blosc'])
def test_checksum_of_hdf5_belongs_to_what_was_compressed(name):
    """A filter before it adds four bytes, if it was used."""
    last, stored, nbytes = FRAMES[name]
    filters = (ChunkFilter(h5py.h5z.FILTER_FLETCHER32, 'fletcher32', ()), last)
    check_filter_lengths(stored, 0, filters, nbytes - 4)
    check_filter_lengths(stored, 1, filters, nbytes)
    with pytest.raises(ValueError, match='decodes to'):
        check_filter_lengths(stored, 0, filters, nbytes)


def test_chunk_that_skipped_the_filter_is_not_looked_at():
    """Its bytes are those of the data."""
    check_filter_lengths(b'x', 1, (ChunkFilter(ZSTD, 'zstd', ()),), 100)


@pytest.mark.parametrize('block', [0, 12])
def test_blocks_of_an_impossible_size_are_refused(block):
    """Bitshuffle takes eight elements at a time."""
    stored = struct.pack('>QI', 64, block) + b'x' * 100
    with pytest.raises(ValueError, match=f'its blocks have {block} bytes'):
        check_filter_lengths(stored, 0, (
            ChunkFilter(BITSHUFFLE, 'bitshuffle', (0, 4, 4, 0, 2)),), 64)
