"""Tables of the examples that items of an order are made of."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from fuel.utils.printing import aligned, printable

# Most rows of a table that are printed: the first and the last ones.
_MOST_ROWS = 10


class ExamplePlace(NamedTuple):
    """A place at which an example comes.

    Attributes
    ----------
    epoch : int or None
        Number of the epoch, from 0 on; None if it is not known.
    item : int
        Number of the item in the order, from 0 on.
    row : int
        Number of the row in the item, from 0 on; 0 for a single example.
    left_out : bool
        Whether the item is left out; see :func:`leave_out`.
    """

    epoch: int | None
    item: int
    row: int
    left_out: bool = False


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
                 names: Sequence[str]) -> None:
        self.title = title
        self.columns = columns
        self.names = tuple(names)

    def __getattr__(self, name: str) -> NDArray[Any]:
        columns = vars(self).get('columns', {})
        if name in columns:
            column: NDArray[Any] = columns[name]
            return column
        raise AttributeError(
            f'this table has no column {name!r}, it has {[*columns]}')

    def __len__(self) -> int:
        return len(self.columns['row'])

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Yield the number of the data set and the row, for each example."""
        return zip(self.dataset.tolist(), self.row.tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OrderTable):
            return NotImplemented
        return self.columns.keys() == other.columns.keys() and all(
            numpy.array_equal(column, other.columns[name])
            for name, column in self.columns.items())

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
        half, count = _MOST_ROWS // 2, len(self)
        places = [*range(count)] if count <= _MOST_ROWS else [
            *range(half), None, *range(count - half, count)]
        return [[*self.columns], *[
            ['...' if place is None else printable(str(column[place]))
             for column in self.columns.values()] for place in places]]

    def _legend(self) -> list[str]:
        shown = numpy.unique(self.dataset).tolist() if len(self) else []
        return [f'dataset {number}: {printable(self.names[number])}'
                for number in shown if 0 <= number < len(self.names)]

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
