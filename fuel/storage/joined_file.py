"""Several files as one, which readers address by one number."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.kernels.file_states import FileStates
from fuel.storage.file_bytes import (
    Ends, FileBytes, RemoteBytes, Versioned, are_current, is_remote)
from fuel.storage.raw_file import PROBES, RawFile

# Where a file may begin: at a page of its own, as remote ones are fetched.
ALIGNMENT = 1 << 16


class JoinedFile:
    """Several files as one: each begins where `starts` says, and what lies
    between two of them is never read.

    `files`: at least one.
    `starts`: shape (files,), dtype int64; the address of each one's first
        byte.
    """

    def __init__(self, files: Sequence[FileBytes]) -> None:
        self.files = tuple(files)
        sizes = numpy.array([file.size for file in files], numpy.int64)
        room = -(-sizes // ALIGNMENT) * ALIGNMENT
        self.starts: Ends = numpy.cumsum(room) - room
        self.path = self.files[0].path
        self.size = int(self.starts[-1] + sizes[-1])
        self.identity: Any = tuple([file.identity for file in files])
        self.is_remote = any(file.is_remote for file in files)

    @property
    def memory(self) -> Any:
        """There is none: each file has its own."""
        raise NotImplementedError

    def at(self, address: int) -> tuple[FileBytes, int]:
        """Return the file that an address lies in, and the place there."""
        number = int(self.starts.searchsorted(address, 'right')) - 1
        return self.files[number], address - int(self.starts[number])

    def check(self) -> None:
        """Raise an error if one of the files is not what it was."""
        for file in self.files:
            file.check()

    def is_current(self) -> bool:
        """Return whether all files are what is found at their paths."""
        return are_current(self.files)

    def open(self) -> Any:
        """There is no stream of several files."""
        raise NotImplementedError

    def read(self, address: int, nbytes: int) -> bytes:
        """Return bytes of one file; nothing of what lies between two."""
        pieces = []
        for file, start, stop in self._pieces(address, address + nbytes):
            pieces.append(file.read(start, stop - start))
        return b''.join(pieces)

    def read_into(self, buffer: memoryview, address: int) -> int:
        """Read bytes, of whatever files they are; return how many."""
        total = 0
        for file, start, stop in self._pieces(address, address + len(buffer)):
            total += file.read_into(
                buffer[total:total + stop - start], start)
        return total

    def is_resident(self, first: int, end: int) -> bool:
        """See :meth:`RawFile.is_resident`."""
        pieces = list(self._pieces(first, end))
        probes = max(1, PROBES // len(self.files))
        # Of more files than probes some are asked: to ask all of them would
        # take as long as to read thousands of rows.
        step = max(1, -(-len(pieces) // PROBES))
        return all(_local(file).is_resident(low, high, probes)
                   for file, low, high in pieces[::step])

    def advise(self, address: int, nbytes: int) -> None:
        """See :meth:`RawFile.advise`."""
        for file, start, stop in self._pieces(address, address + nbytes):
            _local(file).advise(start, stop - start)

    def _pieces(self, start: int, stop: int,
                ) -> Iterator[tuple[FileBytes, int, int]]:
        """List the parts of the files that a range of addresses covers."""
        first = max(0, int(self.starts.searchsorted(start, 'right')) - 1)
        last = int(self.starts.searchsorted(stop, 'left'))
        for number in range(first, last):
            file, origin = self.files[number], int(self.starts[number])
            low, high = max(start - origin, 0), min(stop - origin, file.size)
            if low < high:
                yield file, low, high

    def ranges(self, starts: Ends, stops: Ends,
               ) -> Iterator[tuple[FileBytes, Ends, Ends]]:
        """List the files that byte ranges lie in, with these."""
        first = self.starts.searchsorted(starts, 'right') - 1
        last = self.starts.searchsorted(stops, 'left') - 1
        for number in numpy.unique(numpy.append(first, last)).tolist():
            file, origin = self.files[number], int(self.starts[number])
            low = numpy.maximum(starts - origin, 0)
            high = numpy.minimum(stops - origin, file.size)
            here = low < high
            if here.any():
                yield file, low[here], high[here]

    def _ranges(self, starts: Ends, stops: Ends,
                ) -> Iterator[tuple[RemoteBytes, Ends, Ends]]:
        """List the remote files that byte ranges lie in, with these."""
        for file, low, high in self.ranges(starts, stops):
            if is_remote(file):
                yield file, low, high

    def request(self, starts: Ends, stops: Ends, is_urgent: bool = False,
                ) -> Sequence[object]:
        """See :class:`RemoteBytes`."""
        return [one for file, low, high in self._ranges(starts, stops)
                for one in file.request(low, high, is_urgent)]

    def when_here(self, starts: Ends, stops: Ends,
                  task: Callable[[], None]) -> None:
        """See :class:`RemoteBytes`."""
        for file, low, high in self._ranges(starts, stops):
            task = _Fetched(file, low, high, task)
        task()

    @contextlib.contextmanager
    def hold(self, starts: Ends, stops: Ends) -> Iterator[None]:
        """See :class:`RemoteBytes`."""
        # All of them, before the first is waited for.
        self.request(starts, stops)
        with contextlib.ExitStack() as held:
            for file, low, high in self._ranges(starts, stops):
                held.enter_context(file.hold(low, high))
            yield

    def is_settled(self, start: int, stop: int) -> bool:
        """See :class:`RemoteBytes`."""
        return all(file.is_settled(low, high)
                   for file, low, high in self._pieces(start, stop)
                   if is_remote(file))

    def missing_bytes(self, starts: Ends, stops: Ends) -> int:
        """See :class:`RemoteBytes`."""
        return sum([file.missing_bytes(low, high)
                    for file, low, high in self._ranges(starts, stops)])

    def keeps(self, nbytes: int) -> bool:
        """See :class:`RemoteBytes`."""
        return all(file.keeps(nbytes) for file in self._remote())

    def prefetch_budget(self) -> int:
        """See :class:`RemoteBytes`."""
        return min(file.prefetch_budget() for file in self._remote())

    def stream(self, name: str) -> Any:
        """There is no stream of several files."""
        raise NotImplementedError

    def _remote(self) -> list[RemoteBytes]:
        return [file for file in self.files if is_remote(file)]


class _Fetched:
    """Calls a function when byte ranges of a file are here."""

    def __init__(self, file: RemoteBytes, starts: Ends, stops: Ends,
                 task: Callable[[], None]) -> None:
        self._file, self._ranges, self._task = file, (starts, stops), task

    def __call__(self) -> None:
        self._file.when_here(*self._ranges, self._task)


def join_files(files: Sequence[FileBytes]) -> FileBytes:
    """Return some files as one; one alone as it is."""
    return files[0] if len(files) == 1 else JoinedFile(files)


def files_of(file: FileBytes) -> tuple[FileBytes, ...]:
    """Return the files that one consists of."""
    return file.files if isinstance(file, JoinedFile) else (file,)


def starts_of(file: FileBytes) -> NDArray[numpy.int64]:
    """Return the address of the first byte of each file of one."""
    return file.starts if isinstance(file, JoinedFile) else numpy.zeros(
        1, numpy.int64)


def files_at(file: FileBytes, addresses: Ends) -> list[FileBytes]:
    """Return which of the files of one addresses lie in, each once; what is
    no address counts for the first."""
    if not isinstance(file, JoinedFile):
        return [file]
    return list(dict.fromkeys(
        file.at(max(address, 0))[0] for address in addresses.tolist()))


def split_ranges(file: FileBytes, starts: Ends, stops: Ends,
                 ) -> list[tuple[FileBytes, Ends, Ends]]:
    """Return which of the files of one byte ranges lie in, with these."""
    return list(file.ranges(starts, stops)) if isinstance(
        file, JoinedFile) else [(file, starts, stops)]


def states_of(files: Sequence[Versioned]) -> FileStates:
    """Return the states of files, those of remote ones being none."""
    return FileStates([file.state if isinstance(file, RawFile) else None
                       for file in files])


def _local(file: FileBytes) -> RawFile:
    assert isinstance(file, RawFile)
    return file
