"""Data sets in HDF5 files of any layout, read in place."""
from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import h5py
import numpy

from fuel.datasets.checks import refuse_unknown_sources
from fuel.datasets.columns.base import (
    Columns, FileColumn, named_columns, shown_call)
from fuel.datasets.columns.part_names import (
    shown_paths, SHOWN, Files, PartNames, as_files, expand, natural_key)
from fuel.datasets.columns.opening import (
    OpenColumns, Wanted, refuse_other_arrays)
from fuel.datasets.columns.parts import FileParts
from fuel.datasets.columns.rows import Rows
from fuel.datasets.hdf5.format import all_splits
from fuel.datasets.options import DatasetOptions
from fuel.datasets.row_orders import IndexArray, Order
from fuel.datasets.rows import check_same_length
from fuel.datasets.sources import RowPlaces, split_rows
from fuel.datasets.source_dataset import RowsDataset, as_budget
from fuel.datasets.run_bounds import RunsGiven, cut_runs, names_in
from fuel.describe import SourceTypes
from fuel.exceptions import StateMismatchError
from fuel.remote.urls import StorageOptions
from fuel.storage.open_files import access_to, open_all
from fuel.storage.linked_files import LinkedFiles
from fuel.storage.nodes import find_arrays
from fuel.utils import do_not_pickle_attributes
from fuel.utils.arguments import try_call
from fuel.utils.checks import one_of
from fuel.utils.forks import Step, at_fork, for_each
from fuel.utils.hdf5_errors import naming_file


