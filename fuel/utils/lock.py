"""Locks between processes, held by the operating system.

A lock is a file that the system locks for a process. It is never taken from a
running owner, and it is released when its owner ends in any way. A thread may
hold several locks, and may take the same lock again.
"""
from __future__ import annotations

import atexit
import glob
import os
import secrets
import threading
import time
from contextlib import suppress

from fuel.utils.disk import safe_mkdir
from fuel.utils.lockfile import INTERVAL, LockFile

__all__ = ['Unlocker', 'get_lock', 'get_readlock', 'get_writelock', 'lock',
           'refresh_lock', 'release_lock', 'release_readlock',
           'release_writelock']

# Seconds to wait for another process.
DEFAULT_TIMEOUT = 120.


class Unlocker:
    """A lock on a folder.

    Parameters
    ----------
    tmp_dir : str
        The folder. It is created if needed, and is not removed. The operating
        system locks the file ``lock`` in it.

    Examples
    --------
    >>> import tempfile
    >>> from fuel.utils.lock import Unlocker, lock
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     unlocker = lock(folder, timeout=1)
    ...     unlocker.unlock()
    """

    def __init__(self, tmp_dir: str) -> None:
        safe_mkdir(tmp_dir)
        self._file = LockFile(os.path.join(tmp_dir, 'lock'))
        self.tmp_dir = tmp_dir

    def unlock(self) -> None:
        """Release the lock; do nothing if it is not held."""
        self._file.release()


class _Held(threading.local):
    """The locks that this thread holds, in the order in which it took them."""

    def __init__(self) -> None:
        self.files: list[LockFile] = []


_held = _Held()
_readers: dict[str, LockFile] = {}


def _take(path: str, timeout: float, interval: float | None = None) -> None:
    # Resolve only the path of the folder: if the file itself is a link, that
    # is an error.
    folder, name = os.path.split(path)
    path = os.path.join(os.path.realpath(folder), name)
    file = next((file for file in _held.files
                 if file.path == path and file.is_held), None)
    if file is None:
        file = LockFile(path)
        file.acquire(timeout, interval)
    _held.files.append(file)


def lock(tmp_dir: str, timeout: float = DEFAULT_TIMEOUT,
         min_wait: float | None = None, max_wait: float | None = None,
         verbosity: int = 1) -> Unlocker:
    """Lock a folder until the result is unlocked.

    Parameters
    ----------
    tmp_dir : str
        The folder. It is created if needed, and is not removed.
    timeout : float, optional
        Seconds to wait for another owner of the lock. Defaults to 120.
    min_wait : float, optional
        Time between two attempts, in seconds. Defaults to 0.05.
    max_wait, verbosity : optional
        Accepted for older programs, without effect.

    Returns
    -------
    Unlocker
        Its method ``unlock()`` releases the lock. The end of the process
        releases it too.

    Raises
    ------
    TimeoutError
        If the lock was not released in time. It is never taken from its owner.

    Examples
    --------
    >>> import tempfile
    >>> from fuel.utils.lock import lock
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lock(folder).unlock()
    """
    unlocker = Unlocker(tmp_dir)
    unlocker._file.acquire(timeout, min_wait)
    return unlocker


def refresh_lock(lock_file: str) -> str:
    """Set the time of a lock file to the present time.

    Locks do not expire, so a program need not call this.

    Parameters
    ----------
    lock_file : str
        An existing file.

    Returns
    -------
    str
        A unique identifier, another one at each call.

    Examples
    --------
    >>> import tempfile
    >>> from fuel.utils.lock import refresh_lock
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     refresh_lock(file.name) == refresh_lock(file.name)
    False
    """
    os.utime(lock_file)
    return f'{os.getpid()}_{secrets.token_hex(8)}'


def get_lock(lock_dir: str, timeout: float = DEFAULT_TIMEOUT,
             min_wait: float | None = None, max_wait: float | None = None,
             verbosity: int = 1) -> None:
    """Lock a folder until `release_lock`.

    Parameters
    ----------
    lock_dir : str
        The folder. It is created if needed. A thread that holds the lock may
        take it again, and must then release it as often as it took it.
    timeout, min_wait, max_wait, verbosity : optional
        As for :func:`lock`.

    Raises
    ------
    TimeoutError
        If the lock was not released in time.

    Examples
    --------
    >>> import tempfile
    >>> from fuel.utils.lock import get_lock, release_lock
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     get_lock(folder)
    ...     release_lock()
    """
    safe_mkdir(lock_dir)
    _take(os.path.join(lock_dir, 'lock'), timeout, min_wait)


