"""Read the columns of files and tables in memory, group by group."""
from __future__ import annotations

import functools
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from fuel.datasets.text_files import check_is_file
from fuel.exceptions import DamagedFileError
from fuel.interop.arrow.columns import (
    as_tensor_type, as_tensors, common_type, is_there, rows_of, type_of,
    without_nulls)
from fuel.remote.location import RemotePath, ask_all, located
from fuel.storage.file_bytes import FileBytes, is_remote, raw_file_at
from fuel.storage.reader import own_objects
from fuel.suggestions import did_you_mean, unlike_first
from fuel.utils.hdf5_errors import is_lack_of_descriptors, with_advice

# First bytes of a file of the random-access format, with its padding.
FILE_MAGIC = b'ARROW1\0\0'
# Values of the kind of a message.
SCHEMA, DICTIONARY, BATCH = 1, 2, 3
# Mark before the length of a message; files of Arrow before 0.15 lack it.
CONTINUATION = -1
# The largest number of rows that an array of NumPy can have.
MAX_ROWS = 2 ** 63 - 1


class ArrowMessage(NamedTuple):
    """A message in an Arrow file.

    `start`, `stop`: first byte of the message and the byte after its last.
        The message includes the length before it, and its body.
    `kind`: kind of the message, such as `BATCH`.
    `num_rows`: number of rows of a record batch; 0 for other kinds.
    """

    start: int
    stop: int
    kind: int
    num_rows: int


def messages(file: FileBytes, start: int) -> Iterator[ArrowMessage]:
    """Yield the messages of a file from byte `start` up to the end mark.

    Only the metadata are read. PyArrow would read a whole record batch before
    it returns the place and the number of rows of the batch.

    Yields: the messages. The last one, of kind 0, stands for the end mark.
    Raises: DamagedFileError if there is no end mark.
    """
    expected: tuple[int, ...] = (SCHEMA,)
    while True:
        head = file.read(start, 8)
        try:
            size, = struct.unpack_from('<i', head)
            begin = start + 4
            if size == CONTINUATION:
                size, = struct.unpack_from('<i', head, 4)
                begin += 4
            if not size and expected != (SCHEMA,):
                yield ArrowMessage(start, begin, 0, 0)
                return
            kind, length, num_rows = _fields(file.read(begin, max(0, size)))
            if kind not in expected:
                raise struct.error(f'a message of the kind {kind}')
        except struct.error as error:
            raise DamagedFileError(
                f'{file.path} cannot be read as a Parquet or Arrow file: '
                f'there is no message at byte {start} of {file.size}; it is '
                f'of another kind, damaged, or was cut before the mark of '
                f'its end') from error
        stop = begin + size + length
        if (length < 0 or stop > file.size
                or not 0 <= num_rows <= MAX_ROWS):
            raise DamagedFileError(
                f'{file.path}: the message at byte {start} should have '
                f'{num_rows} rows and end at byte {stop} of {file.size}: the '
                f'file was cut, or is damaged')
        yield ArrowMessage(start, stop, kind, num_rows)
        start = stop
        expected = DICTIONARY, BATCH


def _fields(metadata: bytes) -> tuple[int, int, int]:
    """Return a message's kind, length of the body and number of rows.

    `metadata`: the metadata of the message, a table of FlatBuffers.
    """
    table, = struct.unpack_from('<I', metadata)
    kind = _field(metadata, table, 1, '<B')
    num_rows = 0
    if kind == BATCH:
        place = _place(metadata, table, 2)
        batch = place + _number(metadata, place, '<I')
        num_rows = _field(metadata, batch, 0, '<q')
        # Each column stores the number of rows too: compare with the first.
        columns = _place(metadata, batch, 1)
        columns += _number(metadata, columns, '<I')
        if (not _number(metadata, columns, '<I')
                or _number(metadata, columns + 4, '<q') != num_rows):
            raise struct.error('no columns, or of another number of rows')
    return kind, _field(metadata, table, 3, '<q'), num_rows


