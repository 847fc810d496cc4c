"""The call that makes a data set of columns, as text that can be pasted."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Rows

# Longer lists of rows are not shown.
MOST_SHOWN = 100
# Of arguments whose defaults need not be shown.
DEFAULTS = {'missing': 'error', 'follow': 'folder'}


def shown_call(name: str, files: str | Sequence[str],
               columns: Mapping[str, FileColumn],
               arguments: Mapping[str, object]) -> str:
    """Return a call with files, columns, and those of the arguments that are
    not None or their defaults."""
    return written_call(
        name, [repr(files if isinstance(files, str) else list(files)),
               _shown_columns(columns)], {
            key: value for key, value in arguments.items()
            if value is not None and value != DEFAULTS.get(key)})


def written_call(name: str, first: Sequence[str],
                 named: Mapping[str, object]) -> str:
    """Return a call of a name; the first arguments are written already."""
    shown = [f'{key}={_shown(value)}' for key, value in named.items()]
    return f'{name}({", ".join([*first, *shown])})'


def _shown_columns(columns: Mapping[str, FileColumn]) -> str:
    """Return columns as they are written, the plain ones by their paths."""
    short = {source: column.path if isinstance(column, Rows)
             and column == Rows(column.path) else column
             for source, column in columns.items()}
    if all(source == column.paths()[0] for source, column in columns.items()):
        return repr(list(short.values()))
    return repr(short)


def _shown(value: object) -> str:
    """Return an argument as it is written, but for long lists of rows."""
    if isinstance(value, Mapping):
        return '{' + ', '.join(f'{key!r}: {_shown(one)}'
                               for key, one in value.items()) + '}'
    if isinstance(value, numpy.ndarray):
        value = value.tolist()
    if isinstance(value, (list, range)) and len(value) > MOST_SHOWN:
        return f'<{len(value)} rows>'
    return repr(value)
