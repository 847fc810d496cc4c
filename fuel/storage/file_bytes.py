"""The bytes of files: interfaces, local files, and several files as one."""
from __future__ import annotations

import contextlib
import functools
import io
import itertools
import mmap
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import IO, Any, Protocol, TypeAlias, TypeGuard

import h5py
import numpy
from numpy.typing import NDArray

from fuel.exceptions import DamagedFileError
from fuel.kernels.file_states import FileStates, file_state
from fuel.remote.location import RemotePath, ask_all, located
from fuel.utils.hdf5_errors import with_advice
from fuel.utils.io_counts import io_counts
from fuel.utils.paths import refuse_special_file
from fuel.utils.registry import Registry

#: The starts, or the ends, of byte ranges.
Ends: TypeAlias = NDArray[numpy.int64]
#: The identities of some files.
Version: TypeAlias = tuple[tuple[int, ...], ...]

# Number of places at which the system is asked whether a file is in memory,
# and the least number of bytes between two places.
PROBES = 64
PAGE = 4 << 10
# In a joined file, files begin at multiples of this: remote files have pages.
ALIGNMENT = 1 << 16
_READ = os.O_RDONLY
if sys.platform == 'win32':
    _READ |= os.O_BINARY
# Mapping from the names that HDF5 has for remote files to these files.
_attached: Registry[bytes, RemoteBytes] = Registry()
# Keys: path and identity. Two paths of one file may lead to two files later.
_files: Registry[tuple[str, tuple[int, ...]], RawFile] = Registry()


class Versioned(Protocol):
    """Interface of a file, or of several files as one, read in one state.

    `identity`: equal for two handles of one file in one state.
    `is_remote`: whether the bytes must be fetched from a server.
    """

    path: str
    identity: tuple[int, ...]
    is_remote: bool

    def check(self) -> None:
        """Raise DamagedFileError if the file has changed."""

    def is_current(self) -> bool:
        """Return whether opening the file now would find the same state."""


class ReadsFiles(Protocol):
    """Interface of an object that reads the files of a data set."""

    @property
    def files(self) -> Sequence[Versioned]:
        """The files; always the same objects."""


def version_of(reader: ReadsFiles) -> Version:
    """Return the identities of a reader's files; other versions of the files
    have other identities."""
    return tuple([file.identity for file in reader.files])


def are_current(files: Iterable[Versioned]) -> bool:
    """Return whether each path still leads to the same file, unchanged."""
    known = {id(file): file for file in files}.values()
    remote = [file for file in known if is_remote(file)]
    return all(file.is_current() for file in known if not is_remote(file)
               ) and (not remote or all(
                   ask_all(lambda file: file.is_current(), remote)))


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
        """The file as memory; if remote, only ranges in `hold` are valid."""

    def open(self) -> IO[bytes]:
        """Open the file for reading from its beginning."""

    def read(self, address: int, nbytes: int) -> bytes:
        """Return `nbytes` bytes, or fewer at the end of the file."""

    def read_into(self, buffer: memoryview, address: int) -> int:
        """Read bytes into the caller's memory; return their number."""


class LocalBytes(FileBytes, Protocol):
    """The bytes of a local file, whose pages may be in memory."""

    def is_resident(self, first: int, end: int) -> bool:
        """Return whether a part of the file seems to be in memory."""

    def advise(self, address: int, nbytes: int) -> None:
        """Advise the system to read a part of the file in the background."""


class RemoteBytes(FileBytes, Protocol):
    """The bytes of a remote file, which have to be fetched."""

    def request(self, starts: Ends, stops: Ends, is_urgent: bool = False,
                ) -> Sequence[object]:
        """Request byte ranges, without waiting for them."""

    def call_when_fetched(self, starts: Ends, stops: Ends,
                          task: Callable[[], None]) -> None:
        """Request byte ranges, and call a function when they are fetched."""

    def hold(self, starts: Ends, stops: Ends) -> AbstractContextManager[None]:
        """Fetch byte ranges; return a context in which `memory` has them."""

    def is_settled(self, start: int, stop: int) -> bool:
        """Return whether a range is cached and will not be evicted."""

    def stream(self, name: str) -> io.RawIOBase:
        """Return a stream called `name`, with which HDF5 reads the file."""

    def missing_bytes(self, starts: Ends, stops: Ends) -> int:
        """Return how many bytes of ranges are neither cached nor requested."""

    def keeps(self, nbytes: int) -> bool:
        """Return whether `nbytes` bytes would stay cached, once fetched."""

    def prefetch_budget(self) -> int:
        """Return the number of bytes that may be prefetched."""


