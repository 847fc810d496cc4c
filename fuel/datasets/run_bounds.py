"""Bounds of runs: which consecutive rows belong together.

A run is an episode, a document or a trajectory. Runs follow each other, so
their bounds define them: run ``i`` has the rows from ``bounds[i]`` to
``bounds[i + 1] - 1``.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy
from numpy.typing import ArrayLike, NDArray

from fuel.datasets.row_orders import IndexArray, Order
from fuel.utils.masked import is_masked, masked_refusal

#: 'all', or a dict from a way of separating runs to a name or an array.
RunsGiven: TypeAlias = str | Mapping[str, Any]
#: Takes the number of a part and a name; returns the array of that name in the
#: part.
ReadNamed: TypeAlias = Callable[[int, Any], ArrayLike]

KINDS = ('lengths', 'offsets', 'ends', 'numbers')


def runs_in(dataset: Any) -> Any:
    """Return the bounds of the runs of a data set's examples, or None.

    A source named `runs` does not count, since it is not an attribute of the
    class.
    """
    if hasattr(type(dataset), 'runs'):
        return dataset.runs
    return vars(dataset).get('runs')


def find_bounds(runs: RunsGiven | None, part_rows: Sequence[int] | IndexArray,
                read: ReadNamed,
                name_part: Callable[[int], str] | None = None) -> IndexArray:
    """Return the bounds of the runs of all parts.

    `runs`: ``'all'``, one run through all parts; or a mapping with one of the
        keys ``'lengths'`` (rows of each run), ``'offsets'`` (the bounds
        themselves), ``'ends'`` (for each row, whether it is the last row of
        its run; with several such arrays, a run ends where any of them says
        so) and ``'numbers'`` (for each row, the number or name of its run).
        The value is the name of an array in each part, or an array if there is
        one part. None: each part is a run.
    `part_rows`: number of rows of each part.
    `read`: takes the number of a part and a name; returns the array of that
        name in the part.
    `name_part`: takes the number of a part; returns its name for errors.
    Returns: an array of shape (runs + 1,) and dtype intp, from 0 to the number
        of rows. A run may be empty.
    """
    first_rows = numpy.concatenate(
        [[0], numpy.cumsum(part_rows, dtype=numpy.intp)]).astype(numpy.intp)
    if runs is None:
        return first_rows
    if isinstance(runs, str) and runs == 'all':
        return first_rows[[0, -1]]
    kind, value = _kind_of(runs)
    names = _as_several(value) if kind == 'ends' else [value]
    found: list[IndexArray] = []
    for part, count in enumerate(numpy.diff(first_rows).tolist()):
        where = f'runs={{{kind!r}: {_shown(value)}}}' + (
            '' if name_part is None else f' of {name_part(part)}')
        columns = [_column(where, name, part, read) for name in names]
        bounds = _BOUNDS[kind](where, columns, count)
        found.append(bounds[:-1] + first_rows[part])
    return numpy.concatenate([*found, first_rows[-1:]])


def rows_described(runs: RunsGiven, read: ReadNamed) -> int:
    """Return the number of rows of all runs together; the arrays that bound
    the runs must be in one part."""
    kind, value = _kind_of(runs)
    name = _as_several(value)[0] if kind == 'ends' else value
    column = _column(f'runs={{{kind!r}: {_shown(value)}}}', name, 0, read)
    if kind == 'lengths':
        return sum(column.tolist())
    if kind == 'offsets':
        return int(column[-1]) if len(column) else 0
    return len(column)


def names_in(runs: RunsGiven | None) -> list[str]:
    """Return the names of the arrays that bound the runs.

    Raises: ValueError if `runs` is not one of the known forms.
    """
    if runs is None or (isinstance(runs, str) and runs == 'all'):
        return []
    kind, value = _kind_of(runs)
    names = _as_several(value) if kind == 'ends' else [value]
    return [name for name, _ in filter(None, map(_name_of, names))]


def cut_runs(bounds: IndexArray, order: Order,
             ) -> tuple[IndexArray, IndexArray]:
    """Return the runs of some rows. Each is a stretch of consecutive rows that
    lie in one run of all rows.

    The stretches are as long as possible.

    `bounds`: bounds of the runs of all rows.
    `order`: the rows that are used, in the order of the examples.
    Returns: the bounds of the stretches among the examples, and, for each
        stretch, the number of its run. Unless all rows are used, no stretch is
        empty.
    """
    if not isinstance(order, slice):
        runs = numpy.searchsorted(bounds, order, 'right') - 1
        breaks = numpy.flatnonzero(
            (numpy.diff(order) != 1) | (numpy.diff(runs) != 0)) + 1
        ends = numpy.array([len(order)] if len(order) else [], numpy.intp)
        cut = numpy.concatenate([[0], breaks, ends]).astype(numpy.intp)
        return cut, runs[cut[:-1]]
    start, stop = order.start, order.stop
    if start == 0 and stop == bounds[-1]:
        return bounds, numpy.arange(len(bounds) - 1)
    cut = numpy.clip(bounds, start, stop) - start
    numbers = numpy.flatnonzero(numpy.diff(cut))
    return numpy.concatenate([cut[numbers], [stop - start]]), numbers


def _kind_of(runs: RunsGiven) -> tuple[str, Any]:
    """Return the key of `runs`, such as 'lengths', and its value."""
    if not isinstance(runs, Mapping) or len(runs) != 1 or (
            next(iter(runs)) not in KINDS):
        kinds = ', '.join(f'{{{kind!r}: ...}}' for kind in KINDS)
        raise ValueError(
            f"runs must be 'all' or one of {kinds}, got {_shown(runs)}")
    return next(iter(runs.items()))


def _as_several(value: Any) -> Sequence[Any]:
    """Return the names or arrays that say where runs end, as a list."""
    if isinstance(value, (list, tuple)) and value and all(
            isinstance(one, (str, numpy.ndarray)) for one in value):
        return value
    return [value]


def _name_of(value: Any) -> tuple[str, int | None] | None:
    """Return the name of an array, and the number of a column if the array is
    a table (else None); return None if the value is itself an array."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, tuple) and len(value) == 2 and isinstance(
            value[0], str) and isinstance(value[1], int):
        return value[0], value[1]
    return None


