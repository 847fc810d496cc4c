"""How a data set comes by its HDF5 file: a path, or a handle of the user's."""
from __future__ import annotations

import logging
import os
from typing import Any

import h5py

from fuel.datasets.hdf5.open_files import OpenFile, external_file, shared_file
from fuel.remote.urls import StorageOptions
from fuel.utils import find_in_data_path

logger = logging.getLogger(__name__)

# With these drivers a name is that of one local file.
_LOCAL_DRIVERS = (None, 'sec2', 'stdio', 'core', 'direct')


class FileAccess:
    """How one data set comes by its file.

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
        # What the data set looked up in the open file.
        self.kept: Any = None
        self.external = external
        if (must_exist and external is None and self._is_local
                and not os.path.exists(path)):
            raise FileNotFoundError(
                f'there is no file {self._absolute_path!r}; a file in the '
                'data path is given as '
                f'find_in_data_path({os.path.basename(path)!r})')

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, '_opened': None, '_external': None,
                'kept': None}

    @property
    def external(self) -> h5py.File | None:
        """The handle the user opened, if any."""
        return None if self._external is None else self._external.file

    @external.setter
    def external(self, file: h5py.File | None) -> None:
        self._external = None if file is None else external_file(file)

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
        return shared_file(self._locate(), self.driver)

    def close(self) -> None:
        """Let go of the file; to be called as often as one likes."""
        self._opened = self.kept = None

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


def _local_copy(path: str) -> str:
    from fuel.utils.cache import cache_file

    return cache_file(path)
