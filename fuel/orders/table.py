"""Tables of the examples that items of an order are made of."""
from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from fuel.orders.origins import BLANKS, Origins, find_origins
from fuel.sharding.order import ENDLESS
from fuel.utils.printing import aligned, printable

# Most rows of a table that are printed: the first and the last ones.
_MOST_ROWS = 10
# Most characters of a cell that are printed: the last ones.
_WIDEST = 24


class ExamplePlace(NamedTuple):
    """A place at which an example comes.

    Attributes
    ----------
    epoch : int or None
        Number of the epoch, from 0 on; None if it is not known.
    item : int
        Number of the item in the order, from 0 on.
    row : int or None
        Number of the row in the item, from 0 on; 0 for a single example; None
        if a stage may have changed the rows of the item.
    left_out : bool
        Whether the item is left out; see :func:`leave_out`.
    """

    epoch: int | None
    item: int
    row: int | None
    left_out: bool = False


class WindowPlace(NamedTuple):
    """A place at which a window comes, or a run of rows.

    Attributes
    ----------
    epoch, item, row, left_out
        See :class:`ExamplePlace`.
    window : int
        Number of the window in its data set, as its `get_data` takes it.
    rows : slice
        The rows that it holds of the data set from which it is cut; rows of
        padding do not count.
    """

    epoch: int | None
    item: int
    row: int | None
    left_out: bool
    window: int
    rows: slice


