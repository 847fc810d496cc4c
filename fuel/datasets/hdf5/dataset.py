"""A data set in an HDF5 file that h5py reads."""
from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import starmap
from typing import Any, Unpack

import h5py
import numpy

from fuel.datasets.checks import refuse_unknown_sources
from fuel.storage.open_files import FileAccess, OpenFile, access_to
from fuel.datasets.hdf5.format import (
    Splits, all_sources, all_splits, check_splits, checked_names, given_rows,
    plain_sources, provided_sources, split_array, stored_rows, summarize,
    target_columns)
from fuel.storage.attributes import axis_labels, class_names, scale
from fuel.datasets.options import DatasetOptions
from fuel.datasets.epoch_readers import OpenSources, read_collections
from fuel.datasets.source_dataset import SourceDataset, as_budget
from fuel.datasets.sources import (
    FoundSource, MemoryReader, RowPlaces, Source, places_in_files)
from fuel.datasets.row_orders import (
    IndexArray, RowsOf, Selection, as_subset, checked_subset, pick,
    rows_of_subset)
from fuel.datasets.rows import (
    as_rows, check_request, check_same_length, check_same_types, get_rows)
from fuel.describe import SourceTypes
from fuel.epochs.read_options import ReadOptions
from fuel.kernels.batches import Batches
from fuel.remote.urls import StorageOptions
from fuel.schemes import SequentialExampleScheme
from fuel.schemes.requests import RequestIterator
from fuel.storage import Reader
from fuel.typing import EpochReader, Indices
from fuel.utils import Subset, do_not_pickle_attributes
from fuel.utils.hdf5_errors import names_file
from fuel.utils.overrides import covers, is_original
from fuel.utils.progress import Bar, progress

# Larger sources are read into memory in parts of this size, in bytes.
PART = 2 ** 26


