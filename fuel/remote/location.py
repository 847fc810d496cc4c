"""Paths of remote files, which know how the files are accessed."""
from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from fuel.config_parser import config
from fuel.remote.urls import (
    StorageOptions, is_spawning, is_url, public_options, shown,
    without_secrets)
from fuel.utils.forks import Step, at_fork
from fuel.utils.paths import find_in_data_path

if TYPE_CHECKING:
    from fuel.remote.file import RemoteFile

Item = TypeVar('Item')
Result = TypeVar('Result')

logger = logging.getLogger(__name__)
_lock = threading.Lock()
# Of those that are being opened: other files need not wait for them.
_opening: weakref.WeakValueDictionary[tuple[str, str], threading.Lock] = (
    weakref.WeakValueDictionary())
# Those that this process has open, one object for all who read a file.
_files: weakref.WeakValueDictionary[tuple[str, str], RemoteFile] = (
    weakref.WeakValueDictionary())


class RemotePath(str):
    """A URL with the options of its file system.

    As a string, and in a ``repr`` or a pickle, it has no credentials. Where
    this process starts another one, that one is given them: with a fork it
    would have them as well.
    """

    _url: str
    _options: dict[str, Any]
    _lacks_secrets: bool

    def __new__(cls, url: str, options: StorageOptions | None = None,
                lacks_secrets: bool = False) -> Self:
        """Make a path; `lacks_secrets` if credentials were left out."""
        if not isinstance(options, (Mapping, type(None))):
            raise TypeError(
                f"storage_options must be a dict, such as {{'anon': True}}, "
                f'got {type(options).__name__}')
        path = super().__new__(cls, shown(url))
        path._url, path._options = url, dict(options or {})
        path._lacks_secrets = lacks_secrets
        return path

    def __reduce__(self) -> tuple[Any, ...]:
        if is_spawning():
            return RemotePath, (self._url, self._options,
                                self._lacks_secrets)
        url, options = without_secrets(self._url), public_options(
            self._options)
        return RemotePath, (url, options, self._lacks_secrets or (
            url, options) != (self._url, self._options))

    @property
    def public_options(self) -> StorageOptions:
        """The options without credentials (dict)."""
        return public_options(self._options)

    def with_options(self, options: StorageOptions) -> RemotePath:
        """Return the same path, accessed with other options."""
        return RemotePath(self._url, options)

    def joined(self, name: str) -> RemotePath:
        """Return the path of a file in this folder; the query of the URL stays
        at the end."""
        folder, mark, query = self._url.partition('?')
        return RemotePath(f'{folder.rstrip("/")}/{name}{mark}{query}',
                          self._options, self._lacks_secrets)

    def reveal(self) -> tuple[str, StorageOptions]:
        """Return URL and options with their credentials."""
        return self._url, self._options

    def open(self, is_kept: bool = True) -> RemoteFile:
        """Return the file as it is now; `is_kept` if the cache on disk may
        have it."""
        try:
            return _open(self._url, self._options, is_kept)
        except PermissionError as error:
            if not self._lacks_secrets:
                raise
            raise PermissionError(f'{error}{self.advice}') from None

    @property
    def advice(self) -> str:
        """Advice for an error that a server refuses the file (str)."""
        return (' (it was unpickled, and pickles hold no credentials: assign '
                'its storage_options)') if self._lacks_secrets else ''


class WithStorageOptions:
    """Base of the data sets that keep the paths and URLs of their files.

    `paths_in`: the name of the attribute that has them.
    """

    paths_in: ClassVar[str] = 'path'

    @property
    def storage_options(self) -> StorageOptions | None:
        """Options of remote files, without credentials; None of local ones.
        They are assigned to a data set that was unpickled."""
        found: list[RemotePath] = []
        _with_urls(getattr(self, self.paths_in), found.append)
        return found[0].public_options if found else None

    @storage_options.setter
    def storage_options(self, options: StorageOptions) -> None:
        paths = getattr(self, self.paths_in)
        if self.storage_options is None:
            raise AttributeError(
                f'{paths!r:.200} is on this machine, where data have no '
                f'storage_options')
        setattr(self, self.paths_in, _with_urls(
            paths, lambda path: path.with_options(options)))
        self._open_anew()

    def _open_anew(self) -> None:
        """Drop the open store, so that it is opened again."""


