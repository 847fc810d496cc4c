"""A file that HDF5 has open, read beside it."""
from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import sys
import weakref
from collections.abc import Iterator
from typing import IO

import h5py

from fuel.exceptions import DamagedFileError
from fuel.kernels.file_states import file_state
from fuel.remote.location import RemotePath, located
from fuel.storage.file_bytes import FileBytes, RemoteBytes
from fuel.utils.hdf5_errors import with_advice
from fuel.utils.io_counts import io_counts
from fuel.utils.paths import refuse_special_file
from fuel.utils.registry import Registry

# Places at which a file is probed for being in memory, and bytes between two
# of them at least.
PROBES = 64
PAGE = 4 << 10
_READ = os.O_RDONLY
if sys.platform == 'win32':
    _READ |= os.O_BINARY
# Remote files, under the names that HDF5 knows them by.
_attached: Registry[bytes, RemoteBytes] = Registry()
# Under path and identity: two names of a file may lead to two files later.
_files: Registry[tuple[str, tuple[int, ...]], RawFile] = Registry()


def raw_file(node: h5py.Dataset | h5py.File) -> FileBytes:
    """Return the file of a data set, one object for all who read it."""
    handle = h5py.h5i.get_file_id(node.id)
    remote = _attached.find(handle.name)
    if remote is not None:
        return remote
    return _shared(os.fsdecode(handle.name), int(handle.get_vfd_handle()))


def is_attached(node: h5py.Dataset | h5py.File) -> bool:
    """Return whether HDF5 reads a file through a stream that is known."""
    return _attached.find(h5py.h5i.get_file_id(node.id).name) is not None


def attach(file: RemoteBytes) -> str:
    """Let a file be found that HDF5 reads through a stream; return the name
    that the stream must have."""
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
        return _shared(path, descriptor)
    finally:
        os.close(descriptor)


def _shared(path: str, descriptor: int) -> RawFile:
    key = os.path.abspath(located(path)), settled_identity(descriptor)
    return _files.get(key, RawFile, path, descriptor, key[1])


def settled_identity(descriptor: int) -> tuple[int, ...]:
    """Return the identity of an open file in which no write is under way.

    A call that writes sets the time of change first and the bytes then, so
    the time alone would be that of bytes to come. On Linux a search for data
    waits for such a call, on most file systems.
    """
    while True:
        identity = identity_of(os.fstat(descriptor))
        if sys.platform == 'linux':
            with contextlib.suppress(OSError):
                # Not the end of the file: the place is the caller's.
                place = os.lseek(descriptor, 0, os.SEEK_CUR)
                try:
                    os.lseek(descriptor, 0, os.SEEK_DATA)
                finally:
                    os.lseek(descriptor, place, os.SEEK_SET)
        if identity_of(os.fstat(descriptor)) == identity:
            return identity


def identity_of(status: os.stat_result) -> tuple[int, ...]:
    """Return what tells a file in one state from all others."""
    return (status.st_dev, status.st_ino, status.st_size,
            status.st_mtime_ns)


@contextlib.contextmanager
def _explained(path: str) -> Iterator[None]:
    """Say of a failed system call which file it was for."""
    try:
        yield
    except OSError as error:
        raise with_advice(error, path) from error


def _opened_again(descriptor: int) -> int:
    """Return another descriptor of an open file.

    A copy would keep the lock that HDF5 has on the file when HDF5 closes it.
    """
    try:
        return os.open(f'/proc/self/fd/{descriptor}', _READ)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return os.dup(descriptor)


class RawFile:
    """The bytes of an open file, which should not change.

    An HDF5 file is found through HDF5's own descriptor, so it is the same
    one even if another now has its name. Reads after it was cut or rewritten
    in place raise an error. A file that was replaced (a new one was renamed
    onto it) goes on being read as it was, until an epoch begins and finds that
    it is not current.

    `descriptor`: copied; the caller's may be closed.
    `identity`: see :func:`settled_identity`; equal for two handles of one
        file in one state.
    `size`: bytes.
    """

    is_remote = False

    def __init__(self, path: str, descriptor: int,
                 identity: tuple[int, ...]) -> None:
        with _explained(path):
            copied = _opened_again(descriptor)
        # Not __del__, which would run when __init__ fails half-way too.
        weakref.finalize(self, os.close, copied)
        self._memory: mmap.mmap | None = None
        self.path = path
        self._absolute_path = os.path.abspath(located(path))
        self._descriptor = copied
        self.identity = identity
        self.size = identity[2]
        # On Windows in whole seconds, and never of another file.
        self._state = (file_state(copied) if os.name == 'nt'
                       else (self.size, identity[3]))

    def check(self) -> None:
        """Raise an error if the file is not what it was when opened: asked
        after bytes were read and before they are returned."""
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
            # Removed: those who have it open read on.
            return True

    @property
    def memory(self) -> mmap.mmap:
        """The file as read-only memory."""
        # Not functools.cached_property: up to Python 3.11 it has a lock, which
        # a child would wait for that was made while another thread held it.
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
        """Read bytes of the file into the caller's memory; return how many."""
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
        """What kernels need to check the file as :meth:`check` does: its
        descriptor, and what they said of it."""
        return (self._descriptor, *self._state)

    def is_resident(self, first: int, end: int,
                    probes: int = PROBES) -> bool:
        """Return whether a part of the file seems to be in memory; True
        where the system does not report it."""
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
            # Some file systems do not know the question.
            return True
        return True

    def advise(self, address: int, nbytes: int) -> None:
        """Ask the system to read a part of the file in the background."""
        if hasattr(os, 'posix_fadvise'):
            os.posix_fadvise(self._descriptor, address, nbytes,
                             os.POSIX_FADV_WILLNEED)
