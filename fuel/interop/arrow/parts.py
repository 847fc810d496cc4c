"""The files of a table, and tables in memory, as record batches."""
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

# First bytes of a file of the random-access format, padded.
FILE_MAGIC = b'ARROW1\0\0'
# Kinds of messages.
SCHEMA, DICTIONARY, BATCH = 1, 2, 3
# Before the length of a message, but in files older than Arrow 0.15.
CONTINUATION = -1
# The largest number of rows that an array of NumPy can have.
MAX_ROWS = 2 ** 63 - 1


class ArrowMessage(NamedTuple):
    """A message of a file.

    `start`, `stop`: its bytes, with the length before it and its body.
    `kind`: such as `BATCH`.
    `num_rows`: of a record batch; 0 for other kinds.
    """

    start: int
    stop: int
    kind: int
    num_rows: int


def messages(file: FileBytes, start: int) -> Iterator[ArrowMessage]:
    """Find the messages from a byte on, up to the mark of the end.

    PyArrow reads a whole record batch before it returns its place and its
    number of rows.

    Returns: as an iterator, whose last message is empty: the mark.
    Raises: DamagedFileError if there is no such mark.
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
    """Return kind, length of the body and rows out of a message's metadata,
    a table of FlatBuffers."""
    table, = struct.unpack_from('<I', metadata)
    kind = _field(metadata, table, 1, '<B')
    num_rows = 0
    if kind == BATCH:
        place = _place(metadata, table, 2)
        batch = place + _number(metadata, place, '<I')
        num_rows = _field(metadata, batch, 0, '<q')
        # Each column has its number of rows: look at the first.
        columns = _place(metadata, batch, 1)
        columns += _number(metadata, columns, '<I')
        if (not _number(metadata, columns, '<I')
                or _number(metadata, columns + 4, '<q') != num_rows):
            raise struct.error('no columns, or of another number of rows')
    return kind, _field(metadata, table, 3, '<q'), num_rows


def _field(metadata: bytes, table: int, field: int, code: str) -> int:
    """Return a number of a table; 0, the default, is not stored."""
    place = _place(metadata, table, field)
    return _number(metadata, place, code) if place else 0


def _place(metadata: bytes, table: int, field: int) -> int:
    """Return the offset of a field of a table, 0 if it is not stored."""
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

    `path`: for errors.
    `schema`, `names`: of the columns, those of `constants` among them.
    `constants`: the values of columns that are the same in all rows, from
        the names of folders.
    `num_rows`: of all groups.
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
        # Groups of columns whose bytes were checked.
        self._is_valid: set[tuple[str, int]] = set()

    @abstractmethod
    def lengths(self, name: str) -> Sequence[int]:
        """Return the rows of the groups in which a column is read."""

    @abstractmethod
    def column(self, name: str, group: int) -> Any:
        """Return a group of a column, as Arrow has it."""

    @abstractmethod
    def check(self) -> None:
        """Raise an error if the bytes were changed since they were opened."""

    def rows(self, name: str, group: int, arrow: pyarrow.DataType,
             are_blanked: bool = False) -> NDArray[Any]:
        """Return a group of a column as NumPy has it.

        `arrow`: the type of the column in all files.
        `are_blanked`: whether nulls are 0 or False, where NumPy has none.
        """
        column = self._checked(name, group)
        if pyarrow.types.is_null(column.type):
            column = pyarrow.nulls(len(column), arrow)
        if are_blanked:
            column = without_nulls(column)
        return rows_of(column, name).astype(type_of(arrow)[0], copy=False)

    def mask(self, name: str, group: int) -> NDArray[numpy.bool_]:
        """Return a mask of the values of a group of a column that are not
        null."""
        return rows_of(is_there(self._checked(name, group)), name)

    def _checked(self, name: str, group: int) -> Any:
        """Return a group of a column, whose bytes were checked.

        PyArrow believes what a file says of its offsets and lengths: bytes
        that are used before they are checked may end the process.
        """
        with self.naming(name):
            if name in self.constants:
                column = pyarrow.repeat(
                    self.constants[name], self.lengths(name)[group])
            else:
                column = self.column(name, group)
            # Before anything is done with the bytes, or kept of them: those
            # that were checked below are in this state of the file.
            self.check()
            if (name, group) not in self._is_valid:
                column.validate(full=True)
                self._is_valid.add((name, group))
            if name in self._tensors:
                column = as_tensors(column, self._tensors[name])
        return column

    @contextmanager
    def naming(self, column: str) -> Iterator[None]:
        """Turn errors of PyArrow into one that names file and column."""
        try:
            with damage(self.path, f', column {column!r}'):
                yield
        except DamagedFileError:
            # A change during the read may look like any error.
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
        """Do nothing: changing a table in memory changes the data."""


class FilePart(ArrowPart):
    """A file, whose groups are the same for all columns.

    `watched`: the file, whose state is looked at.
    `counts`: the rows of each group.
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
    """Open a file for PyArrow, and to look at whether it changes."""
    file = raw_file_at(path)
    if is_remote(file):
        return pyarrow.PythonFile(file.open(), 'r'), file
    source = pyarrow.OSFile(located(path))
    # PyArrow opens a name, and many of its releases return no descriptor.
    if not file.is_current():
        raise DamagedFileError(
            f'{path} was changed or replaced while it was being opened: open '
            f'it when it is written')
    return source, file


