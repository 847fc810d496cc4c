"""Cells of text tables: find their types, convert them to arrays, and
recognise the header, the record with the names of the columns."""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.datasets.records import EXACT, TEXT, first_rounded
from fuel.datasets.times import as_times, type_of_times


def _spellings(word: str) -> list[str]:
    """Return all spellings of a word in small and capital letters."""
    return [''.join(letters) for letters in product(*[
        {letter, letter.upper()} for letter in word])]


# Words for truth values. 0 and 1 are numbers, unless a type is given.
WORDS = {'true': True, 'false': False}
TRUTHS = {**WORDS, '1': True, '0': False}
# Well-known markers of missing values, in lower case.
MARKERS = frozenset((
    '#n/a', '#na', '-', '--', '.', '<na>', '?', 'missing', 'n/a', 'na', 'nan',
    'nat', 'none', 'null'))
# The markers in small and capital letters, so that the cells of a column are
# looked up in one step, without a copy of a long cell.
SPELLED_MARKERS = frozenset(
    spelled for marker in MARKERS for spelled in _spellings(marker))
SPELLED_TRUTHS = {spelled: value for word, value in TRUTHS.items()
                  for spelled in _spellings(word)}
SPELLED_WORDS = frozenset(SPELLED_TRUTHS) - {'1', '0'}
# The types that are tried, from the narrowest on; the type of times has the
# coarsest unit.
NARROW: tuple[numpy.dtype[Any], ...] = (
    numpy.dtype(numpy.int64), numpy.dtype(numpy.float64), numpy.dtype(bool),
    numpy.dtype('datetime64[D]'))
# The most digits that a floating number has before its decimal point.
MOST_DIGITS = 400
DIGITS_OF_EXACT = len(str(EXACT))
# Cells of more characters are passed to Python only if they look like numbers:
# the error about any other cell would need many times the memory of the cell.
LONG = 1000
NUMBER = re.compile(r'\s*[\d.eE+-]+\s*')
INTEGER = re.compile(r'\s*([+-]?\d+)\s*')
# Most characters of a cell that an error shows.
SHOWN = 60


def is_marker(cell: str) -> bool:
    """Return whether a cell is a well-known marker of missing values.

    The cell must not have blanks around it.
    """
    return cell in SPELLED_MARKERS


def short_cell(cell: str) -> str:
    """Return a cell for an error, shortened if it is long."""
    return repr(cell) if len(cell) <= SHOWN else f'{cell[:SHOWN]!r}...'


def without_markers(cells: Sequence[str],
                    markers: frozenset[str]) -> Sequence[str]:
    """Return cells with an empty text in the place of each marker."""
    if markers.isdisjoint(map(str.strip, cells)):
        return cells
    return ['' if cell.strip() in markers else cell for cell in cells]


def markers_in(cells: Sequence[str]) -> tuple[str, ...]:
    """Return the markers of missing values that make cells text.

    The result has well-known markers, in the order in which they occur. It is
    empty if the cells are text even without the markers, or if they are not
    text.
    """
    column = CellColumn()
    column.add(cells)
    return column.markers


def filled(cells: Sequence[str], value: str) -> Sequence[str]:
    """Return cells with a value in the place of each empty cell."""
    if all(map(str.strip, cells)):
        return cells
    return [cell if cell.strip() else value for cell in cells]


def cell_array(cells: Sequence[str],
               dtype: numpy.dtype[Any]) -> NDArray[Any]:
    """Return cells as an array of a type. Empty cells are NaN in a floating
    type, and NaT in a type of times."""
    if dtype.kind == 'f':
        cells = filled(cells, 'nan')
    if dtype == TEXT:
        batch = numpy.empty(len(cells), object)
        batch[:] = cells
        return batch
    if dtype.kind in 'iuf':
        _check_numbers(cells)
    if dtype.kind == 'M':
        return as_times(cells, dtype)
    if dtype.kind == 'b':
        return _truths(cells)
    if dtype.kind in 'iu':
        # Converted by Python, whose integers are exact: the check below
        # refuses those that are out of range.
        numbers = list(map(int, cells))
        info = numpy.iinfo(dtype)
        if numbers and not (
                info.min <= min(numbers) and max(numbers) <= info.max):
            raise OverflowError(f'outside of {dtype}')
        return numpy.array(numbers, dtype)
    if dtype.kind in 'USV':
        room = dtype.itemsize // numpy.dtype(f'{dtype.kind}1').itemsize
        if room and max(map(len, cells), default=0) > room:
            raise ValueError('it is longer')
        return numpy.array(cells).astype(dtype)
    # In an array of text, each cell would be as wide as the longest.
    return numpy.array(cells, object).astype(dtype)


