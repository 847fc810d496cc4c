"""What readers ask of a file, wherever it is."""
from __future__ import annotations

import io
import mmap
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import IO, Protocol, TypeAlias, TypeGuard

import numpy
from numpy.typing import NDArray

from fuel.exceptions import DamagedFileError
from fuel.remote.location import ask_all

#: Begin, or end, of byte ranges.
Ends: TypeAlias = NDArray[numpy.int64]
#: The identities of some files.
Version: TypeAlias = tuple[tuple[int, ...], ...]


class Versioned(Protocol):
    """A file, or several, of which one state is read.

    `identity`: equal for two handles of one file in one state.
    `is_remote`: whether its bytes have to be fetched.
    """

    path: str
    identity: tuple[int, ...]
    is_remote: bool

    def check(self) -> None:
        """Raise DamagedFileError if what is read is not what it was."""

    def is_current(self) -> bool:
        """Return whether whoever opens it now finds the same state."""


class ReadsFiles(Protocol):
    """What a data set reads files with."""

    @property
    def files(self) -> Sequence[Versioned]:
        """The files; they stay the same ones."""


def version_of(reader: ReadsFiles) -> Version:
    """Return what differs between two versions of the files of a reader."""
    return tuple([file.identity for file in reader.files])


def are_current(files: Iterable[Versioned]) -> bool:
    """Return whether all files are what is found where they were opened."""
    known = {id(file): file for file in files}.values()
    remote = [file for file in known if is_remote(file)]
    return all(file.is_current() for file in known if not is_remote(file)
               ) and all(ask_all(lambda file: file.is_current(), remote))


def other_version(path: str) -> DamagedFileError:
    """Return the error that an epoch has read another version of a file."""
    return DamagedFileError(
        f'{path} was changed or replaced while an epoch read it, so old and '
        f'new rows would be mixed: begin another epoch, which reads the new '
        f'one')


class FileBytes(Versioned, Protocol):
    """The bytes of a file."""

    size: int

    @property
    def memory(self) -> mmap.mmap:
        """The file as memory; of a remote one, what is held of it."""

    def open(self) -> IO[bytes]:
        """Open the file for reading from its beginning."""

    def read(self, address: int, nbytes: int) -> bytes:
        """Return bytes, fewer than `nbytes` at the end of the file."""

    def read_into(self, buffer: memoryview, address: int) -> int:
        """Read bytes into memory of the caller's; return how many."""


class LocalBytes(FileBytes, Protocol):
    """The bytes of a local file, whose pages may be in memory."""

    def is_resident(self, first: int, end: int) -> bool:
        """Return whether a part of the file seems to be in memory."""

    def advise(self, address: int, nbytes: int) -> None:
        """Ask the system to read a part of the file in the background."""


class RemoteBytes(FileBytes, Protocol):
    """The bytes of a remote file, which have to be fetched."""

    def request(self, starts: Ends, stops: Ends, is_urgent: bool = False,
                ) -> Sequence[object]:
        """Have byte ranges fetched, without waiting for them."""

    def when_here(self, starts: Ends, stops: Ends,
                  task: Callable[[], None]) -> None:
        """Have byte ranges fetched, and then call a function."""

    def hold(self, starts: Ends, stops: Ends) -> AbstractContextManager[None]:
        """Fetch byte ranges, and keep them in `memory` for a while."""

    def is_settled(self, start: int, stop: int) -> bool:
        """Return whether a range is here and stays."""

    def stream(self, name: str) -> io.RawIOBase:
        """Return a stream under a name, for HDF5."""

    def missing_bytes(self, starts: Ends, stops: Ends) -> int:
        """Return how many bytes are not here and not under way."""

    def keeps(self, nbytes: int) -> bool:
        """Return whether so many bytes would stay here, once fetched."""

    def prefetch_budget(self) -> int:
        """Return how many bytes may be fetched before they are needed."""


def is_remote(file: Versioned) -> TypeGuard[RemoteBytes]:
    """Return whether the bytes of a file have to be fetched."""
    return file.is_remote


def is_local(file: FileBytes) -> TypeGuard[LocalBytes]:
    """Return whether the bytes of a file lie in files of this machine."""
    return not file.is_remote