@do_not_pickle_attributes('data_sources', 'source_shapes')
class H5PYDataset(SourceDataset):
    """A data set in an HDF5 file, read with h5py.

    Each source is an HDF5 data set in the root group, with a row for each
    example. The attribute ``split`` of the root group lists the rows of each
    source that belong to a split; :meth:`create_split_array` makes it.

    Parameters
    ----------
    file_or_path : str, path-like or h5py.File
        The file, or its URL in object storage or on a web server (see
        :doc:`/object_storage`). An open handle is used as long as it is
        open, and is never closed.
    which_sets : tuple of str
        The splits to use, concatenated in this order. The sources are those
        that all of these splits have. If `splits` are given, `which_sets` may
        be left out: then all rows are used.
    subset : slice, list of int or integer array, optional
        Which examples of the (concatenated) splits to use; lists are sorted
        and made unique. Defaults to all.
    load_in_memory : bool, optional
        Whether to read the examples once and keep them in memory. Defaults
        to False.
    driver : str, optional
        HDF5 driver for opening the file. Defaults to None, h5py's choice.
    sort_indices : bool, optional
        Kept for old scripts. Rows come back in the order of the request
        either way. Defaults to True.
    cache_bytes : int, optional
        Bytes of decoded chunks of this file that may be cached, for all data
        sets in this process that read it. If these data sets pass different
        numbers, the largest number counts. The argument matters for compressed
        files only. Defaults to None: the file shares the budget of the setting
        ``chunk_cache_bytes`` with all other files that have no number.
    storage_options : dict, optional
        Arguments of the file system of fsspec that a URL belongs to, such
        as credentials. Defaults to none: they come from the environment.
    splits : dict, optional
        The splits of a file without the attribute ``split``: maps their names
        to ``(start, stop)``, or to a list or array of rows in any order. The
        sources are then all arrays of the root group, if they have one
        length. Otherwise `sources` must be given, and all arrays of their
        length are sources. Defaults to None: the file defines its splits.
    flat_targets : bool, optional
        Whether sources of targets of the shape (n, 1) are read in the shape
        (n,). A source holds targets if it is named 'targets', or if its
        second axis is labelled 'index'. Defaults to False.
    sources, axis_labels
        For :class:`Dataset`. `sources` also determines the order of the
        sources, which is alphabetical by default.

    Attributes
    ----------
    num_examples : int
    which_sets : tuple of str
    user_given_subset : slice or list of int
    subsets : list of Subset
        For each source, its rows in ascending order. Subclasses may assign
        other rows.
    data_sources : tuple of numpy.ndarray, or None if not in memory
    source_shapes : tuple of numpy.ndarray or None, or None if not in memory
        The shapes of the examples of variable-length sources.
    in_memory_subset : Subset or None
        The subset of all examples, if they are in memory; else None.
    external_file_handle : h5py.File or None
        The open handle that was given in the place of a path.
    vlen_sources : tuple of str
        The sources with examples of variable shape.
    default_axis_labels : dict
        Axis labels from the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    OSError
        If the file is not a whole HDF5 file.
    ValueError
        For unknown splits or sources, a string in the place of a tuple, an
        empty or too large subset, sources of unequal length, a file
        without splits, and `splits` for a file that has some.

    Notes
    -----
    Within a split, sources are paired by position. If all sources of the
    split share one list of indices, rows are read in ascending order;
    otherwise the stored order is kept.

    Requests are an integer (one example), a slice, or a list or array of
    integers in any order and with repetitions. Returned arrays belong to the
    caller and are in native byte order. A source of variable shape is returned
    as an array of objects.

    A pickle holds the path, not the data. It holds no credentials of a URL
    or of `storage_options`. Several threads may read at once. After a fork,
    the child opens the file for itself.

    Subclasses may override `_parse_dataset_info`, `get_subsets`,
    `get_vlen_sources`, `get_axis_labels`, `load`, `get_data`,
    `_in_memory_get_data` and `_out_of_memory_get_data`.

    Examples
    --------
    >>> import os, tempfile, h5py, numpy
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'squares.hdf5')
    >>> with h5py.File(path, 'w') as file:
    ...     file['roots'] = numpy.arange(10)
    ...     file['squares'] = numpy.arange(10) ** 2
    ...     file.attrs['split'] = H5PYDataset.create_split_array(
    ...         {'train': {'roots': (0, 8), 'squares': (0, 8)},
    ...          'test': {'roots': (8, 10)}})
    >>> train_set = H5PYDataset(path, ('train',), subset=slice(2, 8))
    >>> train_set.num_examples
    6
    >>> train_set.get_data(request=[3, 0])
    (array([5, 2]), array([25,  4]))
    >>> train_set.close(None)
    >>> folder.cleanup()
    """

    interface_version = '0.3'
    read_hooks = ('get_data', '_in_memory_get_data',
                  '_out_of_memory_get_data')
    takes_requests = True
    data_sources: Any
    source_shapes: Any
    in_memory_subset: Subset | None = None
    splits: Mapping[str, Any] | None = None
    flat_targets = False
    # The sources that are read without their axis of one element.
    _flat: tuple[str, ...] = ()
    load_in_memory: bool
    which_sets: tuple[str, ...]
    user_given_subset: Any
    _access: FileAccess
    _selection: Selection | None
    unsaved_arguments = (
        'cache_bytes', 'driver', 'file_or_path', 'load_in_memory',
        'sort_indices', 'subset')

    def __init__(self, file_or_path: str | os.PathLike[str] | h5py.File,
                 which_sets: Sequence[str] | None = None,
                 subset: Indices | None = None,
                 load_in_memory: bool = False, driver: str | None = None,
                 sort_indices: bool = True,
                 cache_bytes: int | None = None,
                 storage_options: StorageOptions | None = None,
                 splits: Mapping[str, Any] | None = None,
                 flat_targets: bool = False,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self._access = access_to(file_or_path, driver, storage_options)
        self.driver = driver
        if splits is not None:
            self.splits = splits
        self.which_sets = checked_names(which_sets) if (
            splits is None or which_sets is not None) else ()
        self.user_given_subset = checked_subset(subset)
        self.load_in_memory = load_in_memory
        self.sort_indices = sort_indices
        self.cache_bytes = as_budget(cache_bytes)
        self._selection = None
        with self._reading() as h5file:
            if splits is None:
                self._parse_dataset_info()
            else:
                self._parse_plain_file(h5file, kwargs.get('sources') or ())
            if flat_targets:
                self._flatten(target_columns(h5file, self.provides_sources))
            kwargs.setdefault('axis_labels', self.default_axis_labels)
            super().__init__(**kwargs)
            self._select()
            # `_reading` opens the file, since a subclass may have closed it.
            self._summary = summarize(
                h5file, self.provides_sources, self._flat)
            if not load_in_memory:
                self.data_sources = self.source_shapes = None
            self.load()

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if '_access' not in state:
            # A pickle of Fuel 0.2.0: the rows are looked up on first use.
            path = vars(self).pop('path')
            self._access = FileAccess(path, self.driver, must_exist=False)
            self.cache_bytes = self._selection = None

    @staticmethod
    def create_split_array(split_dict: Splits) -> Any:
        """Make the value of the attribute ``split``.

        Parameters
        ----------
        split_dict : dict of dict of tuple
            Maps split names to dictionaries, which map source names to
            ``(start, stop)``, ``(start, stop, indices)`` or ``(start, stop,
            indices, comment)``. `indices` is None, or a reference to an HDF5
            data set of row indices. These then replace `start` and `stop`.

        Examples
        --------
        >>> from fuel.datasets import H5PYDataset
        >>> array = H5PYDataset.create_split_array(
        ...     {'train': {'features': (0, 8), 'targets': (0, 8)},
        ...      'test': {'features': (8, 10)}})
        >>> array['available'].tolist()
        [True, True, True, False]
        """
        return split_array(split_dict)

    @staticmethod
    def get_all_splits(h5file: h5py.File) -> tuple[str, ...]:
        """Return the names of a file's splits, in its order."""
        return all_splits(h5file)

    @staticmethod
    def get_all_sources(h5file: h5py.File) -> tuple[str, ...]:
        """Return the names of a file's sources, in alphabetical order."""
        return all_sources(h5file)

    @staticmethod
    def get_provided_sources(h5file: h5py.File,
                             split: str) -> tuple[str, ...]:
        """Return the names of the sources that a split has."""
        if not isinstance(split, str):
            raise TypeError('split must be the name of one split, got '
                            f'{split!r} ({type(split).__name__})')
        return provided_sources(h5file, split)

    @staticmethod
    @names_file
    def get_vlen_sources(h5file: h5py.File) -> tuple[str, ...]:
        """Return the sources whose examples differ in shape."""
        return tuple(source for source in all_sources(h5file)
                     if scale(h5file.get(source), 'shapes') is not None)

    @staticmethod
    @names_file
    def get_axis_labels(
            h5file: h5py.File) -> dict[str, tuple[str, ...] | None]:
        """Return the labels of the axes of each source.

        Returns
        -------
        dict
            Maps source names to tuples of str, one label for each axis. The
            labels of a source of variable shape come from the dimension scale
            'shape_labels'. None for a source that is a group.
        """
        return {source: axis_labels(h5file.get(source))
                for source in all_sources(h5file)}

    @staticmethod
    def get_subsets(h5file: h5py.File, splits: Sequence[str],
                    sources: Sequence[str]) -> list[Subset]:
        """Return the rows that the sources have in some splits."""
        return list(starmap(as_subset, stored_rows(
            h5file, checked_names(splits, 'splits'),
            checked_names(sources, 'sources', 'source'))))

    @property
    def path(self) -> str:
        """Path of the file, as it was given."""
        return self._access.path

    @property
    def storage_options(self) -> StorageOptions | None:
        """Options of a remote file, without credentials; None for a local
        file. Assign options with credentials to an unpickled data set."""
        return self._access.storage_options

    @storage_options.setter
    def storage_options(self, options: StorageOptions) -> None:
        self._forget()
        self._access.storage_options = options

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """Open the file for a block, and close it again if it was not open."""
        was_open = self._access.current is not None
        opened = self._access.open()
        try:
            yield opened.file
            opened.check()
        finally:
            if not was_open:
                self._forget()
                self._access.close()

    @property
    def _file_handle(self) -> Any:
        opened = self._access.current
        if opened is None:
            raise OSError(f'{self.path!r} is not open; call open() first')
        return opened.file

    @property
    def external_file_handle(self) -> h5py.File | None:
        """The handle that was given instead of a path, or None."""
        return self._access.external

    @external_file_handle.setter
    def external_file_handle(self, handle: h5py.File | None) -> None:
        self._access.external = handle
        self._forget()

    # The name that subclasses and scripts use.
    _external_file_handle = external_file_handle

    def _out_of_memory_open(self) -> None:
        self._access.open()

    def _out_of_memory_close(self) -> None:
        self._forget()
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

    def known_types(self) -> SourceTypes:
        """Return types and shapes of the sources."""
        # Pickles of Fuel 0.2.0 hold no summary.
        summary = vars(self).get('_summary')
        return {} if summary is None else summary.types

    def kept_checksums(self) -> Sequence[str]:
        """Return the SHA-256 of the raw files from which `fuel-convert` made
        the file."""
        summary = vars(self).get('_summary')
        return () if summary is None else summary.checksums

    def known_length(self) -> int | None:
        """Return the number of examples, or None if the file must be read."""
        selection = vars(self).get('_selection')
        return None if selection is None else selection.num_examples

    def details(self) -> Sequence[str]:
        """Return the file, the splits and the storage of the examples."""
        return [str(self.path), *(
                    [f'splits {", ".join(self.which_sets)}']
                    if self.which_sets else []),
                'in memory' if self.load_in_memory
                else vars(self)['_summary'].layout]

    def has_rows_at_hand(self) -> bool:
        """Return whether the examples are in memory, or the file open."""
        return self.load_in_memory or self._access.current is not None

    @functools.cached_property
    def class_names(self) -> Any:
        """Names of the classes in the file (tuple of str), or None."""
        with self._reading() as h5file:
            return class_names(h5file, self.sources)

    def _use_sources(self) -> None:
        if vars(self).get('_selection') is not None:
            # The rows, and what is in memory, are in the order of sources.
            self._select()
            if self.load_in_memory:
                self.load()

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        if self._selection is None:
            return self._select().num_examples
        return self._selection.num_examples

    @property
    def subsets(self) -> list[Subset]:
        """The rows of each source in ascending order (list of Subset)."""
        return self._selected().subsets

    @subsets.setter
    def subsets(self, subsets: Sequence[Subset]) -> None:
        before = self._selection
        selection = Selection(
            self.sources, list(map(rows_of_subset, subsets)), slice(None))
        selection.is_assigned = True
        self._set_selection(selection)
        if before and not before.has_rows_of(selection):
            # The examples are loaded again when they are needed.
            for name in ('_data_sources', '_source_shapes'):
                if self.load_in_memory:
                    vars(self).pop(name, None)

    def chunk_of_examples(self, source: str | None = None) -> IndexArray:
        """Return the number of the chunk that each example lies in; see
        :meth:`Dataset.chunk_of_examples`."""
        with self._reading():
            return super().chunk_of_examples(source)

    def find_stored_rows(self, source: str) -> FoundSource:
        """Return the reader of a source's rows in the file.

        This is possible even if the data set is in memory, or if the source
        has a variable shape.
        """
        opened = self._access.open()
        if not isinstance(opened.file[source], h5py.Dataset):
            return None
        return self._source_in(opened, self._selected(),
                               self.sources.index(source), source)

    def _selected(self) -> Selection:
        selection = self._selection
        if selection is None or not selection.orders:
            return self._select()
        return selection

    def _select(self) -> Selection:
        """Find the rows of each source in the file."""
        before = self._selection
        with self._reading() as h5file:
            selection = Selection(
                self.sources, self._find_rows(h5file), self.user_given_subset)
            selection.identity = self._access.open().identity
            if before and before.identity != selection.identity:
                check_same_types(
                    self.path, self.known_types(),
                    summarize(h5file, self.provides_sources,
                              self._flat).types)
        if before and not before.is_assigned:
            check_same_length(self.path, before.num_examples,
                              selection.num_examples)
        return self._set_selection(selection)

    def _find_rows(self, h5file: h5py.File) -> list[RowsOf]:
        """Return, for each source, its rows in the splits."""
        if self.splits is not None:
            return given_rows(
                h5file, self.splits, self.which_sets, self.sources)
        if is_original(self, 'get_subsets'):
            return stored_rows(h5file, self.which_sets, self.sources)
        return list(map(rows_of_subset, self.get_subsets(
            h5file, self.which_sets, self.sources)))

    def _set_selection(self, selection: Selection) -> Selection:
        if (self._selection is None or self._selection.num_examples
                != selection.num_examples):
            self.example_iteration_scheme = SequentialExampleScheme(
                selection.num_examples)
        self._selection = selection
        self._forget()
        return selection

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a reader of the rows, in the file or in memory."""
        if not self.load_in_memory:
            return super().make_reader(requests, options, state)
        if any(shapes is not None for shapes in self.source_shapes):
            return None
        return read_collections(
            self, requests, options, list(self.data_sources),
            '_data_sources')

    def renew(self) -> None:
        """Close a file that was changed or replaced, so that the next epoch
        reads the new file."""
        if not self.load_in_memory and not self._access.is_current():
            self._out_of_memory_close()

    def find_source(self, source: str) -> FoundSource:
        """Return the reader of a source, with the order of its rows."""
        if source not in self.sources:
            refuse_unknown_sources((source,), self.sources)
        place = self.sources.index(source)
        if self.load_in_memory:
            selection = self._selected()
            stored = RowsOf(
                selection.orders[place], selection.num_rows[place])
            if any(shapes is not None for shapes in self.source_shapes):
                return stored
            return Source(MemoryReader(source, self.data_sources[place]),
                          slice(0, self.num_examples), stored)
        sources = self.open_sources()
        found: Source = sources[place]
        return found.stored if any(
            each.shapes is not None for each in sources) else found

    def places_of_rows(self, rows: IndexArray) -> RowPlaces:
        """Return the file of rows."""
        return places_in_files([self.path], [0, 0], rows)

    def read_stored(self, name: str) -> Any:
        """Return all rows of an array of the file."""
        with self._reading():
            opened = self._access.open()
            return opened.reader(name).read(slice(None))

    def _parse_dataset_info(self) -> None:
        """Set the attributes that the file determines: the sources that all
        splits have (`provides_sources`), the sources of variable shape
        (`vlen_sources`), and the labels of the axes
        (`default_axis_labels`)."""
        with self._reading() as h5file:
            check_splits(h5file, self.which_sets)
            common = set.intersection(*[
                set(self.get_provided_sources(h5file, split))
                for split in self.which_sets])
            self.provides_sources = tuple(sorted(common))
            if not self.provides_sources:
                raise ValueError(
                    f'no source is in all of the splits {self.which_sets} '
                    f'of {self.path!r}; use fewer splits at a time')
            self.vlen_sources = self.get_vlen_sources(h5file)
            self.default_axis_labels = self.get_axis_labels(h5file)

    def _parse_plain_file(self, h5file: h5py.File,
                          wanted: Sequence[str]) -> None:
        """Set the attributes that `_parse_dataset_info` sets, for a file that
        does not name splits."""
        names = plain_sources(h5file, wanted)
        self.provides_sources = names
        self.vlen_sources = tuple([
            name for name in names
            if scale(h5file[name], 'shapes') is not None])
        self.default_axis_labels = {
            name: axis_labels(h5file[name]) for name in names}

    def load(self) -> None:
        """Read the examples into memory, if `load_in_memory` is true.

        Sets `data_sources` and `source_shapes`. The constructor always calls
        it.
        """
        self._forget()
        if not self.load_in_memory:
            self.data_sources = self.source_shapes = None
            return
        with self._reading():
            data, shapes = _read_whole(
                self.path, self.open_sources(), self.num_examples)
        self.data_sources = tuple(data)
        self.source_shapes = tuple(shapes)
        self.in_memory_subset = Subset(slice(None), self.num_examples)

    def get_data(self, state: Any = None,
                 request: Any = None) -> tuple[Any, ...]:
        """Return the examples of a request.

        Parameters
        ----------
        request : int, slice, list of int or integer numpy.ndarray
            Which examples, from 0 to ``num_examples - 1``.

        Returns
        -------
        tuple
            One array for each of `sources`: one example, or a batch of
            them. They may be written to.

        Raises
        ------
        ValueError
            If the request is of another kind, empty, negative or out of
            range.
        """
        direct = self._direct
        if direct is not None:
            batch: tuple[Any, ...] | None = direct.read(request)
            if batch is not None:
                return batch
        if self.load_in_memory:
            data, shapes = self._in_memory_get_data(state, request)
        else:
            data, shapes = self._out_of_memory_get_data(state, request)
        if shapes is not None:
            for place, shape in enumerate(shapes):
                if shape is not None:
                    data[place] = self._reshape(place, data[place], shape)
        return tuple(data)

    def _reshape(self, place: int, data: Any, shapes: Any) -> Any:
        """Reshape the examples of a variable-length source."""
        try:
            if numpy.ndim(shapes) == 1:
                return data.reshape(shapes)
            for row, shape in enumerate(shapes):
                data[row] = data[row].reshape(shape)
        except ValueError as error:
            raise ValueError(
                f'the shapes of source {self.sources[place]!r} of '
                f'{self.path!r} do not fit its examples: {error}') from error
        return data

    def _in_memory_get_data(self, state: Any = None, request: Any = None
                            ) -> tuple[list[Any], Any]:
        """Return data, and shapes for the variable-length sources."""
        check_request(self, state, request)
        data = [get_rows(source, request) for source in self.data_sources]
        shapes = [None if shape is None else get_rows(shape, request)
                  for shape in self.source_shapes]
        return data, shapes

    def _out_of_memory_get_data(self, state: Any = None, request: Any = None
                                ) -> tuple[list[Any], Any]:
        """Return data, and shapes for the variable-length sources."""
        return self._read(as_rows(request, self.num_examples))

    def _read(self, positions: Any) -> tuple[list[Any], list[Any]]:
        """Read the examples at checked positions."""
        data, shapes = [], []
        # The sources keep the file open, even if another thread closes it.
        for source in self.open_sources():
            rows = pick(source.rows, positions)
            data.append(source.reader.read(rows))
            shapes.append(None if source.shapes is None
                          else source.shapes.read(rows))
        return data, shapes

    def _open_files(self) -> OpenFile:
        opened = self._access.open()
        if self._selected().identity not in (None, opened.identity):
            # The file was changed while it was closed.
            self._select()
        return opened

    def _sources_in(self, opened: OpenFile,
                    names: Sequence[str]) -> Iterator[Source]:
        selection = self._selected()
        for place, name in enumerate(names):
            yield self._source_in(opened, selection, place, name)

    def _source_in(self, opened: OpenFile, selection: Selection,
                   place: int, name: str) -> Source:
        """Return the reader of a source.

        `place`: number of the source among `sources`.
        """
        stored = RowsOf(selection.orders[place], selection.num_rows[place])
        return Source(
            self._reader_of(opened, name), stored.order, stored, opened,
            opened.reader(name, of_shapes=True)
            if name in self.vlen_sources else None)

    def _reader_of(self, opened: OpenFile, source: str) -> Reader:
        """Return the reader of a source's rows in their final shape."""
        reader = opened.reader(source, cache_bytes=self.cache_bytes)
        if source not in self._flat:
            return reader
        # Imported here, since it is seldom needed.
        from fuel.datasets.columns.readers import ChangedReader
        return ChangedReader(reader, reader.shape[:1])

    def _flatten(self, sources: tuple[str, ...]) -> None:
        """Remove the axis of one element from the rows of some sources."""
        self.flat_targets, self._flat = True, sources
        self.default_axis_labels = {
            source: labels[:1] if labels and source in sources else labels
            for source, labels in self.default_axis_labels.items()}

    def _direct_batches(self, found: OpenSources) -> Batches | None:
        """Return a compiled reader of plain batches that calls no method of
        this object.

        None if the data are in memory, if the user passed the handle (the user
        may close it), or if a subclass overrides a method that reads.
        """
        if (self.load_in_memory
                or found.opened.file is self._access.external
                or not covers(self, '_direct_batches', self.read_hooks[1:])):
            return None
        return super()._direct_batches(found)


def _read_whole(path: str, sources: OpenSources,
                count: int) -> tuple[list[Any], list[Any]]:
    """Return the rows of each source of a file, and their shapes."""
    total = sum(source.reader.row_nbytes * count for source in sources)
    data, shapes = [], []
    with progress(f'Reading {path} into memory', total, in_bytes=True,
                  delay=True) as bar:
        for source in sources:
            data.append(_read_rows(source, count, bar))
            shapes.append(None if source.shapes is None else
                          source.shapes.read(source.rows))
    return data, shapes


def _read_rows(source: Source, count: int, bar: Bar) -> Any:
    reader = source.reader
    nbytes = reader.row_nbytes
    if nbytes * count <= PART or reader.dtype.hasobject:
        rows = reader.read(source.rows)
        bar.advance(nbytes * count)
        return rows
    step = max(1, PART // nbytes)
    whole = numpy.empty((count, *reader.shape[1:]), reader.dtype)
    for start in range(0, count, step):
        stop = min(start + step, count)
        whole[start:stop] = reader.read(
            pick(source.rows, slice(start, stop)))
        bar.advance((stop - start) * nbytes)
    return whole
