"""Remote files that this process has open, one object for all who read it."""
from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

from fuel.remote.urls import StorageOptions
from fuel.utils.forks import Step, at_fork

if TYPE_CHECKING:
    from fuel.remote.file import RemoteFile

_lock = threading.Lock()
_files: weakref.WeakValueDictionary[tuple[str, str], RemoteFile] = (
    weakref.WeakValueDictionary())


def remote_file(url: str, options: StorageOptions | None = None,
                is_kept: bool = True) -> RemoteFile:
    """Return a remote file as it is now.

    Parameters
    ----------
    url : str
    options : dict, optional
        Arguments of fsspec's file system for such URLs.
    is_kept : bool, optional
        Whether the cache on disk may have it. Defaults to True.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If fsspec, or what it needs for the URL, is not installed.

    """
    # Only programs with remote files need an event loop.
    from fuel.remote.file import RemoteFile
    options = options or {}
    if not is_kept:
        return RemoteFile(url, options, is_kept=False)
    key = url, repr(sorted(options.items()))
    with _lock:
        file = _files.get(key)
        if file is not None and file.is_current():
            return file
        file = _files[key] = RemoteFile(url, options)
        return file


def _unlock_after_fork() -> None:
    global _lock
    _lock = threading.Lock()


at_fork(Step.OWNERSHIP, in_child=_unlock_after_fork)
