"""Decode chunks: undo the filters that were applied to them.

Filters that are plug-ins of HDF5 are undone with the package imagecodecs. It
decodes on all cores, but HDF5 decodes one chunk at a time. The package and the
plug-ins trust their input. If a chunk was cut, they may return bytes that do
not belong to it, wait for ever or crash the process. So the lengths in a chunk
are checked before the chunk is passed to them.
"""
from __future__ import annotations

import functools
import itertools
import math
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import h5py
import numpy
from numpy.typing import NDArray

from fuel.kernels.filters import fletcher32, lzf_decode, unshuffle
from fuel.storage.buffers import scratch
from fuel.storage.chunk_cache import Decoded
from fuel.storage.layout import BZIP2, ChunkFilter, used_filters
from fuel.utils.extras import how_to_install
from fuel.utils.hdf5_errors import is_lack_of_descriptors, with_advice

try:
    # An optional package, which is 1.5 times as fast as zlib.
    import deflate
except ImportError:
    deflate = None  # type: ignore[assignment]

#: Bytes that one filter passes to the next.
Data: TypeAlias = bytes | bytearray | memoryview | NDArray[numpy.uint8]
BLOSC, LZ4, BITSHUFFLE, ZSTD, BLOSC2 = 32001, 32004, 32008, 32015, 32026

#: Bytes that a filter made of a chunk.
Stored: TypeAlias = bytes | memoryview

# Bytes of the content, and bytes of the whole chunk.
_BLOSC = struct.Struct('<4xI4xI')
_ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
# Number of bytes of the dictionary's identifier, and of the content's size, in
# a header of Zstandard. Two bits of the header are the index.
_DICTIONARY = 0, 1, 2, 4
_CONTENT = 0, 2, 4, 8


def decode_chunk(stored: Data, mask: int, filters: tuple[ChunkFilter, ...],
                 itemsize: int, out: NDArray[numpy.uint8]) -> None:
    """Decode one chunk.

    `stored`: the chunk as it is stored.
    `mask`: bit i is set if the chunk skipped filter i.
    `filters`: the filters, in the order in which they were applied.
    `itemsize`: bytes of an element.
    `out`: buffer for the decoded chunk. No more bytes than it has are decoded;
        fewer bytes are an error.
    """
    data: Data = stored
    used = used_filters(filters, mask) if mask else filters
    for place in reversed(range(len(used))):
        checksums = place and sum(
            one.code == h5py.h5z.FILTER_FLETCHER32 for one in used[:place])
        data = _undo(used[place], data, out.nbytes + 4 * checksums, itemsize,
                     None if place else out)
    if len(data) != out.nbytes:
        raise ValueError(f'it decodes to {len(data)} bytes instead of '
                         f'{out.nbytes}')
    if data is not out:
        out[:] = numpy.frombuffer(data, numpy.uint8)


def _undo(one: ChunkFilter, data: Data, nbytes: int, itemsize: int,
          out: NDArray[numpy.uint8] | None) -> Data:
    """Undo one filter.

    `nbytes`: the largest size before compression.
    `out`: a buffer for the result; None if there is none.
    """
    if one.code in DECODERS:
        if out is None:
            out = scratch.take(nbytes)
        undo_plugin(data, one, out)
        return out
    if one.code == h5py.h5z.FILTER_DEFLATE:
        return inflate(data, nbytes)
    if one.code == BZIP2:
        return bunzip(data, nbytes)
    if one.code == h5py.h5z.FILTER_FLETCHER32:
        return verified(data)
    if one.code == h5py.h5z.FILTER_LZF:
        return lzf_decode(data, nbytes, scratch.take(nbytes) if out is None
                          else out)
    # The filter may use another size of an element, for example for strings.
    size = one.options[0] if one.options else itemsize
    if size < 2:
        return data
    if out is None or len(data) != len(out):
        # The filter may have been applied after a compressor.
        out = scratch.take(len(data))
    return unshuffle(data, size, out)


def bunzip(data: Any, nbytes: int) -> bytes:
    """Decompress data in the format of bzip2; see :func:`decompress`."""
    import bz2

    return decompress(bz2.BZ2Decompressor(), OSError, data, nbytes)


def decompress(decoder: Any, error: type[Exception], data: Any,
               nbytes: int) -> bytes:
    """Decompress data; raise ValueError if they are damaged, or do not end
    within ``nbytes + 1`` bytes.

    `decoder`: an object of a module of Python's for compressed data.
    `error`: the error that it raises for damaged data.
    """
    try:
        result: bytes = decoder.decompress(data, nbytes + 1)
    except error as problem:
        raise ValueError(str(problem)) from problem
    if not decoder.eof:
        raise ValueError(f'it does not end after {len(result)} bytes')
    return result


