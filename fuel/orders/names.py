"""Rows of a data set by their names: the keys of records, the paths of
files."""
from __future__ import annotations

from operator import methodcaller
from typing import Any

import numpy

from fuel.datasets.sources import Source
from fuel.orders.order import StreamOrder
from fuel.utils.arguments import try_call

# The sources that have the names of rows.
SOURCES = 'key', 'path'


def rows_called(order: StreamOrder, text: str,
                dataset: int | None) -> list[int]:
    """Return the rows of a data set that a text names: by their number, or as
    the source ``key`` or ``path`` names them.

    `dataset`: number of the data set in the pipeline; None for the only one.

    Raises: ValueError if there is no such row.
    """
    number = order._facts.checked_dataset(dataset)
    owner = order._facts.datasets[number]
    what = f'data set {number} ({type(owner).__name__})'
    is_number = text.removeprefix('-').isdecimal()
    # A number with zeros before it may be a key.
    names = None if is_number and text == str(int(text)) else (
        _names_in(owner))
    if is_number and names is None:
        count = try_call(None, owner.known_length)
        if count is not None and not 0 <= int(text) < count:
            raise ValueError(
                f'{what} has {count} rows, numbered from 0: there is no row '
                f'{text}')
        return [int(text)]
    if names is None:
        raise ValueError(
            f'expected the number of a row, got {text!r}: {what} has no '
            f"source 'key' or 'path' with the names of rows")
    source, values = names
    found = numpy.flatnonzero(values == text).tolist()
    if not found:
        raise ValueError(
            f'{what} has {len(values)} rows, and the {source} of none is '
            f'{text!r}; that of row 0 is {values[0]!r}')
    return found


def _names_in(dataset: Any) -> tuple[str, Any] | None:
    """Return the source that has the names of rows, and the names; None if
    there is none."""
    for source in SOURCES:
        found = try_call(None, _read, dataset, source)
        if found is not None and found.ndim == 1 and len(found) and (
                isinstance(found[0], str)):
            return source, found
    return None


def _read(dataset: Any, source: str) -> Any:
    """Return a source of all rows, also if it is not in use; keys and paths
    need not be a source."""
    names = try_call(None, methodcaller('name_reader'), dataset)
    if names is not None and names.name == source:
        return names.read(dataset.find_source(dataset.sources[0]).rows)
    found = dataset.find_source(source)
    return numpy.asarray(
        found.reader.read(found.rows) if isinstance(found, Source)
        else dataset.read_labels(source))