class OrderTable:
    """The examples of some items of an order, a row for each example.

    :class:`fuel.orders.StreamOrder` returns tables. ``print`` and an
    interactive prompt show text, a notebook shows HTML.

    Parameters
    ----------
    title : str
        Says which items these are.
    columns : dict of str to numpy.ndarray
        The columns below, those that do not apply left out.
    names : sequence of str
        Names of the data sets, by their numbers.
    datasets : sequence of Dataset, optional
        The data sets, which know the columns from `first` on. These are made
        when they are first used.

    Attributes
    ----------
    item : numpy.ndarray of int64
        Number of the item in the order, from 0 on.
    round : numpy.ndarray of int64
        In the place of `item`, in the table of a step: number of the round of
        the epoch. In each round, every rank gets one item.
    rank : numpy.ndarray of int64
        Rank that gets the example, if there are several; -1 if no rank gets
        it, since ``uneven='drop'`` leaves it out. Tables of all ranks lack it
        where ranks do not share whole items.
    dataset : numpy.ndarray of int64
        Number of the data set in the pipeline, from 0 on.
    row : numpy.ndarray
        Row of the data set, as its `get_data` takes it: int64, or objects if
        rows are not integers.
    first, stop : numpy.ndarray of int64
        Of windows and runs: the first row that the example holds of the data
        set from which it is cut, and the row after its last one. Rows of
        padding do not count.
    step : numpy.ndarray of int64
        Of windows with a step: the distance between these rows.
    file : numpy.ndarray of objects
        Path of the file. A table that is printed has the number of the file
        among the files of the data set.
    part : numpy.ndarray of objects
        Path of the group in the file that is a part of the data set.
    row_of_part : numpy.ndarray of int64
        Number of the row in this group, or in the file if there is no column
        `part`; of a window, that of its first row.
    columns : dict of str to numpy.ndarray
        All columns, by their names.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(list('abcdef')), batch_size=2,
    ...                     shuffle=True, seed=1)
    >>> table = stream.order[1:3]
    >>> table
    items 1 to 2 of 3 in epoch 0: 4 examples
    item  dataset  row
       1        0    4
       1        0    0
       2        0    3
       2        0    5
    dataset 0: IndexableDataset
    >>> table.row.tolist()
    [4, 0, 3, 5]
    """

    def __init__(self, title: str, columns: dict[str, NDArray[Any]],
                 names: Sequence[str], datasets: Sequence[Any] = ()) -> None:
        self.title = title
        self._given = columns
        self.names = tuple(names)
        self._datasets = datasets

    def __getstate__(self) -> dict[str, Any]:
        # A data set in memory would be as large as its data.
        return {**vars(self), '_origins': self._origins, '_datasets': ()}

    @functools.cached_property
    def _origins(self) -> Origins:
        """The columns of files and windows, found at the first question."""
        return find_origins(self._datasets, self._given['dataset'],
                            self._given['row'])

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns, by their names."""
        return {**self._given, **self._origins.columns}

    def __getattr__(self, name: str) -> NDArray[Any]:
        given = vars(self).get('_given', {})
        columns = given if name in given or name not in BLANKS else (
            self.columns)
        if name in columns:
            column: NDArray[Any] = columns[name]
            return column
        raise AttributeError(
            f'this table has no column {name!r}, it has {[*columns]}')

    def __len__(self) -> int:
        return len(self._given['row'])

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Yield the number of the data set and the row, for each example."""
        return zip(self.dataset.tolist(), self.row.tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OrderTable):
            return NotImplemented
        return self._given.keys() == other._given.keys() and all(
            numpy.array_equal(column, other._given[name])
            for name, column in self._given.items())

    __hash__: Any = None

    def to_pandas(self) -> Any:
        """Return the table as a data frame.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        try:
            import pandas
        except ModuleNotFoundError as error:
            error.add_note('to_pandas() needs pandas: pip install pandas')
            raise
        return pandas.DataFrame(self.columns)

    def _lines(self) -> list[list[str]]:
        """Return the cells of the names and of the rows that are shown."""
        columns = self.columns
        if 'file' in columns:
            columns['file'] = self._origins.numbers
        return [[*columns], *[
            ['...' if place is None else _cell(name, column[place])
             for name, column in columns.items()] for place in self._shown()]]

    def _shown(self) -> list[int | None]:
        """Return the rows that are shown; None for rows that are left out."""
        half, count = _MOST_ROWS // 2, len(self)
        return [*range(count)] if count <= _MOST_ROWS else [
            *range(half), None, *range(count - half, count)]

    def _legend(self) -> list[str]:
        """Return lines about the data sets, and about the files of the rows
        that are shown."""
        datasets = numpy.unique(self.dataset).tolist()
        files = sorted({
            (self.dataset[place], number, self.file[place])
            for place in self._shown() if place is not None
            and (number := self._origins.numbers[place]) >= 0})
        return [printable(line) for line in (
            *[f'dataset {number}: {self.names[number]}'
              for number in datasets if 0 <= number < len(self.names)],
            *[f'file {number}' + f' of dataset {dataset}' * (
                len(datasets) > 1) + f': {path}'
              for dataset, number, path in files])]

    def __repr__(self) -> str:
        return '\n'.join([self.title, *(
            line.rstrip() for line in aligned(self._lines(), 0)),
            *self._legend()])

    def _repr_html_(self) -> str:
        from fuel.describe.page import escape, table_html
        names, *rows = self._lines()
        return ''.join([
            f'<div>{escape(self.title)}</div>', table_html([names, *rows]),
            *[f'<div>{escape(line)}</div>' for line in self._legend()]])


def _cell(name: str, value: object) -> str:
    """Return a cell of a printed table."""
    text = printable(str(value))
    if name in BLANKS and value == -1:
        return ''
    return text if len(text) <= _WIDEST else '...' + text[3 - _WIDEST:]


def items_title(items: range, noun: str, count: int | None) -> str:
    """Return a description of some items, or rounds.

    `count`: number of all of them, None if it is not known.
    """
    total = '' if count is None or count >= ENDLESS else f' of {count}'
    if not items:
        return f'no {noun}s{total}'
    if len(items) == 1:
        return f'{noun} {items[0]}{total}'
    every = '' if items.step == 1 else f' in steps of {items.step}'
    return f'{noun}s {items[0]} to {items[-1]}{every}{total}'


def as_column(rows: list[Any]) -> Any:
    """Return rows as an array: int64, or objects if they are not integers."""
    if all(isinstance(row, (int, numpy.integer)) for row in rows):
        return numpy.array(rows, numpy.int64)
    column = numpy.empty(len(rows), object)
    column[:] = rows
    return column