def _with_urls(paths: Any, change: Callable[[RemotePath], Any]) -> Any:
    """Return paths, alone or in dicts, lists and tuples, where those of
    remote files are changed."""
    if isinstance(paths, RemotePath):
        return change(paths)
    if isinstance(paths, dict):
        return {name: _with_urls(path, change) for name, path in paths.items()}
    if isinstance(paths, list):
        return [_with_urls(path, change) for path in paths]
    if isinstance(paths, tuple):
        return type(paths)(*[_with_urls(path, change) for path in paths])
    return paths


class LocalPath(str):
    """A path as it was given, which leads to the same file after the program
    has gone to another folder.

    A pickle holds both. When the file is gone on the machine that loads the
    pickle, it is searched where the path leads there, and by its name in the
    data path, as HDF5 files are.
    """

    _absolute: str
    _is_restored: bool

    def __new__(cls, path: str, absolute: str | None = None) -> Self:
        """Make a path; `absolute` if it is one of a pickle."""
        found = super().__new__(cls, path)
        found._absolute = absolute or os.path.abspath(path)
        found._is_restored = absolute is not None
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalPath, (str(self), self._absolute)

    def locate(self) -> str:
        """Return the path to open."""
        if not self._is_restored or os.path.exists(self._absolute):
            return self._absolute
        found = os.path.abspath(self)
        if not os.path.exists(found):
            try:
                found = find_in_data_path(os.path.basename(self))
            except FileNotFoundError:
                return self._absolute
            logger.warning('%s is gone, reading %s instead', self._absolute,
                           found)
        # It is the file of this object from now on.
        self._absolute, self._is_restored = os.path.abspath(found), False
        return self._absolute


def located(path: str) -> str:
    """Return the path to open, of a path on this host as it was given."""
    return path.locate() if isinstance(path, LocalPath) else path


def fixed_path(path: str,
               storage_options: StorageOptions | None = None) -> str:
    """Return the path of a file as a :class:`LocalPath`, and a URL as a
    :class:`RemotePath`."""
    found = as_path(path, storage_options)
    return found if isinstance(
        found, (LocalPath, RemotePath)) else LocalPath(found)


def as_path(path: str, storage_options: StorageOptions | None = None) -> str:
    """Return a path as it is, and a URL as a :class:`RemotePath`."""
    if isinstance(path, RemotePath):
        return path if storage_options is None else path.with_options(
            storage_options)
    if is_url(path):
        return RemotePath(path, storage_options)
    if storage_options is not None:
        raise ValueError(
            f'storage_options are for URLs, such as s3://bucket/name, and '
            f'{path!r} is the path of a local file: leave them out')
    return path


def _open(url: str, options: StorageOptions, is_kept: bool) -> RemoteFile:
    # Only programs with remote files need an event loop.
    from fuel.remote.file import RemoteFile
    if not is_kept:
        return RemoteFile(url, options, is_kept=False)
    key = url, repr(sorted(options.items()))
    with _lock:
        lock = _opening.setdefault(key, threading.Lock())
    with lock:
        file = _files.get(key)
        if file is None or not file.ask_state():
            file = _files[key] = RemoteFile(url, options)
        return file


def ask_all(ask: Callable[[Item], Result], items: Sequence[Item],
            ) -> list[Result]:
    """Call a function that waits for a server on several files at a time;
    return its results in order."""
    if len(items) < 2:
        return list(map(ask, items))
    pool = ThreadPoolExecutor(min(len(items), config.remote_connections))
    try:
        return list(pool.map(ask, items))
    finally:
        pool.shutdown(cancel_futures=True)


def _unlock_after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    _opening.clear()


at_fork(Step.OWNERSHIP, in_child=_unlock_after_fork)
