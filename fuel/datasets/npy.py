"""Data sets in NumPy's own files."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from fuel.datasets.options import DatasetOptions
from fuel.datasets.source_dataset import RowsDataset
from fuel.datasets.text_files import check_is_file
from fuel.remote.location import WithStorageOptions, fixed_path
from fuel.remote.urls import StorageOptions
from fuel.storage.npy import is_archive, open_npy, open_npz
from fuel.utils import do_not_pickle_attributes
from fuel.utils.other_libraries import checked_path

__all__ = ['NPYDataset']


@do_not_pickle_attributes('readers')
class NPYDataset(RowsDataset, WithStorageOptions):
    """A data set in ``.npy`` files, or in a ``.npz`` file.

    The files are mapped, not read: only the rows of a request are. Arrays
    in compressed archives are read into memory when they are first needed.

    Parameters
    ----------
    path : str, path-like or dict
        A ``.npz`` file, whose names become the sources; a ``.npy`` file,
        the source ``'data'``; or a dict from sources to ``.npy`` files. Each
        may be a URL.
    which_sets : tuple of str, optional
        The splits to use, concatenated in this order. Defaults to None: all
        rows.
    splits : dict, optional
        Maps names of splits to ``(start, stop)`` or to a list or array of
        rows, in any order.
    storage_options : dict, optional
        As for :class:`~fuel.datasets.hdf5.H5PYDataset`, of URLs.
    sources, axis_labels
        Arguments of :class:`Dataset`, `sources` and `axis_labels`.

    Attributes
    ----------
    num_examples : int
    storage_options : dict or None
        Without credentials, which may be assigned; None of local files.
    readers : dict of str to Reader

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a file is of another kind or holds Python objects, if sources
        have different lengths, or a split is unknown or out of range.
    DamagedFileError
        If a file is shorter than its array.

    Notes
    -----
    What comes back is the caller's own, in native byte order. A pickle
    holds the path, not the data. Several threads, and forked children, may
    read at once. A file must not be written to while it is in use; that is
    an error.

    Examples
    --------
    >>> import numpy, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'squares.npz')
    >>> numpy.savez(path, roots=numpy.arange(10), squares=numpy.arange(10)**2)
    >>> dataset = NPYDataset(path, ('test',), {'test': (6, 10)})
    >>> dataset.get_data(None, [3, 0])
    (array([9, 6]), array([81, 36]))
    >>> dataset.close(None)
    >>> folder.cleanup()
    """

    unsaved_arguments = ('path', 'storage_options')

    def __init__(self, path: Any, which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 storage_options: StorageOptions | None = None,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self.path = _as_paths(path, storage_options)
        self.load()
        super().__init__(which_sets, splits, **kwargs)

    def load(self) -> None:
        """Open the files."""
        paths = (self.path if isinstance(self.path, dict)
                 else {'data': self.path})
        for path in paths.values():
            check_is_file(path, 'NPY')
        if isinstance(self.path, str) and is_archive(self.path):
            self.readers = open_npz(self.path)
            if not self.readers:
                raise ValueError(f'{self.path} holds no arrays')
        else:
            self.readers = {source: open_npy(path, source)
                            for source, path in paths.items()}

    def details(self) -> Sequence[str]:
        """Return the files and the splits."""
        return [str(self.path), *super().details()]


def _as_paths(path: Any, storage_options: StorageOptions | None,
              ) -> str | dict[str, str]:
    if isinstance(path, Mapping):
        if not path:
            raise ValueError('at least one file is needed, got {}')
        return {source: fixed_path(os.fspath(one), storage_options)
                for source, one in path.items()}
    return fixed_path(checked_path('NPYDataset', path), storage_options)