def _check_numbers(cells: Sequence[str]) -> None:
    """Refuse long cells that are not numbers, and cells such as 1_000, which
    only Python reads as numbers."""
    if max(map(len, cells), default=0) > LONG and not all(
            len(cell) <= LONG or NUMBER.fullmatch(cell) for cell in cells):
        raise ValueError('it is not a number')
    if '_' in ''.join(cells):
        raise ValueError('it is not a number')


def _truths(cells: Sequence[str]) -> NDArray[numpy.bool_]:
    """Return cells as truth values."""
    found = list(map(SPELLED_TRUTHS.get, map(str.strip, cells)))
    if None in found:
        raise ValueError(f'{short_cell(cells[found.index(None)])} is neither '
                         f'true nor false')
    return numpy.array(found, bool)


class Kinds:
    """Finds the type of a column whose cells are added in parts.

    `is_blank`: whether all cells are empty.
    `has_gaps`: whether some cells are empty.
    """

    __slots__ = '_dtypes', 'has_gaps', 'is_blank'

    def __init__(self) -> None:
        self.is_blank = True
        self.has_gaps = False
        # Types that fit all cells so far, from the narrowest on.
        self._dtypes: tuple[numpy.dtype[Any], ...] = NARROW

    def add(self, cells: Sequence[str]) -> None:
        """Add further cells, without blanks around them."""
        present = list(filter(None, cells))
        self.has_gaps |= len(present) < len(cells)
        if not present:
            return
        self.is_blank = False
        found = []
        for place, dtype in enumerate(self._dtypes):
            fitting = _fitting(present, dtype)
            if fitting is None:
                continue
            if fitting.kind in 'if':
                # An integer fits a floating type too; a number fits no other
                # kind of type.
                found = [one for one in self._dtypes[place:]
                         if one.kind in 'if']
                break
            found.append(fitting)
        self._dtypes = tuple(found)

    def join(self, other: Kinds) -> None:
        """Add the cells of another object."""
        self.has_gaps |= other.has_gaps
        self.is_blank &= other.is_blank
        self._dtypes = tuple([
            max(ours, theirs) for ours in self._dtypes
            for theirs in other._dtypes if ours.kind == theirs.kind])

    def differs(self, other: Kinds) -> bool:
        """Return whether the cells of both objects together are text, although
        the cells of at least one of them are not text.

        False if an object has only empty cells.
        """
        both = self.copy()
        both.join(other)
        return both.is_text and not (
            self.is_blank or other.is_blank
            or (self.is_text and other.is_text))

    def copy(self) -> Kinds:
        """Return a copy of this object."""
        found = Kinds()
        found._dtypes = self._dtypes
        found.has_gaps, found.is_blank = self.has_gaps, self.is_blank
        return found

    @property
    def is_text(self) -> bool:
        """Whether only text fits (bool): further cells change nothing."""
        return not self._dtypes

    def dtype(self, with_gaps: bool = True) -> numpy.dtype[Any]:
        """Return the narrowest type that fits the cells.

        `with_gaps`: whether the type must hold empty cells too.
        """
        if self.is_blank:
            return TEXT
        for dtype in self._dtypes:
            if not (with_gaps and self.has_gaps and dtype.kind in 'ib'):
                return dtype
        return TEXT


def _fitting(cells: list[str],
             dtype: numpy.dtype[Any]) -> numpy.dtype[Any] | None:
    """Return `dtype` if it fits all cells; else None.

    For times, the unit of the returned type may be finer than the unit of
    `dtype`.
    """
    if dtype.kind == 'b':
        return dtype if SPELLED_WORDS.issuperset(cells) else None
    try:
        if dtype.kind == 'M':
            found = type_of_times(cells)
            if found is None:
                return None
            dtype = max(dtype, found)
        cell_array(cells, dtype)
    except (ValueError, OverflowError):
        # An invalid cell, such as the 31st of June.
        return None
    return dtype


