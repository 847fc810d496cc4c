"""Room on the disk for a file that is converted."""
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import h5py

from fuel.converters._failsafe_file import Sink

__all__ = ['check_room', 'promise', 'writing']


class _Output:
    """The file that is being written.

    Parameters
    ----------
    path : str
        Where it is written.
    target : str
        Where it is to appear.

    """

    def __init__(self, path: str, target: str) -> None:
        self.path = path
        self.target = target
        self.promised = 0
        self.sink = Sink(path)

    def check(self) -> None:
        error = self.sink.error
        if isinstance(error, OSError):
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self.full(self.sink.end) from error
            raise OSError(error.errno, f'cannot be written '
                          f'({error.strerror})', self.target) from error
        if error is not None:
            raise error

    def promise(self, size: int) -> None:
        self.promised += size
        if self.promised > self.room():
            raise self.full(self.promised)

    def room(self) -> int:
        """Return how long the file may get."""
        own = getattr(os.stat(self.path), 'st_blocks', 0) * 512
        return own + shutil.disk_usage(os.path.dirname(self.path)).free

    def full(self, size: int) -> OSError:
        size = max(size, self.promised)
        disk = os.path.dirname(self.path)
        while not os.path.ismount(disk):
            disk = os.path.dirname(disk)
        return OSError(
            errno.ENOSPC, f'no room on the disk of {disk!r}: the file needs '
            f'at least {size} bytes, and there are {self.room()} for it; '
            'make room, write it to another disk, or compress it',
            self.target)


_output: ContextVar[_Output | None] = ContextVar('output', default=None)


@contextmanager
def writing(path: str, target: str) -> Iterator[h5py.File]:
    """Open an HDF5 file for writing that survives a full disk.

    Parameters
    ----------
    path : str
        An existing file, which is emptied.
    target : str
        What to call the file in errors.

    Yields
    ------
    h5py.File
        The file.

    Raises
    ------
    OSError
        If anything could not be written: when the context is left, or at
        the next `check_room` in it.
    """
    output = _Output(os.path.realpath(path), target)
    token = _output.set(output)
    try:
        # Rows that begin at a cache line are the fastest to read.
        with h5py.File(output.sink, mode='w', alignment_threshold=4096,
                       alignment_interval=64) as h5file:
            yield h5file
    except Exception:
        output.check()  # the cause of whatever HDF5 then met
        raise
    finally:
        _output.reset(token)
        output.sink.close()
    output.check()


def check_room() -> None:
    """Raise an error if what was written last did not fit on the disk."""
    output = _output.get()
    if output is not None:
        output.check()


def promise(size: int) -> None:
    """Raise an error if `size` bytes more than promised before cannot fit on
    the disk."""
    output = _output.get()
    if output is not None:
        output.promise(size)