def is_remote(file: Versioned) -> TypeGuard[RemoteBytes]:
    """Return whether the bytes of a file must be fetched from a server."""
    return file.is_remote


def is_local(file: FileBytes) -> TypeGuard[LocalBytes]:
    """Return whether the bytes of a file are in files on this machine."""
    return not file.is_remote


def raw_file(node: h5py.Dataset | h5py.File) -> FileBytes:
    """Return the file of a data set; all readers share one object."""
    handle = h5py.h5i.get_file_id(node.id)
    remote = _attached.find(handle.name)
    if remote is not None:
        return remote
    path = os.fsdecode(handle.name)
    return _shared(path, path, int(handle.get_vfd_handle()))


def is_attached(node: h5py.Dataset | h5py.File) -> bool:
    """Return whether HDF5 reads a file through one of Fuel's streams."""
    return _attached.find(h5py.h5i.get_file_id(node.id).name) is not None


def attach(file: RemoteBytes) -> str:
    """Register a file that HDF5 reads through a stream; return the name that
    the stream must have."""
    for number in itertools.count(1):
        name = file.path if number == 1 else f'{file.path} ({number})'
        key = name.encode('ascii', 'replace')
        if _attached.get(key, lambda: file) is file:
            return name
    raise AssertionError


def raw_file_at(path: str) -> FileBytes:
    """Return the file that a path leads to, local or remote."""
    if isinstance(path, RemotePath):
        return path.open()
    place = located(path)
    refuse_special_file(place)
    descriptor = os.open(place, _READ)
    try:
        return _shared(path, place, descriptor)
    finally:
        os.close(descriptor)


def raw_files_at(paths: Sequence[str]) -> list[FileBytes]:
    """Return the files of paths; several remote files are opened at a time."""
    return ask_all(raw_file_at, paths) if RemotePath in map(
        type, paths) else list(map(raw_file_at, paths))


def _shared(path: str, place: str, descriptor: int) -> RawFile:
    """Return the shared object of an open file; `place` leads to the file."""
    key = os.path.abspath(place), settled_identity(descriptor)
    return _files.get(key, RawFile, path, descriptor, *key)


def settled_identity(descriptor: int) -> tuple[int, ...]:
    """Return the identity of an open file while no write is running.

    A write first sets the time of the change, and then stores the bytes. In
    between, the file has the time of bytes that are not in it yet. On Linux, a
    search for data (SEEK_DATA) waits for running writes on most file systems.
    """
    while True:
        identity = identity_of(os.fstat(descriptor))
        if sys.platform == 'linux':
            with contextlib.suppress(OSError):
                # The caller's position in the file is restored afterwards.
                place = os.lseek(descriptor, 0, os.SEEK_CUR)
                try:
                    os.lseek(descriptor, 0, os.SEEK_DATA)
                finally:
                    os.lseek(descriptor, place, os.SEEK_SET)
        if identity_of(os.fstat(descriptor)) == identity:
            return identity


def identity_of(status: os.stat_result) -> tuple[int, ...]:
    """Return a file's identity: device, inode, size, time of last change."""
    return (status.st_dev, status.st_ino, status.st_size,
            status.st_mtime_ns)


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """Add the file's name to the error of a system call."""
    try:
        yield
    except OSError as error:
        raise with_advice(error, path) from error


def _opened_again(descriptor: int) -> int:
    """Return a new descriptor of an open file.

    A duplicate would keep HDF5's lock on the file after HDF5 closes it.
    """
    try:
        return os.open(f'/proc/self/fd/{descriptor}', _READ)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return os.dup(descriptor)


