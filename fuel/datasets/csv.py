"""Data sets in CSV files."""
from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Unpack

import numpy
from numpy.typing import NDArray

from fuel.datasets.cells import (
    CellColumn, Kinds, cell_array, cell_type, filled, integers_in, is_header,
    is_marker, names_of_columns, short_cell, without_markers)
from fuel.datasets.columns.part_names import fixed_files
from fuel.datasets.json_values import is_object
from fuel.datasets.options import DatasetOptions
from fuel.datasets.records import (
    SAMPLE, TEXT, FirstRecords, RecordFile, RecordIndex, RecordsDataset,
    long_cells, types_of_fields)
from fuel.datasets.source_dataset import by_source, texts_in
from fuel.datasets.text_files import check_line_ends
from fuel.datasets.times import advice_on_times, check_unit
from fuel.describe import SourceType
from fuel.exceptions import StateMismatchError
from fuel.remote.urls import StorageOptions
from fuel.storage.file_bytes import FileBytes
from fuel.suggestions import unlike_first
from fuel.utils import do_not_pickle_attributes
from fuel.utils.checks import truth
from fuel.utils.other_libraries import CSV_KEYWORDS
from fuel.utils.warn import warn_user

__all__ = ['CSVDataset']

# Records of more bytes are parsed in a way that takes less memory.
LONG = 1 << 20
ANOTHER = (
    'a record begins inside of another one: a line ends in a carriage return '
    'alone, or a cell has a quote inside; if the file does not quote, pass '
    'quote=None')