def release_lock() -> None:
    """Release the lock that this thread took last.

    Raises
    ------
    RuntimeError
        If it holds none.
    """
    if not _held.files:
        raise RuntimeError(
            'this thread holds no lock; take one with get_lock or '
            'get_writelock in the same thread')
    file = _held.files.pop()
    if file not in _held.files:
        file.release()


def get_writelock(filename: str, timeout: float = DEFAULT_TIMEOUT) -> None:
    """Lock a file for writing until `release_writelock`.

    Parameters
    ----------
    filename : str
        The file. The operating system locks ``<filename>.writelock`` in the
        same folder, which must exist.
    timeout : float, optional
        Seconds to wait for other writers and readers. Defaults to 120.

    Raises
    ------
    TimeoutError
        If another writer, or a reader in another process, does not release
        its lock in time. Read locks of this process do not count.

    Examples
    --------
    >>> import os, tempfile
    >>> from fuel.utils.lock import get_writelock, release_writelock
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     get_writelock(os.path.join(folder, 'data.hdf5'))
    ...     release_writelock()
    """
    deadline = time.monotonic() + timeout
    _take(filename + '.writelock', timeout)
    try:
        while readers := other_readers(filename):
            if time.monotonic() >= deadline:
                raise TimeoutError(
                    f'{filename!r} has been read by other processes for '
                    f'{timeout} s; they hold {", ".join(readers)}')
            time.sleep(INTERVAL)
    except BaseException:
        release_writelock()
        raise


def release_writelock() -> None:
    """Release the write lock that this thread took last.

    Raises
    ------
    RuntimeError
        If it holds none.
    """
    release_lock()


def get_readlock(pid: int, path: str,
                 timeout: float = DEFAULT_TIMEOUT) -> str:
    """Lock a file for reading; there may be many readers.

    Parameters
    ----------
    pid : int
        Identifier of this process, which becomes part of the lock's name.
    path : str
        The file.
    timeout : float, optional
        Seconds to wait for a writer. Defaults to 120.

    Returns
    -------
    str
        The name of the lock, for `release_readlock`. The end of the process
        releases the lock too.

    Raises
    ------
    TimeoutError
        If a writer does not release its lock in time.

    Examples
    --------
    >>> import os, tempfile
    >>> from fuel.utils.lock import get_readlock, release_readlock
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = get_readlock(os.getpid(), os.path.join(folder, 'a.hdf5'))
    ...     release_readlock(name)
    """
    _take(path + '.writelock', timeout)
    try:
        return mark_reader(pid, path)
    finally:
        release_writelock()


def release_readlock(lockdir_name: str) -> None:
    """Release a read lock; do nothing if it is not held any more.

    Parameters
    ----------
    lockdir_name : str
        The lock that `get_readlock` returned.
    """
    file = _readers.pop(lockdir_name, None)
    if file is not None and file.is_held:
        # Remove the file while it is locked, so that it never looks like the
        # lock of a killed process.
        with suppress(OSError):
            os.remove(lockdir_name)
        file.release()


def mark_reader(pid: int, path: str) -> str:
    """Add a read lock; return its name.

    The caller must hold a lock that guards `path`.
    """
    name = f'{path}.readlock.{pid}.{secrets.token_hex(4)}'
    file = LockFile(name)
    file.acquire(timeout=0)
    _readers[name] = file
    return name


def other_readers(path: str) -> list[str]:
    """Return the read locks that other processes hold on a file.

    Read locks of processes that were killed are removed. The caller must hold
    a lock that guards `path`, as for `mark_reader`: then no other process is
    between creating its file and locking it.
    """
    alive = []
    for name in sorted(glob.glob(glob.escape(path) + '.readlock.*')):
        if name in _readers and _readers[name].is_held:
            continue
        file = LockFile(name)
        if not file.try_acquire():
            alive.append(name)
            continue
        with suppress(OSError):
            os.remove(name)
        file.release()
    return alive


def holds_readlock(path: str) -> bool:
    """Return whether this process holds a read lock on a file."""
    return any(name.startswith(path + '.readlock.') and file.is_held
               for name, file in list(_readers.items()))


@atexit.register
def _release_readlocks() -> None:
    for name in list(_readers):
        release_readlock(name)
