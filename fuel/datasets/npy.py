"""Data sets in NumPy's own files."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy

from fuel.datasets.columns.part_names import as_list, fixed_files
from fuel.datasets.file_rows import FileRowsDataset
from fuel.datasets.options import DatasetOptions
from fuel.datasets.rows import refuse_unequal
from fuel.datasets.text_files import check_is_file
from fuel.remote.urls import StorageOptions
from fuel.storage import Reader
from fuel.storage.npy import is_archive, open_npy, open_npz
from fuel.utils import do_not_pickle_attributes

__all__ = ['NPYDataset']


@do_not_pickle_attributes('readers')
class NPYDataset(FileRowsDataset):
    """A data set in ``.npy`` files, or in ``.npz`` files.

    The files are memory-mapped, so only the rows of a request are read.
    Arrays in compressed archives are read into memory when they are first
    needed.

    Parameters
    ----------
    path : str, path-like, list of them or dict
        A ``.npz`` file, with a source for each name in it; a ``.npy`` file,
        which becomes the source ``'data'``; or a dict from sources to
        ``.npy`` files. In the place of a file, a URL, a list of files, or a
        pattern such as ``'data/*.npz'`` may be given. The rows of several
        files follow each other; the files of a pattern come in natural order.
    which_sets : tuple of str, optional
        The splits to use, concatenated in this order. Defaults to None: all
        rows.
    splits : dict, optional
        Maps names of splits to ``(start, stop)`` or to a list or array of
        rows, in any order.
    storage_options : dict, optional
        For URLs, as for :class:`~fuel.datasets.hdf5.H5PYDataset`.
    sources, axis_labels
        As for :class:`Dataset`.

    Attributes
    ----------
    num_examples : int
    storage_options : dict or None
        Options without credentials; options with credentials may be
        assigned. None for local files.
    readers : dict of str to Reader

    Raises
    ------
    FileNotFoundError
        If a file is missing.
    ValueError
        If a file is of another kind or holds Python objects, if sources
        have different lengths, if a split is unknown or out of range, or if
        a file has other arrays than the first file, or rows of another type
        or shape.
    DamagedFileError
        If a file is shorter than its array.

    Notes
    -----
    Returned arrays belong to the caller, in native byte order. A pickle
    holds the path, not the data. Several threads, and forked children, may
    read at once. A file must not be written to while it is in use: reading
    it is then an error.

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

    def __init__(self, path: Any, which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 storage_options: StorageOptions | None = None,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self.path = _as_paths(path, storage_options)
        self._load_for(kwargs.get('sources'))
        super().__init__(which_sets, splits, **kwargs)

    def load(self) -> None:
        """Open the files."""
        by_source = {source: as_list(paths) for source, paths in (
            self.path if isinstance(self.path, dict)
            else {'data': self.path}).items()}
        for paths in by_source.values():
            for path in paths:
                check_is_file(path, 'NPY')
        paths = by_source.get('data', ())
        if not isinstance(self.path, dict) and is_archive(paths[0]):
            readers = open_npz(paths, self._asked)
            if not readers:
                raise ValueError(f'{paths[0]} holds no arrays')
            if len(paths) > 1:
                readers = _with_equal_rows(paths, readers, self._asked)
        else:
            readers = {source: open_npy(paths, source)
                       for source, paths in by_source.items()}
        self.readers = readers


def _as_paths(path: Any, storage_options: StorageOptions | None,
              ) -> str | list[str] | dict[str, str | list[str]]:
    if not isinstance(path, Mapping):
        return fixed_files('NPYDataset', path, storage_options)
    if not path:
        raise ValueError('at least one file is needed, got {}')
    return {source: fixed_files('NPYDataset', one, storage_options)
            for source, one in path.items()}


def _with_equal_rows(paths: Sequence[str], readers: dict[str, Reader],
                     asked: Sequence[str] | None) -> dict[str, Reader]:
    """Return the readers of the sources that have, in each file, as many rows
    as the requested sources.

    A file is refused if the requested sources differ in length in it.

    `asked`: names of the requested sources; None for all.
    """
    counts = {source: numpy.diff(reader.part_bounds).tolist()
              for source, reader in readers.items()}
    wanted = [source for source in readers if source in (asked or ())
              ] or list(readers)
    for number, path in enumerate(paths):
        refuse_unequal({source: counts[source][number] for source in wanted},
                       where=f'{path}: ', can_choose=asked is None)
    return {source: reader for source, reader in readers.items()
            if counts[source] == counts[wanted[0]]}