def _field(metadata: bytes, table: int, field: int, code: str) -> int:
    """Return a number in a table of FlatBuffers; 0 if it is not stored."""
    place = _place(metadata, table, field)
    return _number(metadata, place, code) if place else 0


def _place(metadata: bytes, table: int, field: int) -> int:
    """Return the offset of a field in the metadata; 0 if it is not stored."""
    fields = table - _number(metadata, table, '<i')
    offset = 4 + 2 * field
    if offset >= _number(metadata, fields, '<H'):
        return 0
    offset = _number(metadata, fields + offset, '<H')
    return table + offset if offset else 0


def _number(metadata: bytes, place: int, code: str) -> int:
    if place < 0:
        raise struct.error('a place before the first byte')
    number: int
    number, = struct.unpack_from(code, metadata, place)
    return number


class ArrowPart(ABC):
    """A file of a table, or a table in memory.

    `path`: name of the file or table, for errors.
    `schema`, `names`: schema and names of the columns, including the columns
        in `constants`.
    `constants`: the values of the columns that the names of folders give;
        all rows have the same value.
    `num_rows`: number of rows of all groups.
    """

    def __init__(self, path: str, schema: pyarrow.Schema, num_rows: int,
                 constants: Mapping[str, pyarrow.Scalar] | None = None,
                 ) -> None:
        self.path = path
        self.num_rows = num_rows
        self.constants = constants or {}
        self.names = schema.names
        for name, value in self.constants.items():
            if name in self.names:
                raise ValueError(
                    f'{path}: the column {name!r} is both in the file and in '
                    f'the name of a folder: rename one, or pass a list of '
                    f'the files, whose folders are then ignored')
            schema = schema.append(pyarrow.field(name, value.type))
        fields = list(map(as_tensor_type, schema))
        self.schema = pyarrow.schema(fields, schema.metadata)
        self._tensors = {field.name: field.type for field, arrow in zip(
            fields, schema.types, strict=True) if field.type != arrow}
        #: Files that are checked for changes.
        self.files: Sequence[FileBytes] = ()
        self.names = [*self.names, *self.constants]
        # Groups whose bytes were checked: name of the column, and number.
        self._is_valid: set[tuple[str, int]] = set()

    @abstractmethod
    def lengths(self, name: str) -> Sequence[int]:
        """Return the number of rows of each group of a column."""

    @abstractmethod
    def column(self, name: str, group: int) -> Any:
        """Return a group of a column as an array of Arrow."""

    @abstractmethod
    def check(self) -> None:
        """Raise an error if the file was changed since it was opened."""

    def rows(self, name: str, group: int, arrow: pyarrow.DataType,
             are_blanked: bool = False) -> NDArray[Any]:
        """Return a group of a column as an array of NumPy.

        `arrow`: the type of the column in all files.
        `are_blanked`: whether nulls become 0 or False, if NumPy's type has
            no nulls.
        """
        column = self._checked(name, group)
        if pyarrow.types.is_null(column.type):
            column = pyarrow.nulls(len(column), arrow)
        if are_blanked:
            column = without_nulls(column)
        try:
            return rows_of(column, name).astype(type_of(arrow)[0], copy=False)
        except ValueError as error:
            raise ValueError(f'{self.path}: {error}') from error

    def mask(self, name: str, group: int) -> NDArray[numpy.bool_]:
        """Return a mask that is True for the values that are not null."""
        return rows_of(is_there(self._checked(name, group)), name)

    def _checked(self, name: str, group: int) -> Any:
        """Return a group of a column after a check of its bytes.

        PyArrow trusts the offsets and lengths in a file, so the use of
        unchecked bytes may crash the process.
        """
        with self.naming(name):
            if name in self.constants:
                column = pyarrow.repeat(
                    self.constants[name], self.lengths(name)[group])
            else:
                column = self.column(name, group)
            # Check the file before the bytes are used, so that the groups in
            # `_is_valid` are those of the file as it was opened.
            self.check()
            if (name, group) not in self._is_valid:
                column.validate(full=True)
                self._is_valid.add((name, group))
            if name in self._tensors:
                column = as_tensors(column, self._tensors[name])
        return column

    @contextmanager
    def naming(self, column: str) -> Iterator[None]:
        """Turn errors of PyArrow into one that names the file and column."""
        try:
            with damage(self.path, f', column {column!r}'):
                yield
        except DamagedFileError:
            # A change of the file during the read may cause any error.
            self.check()
            raise


