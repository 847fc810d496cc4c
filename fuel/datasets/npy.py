"""Data sets in NumPy's own files."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from fuel.datasets.base import Dataset
from fuel.datasets.row_orders import Order, length, pick
from fuel.datasets.row_readers import read_file
from fuel.datasets.rows import as_rows, check_equal_lengths
from fuel.datasets.splits import order_of_splits
from fuel.describe import SourceType, SourceTypes
from fuel.epochs.read_options import ReadOptions
from fuel.remote.location import as_path
from fuel.remote.urls import StorageOptions
from fuel.schemes import SequentialExampleScheme
from fuel.schemes.requests import RequestIterator
from fuel.storage import Reader
from fuel.storage.npy import is_archive, open_npy, open_npz
from fuel.typing import EpochReader
from fuel.utils import do_not_pickle_attributes

__all__ = ['NPYDataset']


@do_not_pickle_attributes('readers')
class NPYDataset(Dataset):
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
    **kwargs
        Arguments of :class:`Dataset`, `sources` and `axis_labels`.

    Attributes
    ----------
    num_examples : int
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

    readers: dict[str, Reader]
    takes_requests = True

    def __init__(self, path: Any, which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 storage_options: StorageOptions | None = None,
                 **kwargs: Any) -> None:
        self.path = _as_paths(path, storage_options)
        self.which_sets = which_sets
        self.load()
        self.provides_sources = tuple(sorted(self.readers))
        lengths = [range(len(reader)) for reader in self._provided()]
        check_equal_lengths(self.provides_sources, lengths)
        self._order = order_of_splits(splits, which_sets, len(lengths[0]))
        super().__init__(**kwargs)
        self.example_iteration_scheme = SequentialExampleScheme(
            self.num_examples)

    def load(self) -> None:
        """Open the files."""
        if isinstance(self.path, str):
            if is_archive(self.path):
                self.readers = open_npz(self.path)
                if not self.readers:
                    raise ValueError(f'{self.path} holds no arrays')
            else:
                self.readers = {'data': open_npy(self.path, 'data')}
        else:
            self.readers = {source: open_npy(path, source)
                            for source, path in self.path.items()}

    def _provided(self) -> list[Reader]:
        return [self.readers[source] for source in self.provides_sources]

    def known_types(self) -> SourceTypes:
        """Return types and shapes of the sources."""
        return {source: SourceType(reader.dtype, reader.shape[1:])
                for source, reader in vars(self)['_readers'].items()}

    def known_length(self) -> int | None:
        """Return the number of examples."""
        return self.num_examples

    def details(self) -> Sequence[str]:
        """Return the files and the splits."""
        splits = self.which_sets
        return [str(self.path), *([f'splits {", ".join(splits)}']
                                  if splits else [])]

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        return length(self._order)

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a reader of the rows of the files."""
        return read_file(self, requests, options, self._parts)

    def get_data(self, state: Any = None, request: Any = None,
                 ) -> tuple[Any, ...]:
        """Return the examples of a request.

        Raises
        ------
        ValueError
            If the request is of another kind, empty, negative or out of
            range.
        DamagedFileError
            If a file was changed while in use.
        """
        rows = pick(self._order, as_rows(request, self.num_examples))
        readers = self.readers
        return tuple([readers[source].read(rows) for source in self.sources])

    def _parts(self) -> list[tuple[Reader, Order]]:
        """Return a reader and the order of rows for each source."""
        return [(self.readers[source], self._order)
                for source in self.sources]


def _as_paths(path: Any, storage_options: StorageOptions | None,
              ) -> str | dict[str, str]:
    if isinstance(path, Mapping):
        if not path:
            raise ValueError('at least one file is needed, got {}')
        return {source: as_path(os.fspath(one), storage_options)
                for source, one in path.items()}
    return as_path(os.fsdecode(path), storage_options)
