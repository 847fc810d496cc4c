"""Open the HDF5 file of a data set by its path, URL or open handle."""
from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

import h5py

from fuel.storage.open_files import (
    OpenFile, find_state, open_files)
from fuel.remote.location import RemotePath, as_path, ask_all
from fuel.remote.urls import StorageOptions
from fuel.storage.file_bytes import RemoteBytes
from fuel.utils import find_in_data_path
from fuel.utils.h5py_file import H5PYFile
from fuel.utils.paths import refuse_special_file

logger = logging.getLogger(__name__)

# With these drivers a name is that of one local file.
_LOCAL_DRIVERS = (None, 'sec2', 'stdio', 'core', 'direct')


class FileAccess:
    """Access of one data set to its file.

    A pickle holds the path alone. When it is gone on the machine that loads
    the pickle, the file is searched by its name in the data path.

    `path`: path or name of the file, as the user gave it.
    `driver`: HDF5 driver.
    `external`: a handle the user opened; it is used while it is open, and
        never closed here.
    `must_exist`: whether to look for the file now, not when it is opened.
        Defaults to True.
    """

    def __init__(self, path: str, driver: str | None,
                 external: h5py.File | None = None,
                 must_exist: bool = True) -> None:
        self.path = path
        self.driver = driver
        self._absolute_path = os.path.abspath(path)
        self._opened: OpenFile | None = None
        self._external: OpenFile | None = None
        self.external = external
        is_wanted = must_exist and external is None and self._is_local
        if is_wanted:
            refuse_special_file(path)
        if is_wanted and not os.path.exists(path):
            raise FileNotFoundError(
                f'there is no file {self._absolute_path!r}; a file in the '
                'data path is given as '
                f'find_in_data_path({os.path.basename(path)!r})')

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, '_opened': None, '_external': None}

    @property
    def external(self) -> h5py.File | None:
        """The handle the user opened, if any."""
        return None if self._external is None else self._external.file

    @external.setter
    def external(self, file: h5py.File | None) -> None:
        self._external = None if file is None else open_files.add(
            OpenFile(file, owned=False))

    @property
    def storage_options(self) -> StorageOptions | None:
        """Options of a remote file, without credentials."""
        return None

    @storage_options.setter
    def storage_options(self, options: StorageOptions) -> None:
        raise AttributeError(
            f'{self.path!r} is a local file, which has no storage_options')

    @property
    def current(self) -> OpenFile | None:
        """The open file that would be read, or None."""
        for opened in (self._external, self._opened):
            if opened is not None and opened.usable:
                return opened
        return None

    def open(self) -> OpenFile:
        """Return the open file, opened if needed.

        The caller keeps it open by holding on to it.
        """
        opened = self.current
        if opened is None:
            if self._opened is not None:
                # Not read on as another file, in the middle of an epoch.
                self._opened.check()
            if self._only_in_memory:
                assert self._external is not None
                return self._external
            opened = self._opened = self._open()
        return opened

    def _open(self) -> OpenFile:
        """Open the file, or join those who have it open."""
        return open_files.get(self._locate(), self.driver)

    def is_current(self) -> bool:
        """Return whether to open the file again would open the same.

        The user's own handle is not opened again.
        """
        opened = self.current
        if (opened is None or opened is self._external
                or opened.identity is None):
            return True
        # Where no local copy is read, the path alone tells.
        return (find_state(self._absolute_path)[1] == opened.identity
                or find_state(self._locate())[1] in (None, opened.identity))

    def close(self) -> None:
        """Let go of the file; to be called as often as one likes."""
        self._opened = None

    @property
    def _is_local(self) -> bool:
        return self.driver in _LOCAL_DRIVERS

    @property
    def _only_in_memory(self) -> bool:
        # After a fork, a file that exists nowhere else: the child has its
        # own copy of the memory.
        return (self._external is not None and bool(self._external.file)
                and self._is_local and not os.path.exists(self.path))

    def _locate(self) -> str:
        """Return the path to open, that of the local copy if there is one."""
        if not self._is_local:
            return self.path
        for path in (self._absolute_path, self.path):
            if os.path.exists(path):
                return _local_copy(path)
        try:
            path = find_in_data_path(os.path.basename(self.path))
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f'there is no file {self._absolute_path!r} any more, and '
                f'none of its name in the data path: {error}') from error
        logger.warning('%s is gone, reading %s instead',
                       self._absolute_path, path)
        return _local_copy(path)


class RemoteAccess(FileAccess):
    """Access of one data set to a remote file.

    What was fetched is kept while the data set lives, not only while the
    file is open.
    """

    path: RemotePath

    def __init__(self, path: RemotePath, driver: str | None) -> None:
        if driver is not None:
            raise ValueError(
                f'driver={driver!r} is for local files, and {path} is not: '
                f'leave it out')
        self._file: RemoteBytes | None = None
        super().__init__(path, None, must_exist=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), '_file': None}

    @property
    def storage_options(self) -> StorageOptions | None:
        """Options of the file, without credentials."""
        return self.path.public_options

    @storage_options.setter
    def storage_options(self, options: StorageOptions) -> None:
        self.path = self.path.with_options(options)
        self._file = None
        self.close()

    def is_current(self) -> bool:
        """See :meth:`FileAccess.is_current`."""
        return self._file is None or self._file.is_current()

    def _open(self) -> OpenFile:
        self._file = self.path.open()
        return open_files.get_remote(self._file)


def access_to(file_or_path: str | os.PathLike[str] | h5py.File,
              driver: str | None,
              storage_options: StorageOptions | None = None) -> FileAccess:
    """Return the access to a file given as a path, URL or open handle."""
    if isinstance(file_or_path, H5PYFile):
        if not file_or_path:
            raise ValueError(
                f'file_or_path must be a path or an open h5py.File, got '
                f'{file_or_path!r}: give the path, or open the file again')
        return FileAccess(os.fsdecode(file_or_path.filename), driver,
                          file_or_path)
    try:
        path = os.fsdecode(file_or_path)
    except TypeError:
        raise TypeError(
            'file_or_path must be a path or an open h5py.File, got '
            f'{file_or_path!r}') from None
    path = as_path(path, storage_options)
    if isinstance(path, RemotePath):
        return RemoteAccess(path, driver)
    return FileAccess(path, driver)


def _local_copy(path: str) -> str:
    from fuel.remote.local_copies import cache_file

    return cache_file(path)


def open_all(accesses: Sequence[FileAccess]) -> list[OpenFile]:
    """Open files, of a server several at a time."""
    ask_all(FileAccess.open, [access for access in accesses
                              if isinstance(access, RemoteAccess)])
    return [access.open() for access in accesses]