class TablePart(ArrowPart):
    """A table in memory, whose groups are its chunks."""

    def __init__(self, table: pyarrow.Table) -> None:
        super().__init__('the table', table.schema, table.num_rows)
        self._table = table

    def lengths(self, name: str) -> Sequence[int]:
        """See :meth:`ArrowPart.lengths`."""
        return [len(chunk) for chunk in self._table.column(name).chunks]

    def column(self, name: str, group: int) -> Any:
        """See :meth:`ArrowPart.column`."""
        return self._table.column(name).chunk(group)

    def check(self) -> None:
        """Do nothing: a table in memory may change, and the data with it."""


class FilePart(ArrowPart):
    """A file in which all columns have the same groups.

    `watched`: the file, which is checked for changes.
    `counts`: number of rows of each group.
    """

    def __init__(self, watched: FileBytes, schema: pyarrow.Schema,
                 counts: Sequence[int],
                 constants: Mapping[str, pyarrow.Scalar]) -> None:
        super().__init__(watched.path, schema, sum(counts), constants)
        self._watched = watched
        self.files = (watched,)
        self._counts = counts
        if min(counts, default=0) < 0 or self.num_rows > MAX_ROWS:
            raise DamagedFileError(
                f'{self.path} should have {self.num_rows} rows: the file is '
                f'damaged: restore it from its origin')

    def check(self) -> None:
        """See :meth:`ArrowPart.check`."""
        self._watched.check()

    def lengths(self, name: str) -> Sequence[int]:
        """See :meth:`ArrowPart.lengths`."""
        return self._counts


def _open_watched(path: str) -> tuple[pyarrow.NativeFile, FileBytes]:
    """Open a file twice: for PyArrow, and to check it for changes."""
    file = raw_file_at(path)
    if is_remote(file):
        return pyarrow.PythonFile(file.open(), 'r'), file
    source = pyarrow.OSFile(located(path))
    # PyArrow opens the file by name, and many releases return no descriptor
    # to check. So check that the name still refers to the same file.
    if not file.is_current():
        raise DamagedFileError(
            f'{path} was changed or replaced while it was being opened: open '
            f'it when it is written')
    return source, file


class ParquetPart(FilePart):
    """A Parquet file, read by row group."""

    def __init__(self, path: str,
                 constants: Mapping[str, pyarrow.Scalar]) -> None:
        # The file is not mapped: truncating a mapped file would crash the
        # process. Each read passes its place in the file, so forked children
        # do not share a position.
        source, watched = _open_watched(path)
        file = pyarrow.parquet.ParquetFile(
            source, page_checksum_verification=True)
        self._source, self._metadata = source, file.metadata
        self._open = threading.local()
        counts = [file.metadata.row_group(group).num_rows
                  for group in range(file.num_row_groups)]
        super().__init__(watched, file.schema_arrow, counts, constants)

    def column(self, name: str, group: int) -> Any:
        """See :meth:`ArrowPart.column`."""
        # Each thread has its own ParquetFile; all share the parsed footer.
        file = vars(self._open).get('file')
        if file is None:
            # With one source, threads that read a remote file would wait for
            # each other.
            source = pyarrow.PythonFile(self._watched.open(), 'r') if (
                is_remote(self._watched)) else self._source
            file = self._open.file = pyarrow.parquet.ParquetFile(
                source, metadata=self._metadata,
                page_checksum_verification=True)
        return file.read_row_group(
            group, columns=[name], use_threads=False).column(name)


class IPCPart(FilePart):
    """An Arrow file; PyArrow reads all columns of a batch together."""

    def rows(self, name: str, group: int, arrow: pyarrow.DataType,
             are_blanked: bool = False) -> NDArray[Any]:
        """See :meth:`ArrowPart.rows`.

        The rows are a copy, since a view would keep all columns in memory.
        """
        return own_objects(numpy.array(
            super().rows(name, group, arrow, are_blanked)))


