"""The choice of an access to an HDF5 file."""
from __future__ import annotations

import os
from typing import Any

import h5py

from fuel.datasets.hdf5.file_access import FileAccess
from fuel.datasets.hdf5.remote_access import RemoteAccess
from fuel.remote.location import RemotePath, as_path
from fuel.remote.urls import StorageOptions


def access_to(file_or_path: Any, driver: str | None,
              storage_options: StorageOptions | None = None) -> FileAccess:
    """Return the access to a file given as a path, URL or open handle."""
    if isinstance(file_or_path, h5py.File):
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