def inflate(data: Data, nbytes: int) -> bytes | bytearray:
    """Decompress data in the format of zlib (filter gzip); raise ValueError if
    they are damaged, or do not end within ``nbytes + 1`` bytes."""
    if deflate is not None:
        try:
            decoded: bytes | bytearray = deflate.zlib_decompress(data, nbytes)
        except (deflate.DeflateError, ValueError) as error:
            raise ValueError(f'gzip cannot decode it: {error}') from error
        return decoded
    engine = zlib.decompressobj()
    try:
        # With room for one more byte, data that are too long are found, and
        # zlib reaches the end, where the checksum is.
        inflated = engine.decompress(data, nbytes + 1)
    except zlib.error as error:
        raise ValueError(f'gzip cannot decode it: {error}') from error
    if not engine.eof:
        raise ValueError(
            f'gzip cannot decode it: it is incomplete, or more than '
            f'{nbytes} bytes')
    return inflated


def verified(data: Any) -> memoryview:
    """Compare the Fletcher checksum at the end of data; return the data before
    it."""
    view = memoryview(data)
    if len(view) < 4:
        raise ValueError('it is too short for its fletcher32 checksum')
    content = view[:-4]
    stored = int.from_bytes(view[-4:], 'little')
    found = fletcher32(content)
    if stored not in (found, _swapped(found)):
        raise ValueError(f'its fletcher32 checksum is {found:#010x}, but '
                         f'the file says {stored:#010x}')
    return content


def _swapped(checksum: int) -> int:
    """Return a checksum in the byte order of HDF5 1.6.2 and older."""
    return (checksum & 0x00ff00ff) << 8 | checksum >> 8 & 0x00ff00ff


def check_filter_lengths(stored: Stored, mask: int,
                         filters: tuple[ChunkFilter, ...],
                         nbytes: int) -> None:
    """Raise ValueError if the lengths in the output of a chunk's last filter
    are wrong.

    `nbytes`: number of bytes of the decoded chunk.
    """
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
    """Raise ValueError if the lengths in a filter's output do not fit an input
    of `nbytes` bytes."""
    if used.code not in _CHECKS:
        return
    content, end = 0, 0
    try:
        content, end = _CHECKS[used.code](stored, used, nbytes)
    except IndexError:
        end = len(stored) + 1
    if end > len(stored):
        raise ValueError(f'it is cut off after {len(stored)} bytes')
    if content != nbytes:
        raise ValueError(f'it says that it decodes to {content} bytes instead '
                         f'of {nbytes}')


def _number(stored: Stored, start: int, size: int, order: str) -> int:
    """Return a number; raise IndexError if it is incomplete."""
    if start + size > len(stored):
        raise IndexError
    return int.from_bytes(
        stored[start:start + size],
        'big' if order == '>' else 'little')


def _blosc_lengths(stored: Stored, _: ChunkFilter,
                   nbytes: int) -> tuple[int, int]:
    if len(stored) < _BLOSC.size:
        raise IndexError
    content, length = _BLOSC.unpack_from(stored)
    return content, length


def _lz4_lengths(stored: Stored, _: ChunkFilter,
                 nbytes: int) -> tuple[int, int]:
    content = _number(stored, 0, 8, '>')
    block = _number(stored, 8, 4, '>')
    if content != nbytes:
        return content, 0
    return content, _end_of_blocks(stored, _sizes(content, block))


def _bitshuffle_lengths(stored: Stored, used: ChunkFilter,
                        nbytes: int) -> tuple[int, int]:
    compresses = len(used.options) > 4 and used.options[4] > 0
    if not compresses:
        return len(stored), 0
    itemsize = max(1, used.options[2])
    content = _number(stored, 0, 8, '>')
    block = _number(stored, 8, 4, '>')
    if content != nbytes:
        return content, 0
    # Eight elements are shuffled at a time; the rest is stored unchanged.
    left = content % (8 * itemsize)
    return content, left + _end_of_blocks(
        stored, _sizes(content - left, block, 8 * itemsize))


def _sizes(content: int, block: int, unit: int = 1) -> Iterator[int]:
    """Yield the decoded size of each block."""
    if not block or block % unit:
        raise ValueError(f'its blocks have {block} bytes')
    while content > 0:
        yield min(block, content)
        content -= block


def _end_of_blocks(stored: Stored, sizes: Iterator[int]) -> int:
    """Return the place at which the blocks end; each block follows its
    length."""
    place = 12
    for _ in sizes:
        place += 4 + _number(stored, place, 4, '>')
    return place


def _zstd_lengths(stored: Stored, _: ChunkFilter,
                  nbytes: int) -> tuple[int, int]:
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
        # A block that repeats one byte stores this byte only once.
        place += 3 + (1 if head >> 1 & 3 == 1 else head >> 3)
    return content, place + 4 * (flags >> 2 & 1)


_CHECKS: dict[int, Callable[[Stored, ChunkFilter, int], tuple[int, int]]] = {
    BLOSC: _blosc_lengths, LZ4: _lz4_lengths,
    BITSHUFFLE: _bitshuffle_lengths, ZSTD: _zstd_lengths}


class OnlyHDF5Error(Exception):
    """Error for a chunk that only HDF5's plug-in may be able to decode."""


@functools.cache
def codes() -> frozenset[int]:
    """Return the codes of the filters that can be undone here."""
    return frozenset(DECODERS if _functions() else ())