class IPCFilePart(IPCPart):
    """An Arrow file in the random-access format."""

    def __init__(self, path: str,
                 constants: Mapping[str, pyarrow.Scalar]) -> None:
        self._source, file = _open_watched(path)
        with pyarrow.ipc.open_file(self._source) as reader:
            schema = reader.schema
            num_batches = reader.num_record_batches
        found = list(messages(file, len(FILE_MAGIC)))
        counts = [each.num_rows for each in found if each.kind == BATCH]
        head = file.read(found[0].start, found[0].stop - found[0].start)
        # Header and footer both have the schema and the list of batches.
        if (len(counts) != num_batches
                or pyarrow.ipc.read_schema(pyarrow.py_buffer(head)) != schema):
            raise DamagedFileError(
                f'{path}: its header and its footer name different columns '
                f'or batches: the file is damaged, or was changed while it '
                f'was being opened')
        super().__init__(file, schema, counts, constants)
        self._readers = threading.local()

    def column(self, name: str, group: int) -> Any:
        """See :meth:`ArrowPart.column`."""
        # Each thread has a reader: readers load dictionaries when first
        # needed.
        readers = vars(self._readers)
        if name not in readers:
            readers[name] = pyarrow.ipc.open_file(
                self._source, options=pyarrow.ipc.IpcReadOptions(
                    included_fields=[self.names.index(name)]))
        return readers[name].get_batch(group).column(name)


class IPCStreamPart(IPCPart):
    """An Arrow file in the streaming format.

    To read a batch, PyArrow gets a short stream: the schema, the dictionaries
    before the batch, and the batch.
    """

    def __init__(self, path: str,
                 constants: Mapping[str, pyarrow.Scalar]) -> None:
        self._file = file = raw_file_at(path)
        found = list(messages(file, 0))
        *_, last, end = found
        if end.stop != file.size or last.kind == DICTIONARY:
            raise DamagedFileError(
                f'{path}: the mark of its end is at byte {end.start} of '
                f'{file.size}, after no batch: the file is damaged')
        # For each batch, the messages that must be read before it.
        self._before: list[list[ArrowMessage]] = []
        before: list[ArrowMessage] = []
        self._batches = [each for each in found if each.kind == BATCH]
        for each in found:
            if each.kind == BATCH:
                self._before.append(before)
            else:
                before = [*before, each]
        with self._stream(found[:1]) as reader:
            schema = reader.schema
        super().__init__(file, schema, [
            each.num_rows for each in self._batches], constants)
        # Keep the last batch: the next column is often read from it.
        self._batch = functools.lru_cache(1)(self._read)

    def _stream(self, parts: Sequence[ArrowMessage],
                ) -> pyarrow.ipc.RecordBatchStreamReader:
        return pyarrow.ipc.open_stream(pyarrow.py_buffer(b''.join(
            self._file.read(each.start, each.stop - each.start)
            for each in parts)))

    def _read(self, group: int) -> pyarrow.RecordBatch:
        with self._stream(
                [*self._before[group], self._batches[group]]) as reader:
            return reader.read_next_batch()

    def column(self, name: str, group: int) -> Any:
        """See :meth:`ArrowPart.column`."""
        return self._batch(group).column(name)


def open_part(path: str,
              constants: Mapping[str, pyarrow.Scalar] | None = None,
              ) -> ArrowPart:
    """Open a Parquet or Arrow file; find the format in its first bytes."""
    check_is_file(path, 'Parquet or Arrow')
    file = raw_file_at(path)
    magic = file.read(0, 6)
    kind = (ParquetPart if magic[:4] == b'PAR1' else
            IPCFilePart if magic == FILE_MAGIC[:6] else IPCStreamPart)
    with damage(path):
        return kind(path, constants or {})


def open_tables(files: Sequence[tuple[str, Mapping[str, pyarrow.Scalar]]],
                ) -> list[ArrowPart]:
    """Open several files; remote files are opened in parallel."""
    if any(isinstance(path, RemotePath) for path, _ in files):
        return ask_all(lambda each: open_part(*each), files)
    return [open_part(*each) for each in files]


