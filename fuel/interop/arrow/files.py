"""Tables of Arrow: in memory, and in Parquet and Arrow files."""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy
import pyarrow
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from fuel.exceptions import DamagedFileError
from fuel.interop.arrow.columns import rows_of

#: A path, several of them, or a table in memory.
Tables: TypeAlias = Any
ENDINGS = ('.parquet', '.arrow', '.feather')


class Part(NamedTuple):
    """A file of a table, or a table in memory.

    `lengths`: takes the name of a column; returns the numbers of rows of the
        groups in which it is read.
    `read`: takes the name of a column and the number of a group; returns its
        rows.
    """

    path: str
    schema: pyarrow.Schema
    lengths: Callable[[str], Sequence[int]]
    read: Callable[[str, int], NDArray[Any]]


def paths_of(data: Any) -> list[str] | None:
    """Return the files that `data` names, None if it is a table."""
    if isinstance(data, (str, os.PathLike)):
        path = os.fspath(data)
        if os.path.isdir(path):
            found = sorted(map(str, (
                each for each in Path(path).rglob('*')
                if each.suffix in ENDINGS)))
            if not found:
                raise FileNotFoundError(
                    f'{path} has no file that ends in {", ".join(ENDINGS)}')
            return found
        return [path]
    if isinstance(data, (list, tuple)):
        if not data:
            raise ValueError('at least one file is needed, got none')
        return [path for each in data for path in paths_of(each) or ()]
    return None


def as_table(data: Any) -> pyarrow.Table:
    """Return a table of whatever holds one in memory."""
    if isinstance(data, pyarrow.Table):
        return data
    if isinstance(data, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([data])
    if hasattr(data, 'with_format'):
        # A data set of Hugging Face, which may be a selection of rows.
        return data.with_format('arrow')[:]
    if type(data).__module__.partition('.')[0] == 'pandas':
        return pyarrow.Table.from_pandas(data, preserve_index=False)
    if hasattr(data, '__arrow_c_stream__'):
        return pyarrow.table(data)
    raise TypeError(
        'data must be the path of a Parquet or Arrow file, a list of them, a '
        'folder, or a table (of PyArrow, pandas, Hugging Face datasets, or '
        f'any library that exports Arrow), got {type(data).__name__}')


def open_part(path: str) -> Part:
    """Open a file of either format, recognized by its first bytes."""
    with open(path, 'rb') as file:
        magic = file.read(6)
    with _damage(path):
        if magic[:4] == b'PAR1':
            return _open_parquet(path)
        mapped = pyarrow.memory_map(path)
        if magic == b'ARROW1':
            table = pyarrow.ipc.open_file(mapped).read_all()
        else:
            table = pyarrow.ipc.open_stream(mapped).read_all()
        return table_part(table, path)


def table_part(table: pyarrow.Table, path: str = 'the table') -> Part:
    """Return a table, whose groups are its chunks."""
    def lengths(name: str) -> list[int]:
        return [len(chunk) for chunk in table.column(name).chunks]

    def read(name: str, group: int) -> NDArray[Any]:
        return rows_of(table.column(name).chunk(group), name)

    return Part(path, table.schema, lengths, read)


def _open_parquet(path: str) -> Part:
    # Mapped: no position of a file is shared with forked children.
    file = pyarrow.parquet.ParquetFile(path, memory_map=True)
    counts = [file.metadata.row_group(group).num_rows
              for group in range(file.num_row_groups)]

    def read(name: str, group: int) -> NDArray[Any]:
        with _damage(path):
            table = file.read_row_group(group, columns=[name])
            return rows_of(table.column(name), name)

    return Part(path, file.schema_arrow, lambda name: counts, read)


@contextmanager
def _damage(path: str) -> Iterator[None]:
    """Name the file in the errors of Arrow."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise DamagedFileError(
            f'{path} cannot be read as a Parquet or Arrow file: {error!s:.300}'
            ) from error


def read_across(parts: Sequence[Part], name: str,
                ) -> tuple[list[int], Callable[[int], NDArray[Any]]]:
    """Return the groups of a column of several files, as if of one."""
    lengths: list[int] = []
    owners: list[tuple[Part, int]] = []
    for part in parts:
        found = part.lengths(name)
        lengths += found
        owners += [(part, group) for group in range(len(found))]

    def read(group: int) -> NDArray[Any]:
        part, number = owners[group]
        return part.read(name, number)

    return lengths, read


def stacked(columns: Sequence[Callable[[int], NDArray[Any]]],
            dtype: numpy.dtype[Any]) -> Callable[[int], NDArray[Any]]:
    """Return what reads several columns as the second axis of one source."""
    def read(group: int) -> NDArray[Any]:
        return numpy.stack([column(group) for column in columns], 1).astype(
            dtype, copy=False)

    return read
