"""Undoing the filters that chunks went through."""
from __future__ import annotations

import zlib
from typing import Any, TypeAlias

import h5py
import numpy
from numpy.typing import NDArray

from fuel.kernels.filters import fletcher32, lzf_decode, unshuffle
from fuel.storage import plugin_filters
from fuel.storage.buffers import scratch
from fuel.storage.layout import BZIP2, ChunkFilter, used_filters

try:
    # An optional package, half as fast again as zlib.
    import deflate
except ImportError:
    deflate = None  # type: ignore[assignment]

#: Bytes between two filters.
Data: TypeAlias = bytes | bytearray | memoryview | NDArray[numpy.uint8]


def decode_chunk(stored: Data, mask: int, filters: tuple[ChunkFilter, ...],
                 itemsize: int, out: NDArray[numpy.uint8]) -> None:
    """Undo the filters of one chunk.

    `out`: filled with the decoded chunk; nothing larger is ever made.
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
    """Undo one filter; `nbytes` is what a compressor was given, and `out`
    what a filter that copies may fill."""
    if one.code in plugin_filters.DECODERS:
        if out is None:
            out = scratch.take(nbytes)
        plugin_filters.undo_plugin(data, one, out)
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
    # The filter has its own idea of an element (of a string, say).
    size = one.options[0] if one.options else itemsize
    if size < 2:
        return data
    if out is None or len(data) != len(out):
        # It may have been given what a compressor made.
        out = scratch.take(len(data))
    return unshuffle(data, size, out)


def bunzip(data: Any, nbytes: int) -> bytes:
    """Undo the compression of bzip2."""
    import bz2

    decoder = bz2.BZ2Decompressor()
    try:
        result = decoder.decompress(data, nbytes + 1)
    except OSError as error:
        raise ValueError(str(error)) from error
    if not decoder.eof:
        raise ValueError(f'it does not end after {len(result)} bytes')
    return result


def inflate(data: Data, nbytes: int) -> bytes | bytearray:
    """Undo gzip's compression (zlib's format)."""
    if deflate is not None:
        try:
            decoded: bytes | bytearray = deflate.zlib_decompress(data, nbytes)
        except (deflate.DeflateError, ValueError) as error:
            raise ValueError(f'gzip cannot decode it: {error}') from error
        return decoded
    engine = zlib.decompressobj()
    try:
        # One byte more shows that there is more, and lets zlib reach the
        # end, where the checksum is.
        inflated = engine.decompress(data, nbytes + 1)
    except zlib.error as error:
        raise ValueError(f'gzip cannot decode it: {error}') from error
    if not engine.eof:
        raise ValueError(
            f'gzip cannot decode it: it is incomplete, or more than '
            f'{nbytes} bytes')
    return inflated


def verified(data: Any) -> memoryview:
    """Return data without the Fletcher checksum at their end."""
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
    """Return a checksum as HDF5 1.6.2 and older wrote it."""
    return (checksum & 0x00ff00ff) << 8 | checksum >> 8 & 0x00ff00ff
