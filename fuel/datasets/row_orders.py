"""Orders of rows: for each example, the row of a source."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.typing import Indices
from fuel.utils import Subset

IndexArray: TypeAlias = NDArray[numpy.intp]
# The row of a source for each example, in the order of the examples.
Order: TypeAlias = slice | IndexArray


class OrderedSubset(Subset):
    """A :class:`Subset` that remembers an order which is not ascending."""

    def __init__(self, order: IndexArray, original_num_examples: int) -> None:
        super().__init__(order, original_num_examples)
        self.order = order

    def __reduce__(self) -> tuple[Any, ...]:
        return OrderedSubset, (self.order, self.original_num_examples)


def length(order: Order) -> int:
    """Return the number of examples in an order of rows."""
    if isinstance(order, slice):
        return int(order.stop - order.start)
    return len(order)


def simplify(order: Order) -> Order:
    """Return an order as a slice if its rows are consecutive; else
    unchanged."""
    if isinstance(order, slice) or not len(order):
        return order if isinstance(order, slice) else slice(0, 0)
    first = int(order[0])
    if (order[-1] - first == len(order) - 1
            and (numpy.diff(order) == 1).all()):
        return slice(first, first + len(order))
    return order


def rows_of_order(order: Order) -> IndexArray:
    """Return the rows of an order as an array."""
    if isinstance(order, slice):
        return numpy.arange(order.start, order.stop, dtype=numpy.intp)
    return order


def same(first: Order, second: Order) -> bool:
    """Return whether two simplified orders have the same rows."""
    if isinstance(first, slice) or isinstance(second, slice):
        # A slice compared with an array would be compared row by row.
        return type(first) is type(second) and first == second
    return numpy.array_equal(first, second)


def concatenate(orders: list[Order]) -> Order:
    """Return the concatenation of several orders."""
    if len(orders) == 1:
        return orders[0]
    return simplify(numpy.concatenate([rows_of_order(o) for o in orders]))


def as_subset(order: Order, num_rows: int) -> Subset:
    """Return an order as a sorted subset, which remembers the order."""
    if not length(order):
        return Subset.empty_subset(num_rows)
    if isinstance(order, slice) or (order[1:] > order[:-1]).all():
        return Subset(order, num_rows)
    return OrderedSubset(order, num_rows)


class RowsOf(NamedTuple):
    """The rows of a source in the order of the examples.

    `num_rows`: number of all rows of the source.
    """

    order: Order
    num_rows: int


def rows_of_subset(subset: Subset) -> RowsOf:
    """Return the rows of a subset in the order of its examples."""
    return RowsOf(_order_of(subset), subset.original_num_examples)


def _order_of(subset: Subset) -> Order:
    """Return the rows of a subset in the order of its examples."""
    if isinstance(subset, OrderedSubset):
        return subset.order
    content = subset.list_or_slice
    if isinstance(content, slice):
        start, stop, _ = Subset.slice_to_numerical_args(
            content, subset.original_num_examples)
        return slice(start, stop)
    return numpy.asarray(content, dtype=numpy.intp)


def pick(order: Order, positions: Any) -> Any:
    """Return the rows at some positions of an order."""
    if isinstance(positions, slice) and positions == slice(None):
        return order
    if not isinstance(order, slice):
        picked = order[positions]
        return picked if isinstance(picked, numpy.ndarray) else int(picked)
    if not isinstance(positions, slice):
        return positions + order.start if order.start else positions
    start, stop, step = positions.indices(length(order))
    return slice(order.start + start, order.start + stop, step)


def checked_subset(subset: Indices | None) -> Any:
    """Check and return the argument `subset`; a slice of all if it is None."""
    if subset is None:
        return slice(None)
    if not isinstance(subset, (slice, list, tuple, range, numpy.ndarray)):
        raise ValueError(
            'subset must be a slice, or a list or array of integers, got '
            f'{subset!r}')
    if (subset.stop is not None and subset.stop == (subset.start or 0)
            if isinstance(subset, slice) else not len(subset)):
        raise ValueError(
            'subset must name at least one example, got an empty one '
            f'({subset!r}); leave it out to have all examples')
    return subset


class Selection:
    """The rows of each source that a data set uses, in order.

    A pickle holds only the number of examples, since the file lists the rows.
    If a subclass assigned the rows, the pickle holds them.

    `orders`: the order of each source's rows; empty after unpickling.
    `num_rows`: number of rows of each source.
    `identity`: identity of the file that lists the rows.
    `is_assigned`: whether the rows were assigned by a subclass.
    """

    identity: tuple[int, ...] | None = None
    is_assigned = False

    def __init__(self, sources: Sequence[str], rows: Sequence[RowsOf],
                 given: Any) -> None:
        self.num_rows = [num_rows for _, num_rows in rows]
        self.orders: list[Any] = [
            simplify(pick(order, _positions_in(given, length(order))))
            for order, _ in rows]
        lengths = [length(order) for order in self.orders]
        if len(set(lengths)) > 1:
            raise ValueError(
                'the sources have different lengths, so their examples are '
                'not pairs: ' + ', '.join(
                    f'{source!r} has {n}'
                    for source, n in zip(sources, lengths, strict=True)))
        self.num_examples: int = lengths[0]

    @cached_property
    def subsets(self) -> list[Subset]:
        """The rows of each source, in ascending order."""
        return list(map(as_subset, self.orders, self.num_rows))

    def has_rows_of(self, other: Selection) -> bool:
        """Return whether two selections have the same rows in one order."""
        return (len(self.orders) == len(other.orders)
                and all(map(same, self.orders, other.orders)))

    def __getstate__(self) -> dict[str, Any]:
        if self.is_assigned:
            return vars(self)
        return {'orders': [], 'num_examples': self.num_examples}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        if self.orders and 'num_rows' not in state:
            # A pickle with subsets in the place of `num_rows`.
            self.num_rows = [subset.original_num_examples
                             for subset in state['subsets']]


def _positions_in(given: Any, num_examples: int) -> Any:
    """Return the positions that the argument `subset` stands for."""
    if isinstance(given, slice) and given == slice(None):
        return given
    return _order_of(Subset(given, num_examples))