@do_not_pickle_attributes('readers', '_order')
class HDF5Dataset(RowsDataset):
    """A data set in HDF5 files of any layout, read in place.

    Parameters
    ----------
    files : str, path-like or list of them
        A file, a list of files whose rows follow each other, or a pattern
        such as ``'data/*.h5'``: its files come in natural order (``2.h5``
        before ``10.h5``). A file may be a URL.
    columns : list or dict, optional
        The sources: paths of arrays in the file, or below each part, or
        columns such as :class:`~fuel.datasets.columns.CSR`. A dict gives the
        sources other names. Defaults to all arrays, which must then have the
        same length.
    parts : str, optional
        Pattern of the groups that are parts, such as ``'data/demo_*'`` or
        ``'*'``. Parts come in natural order, and rows are numbered
        consecutively over all parts. Defaults to None: each file is a part.
    runs : str or dict, optional
        The rows that belong together: ``{'lengths': path}``, ``{'offsets':
        path}``, ``{'ends': path}`` (or several paths) or ``{'numbers':
        path}``, with the path of an array in each part; or ``'all'``; see
        :class:`~fuel.datasets.Runs`. Defaults to None: each part is a run.
    splits : dict or str, optional
        Maps names of splits to ``(start, stop)``, to a list or array of rows,
        or to a list of names of parts. Or the path of a group of such lists in
        the files, or of a column of categories: the rows of each category are
        then a split. Defaults to None: there are no splits.
    which_sets : tuple of str, optional
        The splits to use, concatenated in this order. Defaults to None: all
        rows.
    missing : {'error', 'skip'}, optional
        Whether a part that lacks a column is an error (the default) or is
        left out.
    cache_bytes : int, optional
        See :class:`~fuel.datasets.hdf5.H5PYDataset`.
    storage_options : dict, optional
        See :class:`~fuel.datasets.hdf5.H5PYDataset`.
    follow : {'folder', 'anywhere'}, optional
        Which other files may be read through external links and virtual data
        sets: files in or below the folder of the linking file, or any.
    sources, axis_labels
        As for :class:`Dataset`. The defaults come from the files.

    Attributes
    ----------
    num_examples : int
    columns : dict of str to FileColumn
    runs : numpy.ndarray
    categories : dict of str to tuple
    split_names : tuple of str

    Raises
    ------
    FileNotFoundError
        If a file is missing, or a pattern fits none.
    ValueError
        If a file is in Fuel's own format (see
        :class:`~fuel.datasets.hdf5.H5PYDataset`), if a part lacks an array
        or has an array of another type or shape than other parts, if columns
        have different lengths, or if splits or runs exceed the rows.
    DamagedFileError
        If a file is damaged, or was changed while in use.

    Notes
    -----
    Returned arrays belong to the caller, in native byte order. ``repr`` is the
    call that makes the data set. A pickle holds paths, not data, and no
    credentials. Several threads, and forked children, may read at once. A
    column that is not among `sources` is opened when it is first used.

    Examples
    --------
    >>> import h5py, numpy, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'demos.hdf5')
    >>> with h5py.File(path, 'w') as file:
    ...     for number in range(12):
    ...         file[f'data/demo_{number}/actions'] = numpy.full(3, number)
    >>> dataset = HDF5Dataset(path, ['actions'], parts='data/demo_*')
    >>> dataset.num_examples
    36
    >>> dataset.get_data(None, [35, 6])
    (array([11,  2]),)
    >>> dataset.close(None)
    >>> folder.cleanup()
    """

    readers: Any
    _order: Any
    unsaved_arguments = ('cache_bytes', 'files', 'follow', 'storage_options')

    def __init__(self, files: Files, columns: Columns | None = None, *,
                 parts: str | None = None, runs: RunsGiven | None = None,
                 splits: Mapping[str, Any] | str | None = None,
                 which_sets: Sequence[str] | None = None,
                 missing: str = 'error', cache_bytes: int | None = None,
                 storage_options: StorageOptions | None = None,
                 follow: str = 'folder',
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self.files = as_files(files, storage_options)
        self._accesses = [access_to(path, None)
                          for path in expand(self.files)]
        self.parts = _as_pattern(parts)
        self._runs, self._splits = runs, splits
        self.which_sets = which_sets
        self.missing = one_of('missing', missing, ('error', 'skip'))
        self.follow = one_of('follow', follow, ('folder', 'anywhere'))
        self.cache_bytes = as_budget(cache_bytes)
        sources = kwargs.get('sources')
        if isinstance(sources, str):
            refuse_unknown_sources(sources, ())
        self._used = tuple(sources or ())
        self.columns = {} if columns is None else _as_columns(columns)
        self.load()
        _datasets.add(self)
        if 'axis_labels' not in kwargs:
            kwargs['axis_labels'] = self.readers.axis_labels()
        super().__init__(which_sets, None, self._used, **kwargs)
        self.provides_sources = tuple(self.columns)

    def load(self) -> None:
        """Open the files."""
        for access in self._accesses:
            # Close the file first, so that a replaced file is opened anew.
            access.close()
        opened = open_all(self._accesses)
        for access, file in zip(self._accesses, opened, strict=True):
            with naming_file(access.path):
                _refuse_own_format(access.path, file.file)
        files = LinkedFiles(
            opened, [access.path for access in self._accesses],
            self.follow == 'anywhere')
        parts = FileParts(
            files, PartNames(files, self.parts, self.missing == 'skip'),
            self._runs, self.cache_bytes)
        besides = names_in(self._runs)
        if not self.columns:
            if isinstance(self._splits, str):
                besides.append(self._splits)
            if self.parts is None and not self._used:
                refuse_other_arrays(files, besides)
            self.columns = dict(default_columns(parts, besides, self._used))
        self._used = self._used or tuple(self.columns)
        for source in self._used:
            hint = source not in self.columns and parts.field_hint(
                0, str(source))
            if hint:
                raise ValueError(
                    f'there is no source {source!r}{hint}; name it among '
                    f'the columns')
        refuse_unknown_sources(self._used, tuple(self.columns))
        readers = OpenColumns(parts, Wanted(
            self.columns, self._used, self._splits, self.which_sets,
            self.missing))
        for name in names_in(self._runs):
            # Only the first part is checked here; the others raise the error
            # when runs are looked up.
            parts.array(0, name)
        self.readers, self._order = readers, readers.order

    def _find_order(self, num_rows: int,
                    splits: Mapping[str, Any] | None) -> Order:
        order: Order = self.readers.order
        return order

    def read_stored(self, name: str) -> Any:
        """Return all rows of a source, or of an array in the files, one part
        after the other."""
        if name in self.columns:
            return self.readers[name].read(slice(None))
        parts = self.readers.parts
        return numpy.concatenate([
            parts.read(number, name) for number in range(len(parts))])

    def places_of_rows(self, rows: IndexArray) -> RowPlaces:
        """Return the files and the groups that rows lie in."""
        parts = self.readers.parts
        part, row = split_rows(parts.bounds, rows)
        return RowPlaces(
            parts.files.paths, parts.names.names,
            numpy.asarray(parts.names.file_numbers)[part], part, row)

    def _check_renewed(self, before: Any, now: Any) -> None:
        for path, count, new in zip(
                now.parts.files.paths, before.parts.rows_of_files(),
                now.parts.rows_of_files(), strict=True):
            check_same_length(path, count, new)
        super()._check_renewed(before, now)
        for what, value in now.summary().items():
            if before.summary()[what] != value:
                raise StateMismatchError(
                    f'{self._accesses[0].path!r} has other {what} than it '
                    f'had when the data set was made: it is another file, or '
                    f'was made again; make the data set again too')

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        _datasets.add(self)

    def close(self, state: Any) -> None:
        """Close the files, which are opened again when they are used."""
        self._forget()
        vars(self).pop('_readers', None)
        for access in self._accesses:
            access.close()

    def reset(self, state: Any) -> Any:
        """Return the state for a fresh start; the files stay open."""
        return state

    @property
    def storage_options(self) -> StorageOptions | None:
        """Options of remote files, without credentials; None for local
        files. Assign options with credentials to an unpickled data set."""
        return self._accesses[0].storage_options

    @storage_options.setter
    def storage_options(self, options: StorageOptions) -> None:
        for access in self._accesses:
            access.storage_options = options
        self.close(None)

    @property
    def runs(self) -> IndexArray:
        """The bounds of the runs: run i has the examples from ``runs[i]`` to
        ``runs[i + 1] - 1`` (array of shape (runs + 1,), dtype intp).

        If splits are used, each run is a stretch of consecutive rows of one
        run of the files, as long as possible.
        """
        return self.find_uncut_runs()[0]

    def find_uncut_runs(self) -> tuple[IndexArray, IndexArray]:
        """Return the bounds of the runs of the examples, and the number of
        each run among the runs of all rows."""
        return cut_runs(self.readers.parts.find_runs(), self._order)

    def run_attributes(self, name: str) -> list[Any]:
        """Return an attribute of the group or file of each run.

        Parameters
        ----------
        name : str

        Returns
        -------
        list
            One value for each run of :attr:`runs`.

        Raises
        ------
        ValueError
            If a part has no such attribute, or a run extends over several
            parts.
        """
        readers: OpenColumns = self.readers
        return readers.parts.attributes(name, self.find_uncut_runs()[1])

    @property
    def split_names(self) -> tuple[str, ...]:
        """Names of the splits (tuple of str)."""
        return tuple(self.readers.splits)

    @property
    def categories(self) -> dict[str, tuple[Any, ...]]:
        """For each source of categories, the names of its codes (dict). The
        code -1, for a missing value, has no name."""
        readers: OpenColumns = self.readers
        return readers.categories(self.columns)

    def known_types(self) -> SourceTypes:
        """Return types and shapes of the sources that are open."""
        readers = vars(self).get('_readers', {})
        return {source: self.columns[source].type_of(reader)
                for source, reader in readers.items()}

    def kept_arguments(self) -> Mapping[str, object]:
        """Return checksums of columns, parts, runs and splits."""
        return {**self.readers.summary(),
                'columns': ', '.join(f'{source}: {self.columns[source]!r}'
                                     for source in self.sources)}

    def details(self) -> Sequence[str]:
        """Return the files, and the numbers of parts, runs and splits."""
        found = shown_paths([access.path for access in self._accesses])
        readers = vars(self).get('_readers')
        if readers is not None:
            if self.parts is not None:
                found.append(f'{len(readers.parts)} parts')
            if readers.splits:
                found.append(f'has splits {", ".join(readers.splits)}')
        return [*found, *super().details()]

    def __repr__(self) -> str:
        """Return the call that makes the data set."""
        return shown_call(type(self).__name__, self.files, self.columns, {
            'parts': self.parts, 'runs': self._runs, 'splits': self._splits,
            'which_sets': self.which_sets,
            'storage_options': try_call(
                None, lambda: self.storage_options) or None,
            'sources': vars(self).get('_sources'), 'missing': self.missing,
            'follow': self.follow, 'cache_bytes': self.cache_bytes})


def _let_go(dataset: HDF5Dataset) -> None:
    """Drop the files that a forked child has inherited; it opens them for
    itself."""
    dataset._forget()
    vars(dataset).pop('_readers', None)


_datasets: weakref.WeakSet[HDF5Dataset] = weakref.WeakSet()
at_fork(Step.OWNERSHIP, in_child=for_each(_datasets, _let_go))


def _as_pattern(parts: object) -> str | None:
    """Return a pattern of groups without slashes at its ends."""
    if parts is None:
        return None
    pattern = parts.strip('/') if isinstance(parts, str) else ''
    if not pattern:
        raise ValueError(
            "parts must be a pattern of groups, such as 'data/demo_*', got "
            f'{parts!r}')
    return pattern


def _as_columns(columns: Columns) -> dict[str, FileColumn]:
    """Return a dict from sources to their columns."""
    given = named_columns(columns)
    named = dict(given)
    if len(named) < len(given):
        several = ', '.join([repr(column) for _, column in given])
        raise ValueError(
            'a column is there twice, so one needs another name, as in '
            f"{{'name': ...}}: {several}")
    if not named:
        raise ValueError('at least one column is needed, got none')
    for source, column in named.items():
        if not isinstance(source, str) or not isinstance(
                column, (str, FileColumn)):
            raise ValueError(
                f'columns must be paths of arrays or columns such as '
                f'Rows(path), got {source!r}: {column!r}')
    return {source: Rows(column) if isinstance(column, str) else column
            for source, column in named.items()}


def _refuse_own_format(path: str, file: h5py.File) -> None:
    """Refuse a file in Fuel's own format."""
    if 'split' in file.attrs:
        splits: tuple[str, ...] = try_call(('train',), all_splits, file)
        raise ValueError(
            f"{path!r} has the attribute 'split', so it is in Fuel's own "
            f'format: read it with H5PYDataset({path!r}, {splits[:1]})')


def default_columns(parts: FileParts, besides: Sequence[str],
                    wanted: Sequence[str]) -> dict[str, Rows]:
    """Return a column for each array of the first part that has the common
    length.

    `besides`: paths that are left out, together with the arrays below them.
    `wanted`: names of arrays. If arrays differ in length, the common length is
        the length of one of these.
    """
    hidden = tuple([f'{path.strip("/")}/' for path in besides])
    lengths: dict[int, list[str]] = {}
    with naming_file(parts.path_of(0)):
        for path, array in find_arrays(
                parts.group(0), parts.files.open_linked):
            if array.size and not f'{path}/'.startswith(hidden):
                lengths.setdefault(len(array), []).append(path)
    for paths in lengths.values():
        if len(lengths) == 1 or {*wanted} & {*paths}:
            return {path: Rows(path)
                    for path in sorted(paths, key=natural_key)}
    if not lengths:
        raise ValueError(f'{parts.describe(0)} has no arrays with an example '
                         f'in each row')
    found = [f'of {count}: {", ".join(map(repr, paths[:SHOWN]))}'
             + ', ...' * (len(paths) > SHOWN)
             for count, paths in sorted(lengths.items())]
    raise ValueError(
        f'{parts.describe(0)} has arrays of several lengths, so their rows '
        f'are not examples of one data set ({"; ".join(found[:SHOWN])}'
        f'{"; ..." * (len(found) > SHOWN)}): name the arrays that are '
        f'examples of one data set, as in columns=[...]')
