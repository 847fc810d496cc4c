"""A file that the operating system locks for one owner.

This module calls ``flock`` itself, since the packages for file locks have
defects. With some, a forked child can release its parent's lock. With others,
a fork fails in a program in which several threads fork at the same time.
"""
from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from fuel.utils.forks import Step, each_at_fork

logger = logging.getLogger(__name__)

# Seconds between two attempts to take a lock.
INTERVAL = 0.05
# Flag that makes it an error to open a symbolic link; 0 if the system has no
# such flag.
NO_FOLLOW = 0 if sys.platform == 'win32' else os.O_NOFOLLOW


class LockFile:
    """A file in an existing folder that one thread of one process locks.

    The system releases the lock when the process ends in any way. A forked
    child does not have the lock. The file is not removed. A symbolic link
    raises an error.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor: int | None = None
        _all.add(self)

    def try_acquire(self) -> bool:
        """Lock the file if it is not locked; return whether it was locked by
        this call."""
        descriptor = os.open(
            self.path, os.O_RDWR | os.O_CREAT | NO_FOLLOW, 0o666)
        locked = False
        try:
            # A lock on a file that was removed meanwhile has no effect.
            locked = _lock(descriptor) and os.fstat(descriptor).st_nlink > 0
        finally:
            if not locked:
                os.close(descriptor)
        if locked:
            self._descriptor = descriptor
        return locked

    def acquire(self, timeout: float, interval: float | None = None) -> None:
        """Lock the file; raise TimeoutError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        logged = False
        while not self.try_acquire():
            if time.monotonic() >= deadline:
                raise TimeoutError(
                    f'{self.path!r} has been locked by another process or '
                    f'thread for {timeout} s; wait for it to finish, or end '
                    'it')
            if not logged:
                logger.info('Waiting for the lock %r', self.path)
                logged = True
            time.sleep(INTERVAL if interval is None else interval)

    @property
    def is_held(self) -> bool:
        """Whether this object has locked the file in this process (bool)."""
        return self._descriptor is not None

    def release(self) -> None:
        """Release the lock; do nothing if it is not held."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            _unlock(descriptor)
            os.close(descriptor)

    def remove(self) -> None:
        """Remove the file and release its lock, which must be held.

        On Windows, the file stays if another process has opened it.
        """
        if sys.platform == 'win32':
            self.release()
            with suppress(PermissionError):
                os.remove(self.path)
        else:
            # A process that opened it meanwhile sees that it was removed.
            os.remove(self.path)
            self.release()

    def _forget(self) -> None:
        """Close the file in a forked child, without releasing the parent's
        lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def held(self, timeout: float,
             interval: float | None = None) -> Iterator[None]:
        """Return a context in which the lock is held."""
        self.acquire(timeout, interval)
        try:
            yield
        finally:
            self.release()


_all = each_at_fork(Step.OWNERSHIP, in_child=LockFile._forget)

if sys.platform == 'win32':
    import msvcrt

    def _lock(descriptor: int) -> bool:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
