"""The base class of columns, which make sources from arrays in files; and the
text, ready to paste, of calls that make data sets from columns."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import ClassVar, TypeAlias

import numpy

from fuel.datasets.columns.parts import FileParts
from fuel.datasets.row_orders import IndexArray
from fuel.describe import SourceType
from fuel.storage import Reader

# Most rows of a list that a call shows.
MOST_SHOWN = 100
# Defaults of arguments, which a call need not show.
DEFAULTS = {'missing': 'error', 'follow': 'folder'}


@dataclass(frozen=True, repr=False)
class FileColumn:
    """A column of a data set: the part of a file that becomes a source.

    Two columns are equal if their ``repr`` is equal. The ``repr`` can be
    pasted.

    `counts_rows`: whether the column determines the number of rows of a part.
    `divides_parts`: whether the column's reader divides each part into several
        parts; these are runs, unless the user names other runs.
    """

    counts_rows: ClassVar[bool] = True
    divides_parts: ClassVar[bool] = False

    @property
    def is_plain(self) -> bool:
        """Whether the column can be written as its path alone (bool)."""
        return False

    def open(self, parts: FileParts, name: str) -> Reader:
        """Return a reader of the examples.

        `name`: name of the source, for errors.
        """
        raise NotImplementedError

    def paths(self) -> Sequence[str]:
        """Return the paths that each part must have. The first one names the
        column."""
        raise NotImplementedError

    def indexed(self) -> Sequence[str]:
        """Return the paths of the arrays that are looked up in each part and
        that count rows by their first axis."""
        return []

    def bounds_of_parts(self, parts: FileParts, reader: Reader) -> IndexArray:
        """Return the first row of each part, and the number of rows."""
        return reader.part_bounds

    def first_rows(self, parts: FileParts) -> IndexArray | int:
        """Return, for each part, the row of its array that is the first row of
        the part; one number if it is the same in all parts."""
        return 0

    def divisions(self, parts: FileParts) -> IndexArray:
        """Return the number of divisions of each part, for a column that
        divides parts."""
        raise NotImplementedError

    def type_of(self, reader: Reader) -> SourceType:
        """Return type and shape of an example of the column's reader."""
        if reader.element_type is not None:
            return SourceType(reader.element_type)
        return SourceType(reader.dtype, None if reader.dtype.hasobject
                          else reader.shape[1:])

    def labels(self, parts: FileParts) -> tuple[str, ...] | None:
        """Return the labels of the axes of a batch, or None."""
        return None

    def check_path(self, name: str, path: object) -> None:
        """Raise TypeError if an argument is not a path in the file."""
        if not isinstance(path, str) or not path:
            hint = (', a column: give the path alone'
                    if isinstance(path, FileColumn) else '')
            raise TypeError(
                f'{name} of {type(self).__name__} must be the path of an '
                f"array or group in the file, such as 'obs/kind', got "
                f'{path!r}{hint}')

    def check_flag(self, name: str) -> None:
        """Raise TypeError if an argument is not True or False."""
        value = getattr(self, name)
        if not isinstance(value, (bool, numpy.bool_)):
            raise TypeError(
                f'{name} of {type(self).__name__} must be True or False, got '
                f'{value!r}')

    def __repr__(self) -> str:
        shown = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.default is MISSING:
                shown.append(repr(value))
            elif value != field.default:
                shown.append(f'{field.name}={value!r}')
        return f'{type(self).__name__}({", ".join(shown)})'


@dataclass(frozen=True, repr=False)
class PathColumn(FileColumn):
    """Base of the columns that read one path in each part."""

    path: str

    def __post_init__(self) -> None:
        self.check_path('path', self.path)

    def paths(self) -> Sequence[str]:
        """Return the path."""
        return [self.path]


#: Names of arrays, or columns; a mapping gives the sources other names.
Columns: TypeAlias = (
    str | FileColumn | Sequence[str | FileColumn]
    | Mapping[str, str | FileColumn])


def named_columns(columns: Columns) -> list[tuple[str, str | FileColumn]]:
    """Return pairs of a source's name and its column; names may be equal."""
    if isinstance(columns, Mapping):
        return list(columns.items())
    several = [columns] if isinstance(columns, (str, FileColumn)) else columns
    return [(column.paths()[0] if isinstance(column, FileColumn) else column,
             column) for column in several]


def shown_call(name: str, files: str | Sequence[str],
               columns: Mapping[str, FileColumn],
               arguments: Mapping[str, object]) -> str:
    """Return the text of a call with files, columns, and the arguments that
    are neither None nor defaults."""
    return written_call(
        name, [repr(files if isinstance(files, str) else list(files)),
               _shown_columns(columns)], {
            key: value for key, value in arguments.items()
            if value != DEFAULTS.get(key)})


def written_call(name: str, first: Sequence[str],
                 named: Mapping[str, object]) -> str:
    """Return the text of a call of the class or function `name`.

    `first`: the positional arguments, as text already.
    `named`: the keyword arguments; those that are None are left out.
    """
    shown = [f'{key}={_shown(value)}' for key, value in named.items()
             if value is not None]
    return f'{name}({", ".join([*first, *shown])})'


def _shown_columns(columns: Mapping[str, FileColumn]) -> str:
    """Return columns as text; plain columns are written as their paths."""
    short = {source: column.paths()[0] if column.is_plain else column
             for source, column in columns.items()}
    if all(source == column.paths()[0] for source, column in columns.items()):
        return repr(list(short.values()))
    return repr(short)


def _shown(value: object) -> str:
    """Return an argument as text; for a long list of rows, their range, or
    only their number."""
    if isinstance(value, Mapping):
        return '{' + ', '.join(f'{key!r}: {_shown(one)}'
                               for key, one in value.items()) + '}'
    if isinstance(value, numpy.ndarray):
        value = value.tolist()
    if isinstance(value, (list, range)) and len(value) > MOST_SHOWN:
        first = value[0]
        if not isinstance(first, int) or [*value] != [
                *range(first, first + len(value))]:
            return f'<{len(value)} rows>'
        value = first, first + len(value)
    return repr(value)
