"""A data set whose HDF5 file is opened when it is needed, and closed."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h5py

from fuel.datasets.base import Dataset
from fuel.datasets.hdf5.file_access import FileAccess
from fuel.kernels.batches import Batches
from fuel.remote.urls import StorageOptions


class FileDataset(Dataset):
    """A data set in an HDF5 file, or read from one into memory."""

    load_in_memory: bool
    _access: FileAccess
    # What reads plain batches, as long as nothing changes. Not kept with the
    # file, which the copies of a data set share.
    _direct: Batches | None = None

    def load(self) -> None:
        """Read the examples into memory, if that is where they should be."""
        raise NotImplementedError

    @property
    def path(self) -> str:
        """Path of the file, as it was given."""
        return self._access.path

    @property
    def storage_options(self) -> StorageOptions | None:
        """Options of a remote file, without credentials; None of a local
        one. They are assigned to a data set that was unpickled."""
        return self._access.storage_options

    @storage_options.setter
    def storage_options(self, options: StorageOptions) -> None:
        self._access.storage_options = options

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """Lend the file handle, and close it again if it was not open."""
        was_open = self._access.current is not None
        opened = self._access.open()
        try:
            yield opened.file
            opened.check()
        finally:
            if not was_open:
                self._access.close()

    @property
    def _file_handle(self) -> Any:
        opened = self._access.current
        if opened is None:
            raise OSError(f'{self.path!r} is not open; call open() first')
        return opened.file

    @property
    def external_file_handle(self) -> h5py.File | None:
        """The handle that was given in the place of a path, if any."""
        return self._access.external

    @external_file_handle.setter
    def external_file_handle(self, handle: h5py.File | None) -> None:
        self._access.external = handle
        self._direct = None

    # As subclasses and scripts know it.
    _external_file_handle = external_file_handle

    def _out_of_memory_open(self) -> None:
        self._access.open()

    def _out_of_memory_close(self) -> None:
        self._direct = None
        self._access.close()

    def open(self) -> Any:
        """Open the file, unless the examples are in memory.

        Returns
        -------
        None
            There is no state: :meth:`get_data` opens the file if needed.
        """
        if not self.load_in_memory:
            self._out_of_memory_open()

    def close(self, state: Any) -> None:
        """Close the file, unless another data set reads it as well."""
        if not self.load_in_memory:
            self._out_of_memory_close()

    def reset(self, state: Any) -> Any:
        """Return the state for a fresh start; the file stays open."""
        return state
