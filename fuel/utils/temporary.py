"""Temporary files and folders whose owner may be killed.

The owner holds a lock on what it made, which the system releases when the
process ends in any way. Unlocked ones are left over, and may be removed.
"""
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

try:
    import fcntl
except ImportError:  # Windows: nothing is locked, and nothing removed
    fcntl = None  # type: ignore[assignment, unused-ignore]


@contextmanager
def claimed(create: Callable[[], str]) -> Iterator[str]:
    """Make a new file or folder, and lock it while the context is entered.

    `create` makes it, under a name that was never used, and returns its path.
    """
    descriptor: int | None = None
    try:
        while True:
            path = create()
            if fcntl is None:
                break  # type: ignore[unreachable, unused-ignore]
            try:
                # A file whose permissions forbid reading can be written.
                descriptor = os.open(
                    path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR)
                # Shared: the finished file may be read at once.
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            except FileNotFoundError:
                continue
            except OSError:
                break  # a file system without locks
            # Somebody may have taken it for left over, just before.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                    break
            os.close(descriptor)
            descriptor = None
        yield path
    finally:
        if descriptor is not None:
            os.close(descriptor)


def remove_stale(folder: str, pattern: str) -> None:
    """Remove files and folders of this user whose names match a pattern as
    a whole and whose owner has ended."""
    if fcntl is None:
        return  # type: ignore[unreachable, unused-ignore]
    with suppress(OSError):
        for name in os.listdir(folder):
            if re.fullmatch(pattern, name):
                with suppress(OSError):
                    _remove_unclaimed(os.path.join(folder, name))


def _remove_unclaimed(path: str) -> None:
    """Remove one, unless it is a link, another user's or locked."""
    # Not to wait for the other end of a pipe of that name.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The name may have gone to another since it was opened.
        if not os.path.samestat(os.fstat(descriptor), os.lstat(path)):
            return
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.remove(path)
    finally:
        os.close(descriptor)


@contextmanager
def scratch_folder(prefix: str, parent: str | None = None) -> Iterator[str]:
    """Make a folder for temporary files, in that of the system by default,
    and remove it at the end; and those of the same prefix whose owner was
    killed."""
    parent = parent or tempfile.gettempdir()
    # How tempfile makes names.
    remove_stale(parent, re.escape(prefix) + '[a-z0-9_]{8}')
    with claimed(lambda: tempfile.mkdtemp(prefix=prefix, dir=parent)) as path:
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)
