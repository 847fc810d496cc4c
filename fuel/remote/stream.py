"""A remote file as a stream."""
from __future__ import annotations

import io
import os
from typing import Any, Protocol


class Source(Protocol):
    """What a stream reads from."""

    @property
    def size(self) -> int:
        """Bytes (int)."""
        ...

    def read_into(self, buffer: memoryview, address: int) -> int:
        """Read bytes into memory of the caller's; return how many."""
        ...

    def read_ahead(self, address: int) -> None:
        """Have what follows a position fetched, for who reads in order."""
        ...


class RemoteStream(io.RawIOBase):
    """Reads a remote file from some position on.

    HDF5 takes its ``repr`` for the file's name.

    `owner`: kept alive.
    """

    def __init__(self, file: Source, name: str, owner: object = None) -> None:
        super().__init__()
        self._file = file
        self._owner = owner
        self.name = name
        self._position = 0

    def __repr__(self) -> str:
        return self.name

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def seekable(self) -> bool:
        """Tell that it has positions."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position, and return it."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position,
                os.SEEK_END: self._file.size}[whence]
        if base + offset < 0:
            raise ValueError(f'a position must not be negative, got '
                             f'{base + offset}')
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return how many bytes."""
        self._file.read_ahead(self._position)
        with memoryview(buffer) as view:
            count = self._file.read_into(view.cast('B'), self._position)
        self._position += count
        return count