@do_not_pickle_attributes('records')
class CSVDataset(RecordsDataset):
    """A data set in a CSV file, or in several, one after the other.

    The file is searched once for the starts of its records; this index takes
    16 bytes of memory for each record. Then only the records of a request are
    read and parsed. So the file may be larger than memory. To read numbers in
    many epochs, it is faster to convert the file to HDF5 or ``.npy``.

    Parameters
    ----------
    path : str, path-like or list of them
        A file, its URL, a list of files, or a pattern such as
        ``'data/*.csv'``: its files come in natural order. All files have the
        same columns.
    columns : dict or list, optional
        A dict maps each source to a column or to a list of columns, by name or
        by number from 0. Several columns become the second axis of a batch. A
        list makes a source of each column that it names. By default each
        column is a source with the name of the column; without a header the
        names are ``column_0`` and so on.
    dtypes : dict, optional
        Maps sources to types; `object` is text. A source that is not named is
        integer, floating, bool (``true`` and ``false``), datetime64 (ISO 8601)
        or text, whichever fits its first 1000 cells of each file. Empty cells
        are NaN in a floating column, and NaT in a column of times. The unit of
        a type of times determines how the times must be written: ``2024`` for
        ``datetime64[Y]``, ``2024-02`` for ``[M]``, ``2024-02-29`` for ``[D]``.
        For a finer unit, a time is such a date, or a date and a time of day
        such as ``2024-02-29T12:30:00.5``, with up to nine digits after the
        point. A zone may follow; the time is then converted to UTC.
    masks : tuple of str, optional
        Sources that may lack values. For each of them there is another source,
        ``NAME_mask``, which is False for empty cells. A source of integers
        then stays a source of integers: an empty cell is 0. In a source of
        truth values it is False. Defaults to none.
    header : bool, optional
        Whether the first record of each file holds the names of the columns.
        Defaults to None: a first record holds names if all its cells are text,
        or if a cell is text and the cells below it are numbers. If other cells
        of such a record are numbers, there is a warning: the record may be an
        example that lacks a value. An empty name, such as pandas writes above
        its index, becomes ``index`` in the first column, and ``column_3`` in
        column 3.
    missing : tuple of str, optional
        Texts such as ``'NA'`` that stand for a missing value: a cell that is
        such a text, perhaps with blanks around it, is read as an empty cell.
        Defaults to none. There is a warning if a column is text only because
        of well-known texts of this kind.
    which_sets, splits
        As for :class:`~fuel.datasets.npy.NPYDataset`; rows are counted from
        0, without the header.
    delimiter : str, optional
        Defaults to a comma.
    quote : str, optional
        The character before and after a cell that holds delimiters or line
        breaks. Defaults to ``'"'``; None for files that do not quote.
    encoding : str, optional
        Encoding of the file; a line break must be one byte in it. Defaults to
        ``'utf-8'``; a byte order mark is left out.
    storage_options : dict, optional
        For a URL, as for :class:`~fuel.datasets.hdf5.H5PYDataset`.
    sources, axis_labels
        As for :class:`Dataset`.

    Attributes
    ----------
    num_examples : int
    storage_options : dict or None
        Options without credentials; options with credentials may be
        assigned. None for local files.
    dtypes : dict of str to numpy.dtype
        The type of each source, found or given.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a record has more or fewer cells than the first record, or a cell
        does not have the type of its source: the error names file and line. If
        files have different columns, or if a column is text in some files but
        not in others.

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
    kind = 'CSV'

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
        self.path = fixed_files('CSVDataset', path, storage_options)
        self.delimiter, self.quote = delimiter, quote
        check_line_ends(encoding)
        self.encoding = encoding
        self.load()
        records = self.records
        self._check_not_empty()
        if is_object(records.line(0)):
            raise ValueError(
                f'{records.file.path} holds JSON lines, and no table: open it '
                f'with JSONLDataset, or its lines as text with TextFile')
        sample = self._sample(SAMPLE + 1)
        names = self._names(
            sample, None if header is None else truth('header', header))
        self._missing = frozenset(texts_in(
            'missing', missing, 'cells that stand for missing values'))
        self._titles = names
        if isinstance(self.path, list):
            self._check_titles()
        hint = _other_delimiter(sample, delimiter)
        if hint and columns is None:
            warn_user(f'{records.name} has a single column, '
                      f'{names[0]!r:.80}: {hint}')
        try:
            fields = _numbers(columns, names, records.file.path)
        except ValueError as error:
            if hint:
                raise ValueError(f'{error}; {hint}') from error
            raise
        num_rows = len(records.index) - self.header * len(records.files)
        if not num_rows:
            raise ValueError(
                f'{records.name} has no records beside its header')
        self._choose(fields, masks, dtypes)
        # Saved states know the fields by this name.
        self._columns = fields
        super().__init__(num_rows, which_sets, splits, **kwargs)
        self.dtypes = self._find_types(sample)
        self._types = types_of_fields(fields, self.dtypes)

    def _open(self, file: FileBytes) -> RecordFile:
        return RecordFile(file, RecordIndex(
            file, self.quote, self.delimiter), partial(
                _rows, self.encoding, self.delimiter, self.quote))

    def _check_not_empty(self) -> None:
        """Refuse a file without records."""
        index, files = self.records.index, self.records.files
        for file in numpy.flatnonzero(index.counts == 0)[:1].tolist():
            raise ValueError(f'{files[file].path} is empty')

    def _names(self, sample: FirstRecords, header: bool | None) -> list[str]:
        """Return the names of the columns, and set the attribute `header`.

        `header`: whether there is a header; None to infer it from the records.
        """
        first = sample.first
        self.header = is_header(first, (
            rows for _, rows in sample.groups(1))) if (
                header is None) else header
        if header is None and self.header and first[0].strip() and any(
                cell_type([cell]) != TEXT for cell in first):
            warn_user(
                f'{self.records.file.path}: the first record, '
                f'{", ".join(first):.80}, has numbers, and is taken for the '
                f'names of the columns: '
                f'pass header=True if it holds them, or header=False if it '
                f'is an example')
        return names_of_columns(first) if self.header else [
            f'column_{number}' for number in range(len(first))]

    def _find_types(self, sample: FirstRecords) -> dict[str, Any]:
        given = self._given
        types = {}
        found = self._look_at(sample, {
            number for source, (numbers, _) in self._fields.items()
            if source not in given for number in numbers})
        for source, (numbers, _) in self._fields.items():
            if source in given:
                types[source] = numpy.dtype(given[source])
                check_unit(types[source], source)
                continue
            kinds = Kinds()
            for number in numbers:
                kinds.join(found[number].kinds)
            types[source] = kinds.dtype(f'{source}_mask' not in self._masks)
            if types[source].kind == 'f':
                rounded = [one for number in numbers if (
                    one := found[number].rounded) is not None]
                if rounded:
                    self._warn_of_rounding(source, rounded)
            if types[source] == TEXT:
                self._check_markers(source, found)
                self._check_mixture(source, found)
        return types

    def _look_at(self, sample: FirstRecords,
                 numbers: Iterable[int]) -> dict[int, CellColumn]:
        """Return a dict from `numbers` to the columns with these numbers, with
        the cells of the first records."""
        index = self.records.index
        by_file = [{number: CellColumn() for number in numbers}
                   for _ in index.firsts]
        for places, rows in sample:
            file = int(index.file_of(places[0])) if places else 0
            first = index.firsts[file] + self.header
            # Records of another length are bad records.
            whole = [row for place, row in zip(places, rows, strict=True)
                     if place >= first and len(row) == len(self._titles)]
            columns = self._transposed(whole)
            for number, column in by_file[file].items():
                column.add(columns[number])
        found = by_file[0]
        # For each column, the first file in which it has cells.
        firsts = dict.fromkeys(found, 0)
        for file, others in enumerate(by_file[1:], 1):
            for number, column in others.items():
                before = found[number].kinds.copy()
                if before.is_blank:
                    firsts[number] = file
                found[number].join(column)
                if before.differs(column.kinds):
                    self._check_types(number, (firsts[number], file), (
                        before, column.kinds), found[number].markers)
        return found

    def _check_types(self, number: int, places: Sequence[int],
                     kinds: Sequence[Kinds], markers: Sequence[str]) -> None:
        """Refuse a column that has another type in one file than in the files
        before that file.

        This is an error only if a source in use reads the column, and if the
        user passed no type for that source.

        `places`: number of the first file that has cells in the column, and
            number of the file with another type.
        `kinds`: kinds of the cells in the files before that file, and in that
            file.
        `markers`: markers of missing values that make the cells text.
        """
        source = next((
            source for source, (numbers, _) in self._fields.items()
            if number in numbers and source in self.sources
            and source not in self._given), None)
        if source is None:
            return
        there, here = ['text' if (dtype := one.dtype(False)) == TEXT else
                       dtype for one in kinds]
        before, after = [self.records.files[file].path for file in places]
        advice = (f'missing={markers} if that stands for missing values, or '
                  if markers else '')
        raise ValueError(
            f'column {self._titles[number]!r} is {here} in {after}, but '
            f'{there} in files before it, such as {before}: pass {advice}'
            f'dtypes={{{source!r}: object}} to read it as text')

    def _check_titles(self) -> None:
        """Refuse files with other columns than the first."""
        index, files = self.records.index, self.records.files
        expected, where = self._titles, files[0].path
        for file, cells in zip(
                files, self.records.records(index.firsts), strict=True):
            found = names_of_columns(cells) if self.header else cells
            if len(found) == len(expected) and (
                    found == expected or not self.header):
                continue
            if not self.header:
                raise ValueError(
                    f'{file.path} has {len(found)} columns, but {where} has '
                    f'{len(expected)}')
            raise unlike_first(file.path, where, 'column', found, expected,
                               place=' in their first line')

    def _transposed(self, rows: Sequence[Sequence[str]],
                    ) -> list[Sequence[str]]:
        """Return the cells of each column of rows of equal length, without
        markers of missing values."""
        columns: list[Sequence[str]] = [
            *zip(*rows, strict=True)] if rows else [()] * len(self._titles)
        return [without_markers(cells, self._missing) for cells in columns
                ] if self._missing else columns

    def _check_markers(self, source: str,
                       found: Mapping[int, CellColumn]) -> None:
        """Warn if a column of a source is text only because of markers of
        missing values."""
        for number in self._fields[source][0]:
            markers = found[number].markers
            if markers:
                are_truths = found[number].unmarked_type().kind == 'b'
                masks = f' and masks=({source!r},)' if are_truths else ''
                warn_user(
                    f'{self.records.name}: column {self._titles[number]!r} is '
                    f'text because of {", ".join(map(repr, markers))}: pass '
                    f'missing={markers}{masks} if that stands for missing '
                    f'values, or dtypes={{{source!r}: object}}')
                return

    def _check_mixture(self, source: str,
                       found: Mapping[int, CellColumn]) -> None:
        """Warn if the columns of a source of text are not all text."""
        titles: dict[bool, list[str]] = {True: [], False: []}
        for number in self._fields[source][0]:
            kinds = found[number].kinds
            if not kinds.is_blank:
                titles[kinds.dtype() == TEXT].append(self._titles[number])
        if all(titles.values()):
            warn_user(
                f'{self.records.name}: source {source!r} has columns of text, '
                f'{titles[True]}, so the numbers of its columns '
                f'{titles[False]} come as strings too: put the columns of '
                f'text into a source of their own with columns=..., or pass '
                f'dtypes={{{source!r}: object}} if all are to be strings')

    def _check_renewed(self) -> None:
        titles = names_of_columns(self._sample(1).first) if (
            self.header) else self._titles
        if titles != self._titles:
            raise StateMismatchError(
                f'{self.records.file.path} had the columns {self._titles} '
                f'when the data set was made, and now has {titles}: make the '
                f'data set again')
        try:
            if isinstance(self.path, list):
                self._check_titles()
        except ValueError as error:
            raise StateMismatchError(
                f'{error}: make the data set again') from error

    def _find(self, numbers: NDArray[numpy.intp]) -> list[Any]:
        """Return the columns of the records with the given numbers."""
        found = super()._find(numbers)
        expected = len(self._titles)
        if not {expected}.issuperset(map(len, found)):
            record, row = next(
                (record, row) for record, row in zip(
                    numbers, found, strict=True) if len(row) != expected)
            raise ValueError(
                f'{self.records.where(record)}: {expected} cells are '
                f'expected, as in the first line, got {len(row)}')
        return self._transposed(found)

    def _values(self, source: str, numbers: Iterable[int],
                records: list[Any]) -> Sequence[str]:
        """Return the cells of a source, one record after the other."""
        columns, is_list = self._fields[source]
        return list(chain.from_iterable(zip(
            *[records[number] for number in columns], strict=True))) if (
                is_list) else records[columns[0]]

    def _filled(self, source: str, values: Sequence[str],
                known: SourceType) -> Sequence[str]:
        kind = self.dtypes[source].kind
        return filled(values, {'b': 'false', 'i': '0', 'u': '0'}.get(kind, ''))

    def _array(self, source: str, values: Sequence[str],
               known: SourceType) -> NDArray[Any]:
        batch = cell_array(values, self.dtypes[source])
        return batch.reshape(-1, *known.shape) if known.shape else batch

    def _integers(self, values: Sequence[str]) -> Iterable[int]:
        return integers_in(values)

    def _presence(self, source: str, numbers: Iterable[int],
                  records: list[Any]) -> NDArray[numpy.bool_]:
        found = numpy.array([*map(bool, map(
            str.strip, self._values(source, numbers, records)))])
        return found.reshape(-1, *(self._types[source].shape or ()))

    def _refuse(self, source: str, known: SourceType,
                numbers: NDArray[numpy.intp], values: Sequence[str],
                records: list[Any]) -> None:
        dtype = self.dtypes[source]
        for place, record in enumerate(numbers):
            for number in self._fields[source][0]:
                as_it_is = records[number][place]
                try:
                    cell_array([as_it_is], dtype)
                except (ValueError, OverflowError) as error:
                    cell = as_it_is.strip()
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
                        f'{short_cell(as_it_is)} is not a valid {dtype}, '
                        f'which source {source!r} is (by its first {SAMPLE} '
                        f'cells, or as given): {advice}, or leave it out '
                        f'with sources='
                    ) from error


def _rows(encoding: str, delimiter: str, quote: str | None,
          contents: Sequence[bytes]) -> list[list[str]]:
    """Return the cells of some records.

    Raises: ValueError if a record is bad. The text of the error describes the
        bad record only if one record is passed.
    """
    try:
        if len(contents) == 1 or max(map(len, contents), default=0) > LONG:
            return [_cells(encoding, delimiter, quote, content)
                    for content in contents]
        # Each record is one line to the parser. So a record with a line break
        # outside of a cell is an error. A record that leaves a cell open
        # swallows the next record, so the numbers of records differ.
        found = list(csv.reader(
            [content.decode(encoding) for content in contents], strict=True,
            delimiter=delimiter, **_quotes(quote)))
    except UnicodeDecodeError as error:
        raise ValueError(
            f'{error}: pass the encoding of the file as encoding=, such as '
            f"encoding='latin-1'") from error
    except csv.Error as error:
        raise ValueError(error) from error
    if len(found) != len(contents) or not all(found):
        raise ValueError(ANOTHER)
    return found


def _quotes(quote: str | None) -> dict[str, Any]:
    """Return the keyword arguments of the parser for quotation marks."""
    return ({'quoting': csv.QUOTE_NONE} if quote is None
            else {'quotechar': quote})


def _cells(encoding: str, delimiter: str, quote: str | None,
           content: bytes) -> list[str]:
    """Return the cells of one record."""
    if len(content) > LONG:
        return _cells_of_long(encoding, delimiter, quote, content)
    text = content.decode(encoding)
    if len(text) > csv.field_size_limit():
        with long_cells(len(text)):
            return _cells(encoding, delimiter, quote, content)
    return _parsed(io.StringIO(text.rstrip('\r\n'), newline=''), delimiter,
                   quote)


def _parsed(lines: Iterable[str], delimiter: str,
            quote: str | None) -> list[str]:
    """Return the cells of a record, given its lines."""
    # `splitlines` would also split at Unicode's separators of lines.
    rows = csv.reader(
        lines, strict=True, delimiter=delimiter, **_quotes(quote))
    try:
        cells = next(rows)
        more = next(rows, None)
    except (csv.Error, StopIteration) as error:
        raise ValueError(
            ANOTHER if 'new-line' in str(error) else error) from error
    if more is not None:
        raise ValueError(ANOTHER)
    return cells


def _cells_of_long(encoding: str, delimiter: str, quote: str | None,
                   content: bytes) -> list[str]:
    """Return the cells of a long record, with less memory.

    Python's parser takes up to eight bytes for each character of a cell. A
    text with an emoji takes four bytes for each character.
    """
    content = content.rstrip(b'\r\n')
    if quote is None or quote.encode(encoding) not in content:
        text = content.decode(encoding)
        if '\n' in text or '\r' in text:
            raise ValueError(ANOTHER)
        # The parser checks what it is given.
        csv.reader((), delimiter=delimiter)
        return text.split(delimiter)
    with long_cells(len(content)):
        if (codecs.lookup(encoding).name == 'utf-8' and delimiter.isascii()
                and quote.isascii()):
            # Each byte is parsed as a character: in UTF-8, the bytes of other
            # characters are never those of ASCII characters.
            return [cell.encode('latin-1').decode(encoding) for cell in (
                _parsed([content.decode('latin-1')], delimiter, quote))]
        return _parsed([content.decode(encoding)], delimiter, quote)


def _other_delimiter(sample: FirstRecords, present: str) -> str:
    """Return the advice to choose another delimiter, or ''.

    Advice is given if each record is one cell, and if the other delimiter
    occurs in all cells, in each equally often.
    """
    counts: dict[str, set[int]] = {
        # Cells that hold the present delimiter are quoted.
        delimiter: set() for delimiter in (';', '\t', '|')
        if delimiter != present}
    if len(sample.first) != 1 or sample.count < 2:
        return ''
    for _, rows in sample:
        if any(len(cells) != 1 for cells in rows):
            return ''
        for delimiter, found in counts.items():
            found.update(cells[0].count(delimiter) for cells in rows)
    return next((f'did you mean delimiter={delimiter!r}?'
                 for delimiter, found in counts.items()
                 if len(found) == 1 and found != {0}), '')


def _numbers(columns: Mapping[str, Any] | Sequence[str] | None,
             names: list[str], path: str) -> dict[str, tuple[list[int], bool]]:
    """Return, for each source, the numbers of its columns, and whether the
    user passed a list of columns for it."""
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