@functools.cache
def _functions() -> dict[str, Callable[..., Decoded]]:
    """Return a mapping from names to the functions of imagecodecs that are
    used; {} if this package is missing, or was built without one of them."""
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
    """Undo a plug-in's filter, one of `codes`; fill `out` with the result.

    Raises: ValueError if the data are damaged; OnlyHDF5Error if their form is
        not supported here.
    """
    data = memoryview(stored)
    check_stored_lengths(data, used, out.nbytes)
    try:
        DECODERS[used.code](data, used, out)
    except struct.error:
        raise ValueError(
            f'it is cut off after {len(data)} bytes') from None


def _call(name: str, data: memoryview, out: Decoded, **options: int) -> None:
    """Decode with imagecodecs into an array."""
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
    # Eight elements are shuffled at a time; the rest is stored unchanged.
    whole = out.nbytes - out.nbytes % (8 * itemsize)
    end = _fill_blocks(
        _OF_BITSHUFFLE[compressor], data, shuffled[:whole], block)
    shuffled[whole:] = data[end:end + len(shuffled) - whole]
    _call('bitshuffle', shuffled.data, out, itemsize=itemsize,
          blocksize=block // itemsize)


# Mapping from the numbers of the compressors of blocks to their names.
_OF_BITSHUFFLE = {2: 'lz4', 3: 'zstd'}


def _fill_blocks(name: str, data: memoryview, out: Decoded, block: int,
                 ) -> int:
    """Decode blocks, each stored after its length; return the place at which
    they end."""
    place = 12
    for start in range(0, len(out), block):
        part = out[start:start + block]
        length, = struct.unpack_from('>I', data, place)
        place += 4
        stored = data[place:place + length]
        place += length
        if name == 'lz4' and length == len(part):
            # The block is not compressed: this would not have made it shorter.
            part[:] = stored
        else:
            _call(name, stored, part)
    return place


class _Frame(NamedTuple):
    """A frame of Blosc2, which contains one chunk.

    `place`: place of the chunk in the frame.
    `nbytes`, `stored_nbytes`: numbers of bytes of the decoded and the stored
        chunk.
    `chunk_shape`, `block_shape`: shapes in elements, if the chunk is an array
        of several axes; empty if the bytes are in order.
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
        # Blocks at the edge are padded.
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
    """Read the header of a frame, which is MessagePack of a fixed form."""
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


# Header of a frame: mark, length of the header, length of the frame, version,
# kind, codec, numbers of bytes before and after compression, and numbers of
# bytes of an element, of a block (skipped) and of a chunk.
_HEADER = struct.Struct('>11sIxQxBBBxxqxqxi6xi')
_MARK = b'\x9e\xa8b2frame\0\xd2'


def _check_blosc2_chunk(stored: memoryview, nbytes: int) -> None:
    """Raise ValueError if the header of a chunk is wrong, and OnlyHDF5Error if
    it names a codec or filter that only HDF5 may have."""
    flags, content, length = struct.unpack_from('<xxBxixxxxi', stored)
    filters = stored[16:22]
    if content != nbytes:
        raise ValueError(f'it says that it decodes to {content} bytes instead '
                         f'of {nbytes}')
    if length > len(stored):
        raise ValueError(f'it is cut off after {len(stored)} bytes')
    if flags >> 5 > 4 or max(filters, default=0) > 4:
        raise OnlyHDF5Error


def _check_zeros(index: memoryview) -> None:
    """Raise OnlyHDF5Error if a chunk without stored bytes is not all zeros.

    `index`: the frame's index, which has an entry for the chunk.
    """
    _check_blosc2_chunk(index, 8)
    entry = numpy.empty(8, numpy.uint8)
    _call('blosc2', index, entry, numthreads=1)
    if int.from_bytes(entry.tobytes(), 'little') >> 56 != 0x81:
        raise OnlyHDF5Error


def _copy_blocks(blocks: Decoded, frame: _Frame, out: Decoded) -> None:
    """Copy the elements of blocks to their places in a chunk."""
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


#: Functions that undo filters.
DECODERS: dict[int, Callable[[memoryview, ChunkFilter, Decoded], None]] = {
    BLOSC: _blosc, BLOSC2: _blosc2, LZ4: _lz4, BITSHUFFLE: _bitshuffle,
    ZSTD: _zstd}


def raise_unless_damage(error: BaseException, path: str, name: str,
                        filters: tuple[ChunkFilter, ...]) -> None:
    """Raise an OSError if a read failed for another reason than damage: too
    many open files, or a missing filter."""
    if is_lack_of_descriptors(error):
        raise with_advice(error, path) from error
    for one in filters:
        if not h5py.h5z.filter_avail(one.code):
            fast = (
                f'{how_to_install("codecs")}, which decodes them on all '
                'cores, or '
                if one.code in DECODERS and not codes()
                else 'for most filters: ')
            raise OSError(
                f'{path}, source {name!r}: its chunks went through the '
                f'filter {one.code} ({one.name}), which HDF5 does not have '
                f'here; {fast}pip install hdf5plugin, and import hdf5plugin '
                f'first') from error
