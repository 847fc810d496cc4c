"""Compressed files read forwards in large blocks.

`gzip` of Python 3.11 decompresses 8 KB at a time, which takes a third of the
total time.
"""
import io
import zlib
from typing import IO, Protocol

PACKED_BLOCK = 1 << 18
BLOCK = 1 << 20
# zlib's `wbits` of the two formats.
GZIP = 31
ZLIB = 15


class BinaryFile(Protocol):
    """A file that is read in binary mode."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end."""

    def seek(self, position: int, /) -> int:
        """Go to a byte."""


class Inflated:
    """The content of a file in the form `GZIP` or `ZLIB`, read forwards.

    A file may consist of several gzip files, one after the other.
    """

    def __init__(self, raw: IO[bytes], form: int = GZIP) -> None:
        self._raw = raw
        self._form = form
        self._inflater = zlib.decompressobj(form)
        self._packed = b''
        self._block = b''
        self._used = 0
        self._position = 0

    def tell(self) -> int:
        """Return the place in the content."""
        return self._position

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        """Go forwards."""
        if whence != io.SEEK_SET or position < self._position:
            raise io.UnsupportedOperation('only forwards')
        while position > self._position:
            if not self.read(min(position - self._position, BLOCK)):
                break
        return self._position

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer at the end."""
        parts = []
        while size > 0:
            if self._used == len(self._block):
                self._block, self._used = self._inflate(), 0
                if not self._block:
                    break
            part = self._block[self._used:self._used + size]
            self._used += len(part)
            size -= len(part)
            parts.append(part)
        content = parts[0] if len(parts) == 1 else b''.join(parts)
        self._position += len(content)
        return content

    def readinto(self, target: memoryview) -> int:
        """Fill the caller's memory; return the number of bytes read."""
        done = 0
        while part := self.read(min(len(target) - done, BLOCK)):
            target[done:done + len(part)] = part
            done += len(part)
        return done

    def _inflate(self) -> bytes:
        """Return the next block, empty at the end."""
        while True:
            if self._inflater.eof:
                if self._form != GZIP:
                    return b''
                # Another gzip file may follow, or zeros as padding.
                self._packed = (self._inflater.unused_data or
                                self._raw.read(PACKED_BLOCK)).lstrip(b'\0')
                if not self._packed:
                    return b''
                self._inflater = zlib.decompressobj(GZIP)
            at_end = False
            if not self._packed:
                self._packed = self._raw.read(PACKED_BLOCK)
                at_end = not self._packed
            block = self._inflater.decompress(self._packed, BLOCK)
            self._packed = self._inflater.unconsumed_tail
            if block:
                return block
            if at_end and not self._inflater.eof:
                raise EOFError('the compressed file is cut short')
