"""Compressed files, which are decoded as a whole and then read like others."""
from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import IO, Any

import numpy
from numpy.typing import NDArray

from fuel.storage.chunk_cache import cache_of
from fuel.storage.file_bytes import FileBytes, JoinedFile
from fuel.storage.filters import (
    ZSTD, bunzip, codes, decompress, undo_plugin)
from fuel.storage.grouped import DecodedGroups, Groups
from fuel.storage.layout import ChunkFilter
from fuel.utils.extras import how_to_install

#: Returns the decoded content of the file with a number.
DecodeFile = Callable[[int], NDArray[numpy.uint8]]


def gunzip(data: bytes, nbytes: int) -> bytes:
    """Decompress a gzip file; see :func:`decompress`."""
    return decompress(zlib.decompressobj(zlib.MAX_WBITS | 16), zlib.error,
                      data, nbytes)


def unzstd(data: bytes, nbytes: int) -> Any:
    """Decompress a frame of Zstandard; see :func:`decompress`."""
    if ZSTD in codes():
        out = numpy.empty(nbytes, numpy.uint8)
        undo_plugin(data, ChunkFilter(ZSTD, 'zstd', ()), out)
        return out
    zstd = import_module('compression.zstd')
    return decompress(zstd.ZstdDecompressor(), zstd.ZstdError, data, nbytes)


#: Functions that decompress a file, by the names of the compressions. They
#: take the number of bytes of the content; they raise ValueError if the file
#: is damaged, or does not end within one more byte.
DECOMPRESS: dict[str, Callable[[bytes, int], Any]] = {
    'bz2': bunzip, 'gz': gunzip, 'zstd': unzstd}


def refuse_compression(name: str, where: str) -> None:
    """Raise an error if files of a compression cannot be read."""
    if name not in DECOMPRESS:
        raise ValueError(
            f'{where} is compressed with {name!r}, which is not read: write '
            f'it with one of {[*DECOMPRESS]}, or without compression')
    # From Python 3.14 on, it has a module for this.
    if name == 'zstd' and ZSTD not in codes() and not (
            find_spec('compression') and find_spec('compression.zstd')):
        raise ImportError(
            f'{where} is compressed with zstd, and imagecodecs is not '
            f'installed: {how_to_install("codecs")}', name='imagecodecs')


class DecodedFile:
    """The decoded content of a compressed file; see :class:`FileBytes`.

    `file`: the compressed file.
    `size`: number of bytes of the content.
    `decoded`: the contents of this file and of others.
    `number`: number of this file among them.
    """

    is_remote = False

    def __init__(self, file: FileBytes, size: int, decoded: DecodedGroups,
                 number: int) -> None:
        self.file, self.size = file, size
        self.path, self.identity = file.path, file.identity
        self.decoded = decoded
        self._number = number

    def check(self) -> None:
        """Raise DamagedFileError if the file has changed."""
        self.file.check()

    def is_current(self) -> bool:
        """Return whether opening the file now would find the same state."""
        return self.file.is_current()

    @property
    def memory(self) -> Any:
        """The content."""
        return self.decoded.get_recent(self._number)

    @property
    def is_decoded(self) -> bool:
        """Whether the content is in the cache (bool)."""
        return self.decoded.store.slots[self._number] is not None

    def decode(self) -> None:
        """Decode the content into the cache, if there is room for it."""
        self.decoded.store.fill([self._number], self.decoded.decode)

    def open(self) -> IO[bytes]:
        """Raise NotImplementedError: the content has no stream."""
        raise NotImplementedError

    def read(self, address: int, nbytes: int) -> bytes:
        """Return bytes of the content."""
        content: bytes = self.memory[address:address + nbytes].tobytes()
        return content

    def read_into(self, buffer: memoryview, address: int) -> int:
        """Read bytes of the content into a buffer; return their number."""
        content = self.read(address, len(buffer))
        buffer[:len(content)] = content
        return len(content)


def decoded_files(files: Sequence[FileBytes], sizes: Sequence[int],
                  decode: DecodeFile, budget: int | None,
                  ) -> list[DecodedFile]:
    """Return the contents of compressed files, which are cached together.

    `sizes`: number of bytes of each content.
    `decode`: decodes a file; several threads call this function.
    `budget`: bytes of the cache; None for the budget that all files share.
    """
    joined = JoinedFile(files)
    groups = Groups(joined.path, 'content', (sum(sizes),),
                    numpy.dtype(numpy.uint8), sizes, decode, joined,
                    range(len(files)), 'content')
    decoded = DecodedGroups(groups, cache_of(joined.identity, budget),
                            numpy.array(sizes, numpy.int64))
    return [DecodedFile(file, size, decoded, number)
            for number, (file, size) in enumerate(
                zip(files, sizes, strict=True))]
