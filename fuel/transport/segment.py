"""Segments of shared memory that have no name."""
from __future__ import annotations

import errno
import mmap
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

# Both processes map all pages of a segment at once, not one by one.
_FLAGS = 0 if sys.platform == 'win32' else (
    mmap.MAP_SHARED | getattr(mmap, 'MAP_POPULATE', 0))
#: True if the system has anonymous files in memory (memfd).
HAS_MEMFD = hasattr(os, 'memfd_create')

_NAME = 'fuel-segment'


class DescriptorOwner:
    """Owns a file descriptor, and closes it when the object is freed.

    `descriptor`: the open descriptor; None if there is none.
    """

    descriptor: int | None = None

    def close_descriptor(self) -> None:
        """Close the descriptor; mapped memory remains valid."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def __del__(self) -> None:
        # At the interpreter's exit, names of the module, such as `suppress`,
        # may not exist any more.
        try:  # noqa: SIM105
            self.close_descriptor()
        except Exception:  # noqa: BLE001, S110
            pass


class Segment(DescriptorOwner):
    """Memory that several processes map.

    The memory needs no cleaning up: the system frees it when the last process
    that maps it ends, even if that process is killed.

    `descriptor`: open file descriptor of the memory, which the segment closes.
    `size`: size in bytes.
    `memory`: the mapped memory. It is freed with the last array over it, and
        never closed explicitly.
    """

    def __init__(self, descriptor: int, size: int) -> None:
        self.descriptor = descriptor
        self.size = size
        try:
            self.memory = mmap.mmap(descriptor, size, flags=_FLAGS)
        except BaseException:
            self.close_descriptor()
            raise

    @classmethod
    def create(cls, size: int) -> Segment:
        """Return a new segment, filled with zeros."""
        with _explained(size):
            descriptor = _create_descriptor()
            try:
                os.ftruncate(descriptor, size)
                _seal(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            return cls(descriptor, size)


# Maps the number of an error to its cause, for the text of the error.
_LIMITS = {
    errno.EFBIG: 'the limit of the size of files (ulimit -f) applies to this '
                 'memory too',
    errno.EMFILE: 'as many files are open as may be (ulimit -n)',
    errno.ENOMEM: 'memory is short, or limited (ulimit -v)',
    errno.ENOSPC: 'the folder of temporary files is full'}


@contextmanager
def _explained(size: int) -> Iterator[None]:
    """Add the size and the cause to an error about memory that cannot be
    shared."""
    try:
        yield
    except OSError as error:
        reason = _LIMITS.get(error.errno or 0, error.strerror)
        raise OSError(
            error.errno, f'{size} bytes of memory that processes share cannot '
            f'be had: {reason}') from error


def _create_descriptor() -> int:
    if HAS_MEMFD:
        return os.memfd_create(
            _NAME, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    # Without anonymous memory: a file that no other process can open.
    descriptor, path = tempfile.mkstemp(prefix=_NAME)
    os.unlink(path)
    return descriptor


def write_segment(parts: Sequence[tuple[int, memoryview]],
                  size: int) -> int:
    """Write bytes to new memory, seal it against changes, and return its
    descriptor.

    `parts`: offset and bytes of each part.
    """
    with _explained(size):
        descriptor = _create_descriptor()
        try:
            os.ftruncate(descriptor, size)
            for offset, content in parts:
                place = 0
                # Systems write at most 2 GiB in one call.
                while place < len(content):
                    place += os.pwrite(
                        descriptor, content[place:], offset + place)
            _seal(descriptor, content=True)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


def map_privately(descriptor: int, size: int) -> mmap.mmap:
    """Map memory copy-on-write: only this process sees its changes."""
    return mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)


def _seal(descriptor: int, content: bool = False) -> None:
    """Seal the size, and with `content` the content, against changes."""
    try:
        import fcntl
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        if content:
            seals |= fcntl.F_SEAL_WRITE
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except (AttributeError, ImportError, OSError):
        # Only some systems have seals, and only for anonymous memory.
        return


def is_sealed(descriptor: int) -> bool:
    """Return whether a segment is sealed against shrinking."""
    try:
        import fcntl
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
        return bool(seals & fcntl.F_SEAL_SHRINK)
    except (AttributeError, ImportError, OSError):
        return False