class ParquetPart(FilePart):
    """A Parquet file, read by row group."""

    def __init__(self, path: str,
                 constants: Mapping[str, pyarrow.Scalar]) -> None:
        # Not mapped: a file that is cut would end the process. What is read
        # is read by its place, so forked children share no position.
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
        # Each thread has its own, which shares what was read of the footer.
        file = vars(self._open).get('file')
        if file is None:
            # Of a remote file one thread would wait for what another reads.
            source = pyarrow.PythonFile(self._watched.open(), 'r') if (
                is_remote(self._watched)) else self._source
            file = self._open.file = pyarrow.parquet.ParquetFile(
                source, metadata=self._metadata,
                page_checksum_verification=True)
        return file.read_row_group(
            group, columns=[name], use_threads=False).column(name)


class IPCPart(FilePart):
    """An Arrow file, whose batches PyArrow reads with all their columns."""

    def rows(self, name: str, group: int, arrow: pyarrow.DataType,
             are_blanked: bool = False) -> NDArray[Any]:
        """See :meth:`ArrowPart.rows`.

        Views would keep all columns in memory.
        """
        return own_objects(numpy.array(
            super().rows(name, group, arrow, are_blanked)))


class IPCFilePart(IPCPart):
    """An Arrow file of the format for random access."""

    def __init__(self, path: str,
                 constants: Mapping[str, pyarrow.Scalar]) -> None:
        self._source, file = _open_watched(path)
        with pyarrow.ipc.open_file(self._source) as reader:
            schema = reader.schema
            num_batches = reader.num_record_batches
        found = list(messages(file, len(FILE_MAGIC)))
        counts = [each.num_rows for each in found if each.kind == BATCH]
        head = file.read(found[0].start, found[0].stop - found[0].start)
        # The schema and the batches are in the file twice.
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
        # Each thread has its own: dictionaries are read when first needed.
        readers = vars(self._readers)
        if name not in readers:
            readers[name] = pyarrow.ipc.open_file(
                self._source, options=pyarrow.ipc.IpcReadOptions(
                    included_fields=[self.names.index(name)]))
        return readers[name].get_batch(group).column(name)


class IPCStreamPart(IPCPart):
    """An Arrow file of the format for streams.

    A batch is read as a short stream: the schema, the dictionaries before the
    batch, and the batch.
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
        # Of each batch: what has to be read before it.
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
        # The next column is likely to be read of the same batch.
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
    """Open a file of any format, recognized by its first bytes."""
    check_is_file(path, 'Parquet or Arrow')
    file = raw_file_at(path)
    magic = file.read(0, 6)
    kind = (ParquetPart if magic[:4] == b'PAR1' else
            IPCFilePart if magic == FILE_MAGIC[:6] else IPCStreamPart)
    with damage(path):
        return kind(path, constants or {})


def open_tables(files: Sequence[tuple[str, Mapping[str, pyarrow.Scalar]]],
                ) -> list[ArrowPart]:
    """Open several files, of remote ones some at a time."""
    if any(isinstance(path, RemotePath) for path, _ in files):
        return ask_all(lambda each: open_part(*each), files)
    return [open_part(*each) for each in files]


def columns_of_all(parts: Sequence[ArrowPart],
                   asked: Sequence[str] | None) -> list[str]:
    """Return the names of the columns of files.

    `asked`: the only ones that all files must have; None for all.

    Raises: ValueError if a file has a column that the first has not.
    """
    first = parts[0]
    for part in parts[1:] if asked is None else ():
        # Of a file that lacks one, that is the error.
        if {*first.names} < {*part.names}:
            raise unlike_first(part.path, first.path, 'column', part.names,
                               first.names, 'columns=[{!r}]')
    names = [*dict.fromkeys(first.names)]
    return names if asked is None else [
        name for name in names if name in asked or all(
            name in part.names for part in parts)]


class Column:
    """A column of several files, as if of one.

    `arrow`: its type in Arrow.
    `constants`: for each file, the value in the name of its folder; None
        where the values are in the file.
    `dtype`, `shape`: of its elements, and of an example.
    `lengths`: the rows of the groups of all files.
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
        #: The number of the part of each group.
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
        """Return a mask of the values of a group that are not null."""
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
    """Turn the errors of PyArrow into one that names the file."""
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