def columns_of_all(parts: Sequence[ArrowPart],
                   asked: Sequence[str] | None) -> list[str]:
    """Return the names of the columns of several files.

    `asked`: the columns that all files must have; None for all columns.

    Raises: ValueError if a file has a column that the first file lacks.
    """
    first = parts[0]
    for part in parts[1:] if asked is None else ():
        # A file that also lacks a column raises another error, when that
        # column is opened.
        if {*first.names} < {*part.names}:
            raise unlike_first(part.path, first.path, 'column', part.names,
                               first.names, 'columns=[{!r}]')
    names = [*dict.fromkeys(first.names)]
    return names if asked is None else [
        name for name in names if name in asked or all(
            name in part.names for part in parts)]


class Column:
    """A column of several files, read as one column.

    `arrow`: type of the column in Arrow.
    `constants`: for each file, the value in the name of its folder; None
        if the values are in the file.
    `dtype`: NumPy type of the elements.
    `shape`: shape of an example.
    `lengths`: number of rows of each group of all files.
    """

    def __init__(self, parts: Sequence[ArrowPart], name: str) -> None:
        self._name = name
        self._parts = parts
        self.arrow = _type_in(parts, name)
        self.constants = tuple([part.constants.get(name) for part in parts])
        self.dtype, self.shape = type_of(self.arrow)
        lengths = [part.lengths(name) for part in parts]
        self.lengths = [rows for each in lengths for rows in each]
        self._groups = [(part, group)
                        for part, each in zip(parts, lengths, strict=True)
                        for group in range(len(each))]
        #: For each group, the number of its part in `parts`.
        self.part_of_group = [
            number for number, each in enumerate(lengths) for _ in each]

    def read(self, group: int) -> NDArray[Any]:
        """Return the rows of a group."""
        part, number = self._groups[group]
        return part.rows(self._name, number, self.arrow)

    def read_blanked(self, group: int) -> NDArray[Any]:
        """Return the rows of a group, with 0 or False for nulls."""
        part, number = self._groups[group]
        return part.rows(self._name, number, self.arrow, are_blanked=True)

    def read_mask(self, group: int) -> NDArray[numpy.bool_]:
        """Return a mask that is True for values that are not null."""
        part, number = self._groups[group]
        return part.mask(self._name, number)

    def check(self, group: int) -> None:
        """Raise an error if the file of a group was changed."""
        self._groups[group][0].check()


def _type_in(parts: Sequence[ArrowPart], name: str) -> pyarrow.DataType:
    """Return the type that a column has in all files."""
    expected = None
    for part in parts:
        names = part.names
        if name not in names:
            hint = did_you_mean(name, names, '{} ')
            which = f', which {parts[0].path} has' * (part is not parts[0])
            raise ValueError(
                f'{part.path} has no column {name!r}{which}: {hint}the '
                f'columns are {", ".join(names)}')
        if names.count(name) > 1:
            raise ValueError(f'{part.path} has {names.count(name)} columns '
                             f'{name!r}: rename them')
        found = part.schema.field(name).type
        common = found if expected is None else common_type(expected, found)
        if common is None:
            raise ValueError(
                f'column {name!r} is {found} in {part.path}, but {expected} '
                f'in files before it, such as {parts[0].path}, and no type '
                f'holds both exactly: write the files with one schema')
        expected = common
    return expected


@contextmanager
def damage(path: str, what: str = '') -> Iterator[None]:
    """Turn errors of PyArrow into a DamagedFileError that names the file."""
    try:
        yield
    except (DamagedFileError, FileNotFoundError, PermissionError,
            TimeoutError):
        raise
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        if is_lack_of_descriptors(error):
            raise with_advice(error, path) from error
        raise DamagedFileError(
            f'{path}{what} cannot be read as a Parquet or Arrow file: '
            f'{error!s:.300}; it is of another kind, or damaged: restore it '
            f'from its origin') from error
