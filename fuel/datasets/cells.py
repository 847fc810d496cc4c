"""Cells of tables in text: their types, arrays of them, and the record that
holds the names of the columns."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.datasets.records import TEXT
from fuel.datasets.times import as_times, type_of_times

# Of truth values; 0 and 1 are numbers, unless a type is given.
WORDS = {'true': True, 'false': False}
TRUTHS = {**WORDS, '1': True, '0': False}
# What programs write for missing values, in small letters.
MARKERS = frozenset((
    '#n/a', '#na', '-', '--', '.', '<na>', '?', 'missing', 'n/a', 'na', 'nan',
    'nat', 'none', 'null'))
LONGEST_MARKER = max(map(len, MARKERS))
# Longer cells are shown in part.
SHOWN = 60


def is_marker(cell: str) -> bool:
    """Return whether a cell, without blanks around it, is a well-known marker
    of missing values."""
    # Not `lower` alone: of a long text it takes sixteen times its memory.
    return len(cell) <= LONGEST_MARKER and cell.lower() in MARKERS


def short_cell(cell: str) -> str:
    """Return how a cell appears in an error."""
    return repr(cell) if len(cell) <= SHOWN else f'{cell[:SHOWN]!r}...'


def without_markers(cells: Sequence[str],
                    markers: frozenset[str]) -> list[str]:
    """Return cells of which those that are a marker are empty."""
    return ['' if cell.strip() in markers else cell for cell in cells]


def markers_in(cells: Iterable[str]) -> tuple[str, ...]:
    """Return well-known markers of missing values, in the order in which
    they come first, without which cells are no text; else none."""
    found: dict[str, None] = {}
    others = []
    for cell in map(str.strip, cells):
        if is_marker(cell):
            found[cell] = None
        elif cell:
            others.append(cell)
    if not found or not others or cell_type(others) == TEXT:
        return ()
    return tuple(found)


def cell_array(cells: list[str], dtype: numpy.dtype[Any]) -> NDArray[Any]:
    """Return cells as an array of some type, where empty ones may be NaN."""
    if dtype.kind == 'f':
        cells = [cell if cell.strip() else 'nan' for cell in cells]
    if dtype == TEXT:
        batch = numpy.empty(len(cells), object)
        batch[:] = cells
        return batch
    if dtype.kind in 'iuf' and any('_' in cell for cell in cells):
        # To Python, 1_000 is a number.
        raise ValueError('numbers have no underscores')
    if dtype.kind == 'M':
        return as_times(cells, dtype)
    if dtype.kind == 'b':
        return numpy.array([_truth(cell) for cell in cells], bool)
    if dtype.kind in 'iu':
        # By way of Python's integers: exact, and out of range is an error.
        numbers = numpy.array([int(cell) for cell in cells], object)
        info = numpy.iinfo(dtype)
        if len(numbers) and not (
                info.min <= numbers.min() and numbers.max() <= info.max):
            raise OverflowError(f'outside of {dtype}')
        return numbers.astype(dtype)
    if dtype.kind in 'USV':
        room = dtype.itemsize // numpy.dtype(f'{dtype.kind}1').itemsize
        if room and max(map(len, cells), default=0) > room:
            raise ValueError('it is longer')
        return numpy.array(cells).astype(dtype)
    # An array of text would have the width of the longest for each.
    return numpy.array(cells, object).astype(dtype)


def _truth(cell: str) -> bool:
    try:
        return TRUTHS[cell.strip().lower()]
    except KeyError:
        raise ValueError(
            f'{short_cell(cell)} is neither true nor false') from None


def cell_type(cells: Sequence[str]) -> numpy.dtype[Any]:
    """Return the narrowest type that fits: integer, floating, truth values,
    times or text."""
    cells = list(cells)
    present = [cell.strip() for cell in cells if cell.strip()]
    if present:
        for dtype in (numpy.dtype(numpy.int64), numpy.dtype(numpy.float64)):
            try:
                cell_array(cells, dtype)
            except (ValueError, OverflowError):
                continue
            return dtype
        if len(present) == len(cells) and all(
                cell.lower() in WORDS for cell in cells):
            return numpy.dtype(bool)
        times = type_of_times(present)
        try:
            if times is not None:
                cell_array(present, times)
                return times
        except ValueError:
            # Such as the 31st of June.
            pass
    return TEXT


def is_header(records: Sequence[Sequence[str]]) -> bool:
    """Return whether the first of some records holds names of columns.

    It does if none of its cells is a number or empty, but for the first,
    which programs leave empty above the numbers of rows; if it has text
    above cells that are none; or if it counts the columns from 0, above
    numbers that are not whole.
    """
    first, *below = [[cell.strip() for cell in record] for record in records]
    if not first or not any(first):
        return False
    are_text = [bool(cell) and cell_type([cell]) == TEXT for cell in first]
    if all(are_text) or (
            not first[0] and len(first) > 1 and all(are_text[1:])):
        return True
    columns = [[record[number] for record in below
                if number < len(record) and record[number]]
               for number in range(len(first))]
    is_indexed = not first[0]
    named = first[is_indexed:]
    if named == [str(number) for number in range(len(named))] and (
            is_indexed or any(cells and cell_type(cells).kind != 'i'
                              for cells in columns)):
        return True
    return any(
        is_text and cells and not is_marker(cell)
        and cell_type(cells) != TEXT
        for cell, is_text, cells in zip(
            first, are_text, columns, strict=True))


def names_of_columns(header: Sequence[str]) -> list[str]:
    """Return the names in a header: where the first is empty 'index', and
    'column_3' where the one of number 3 is."""
    names = list(header)
    for number, name in enumerate(header):
        if not name.strip():
            names[number] = ('index' if not number and 'index' not in header
                             else f'column_{number}')
    return names