class RawFile:
    """The bytes of an open local file, which should not change.

    An HDF5 file is opened through HDF5's own descriptor, so that it is the
    same file even if another file has its name now. If the file was cut or
    rewritten in place, reads raise an error. If it was replaced (a new file
    was renamed to its path), the old file is still read, until an epoch begins
    and finds that it is not current.

    `descriptor`: descriptor of the file; the caller may close it later.
    `identity`: see :func:`settled_identity`; equal for two handles of one
        file in one state.
    `size`: number of bytes.
    """

    is_remote = False

    def __init__(self, path: str, descriptor: int, absolute_path: str,
                 identity: tuple[int, ...]) -> None:
        with _explained(path):
            copied = _opened_again(descriptor)
        # Not __del__, which would also run if __init__ fails half-way.
        weakref.finalize(self, os.close, copied)
        self._memory: mmap.mmap | None = None
        self.path = path
        self._absolute_path = absolute_path
        self._descriptor = copied
        self.identity = identity
        self.size = identity[2]
        # On Windows, `file_state` returns times in whole seconds. The
        # descriptor never leads to another file.
        self._state = (file_state(copied) if os.name == 'nt'
                       else (self.size, identity[3]))

    def check(self) -> None:
        """Raise DamagedFileError if the file has changed since it was opened;
        called after bytes were read, and before they are returned."""
        state = file_state(self._descriptor)
        if state == self._state:
            return
        if state[0] != self.size:
            raise DamagedFileError(
                f'{self.path} had {self.size} bytes when it was opened and '
                f'has {state[0]} now: it was cut or overwritten while in '
                f'use; restore it and make the data set again')
        raise DamagedFileError(
            f'{self.path} was written to while it was in use, so old and '
            f'new rows would be mixed: begin another epoch, or make the data '
            f'set again (to replace a file in use, rename the new one onto '
            f'it)')

    def is_current(self) -> bool:
        """Return whether the path leads to this file in this state."""
        try:
            return identity_of(os.stat(
                self._absolute_path)) == self.identity
        except OSError:
            # The file was removed: open readers can still read it.
            return True

    @property
    def memory(self) -> mmap.mmap:
        """The file as read-only memory."""
        # Not functools.cached_property: up to Python 3.11 it has a lock. If
        # another thread holds it during a fork, the child waits for ever.
        if self._memory is None:
            with _explained(self.path):
                self._memory = mmap.mmap(self._descriptor, self.size,
                                         access=mmap.ACCESS_READ)
        return self._memory

    def open(self) -> IO[bytes]:
        """Open the file again, for reading from its beginning."""
        stream = open(self._absolute_path, 'rb')  # noqa: SIM115 (the caller's)
        if identity_of(os.fstat(stream.fileno())) != self.identity:
            stream.close()
            raise DamagedFileError(
                f'{self.path} was changed while it was being opened: open '
                f'the data set again')
        return stream

    def read(self, address: int, nbytes: int) -> bytes:
        """Return bytes of the file."""
        data = os.pread(self._descriptor, nbytes, address)
        while 0 < len(data) < nbytes:
            more = os.pread(self._descriptor, nbytes - len(data),
                            address + len(data))
            if not more:
                break
            data += more
        io_counts.count(bytes_read=len(data))
        return data

    def read_into(self, buffer: memoryview, address: int) -> int:
        """Read bytes into the caller's memory; return their number."""
        if hasattr(os, 'preadv'):
            total = os.preadv(self._descriptor, [buffer], address)
            while 0 < total < len(buffer):
                count = os.preadv(
                    self._descriptor, [buffer[total:]], address + total)
                if not count:
                    break
                total += count
            io_counts.count(bytes_read=total)
            return total
        data = self.read(address, len(buffer))
        buffer[:len(data)] = data
        return len(data)

    @property
    def state(self) -> tuple[int, int, int]:
        """The descriptor of the file, and the file's state when it was opened.
        Kernels use them to check the file as :meth:`check` does."""
        return (self._descriptor, *self._state)

    def is_resident(self, first: int, end: int,
                    probes: int = PROBES) -> bool:
        """Return whether a part of the file seems to be in memory; True if
        the system does not report it."""
        if not hasattr(os, 'RWF_NOWAIT') or first >= end:
            return True
        byte = [bytearray(1)]
        step = max(PAGE, (end - first) // probes)
        try:
            for address in (*range(first, end, step), end - 1):
                os.preadv(self._descriptor, byte, address, os.RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError:
            # Some file systems do not support this request.
            return True
        return True

    def advise(self, address: int, nbytes: int) -> None:
        """Advise the system to read a part of the file in the background."""
        if hasattr(os, 'posix_fadvise'):
            os.posix_fadvise(self._descriptor, address, nbytes,
                             os.POSIX_FADV_WILLNEED)


class JoinedFile:
    """Several files as one.

    Each file begins at its address in `starts`. Addresses between two files
    are never read.

    `files`: one or more files.
    `starts`: shape (files,), dtype int64; the address of the first byte of
        each file.
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
        """Raise NotImplementedError: each file has its own memory."""
        raise NotImplementedError

    def at(self, address: int) -> tuple[FileBytes, int]:
        """Return the file at an address, and the address in this file."""
        number = int(self.starts.searchsorted(address, 'right')) - 1
        return self.files[number], address - int(self.starts[number])

    def check(self) -> None:
        """Raise an error if one of the files has changed."""
        for file in self.files:
            file.check()

    def is_current(self) -> bool:
        """Return whether each path still leads to the same file,
        unchanged."""
        return are_current(self.files)

    def open(self) -> Any:
        """Raise NotImplementedError: several files have no stream."""
        raise NotImplementedError

    def read(self, address: int, nbytes: int) -> bytes:
        """Return bytes of the files; addresses between files are skipped."""
        pieces = []
        for file, start, stop in self._pieces(address, address + nbytes):
            pieces.append(file.read(start, stop - start))
        return b''.join(pieces)

    def read_into(self, buffer: memoryview, address: int) -> int:
        """Read bytes of the files into `buffer`; return their number."""
        total = 0
        for file, start, stop in self._pieces(address, address + len(buffer)):
            total += file.read_into(
                buffer[total:total + stop - start], start)
        return total

    def is_resident(self, first: int, end: int) -> bool:
        """See :meth:`RawFile.is_resident`."""
        pieces = list(self._pieces(first, end))
        probes = max(1, PROBES // len(self.files))
        # Of many files, only some are checked. Checking all of them would take
        # as long as reading thousands of rows.
        step = max(1, -(-len(pieces) // PROBES))
        return all(_local(file).is_resident(low, high, probes)
                   for file, low, high in pieces[::step])

    def advise(self, address: int, nbytes: int) -> None:
        """See :meth:`RawFile.advise`."""
        for file, start, stop in self._pieces(address, address + nbytes):
            _local(file).advise(start, stop - start)

    def _pieces(self, start: int, stop: int,
                ) -> Iterator[tuple[FileBytes, int, int]]:
        """Yield each file in a range, and the range's start and stop in it."""
        first = max(0, int(self.starts.searchsorted(start, 'right')) - 1)
        last = int(self.starts.searchsorted(stop, 'left'))
        for number in range(first, last):
            file, origin = self.files[number], int(self.starts[number])
            low, high = max(start - origin, 0), min(stop - origin, file.size)
            if low < high:
                yield file, low, high

    def ranges(self, starts: Ends, stops: Ends,
               ) -> Iterator[tuple[FileBytes, Ends, Ends]]:
        """Yield each file in byte ranges, and their starts and stops in it."""
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
        """Yield each remote file in byte ranges; see :meth:`ranges`."""
        for file, low, high in self.ranges(starts, stops):
            if is_remote(file):
                yield file, low, high

    def request(self, starts: Ends, stops: Ends, is_urgent: bool = False,
                ) -> Sequence[object]:
        """See :class:`RemoteBytes`."""
        return [one for file, low, high in self._ranges(starts, stops)
                for one in file.request(low, high, is_urgent)]

    def call_when_fetched(self, starts: Ends, stops: Ends,
                          task: Callable[[], None]) -> None:
        """See :class:`RemoteBytes`."""
        for file, low, high in self._ranges(starts, stops):
            task = functools.partial(file.call_when_fetched, low, high, task)
        task()

    @contextlib.contextmanager
    def hold(self, starts: Ends, stops: Ends) -> Iterator[None]:
        """See :class:`RemoteBytes`."""
        # Request all of them before waiting for the first.
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
        """Raise NotImplementedError: several files have no stream."""
        raise NotImplementedError

    def _remote(self) -> list[RemoteBytes]:
        return [file for file in self.files if is_remote(file)]


def join_files(files: Sequence[FileBytes]) -> FileBytes:
    """Return several files as one; return a single file unchanged."""
    return files[0] if len(files) == 1 else JoinedFile(files)


def files_of(file: FileBytes) -> tuple[FileBytes, ...]:
    """Return the files of a joined file; for another file, the file itself."""
    return file.files if isinstance(file, JoinedFile) else (file,)


def starts_of(file: FileBytes) -> NDArray[numpy.int64]:
    """Return the address of the first byte of each file in a joined file."""
    return file.starts if isinstance(file, JoinedFile) else numpy.zeros(
        1, numpy.int64)


def files_at(file: FileBytes, addresses: Ends) -> list[FileBytes]:
    """Return the distinct files at addresses; a negative number, such as
    `MISSING`, counts as an address in the first file."""
    if not isinstance(file, JoinedFile):
        return [file]
    return list(dict.fromkeys(
        file.at(max(address, 0))[0] for address in addresses.tolist()))


def split_ranges(file: FileBytes, starts: Ends, stops: Ends,
                 ) -> list[tuple[FileBytes, Ends, Ends]]:
    """Return each file in byte ranges, and their starts and stops in it."""
    return list(file.ranges(starts, stops)) if isinstance(
        file, JoinedFile) else [(file, starts, stops)]


def states_of(files: Sequence[Versioned]) -> FileStates:
    """Return the states of files for kernels; None for a remote file."""
    return FileStates([file.state if isinstance(file, RawFile) else None
                       for file in files])


def _local(file: FileBytes) -> RawFile:
    assert isinstance(file, RawFile)
    return file
