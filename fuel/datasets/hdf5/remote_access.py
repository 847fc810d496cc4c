"""How a data set comes by its HDF5 file in object storage."""
from __future__ import annotations

from typing import Any

from fuel.datasets.hdf5.file_access import FileAccess
from fuel.datasets.hdf5.open_files import OpenFile, shared_remote_file
from fuel.remote.location import RemotePath
from fuel.remote.urls import StorageOptions
from fuel.storage.file_bytes import RemoteBytes


class RemoteAccess(FileAccess):
    """How one data set comes by a remote file.

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

    def _open(self) -> OpenFile:
        file = self._file = self.path.open()
        return shared_remote_file(file)
