"""Data sets in Arrow tables and Parquet files."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias, Unpack

import numpy
import pyarrow
from numpy.typing import NDArray

from fuel.datasets.columns.part_names import files_in_order, shown_paths
from fuel.datasets.options import DatasetOptions
from fuel.datasets.rows import check_same_length
from fuel.datasets.sources import RowPlaces, places_in_files
from fuel.datasets.source_dataset import (
    RowsDataset, as_budget, by_source, masks_of, with_masks)
from fuel.exceptions import StateMismatchError
from fuel.interop.arrow.files import (
    Tables, as_divided_table, as_table, class_names_of, classes_of, differs,
    is_divided, paths_of, tables_by_split)
from fuel.interop.arrow.parts import (
    Column, ArrowPart, TablePart, columns_of_all, open_tables)
from fuel.remote.location import WithStorageOptions
from fuel.remote.urls import StorageOptions
from fuel.storage import Reader
from fuel.storage.file_bytes import Versioned, join_files
from fuel.storage.grouped import Groups, NoFile, ReadGroup, open_groups
from fuel.utils import do_not_pickle_attributes


#: Reads a group of a column.
ReadColumn: TypeAlias = Callable[[Column, int], NDArray[Any]]
#: The argument `columns`: a dict from sources to columns, or names of columns.
Columns: TypeAlias = Mapping[str, str | Sequence[str]] | Sequence[str]


@do_not_pickle_attributes('readers')
class ArrowDataset(RowsDataset, WithStorageOptions):
    """A data set in Parquet files, Arrow files or a table in memory.

    Parameters
    ----------
    data : str, path-like, list of them, or table
        A Parquet or Arrow (IPC, Feather) file, or its URL; a list of files,
        a pattern such as ``'data/*.parquet'``, or a folder; or a table. The
        files of a pattern or a folder are read in natural order. Folders
        named ``name=value`` become columns. A table is a table of PyArrow, a
        data frame of pandas, a data set of Hugging Face, or any object that
        exports Arrow. `which_sets` chooses among the data sets of a
        ``DatasetDict`` of Hugging Face. It also chooses among splits after
        which files or folders are named, such as the folders that
        ``DatasetDict.save_to_disk`` writes.
    columns : list of str or dict, optional
        Names of the columns that become sources; or a dict from each source
        to the name of a column or a list of names. The columns of a list
        must hold numbers, and become the second axis of a batch. Defaults to
        all columns.
    which_sets, splits
        As for :class:`~fuel.datasets.npy.NPYDataset`.
    cache_bytes : int, optional
        Bytes of decoded row groups of these files that may be cached in this
        process, for all data sets that read the files. Defaults to None: the
        limit is the setting ``chunk_cache_bytes``, which is shared with all
        other files without a number of their own. Data that fit in the cache
        are decoded once. For larger data, use an order that stays within a
        few row groups, such as :class:`~fuel.schemes.BlockShuffledScheme`. If
        there is only one row group, it stays in memory, whatever
        `cache_bytes` is.
    masks : str or sequence of str, optional
        Sources whose nulls become 0 or False, if NumPy's type has no nulls.
        Each is followed by a source ``NAME_mask``, which is False for nulls.
    storage_options : dict, optional
        Options for URLs, as for :class:`~fuel.datasets.hdf5.H5PYDataset`.
    sources, axis_labels
        Arguments of :class:`~fuel.datasets.Dataset`, `sources` and
        `axis_labels`.

    Attributes
    ----------
    num_examples : int
    storage_options : dict or None
        The options without credentials; None for local files. Assign the
        options with credentials to it after unpickling.
    readers : dict of str to Reader
    categories : dict of str to tuple
        The names of the classes of each source that is a `ClassLabel` of
        Hugging Face, also in files that Hugging Face wrote.

    Raises
    ------
    FileNotFoundError
        If a file is missing, or a folder has no file of these formats.
    DamagedFileError
        If a file has another format, is damaged, or was changed while in
        use.
    TypeError
        If `data` is neither a path nor a table.
    ValueError
        If a folder has several splits and none is named, a column does not
        exist, a file has other columns than the first file, a column that is
        read has nulls that its NumPy type cannot hold, or a data set of
        Hugging Face has a format that changes the values.

    Notes
    -----
    Numbers, truth values and times become arrays. Lists of a fixed size and
    tensors become arrays with more axes. Nulls among floats are NaN. Text,
    lists of different lengths, structures and times with a time zone become
    arrays of objects, in which a list of numbers is an array. Only the
    columns of `sources` are decoded, row group by row group; a row group is
    validated when it is first read. A pickle holds the paths, or the table.

    Examples
    --------
    This needs the extra ``arrow``.

    >>> import pyarrow
    >>> table = pyarrow.table({'x': [1., 2., 3.], 'y': ['a', 'b', 'c']})
    >>> dataset = ArrowDataset(table)
    >>> dataset.get_data(None, [2, 0])
    (array([3., 1.]), array(['c', 'a'], dtype=object))
    """

    unsaved_arguments = ('cache_bytes', 'storage_options')
    paths_in = '_paths'

    def __init__(self, data: Tables,
                 columns: Columns | None = None,
                 which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 cache_bytes: int | None = None,
                 masks: Sequence[str] | str = (),
                 storage_options: StorageOptions | None = None,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self._paths = paths_of(data, storage_options)
        by_split = {} if splits is not None else tables_by_split(
            data, self._paths or (), which_sets, 'which_sets=({},)')
        if by_split.keys() >= set(which_sets or ()):
            # Files of other splits may have other columns: do not open them.
            by_split = {name: by_split[name] for name in which_sets or ()}
        if by_split:
            self._paths = [
                path for paths in by_split.values() for path in paths]
        if self._paths is not None:
            self._table = None
        elif is_divided(data) and which_sets is not None and splits is None:
            self._table, splits = as_divided_table(data)
        else:
            self._table = as_table(data)
        self.columns = columns
        self.masks = masks
        self.cache_bytes = as_budget(cache_bytes)
        self._load_for(kwargs.get('sources'))
        if by_split:
            lasts = numpy.cumsum([len(paths) for paths in by_split.values()])
            bounds = self._bounds[[0, *lasts]].tolist()
            splits = dict(zip(by_split, pairwise(bounds), strict=True))
        super().__init__(which_sets, splits, tuple(self.readers), **kwargs)

    def load(self) -> None:
        """Open the files."""
        parts = ([TablePart(self._table)] if self._paths is None
                 else open_tables(self._paths))
        named: Columns | None = self.columns
        if named is None:
            named = columns_of_all(parts, self._asked)
            if not named:
                raise ValueError(f'{parts[0].path} has no columns')
        columns = by_source(named)
        bounds = numpy.cumsum([0, *[part.num_rows for part in parts]])
        categories = _classes(parts, columns)
        self._check_files(parts, bounds, categories)
        files = [file for part in parts for file in part.files]
        file: Versioned = join_files(files) if files else NoFile(
            parts[0].path)
        masks = masks_of(self.masks, columns)
        readers: dict[str, Reader] = {}
        for name in with_masks(columns, masks):
            how = (Column.read_mask if name in masks else
                   Column.read_blanked if f'{name}_mask' in masks
                   else Column.read)
            readers[name] = open_groups(_groups(
                parts, name, columns[masks.get(name, name)], file, how),
                self.cache_bytes)
        self.readers = readers
        self._bounds, self._categories = bounds, categories
        self._part_paths = [part.path for part in parts]

    def _check_files(self, parts: Sequence[ArrowPart],
                     bounds: NDArray[numpy.intp],
                     categories: Mapping[str, tuple[str, ...]]) -> None:
        """Raise an error if files differ from those that were opened first.

        They differ if a file has another number of rows, or other class
        names.
        """
        if '_bounds' not in vars(self):
            return
        for part, count, now in zip(
                parts, numpy.diff(self._bounds).tolist(),
                numpy.diff(bounds).tolist(), strict=True):
            check_same_length(part.path, count, now)
        source = differs(self._categories, categories)
        if source is not None:
            raise StateMismatchError(
                f'{parts[0].path!r} has other names for the classes of '
                f'{source!r} than when the data set was made: it is another '
                f'file, or was made again; make the data set again too')

    def kept_arguments(self) -> Mapping[str, object]:
        """Return the arguments; for several files, the order of the files
        too."""
        return {**super().kept_arguments(), **files_in_order(
            [each.path for each in self._paths or ()])}

    def places_of_rows(self, rows: NDArray[numpy.intp]) -> RowPlaces | None:
        """Return the files of rows, and their numbers in them."""
        return None if self._paths is None else places_in_files(
            self._part_paths, self._bounds, rows)

    @property
    def categories(self) -> dict[str, tuple[Any, ...]]:
        """The class names of each source that has class names (dict)."""
        return self._categories

    @property
    def class_names(self) -> Any:
        """The names of the classes (tuple of str); None if there are none.

        They are those of 'targets', 'labels' or 'fine_labels', or of the only
        source with class names.
        """
        return class_names_of(self.categories, self.sources)

    def details(self) -> Sequence[str]:
        """Return the files and the splits."""
        where = ['a table in memory'] if self._paths is None else (
            shown_paths([each.path for each in self._paths]))
        return [*where, *super().details()]


def _classes(parts: Sequence[ArrowPart],
             columns: Mapping[str, str | Sequence[str]],
             ) -> dict[str, tuple[str, ...]]:
    """Return the class names of each source that has class names.

    Raises: ValueError if files have different names for one class.
    """
    found: dict[str, tuple[str, ...]] = {}
    for number, part in enumerate(parts):
        names = classes_of(part.schema)
        names = {source: names[column] for source, column in columns.items()
                 if isinstance(column, str) and column in names}
        found = found if number else names
        source = differs(found, names)
        if source is not None:
            raise ValueError(
                f'{part.path} has other names for the classes of '
                f'{columns[source]!r} than {parts[0].path}, where the same '
                f'numbers stand for others: make a data set of each')
    return found


def _groups(parts: Sequence[ArrowPart], source: str,
            named: str | Sequence[str], file: Versioned,
            how: ReadColumn) -> Groups:
    """Return the groups of a source that has one or several columns.

    `how`: method that reads a group of a column: its rows or its mask.
    """
    names = list(named) if isinstance(
        named, Iterable) and not isinstance(named, str) else [named]
    columns = [Column(parts, name) for name in names]
    first = columns[0]
    read: ReadGroup = partial(how, first)
    dtype, shape = first.dtype, first.shape
    if not isinstance(named, str):
        if any(each.dtype.kind not in 'biuf' or each.shape
               or each.lengths != first.lengths for each in columns):
            raise ValueError(
                f'the columns {names} of source {source!r} cannot be one '
                'array: they must be plain numbers, in equal chunks '
                '(table.combine_chunks() makes one)')
        dtype = numpy.result_type(*[each.dtype for each in columns])
        shape = (len(names),)

        def read_all(group: int) -> NDArray[Any]:
            return numpy.stack([how(each, group) for each in columns],
                               1).astype(dtype, copy=False)

        read = read_all
    if how is Column.read_mask:
        dtype = numpy.dtype(bool)
        shape = () if isinstance(named, str) else (len(names),)

    return Groups(
        parts[0].path, source, (sum(first.lengths), *shape), dtype,
        first.lengths, read, file, first.part_of_group,
        (tuple(names), isinstance(named, str), how.__name__, dtype.str,
         tuple([each.constants for each in columns])),
        first.check)


def from_pandas(frame: object, **kwargs: Any) -> ArrowDataset:
    """Return a data frame as a data set.

    Parameters
    ----------
    frame : pandas.DataFrame
        Its columns are the sources; its index is left out.
    **kwargs
        Arguments of :class:`ArrowDataset`.

    Returns
    -------
    ArrowDataset
    """
    pandas = sys.modules.get('pandas')
    if pandas is None or not isinstance(frame, pandas.DataFrame):
        raise TypeError('frame must be a pandas.DataFrame, got '
                        f'{type(frame).__name__}')
    return ArrowDataset(pyarrow.Table.from_pandas(
        frame, preserve_index=False), **kwargs)
