"""Splits of files that do not name any: ranges and lists of examples."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from fuel.datasets.row_orders import Order, concatenate, simplify
from fuel.kernels import as_indices


def order_of_splits(splits: Mapping[str, Any] | None,
                    which_sets: Sequence[str] | None,
                    num_rows: int) -> Order:
    """Return the rows of some splits, one split after the other.

    `splits`: maps names to ``(start, stop)``, a slice, or a list or array of
        rows in any order. None: there are no splits.
    """
    if which_sets is None:
        return slice(0, num_rows)
    if isinstance(which_sets, str):
        raise ValueError(
            'which_sets must be a tuple of split names, got the string '
            f'{which_sets!r}: write ({which_sets!r},)')
    splits = splits or {}
    for name in which_sets:
        if name not in splits:
            raise ValueError(
                f'there is no split {name!r}; the splits are '
                f'{tuple(splits)}')
    if not which_sets:
        raise ValueError('which_sets must name at least one split, got ()')
    return concatenate([_order(name, splits[name], num_rows)
                        for name in which_sets])


def _order(name: str, rows: Any, num_rows: int) -> Order:
    if isinstance(rows, tuple):
        rows = slice(*rows)
    if isinstance(rows, slice):
        start, stop, step = rows.indices(num_rows)
        wanted = num_rows if rows.stop is None else rows.stop
        if start >= stop or step != 1 or wanted > num_rows or wanted < 0:
            raise ValueError(
                f'split {name!r} must be rows within the {num_rows} of the '
                f'file, got {rows}')
        return slice(start, stop)
    try:
        indices = as_indices(
            rows if isinstance(rows, numpy.ndarray) else list(rows), num_rows)
    except ValueError as error:
        raise ValueError(f'split {name!r}: {error}') from error
    if not len(indices):
        raise ValueError(f'split {name!r} is empty')
    return simplify(indices)
