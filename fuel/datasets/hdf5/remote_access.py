"""How a data set comes by its HDF5 file in object storage."""
from __future__ import annotations

from typing import Any

from fuel.datasets.hdf5.file_access import FileAccess
from fuel.datasets.hdf5.open_files import OpenFile, shared_remote_file
from fuel.remote.location import Location
from fuel.remote.urls import StorageOptions, shown
from fuel.storage.file_bytes import RemoteBytes


class RemoteAccess(FileAccess):
    """How one data set comes by a remote file.

    What was fetched is kept while the data set lives, not only while the
    file is open. A pickle holds the URL without credentials.
    """

    def __init__(self, url: str, driver: str | None,
                 storage_options: StorageOptions | None) -> None:
        if driver is not None:
            raise ValueError(
                f'driver={driver!r} is for local files, and {shown(url)} is '
                f'not: leave it out')
        self._location = Location(url, storage_options)
        self._file: RemoteBytes | None = None
        super().__init__(self._location.shown, None, must_exist=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), '_file': None}

    @property
    def storage_options(self) -> StorageOptions | None:
        """Options of the file, without credentials."""
        return self._location.public_options

    @storage_options.setter
    def storage_options(self, options: StorageOptions) -> None:
        self._location = self._location.with_options(options)
        self._file = None
        self.close()

    def _open(self) -> OpenFile:
        self._file = self._location.open()
        return shared_remote_file(self._file)
