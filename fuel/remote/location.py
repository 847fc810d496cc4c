"""Paths of remote and local files, with the information to open them."""
from __future__ import annotations

import logging
import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeVar

from fuel.config_parser import config
from fuel.remote.urls import (
    StorageOptions, file_name, is_spawning, is_url, public_options,
    shown, without_secrets)
from fuel.utils.forks import Step, at_fork
from fuel.utils.paths import find_in_data_path

if TYPE_CHECKING:
    from fuel.remote.file import RemoteFile

Item = TypeVar('Item')
Result = TypeVar('Result')

logger = logging.getLogger(__name__)
_lock = threading.Lock()
# Locks of files that are being opened, so that other files need not wait.
_opening: weakref.WeakValueDictionary[tuple[str, str], threading.Lock] = (
    weakref.WeakValueDictionary())
# The open files of this process, one object for all readers of a file.
_files: weakref.WeakValueDictionary[tuple[str, str], RemoteFile] = (
    weakref.WeakValueDictionary())


class RemotePath(str):
    """A URL with the options of its file system.

    The string, its ``repr`` and a pickle do not have credentials. A child
    process that this process starts does get them, as a forked child would.
    """

    _url: str
    _options: dict[str, Any]
    _lacks_secrets: bool

    def __new__(cls, url: str, options: StorageOptions | None = None,
                lacks_secrets: bool = False) -> Self:
        """Make a path.

        `lacks_secrets`: whether credentials were removed from the arguments.
        """
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
        """Return the path of a file in this folder.

        The query of the URL stays at the end.
        """
        folder, mark, query = self._url.partition('?')
        return RemotePath(f'{folder.rstrip("/")}/{name}{mark}{query}',
                          self._options, self._lacks_secrets)

    def beside(self, name: str) -> RemotePath:
        """Return the path of a file in the folder of this file."""
        folder, mark, query = self._url.partition('?')
        return RemotePath(f'{folder.rpartition("/")[0]}/{name}{mark}{query}',
                          self._options, self._lacks_secrets)

    def reveal(self) -> tuple[str, StorageOptions]:
        """Return the URL and the options, with their credentials."""
        return self._url, self._options

    def open(self, is_kept: bool = True) -> RemoteFile:
        """Open the file in its present state.

        `is_kept`: whether the file may be cached on disk.
        """
        try:
            return _open(self._url, self._options, is_kept)
        except PermissionError as error:
            if not self._lacks_secrets:
                raise
            raise PermissionError(f'{error}{self.advice}') from None

    @property
    def advice(self) -> str:
        """Advice to add to the error of a server that denies access (str)."""
        return (' (it was unpickled, and pickles hold no credentials: assign '
                'its storage_options)') if self._lacks_secrets else ''


class WithStorageOptions:
    """Base of data sets that keep the paths and URLs of their files.

    `paths_in`: the name of the attribute with the paths and URLs.
    """

    paths_in: ClassVar[str] = 'path'

    @property
    def storage_options(self) -> StorageOptions | None:
        """Options of remote files, without credentials; None for local files.

        Assign the options with credentials to a data set that was unpickled.
        """
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
    """Return paths in which the paths of remote files are changed.

    `paths`: a path, or dicts, lists and tuples of paths.
    """
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
    """A path as it was given, and its absolute path.

    The path leads to the same file after the working directory has changed.

    A pickle holds both paths. If there is no file at the absolute path on the
    machine that loads the pickle, the path is tried as it was given. Then the
    name of the file is searched for in the data path, as for HDF5 files.
    """

    _absolute: str
    _is_restored: bool

    def __new__(cls, path: str, absolute: str | None = None) -> Self:
        """Make a path.

        `absolute`: the absolute path in a pickle; None for a new path.
        """
        found = super().__new__(cls, path)
        found._absolute = absolute or os.path.abspath(path)
        found._is_restored = absolute is not None
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalPath, (str(self), self._absolute)

    def joined(self, name: str) -> LocalPath:
        """Return the path of a file in this folder."""
        found = LocalPath(os.path.join(self, name))
        found._absolute = os.path.join(self.locate(), name)
        return found

    def beside(self, name: str) -> LocalPath:
        """Return the path of a file in the folder of this file."""
        found = LocalPath(os.path.join(os.path.dirname(self), name))
        found._absolute = os.path.join(os.path.dirname(self.locate()), name)
        return found

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
        # From now on, this is the file of this object.
        self._absolute, self._is_restored = os.path.abspath(found), False
        return self._absolute


#: A path that stays valid if the working directory changes.
FixedPath: TypeAlias = LocalPath | RemotePath


def located(path: str) -> str:
    """Return the path to open: the result of `locate` for a
    :class:`LocalPath`, any other path unchanged."""
    return path.locate() if isinstance(path, LocalPath) else path


def fixed_path(path: str, storage_options: StorageOptions | None = None,
               ) -> FixedPath:
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


def beside(path: str, ending: str) -> str:
    """Return the path of a file whose extension alone differs."""
    if isinstance(path, RemotePath):
        return path.beside(os.path.splitext(file_name(path))[0] + ending)
    return os.path.splitext(path)[0] + ending


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
    """Call a function for several items at a time; return its results in
    order.

    `ask`: a function that waits for a server.
    """
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