class CellColumn:
    """The possible types of the cells of a column, with and without the
    markers of missing values, and these markers."""

    __slots__ = '_found', '_others', 'kinds', 'rounded'

    def __init__(self) -> None:
        self.kinds = Kinds()
        # The first integer that a floating type does not hold exactly.
        self.rounded: int | None = None
        # Kinds of the cells that are not markers; None as long as there are no
        # markers.
        self._others: Kinds | None = None
        self._found: dict[str, None] = {}

    def add(self, cells: Sequence[str]) -> None:
        """Add further cells."""
        cells = list(map(str.strip, cells))
        found = {} if SPELLED_MARKERS.isdisjoint(cells) else dict.fromkeys(
            filter(SPELLED_MARKERS.__contains__, cells))
        if found and self._others is None:
            # No cell was a marker before.
            self._others = self.kinds.copy()
        if self._others is not None and not self._others.is_text:
            self._found = {**self._found, **found}
            self._others.add([cell for cell in cells if cell not in found])
        self.kinds.add(cells)
        if self.rounded is None and not self.kinds.is_text:
            self.rounded = first_rounded(integers_in(cells))

    def join(self, other: CellColumn) -> None:
        """Add the cells of another object."""
        if self._others is not None or other._others is not None:
            ours = self._others or self.kinds.copy()
            ours.join(other._others or other.kinds)
            self._others = ours
            self._found = {**self._found, **other._found}
        self.kinds.join(other.kinds)
        if self.rounded is None:
            self.rounded = other.rounded

    @property
    def markers(self) -> tuple[str, ...]:
        """The markers of missing values that make the cells text; see
        :func:`markers_in`."""
        if not self.kinds.is_text or self.unmarked_type() == TEXT:
            return ()
        return tuple(self._found)

    def unmarked_type(self) -> numpy.dtype[Any]:
        """Return the type of the cells that are not markers; text if no cell
        is a marker."""
        return TEXT if self._others is None else self._others.dtype(False)


def integers_in(cells: Iterable[str]) -> Iterator[int]:
    """Yield the integers among cells that are so large that a floating type
    may round them."""
    for cell in cells:
        if len(cell) >= DIGITS_OF_EXACT and (
                found := INTEGER.fullmatch(cell)) is not None:
            # Python does not convert thousands of digits.
            yield int(found[1][:MOST_DIGITS])


def cell_type(cells: Sequence[str]) -> numpy.dtype[Any]:
    """Return the narrowest type that fits the cells: int64, float64, bool,
    datetime64 or text."""
    kinds = Kinds()
    kinds.add(list(map(str.strip, cells)))
    return kinds.dtype()


def is_header(record: Sequence[str],
              groups: Iterable[Sequence[Sequence[str]]]) -> bool:
    """Return whether the first record holds names of columns.

    The record is a header if it has one of three signs. First, all its cells
    are text; the first cell may be empty, since programs leave it empty above
    the numbers of the rows. Second, a cell is text, but not a marker of
    missing values, and the cells below it are not text. Third, the cells are
    0, 1, 2 and so on, perhaps after an empty first cell. If the first cell is
    not empty, the third sign also requires a column below that has other
    values than integers.

    `groups`: the records below the first record, in groups.
    """
    first = [cell.strip() for cell in record]
    if not first or not any(first):
        return False
    are_text = [bool(cell) and cell_type([cell]) == TEXT for cell in first]
    if all(are_text) or (
            not first[0] and len(first) > 1 and all(are_text[1:])):
        return True
    columns = [Kinds() for _ in first]
    for below in groups:
        for number, kinds in enumerate(columns):
            kinds.add([one[number].strip() for one in below
                       if number < len(one)])
    is_indexed = not first[0]
    named = first[is_indexed:]
    if named == [str(number) for number in range(len(named))] and (
            is_indexed or any(
                not kinds.is_blank and kinds.dtype(False).kind != 'i'
                for kinds in columns)):
        return True
    return any(
        is_text and not kinds.is_blank and not is_marker(cell)
        and kinds.dtype(False) != TEXT
        for cell, is_text, kinds in zip(
            first, are_text, columns, strict=True))


def names_of_columns(header: Sequence[str]) -> list[str]:
    """Return the names in a header.

    An empty name becomes 'column_3' in column 3, counted from 0. In the first
    column it becomes 'index', unless another column has that name.
    """
    names = list(header)
    for number, name in enumerate(header):
        if not name.strip():
            names[number] = ('index' if not number and 'index' not in header
                             else f'column_{number}')
    return names