def _shown(value: object) -> str:
    if isinstance(value, numpy.ndarray):
        return f'array of shape {value.shape}'
    return f'{value!r:.80}'


def _column(where: str, value: Any, part: int,
            read: ReadNamed) -> NDArray[Any]:
    """Return the array of a part that a name or value of `runs` stands for."""
    named = _name_of(value)
    found = value if named is None else read(part, named[0])
    if is_masked(found):
        raise masked_refusal(f'{where}: runs cannot be separated by an array '
                             'with masked values')
    column = numpy.asarray(found)
    if named is not None and named[1] is not None:
        column = _column_of_table(where, column, named[1])
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise ValueError(
            f'{where}: it must have one axis, got an array of shape '
            f'{column.shape}')
    return column


def _column_of_table(where: str, table: NDArray[Any],
                     number: int) -> NDArray[Any]:
    if table.ndim != 2 or not 0 <= number < table.shape[1]:
        raise ValueError(
            f'{where}: there is no column {number}, the shape is '
            f'{table.shape}')
    column: NDArray[Any] = table[:, number]
    return column


def _integers(where: str, column: NDArray[Any]) -> IndexArray:
    if column.dtype.kind not in 'iu' and column.size:
        raise ValueError(
            f'{where}: it must have integers, got {column.dtype}')
    return column.astype(numpy.intp)


def _of_lengths(where: str, columns: Sequence[NDArray[Any]],
                count: int) -> IndexArray:
    lengths = _integers(where, columns[0])
    if (lengths < 0).any():
        run = int(numpy.flatnonzero(lengths < 0)[0])
        raise ValueError(
            f'{where}: run {run} has the length {lengths[run]}')
    total = sum(lengths.tolist())
    if total != count:
        raise ValueError(
            f'{where}: the lengths add up to {total}, and there are {count} '
            f'rows: each must lie in a run')
    return numpy.concatenate([[0], numpy.cumsum(lengths)]).astype(numpy.intp)


def _of_offsets(where: str, columns: Sequence[NDArray[Any]],
                count: int) -> IndexArray:
    bounds = _integers(where, columns[0])
    if not len(bounds) or bounds[0] != 0 or bounds[-1] != count:
        ends = bounds[[0, -1]].tolist() if len(bounds) else 'none'
        raise ValueError(
            f'{where}: the offsets must go from 0 to {count}, the number of '
            f'rows, got {ends}: each row must lie in a run')
    falls = numpy.flatnonzero(numpy.diff(bounds) < 0)
    if len(falls):
        raise ValueError(
            f'{where}: run {falls[0]} begins at row {bounds[falls[0]]} and '
            f'ends before row {bounds[falls[0] + 1]}')
    return bounds


def _of_ends(where: str, columns: Sequence[NDArray[Any]],
             count: int) -> IndexArray:
    is_last = numpy.zeros(count, bool)
    for column in columns:
        _check_rows(where, column, count)
        is_end = column.astype(bool)
        wrong = numpy.flatnonzero(column != is_end)
        if len(wrong):
            raise ValueError(
                f'{where}: it must be True or 1 for the last row of each run, '
                f'else False or 0, got {column[wrong[0]]} in row {wrong[0]}')
        is_last |= is_end
    # Rows after the last end are a run too.
    is_last[-1:] = True
    return _after_0(numpy.flatnonzero(is_last) + 1)


def _of_numbers(where: str, columns: Sequence[NDArray[Any]],
                count: int) -> IndexArray:
    numbers = columns[0]
    _check_rows(where, numbers, count)
    bounds = _after_0(numpy.flatnonzero(numpy.concatenate(
        [numbers[1:] != numbers[:-1], [True] * (count > 0)])) + 1)
    of_runs = numbers[bounds[:-1]]
    _, first = numpy.unique(of_runs, return_index=True)
    if len(first) < len(of_runs):
        again = int(numpy.setdiff1d(numpy.arange(len(of_runs)), first)[0])
        raise ValueError(
            f'{where}: run {of_runs[again]!s} comes back in row '
            f'{bounds[again]}, after others: the rows of a run must follow '
            f'each other')
    return bounds


def _check_rows(where: str, column: NDArray[Any], count: int) -> None:
    if len(column) != count:
        raise ValueError(
            f'{where}: it must have one value for each of the {count} rows, '
            f'got {len(column)}')


def _after_0(ends: NDArray[Any]) -> IndexArray:
    return numpy.concatenate([[0], ends]).astype(numpy.intp)


_BOUNDS: Mapping[str, Callable[
    [str, Sequence[NDArray[Any]], int], IndexArray]] = {
        'lengths': _of_lengths, 'offsets': _of_offsets, 'ends': _of_ends,
        'numbers': _of_numbers}
