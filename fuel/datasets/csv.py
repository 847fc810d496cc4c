"""Data sets in CSV files."""
from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import numpy
from numpy.typing import NDArray

from fuel.datasets.cells import (
    cell_array, cell_type, is_header, is_marker, markers_in,
    names_of_columns, short_cell, without_markers)
from fuel.datasets.options import DatasetOptions
from fuel.datasets.records import (
    SAMPLE, TEXT, RecordFile, RecordIndex, RecordsDataset, by_source,
    long_cells, warn_of_rounding)
from fuel.datasets.rows_dataset import masks_of, with_masks
from fuel.datasets.times import advice_on_times, check_unit
from fuel.describe import SourceType, SourceTypes
from fuel.exceptions import StateMismatchError
from fuel.remote.location import as_path
from fuel.remote.urls import StorageOptions
from fuel.utils import do_not_pickle_attributes
from fuel.utils.other_libraries import CSV_KEYWORDS, checked_path
from fuel.utils.warn import warn_user

__all__ = ['CSVDataset']

# No floating number has more before its point.
MOST_DIGITS = 400


@do_not_pickle_attributes('records')
class CSVDataset(RecordsDataset):
    """A data set in a CSV file.

    The file is searched once for where its records start, which takes 16
    bytes of memory each; then the records of a request are read and parsed.
    So it may be larger than memory. For many epochs over numbers,
    converting it to HDF5 or ``.npy`` is faster.

    Parameters
    ----------
    columns : dict or list, optional
        Maps sources to a column or a list of columns, by name or by number
        from 0. Several columns become the second axis of a batch. A list of
        names makes a source of each. Defaults
        to a source for each column, under its name, or ``column_0`` and so
        on where there is no header.
    dtypes : dict, optional
        Maps sources to types; `object` is text. A source that is not named
        is integer, floating, bool (``true`` and ``false``), datetime64 (ISO
        8601) or text, whichever fits its first 1000 cells. In a floating
        column, empty cells are NaN, among times NaT. The unit of a type of
        times says how they are written: ``datetime64[Y]`` as ``2024``,
        ``[M]`` as ``2024-02``, ``[D]`` as ``2024-02-29``, and finer ones as
        such a date or as ``2024-02-29T12:30:00.5``, where up to nine digits
        and a zone may follow, which is read in UTC.
    masks : tuple of str, optional
        Sources of which another one, called ``NAME_mask``, tells where there
        is a value: it is False for empty cells. So integers stay integers,
        and are 0 there, truth values False. Defaults to none.
    header : bool, optional
        Whether the first record holds the names of the columns. Defaults to
        None: it does if none of its cells is a number or empty, or it has
        text above numbers; with a warning where others of its cells are
        numbers, as in a first example of which a value is missing. An empty
        name, such as pandas writes above its index, is ``index`` in the first
        column, and ``column_3`` in that of number 3.
    missing : tuple of str, optional
        Texts such as ``'NA'`` that stand for a missing value: a cell that is
        one of them, but for blanks around it, is read as an empty one.
        Defaults to none. A column that is text only because of such a text
        that is well known is a warning.
    which_sets, splits
        As for :class:`~fuel.datasets.npy.NPYDataset`; rows are counted from
        0, without the header.
    delimiter : str, optional
        Defaults to a comma.
    quote : str, optional
        The character around cells that hold delimiters or line breaks.
        Defaults to ``'"'``; None for files that do not quote.
    encoding : str, optional
        Any in which a line break is one byte. Defaults to ``'utf-8'``; a
        byte order mark is left out.
    storage_options : dict, optional
        As for :class:`~fuel.datasets.hdf5.H5PYDataset`, of a URL.
    sources, axis_labels
        Arguments of :class:`Dataset`, `sources` and `axis_labels`.

    Attributes
    ----------
    num_examples : int
    dtypes : dict of str to numpy.dtype
        What each source was found, or said, to be.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        With file and line, if a record has more or fewer cells than the
        first, or a cell is not of its source's type.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'iris.csv')
    >>> with open(path, 'w') as file:
    ...     print('length,width,kind', file=file)
    ...     print('5.1,3.5,setosa', file=file)
    ...     print('6,3,other', file=file)
    >>> dataset = CSVDataset(path, {'features': ['length', 'width'],
    ...                             'targets': 'kind'})
    >>> dataset.get_data(None, [1, 0])
    (array([[6. , 3. ],
           [5.1, 3.5]]), array(['other', 'setosa'], dtype=object))
    >>> folder.cleanup()
    """

    instead_of: Mapping[str, str] = {
        **RecordsDataset.instead_of, **CSV_KEYWORDS}

    def __init__(self, path: Any,
                 columns: Mapping[str, Any] | Sequence[str] | None = None,
                 dtypes: Mapping[str, Any] | None = None,
                 header: bool | None = None,
                 masks: Sequence[str] | str = (),
                 which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 delimiter: str = ',', quote: str | None = '"',
                 encoding: str = 'utf-8',
                 storage_options: StorageOptions | None = None,
                 missing: Sequence[str] | str = (),
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self.path = as_path(
            checked_path('CSVDataset', path), storage_options)
        self.delimiter, self.quote = delimiter, quote
        self.encoding = encoding
        self.load()
        sample = self._sample(SAMPLE + 1)
        self.header = is_header(sample) if header is None else header
        if header is None and self.header and sample[0][0].strip() and any(
                cell_type([cell]) != TEXT for cell in sample[0]):
            warn_user(
                f'{self.path}: the first record, {", ".join(sample[0]):.80}, '
                f'has numbers, and is taken for the names of the columns: '
                f'pass header=True if it holds them, or header=False if it '
                f'is an example')
        names = names_of_columns(sample[0]) if self.header else [
            f'column_{number}' for number in range(len(sample[0]))]
        self._missing = frozenset(
            [missing] if isinstance(missing, str) else missing)
        self._titles = names
        hint = _other_delimiter(sample, delimiter)
        if hint and columns is None:
            warn_user(f'{self.path} has a single column, '
                          f'{names[0]!r:.80}: {hint}')
        try:
            self._columns = _numbers(columns, names, self.path)
        except ValueError as error:
            if hint:
                raise ValueError(f'{error}; {hint}') from error
            raise
        self._masks = masks_of(masks, self._columns)
        self.provides_sources = with_masks(self._columns, self._masks)
        num_rows = len(self.records.index) - self.header
        if not num_rows:
            raise ValueError(f'{self.path} has no records beside its header')
        super().__init__(num_rows, which_sets, splits, **kwargs)
        self.dtypes = self._find_types(dtypes or {}, [
            without_markers(cells, self._missing)
            for cells in sample[self.header:]])

    def load(self) -> None:
        """Open the file and find its records."""
        file = self._open('CSV')
        self.records = RecordFile(file, RecordIndex(
            file, self.quote, self.delimiter), partial(
                _cells, self.encoding, self.delimiter, self.quote))
        file.check()

    def _find_types(self, given: Mapping[str, Any],
                    sample: list[list[str]]) -> dict[str, Any]:
        for source in given:
            if source not in self._columns:
                raise ValueError(f'dtypes names {source!r}, but the sources '
                                 f'are {tuple(self._columns)}')
        types = {}
        for source, (numbers, _) in self._columns.items():
            if source in given:
                types[source] = numpy.dtype(given[source])
                check_unit(types[source], source)
            else:
                cells = [
                    row[number].strip() for row in sample
                    for number in numbers if number < len(row) and (
                        f'{source}_mask' not in self._masks
                        or row[number].strip())]
                types[source] = cell_type(cells)
                if types[source].kind == 'f':
                    warn_of_rounding(self.path, source, [
                        # Python makes no integer of thousands of digits.
                        int(cell[:MOST_DIGITS]) for cell in cells
                        if cell.lstrip('+-').isdecimal()])
                if types[source] == TEXT:
                    self._check_markers(source, sample)
                    self._check_mixture(source, sample)
        return types

    def _check_markers(self, source: str, sample: list[list[str]]) -> None:
        """Warn if a source is text only because of what programs write for
        missing values."""
        for number in self._columns[source][0]:
            cells = [row[number] for row in sample if number < len(row)]
            markers = markers_in(cells)
            if markers:
                are_truths = cell_type([
                    cell for cell in without_markers(cells, frozenset(markers))
                    if cell.strip()]).kind == 'b'
                masks = f' and masks=({source!r},)' if are_truths else ''
                warn_user(
                    f'{self.path}: column {self._titles[number]!r} is text '
                    f'because of {", ".join(map(repr, markers))}: pass '
                    f'missing={markers}{masks} if that stands for missing '
                    f'values, or dtypes={{{source!r}: object}}')
                return

    def _check_mixture(self, source: str, sample: list[list[str]]) -> None:
        """Warn if the columns of a source of text are not all text."""
        titles: dict[bool, list[str]] = {True: [], False: []}
        for number in self._columns[source][0]:
            cells = [row[number] for row in sample if number < len(row)]
            if any(cell.strip() for cell in cells):
                titles[cell_type(cells) == TEXT].append(self._titles[number])
        if all(titles.values()):
            warn_user(
                f'{self.path}: source {source!r} has columns of text, '
                f'{titles[True]}, so the numbers of its columns '
                f'{titles[False]} come as strings too: put the columns of '
                f'text into a source of their own with columns=..., or pass '
                f'dtypes={{{source!r}: object}} if all are to be strings')

    def known_types(self) -> SourceTypes:
        """Return the types of the sources."""
        shapes = {source: (len(numbers),) if is_list else () for source, (
            numbers, is_list) in self._columns.items()}
        types = {source: SourceType(dtype, shapes[source])
                 for source, dtype in self.dtypes.items()}
        masks = {mask: SourceType(numpy.dtype(bool), shapes[source])
                 for mask, source in self._masks.items()}
        return {**types, **masks}

    def _check_renewed(self) -> None:
        titles = names_of_columns(self._sample(1)[0]) if (
            self.header) else self._titles
        if titles != self._titles:
            raise StateMismatchError(
                f'{self.path} had the columns {self._titles} when the data '
                f'set was made, and now has {titles}: make the data set '
                f'again')

    def _find(self, numbers: NDArray[numpy.intp]) -> list[Any]:
        found = super()._find(numbers)
        for record, row in zip(numbers, found, strict=True):
            if len(row) != len(self._titles):
                raise ValueError(
                    f'{self.records.where(record)}: {len(self._titles)} cells '
                    f'are expected, as in the first line, got {len(row)}')
        return [without_markers(row, self._missing) for row in found] if (
            self._missing) else found

    def _convert(self, source: str, numbers: NDArray[numpy.intp],
                 records: list[list[str]]) -> NDArray[Any]:
        """Return the cells of a source as an array."""
        columns, is_list = self._columns[source]
        dtype = self.dtypes[source]
        cells = [row[column] for row in records for column in columns]
        if f'{source}_mask' in self._masks:
            blank = {'b': 'false', 'i': '0', 'u': '0'}.get(dtype.kind, '')
            cells = [cell if cell.strip() else blank for cell in cells]
        try:
            batch = cell_array(cells, dtype)
        except (ValueError, OverflowError):
            self._refuse(source, numbers, records)
            raise
        return batch.reshape(-1, len(columns)) if is_list else batch

    def _is_there(self, source: str, numbers: NDArray[numpy.intp],
                  records: list[list[str]]) -> NDArray[numpy.bool_]:
        columns, is_list = self._columns[source]
        found = numpy.array([bool(row[column].strip()) for row in records
                             for column in columns])
        return found.reshape(-1, len(columns)) if is_list else found

    def _refuse(self, source: str, records: NDArray[numpy.intp],
                rows: list[list[str]]) -> None:
        """Raise an error that names the first cell of another type."""
        dtype = self.dtypes[source]
        for record, row in zip(records, rows, strict=True):
            for number in self._columns[source][0]:
                try:
                    cell_array([row[number]], dtype)
                except (ValueError, OverflowError) as error:
                    cell = row[number].strip()
                    advice = (
                        f'pass missing=({cell!r},), if that stands for a '
                        f'missing value, or dtypes={{{source!r}: ...}}'
                        if is_marker(cell) else
                        advice_on_times(source, dtype)
                        if cell and dtype.kind == 'M' else
                        f'pass dtypes={{{source!r}: ...}}' if cell
                        else f'pass masks=({source!r},), for a source '
                             f'{source}_mask that is False where none is')
                    raise ValueError(
                        f'{self.records.where(record)}, column {number} '
                        f'({self._titles[number]}): '
                        f'{short_cell(row[number])} is no {dtype}, which '
                        f'source {source!r} is (by its first {SAMPLE} '
                        f'cells, or as given): {advice}'
                    ) from error


def _cells(encoding: str, delimiter: str, quote: str | None,
           content: bytes) -> list[str]:
    """Return the cells of one record."""
    text = content.decode(encoding)
    if len(text) > csv.field_size_limit():
        with long_cells(len(text)):
            return _cells(encoding, delimiter, quote, content)
    quotes: Any = ({'quoting': csv.QUOTE_NONE} if quote is None
                   else {'quotechar': quote})
    # Not `splitlines`: text may hold separators of Unicode.
    rows = csv.reader(io.StringIO(text.rstrip('\r\n'), newline=''),
                      strict=True, delimiter=delimiter, **quotes)
    try:
        cells = next(rows)
        more = next(rows, None)
    except (csv.Error, StopIteration) as error:
        raise ValueError(error) from error
    if more is not None:
        raise ValueError(
            'another record begins where none should: by a line that ends in '
            'a carriage return alone, or a quote inside of a cell; if the '
            'file does not quote, pass quote=None')
    return cells


def _other_delimiter(sample: list[list[str]], present: str) -> str:
    """Return the advice to choose another delimiter, if each record has one
    cell, with the same number of them."""
    if any(len(cells) != 1 for cells in sample):
        return ''
    for delimiter in (';', '\t', '|'):
        if delimiter == present:
            # Cells that hold it are quoted.
            continue
        counts = {cells[0].count(delimiter) for cells in sample}
        if len(counts) == 1 and counts != {0} and len(sample) > 1:
            return f'did you mean delimiter={delimiter!r}?'
    return ''


def _numbers(columns: Mapping[str, Any] | Sequence[str] | None,
             names: list[str], path: str) -> dict[str, tuple[list[int], bool]]:
    """Return the numbers of each source's columns, and whether a list was
    given."""
    if columns is None:
        if len(set(names)) < len(names):
            raise ValueError(
                f'{path}: two columns have one name, {names}; pass columns='
                f'{{source: number of column, ...}}')
        columns = {name: number for number, name in enumerate(names)}
    found = {}
    for source, wanted in by_source(columns).items():
        is_list = isinstance(wanted, list | tuple)
        found[source] = ([_number(one, names, path) for one in (
            wanted if is_list else [wanted])], is_list)
    return found


def _number(column: Any, names: list[str], path: str) -> int:
    if isinstance(column, str) and names.count(column) == 1:
        return names.index(column)
    if isinstance(column, int) and 0 <= column < len(names):
        return column
    if column in names:
        raise ValueError(f'{path} has {names.count(column)} columns '
                         f'{column!r}; name one by its number, from 0')
    raise ValueError(f'{path} has no column {column!r}; the columns are '
                     f'{names}')
