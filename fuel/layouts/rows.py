"""Columns of all arrays that have one length."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call
from fuel.layouts.seen import Array, SeenFile

# Of what is left out, how many a note names.
SHOWN = 10


def columns_of_length(file: SeenFile, count: int, below: str = '/',
                      besides: Sequence[str] = (),
                      ) -> tuple[dict[str, FileColumn], tuple[str, ...]]:
    """Return a column for each array of a length, and a note of the others.

    `besides`: paths that are no sources, nor what is below them.
    """
    hidden = tuple([f'{path}/' for path in besides])
    found = [array for array in file.arrays(below)
             if not f'{array.path}/'.startswith(hidden or '//')]
    columns: dict[str, FileColumn] = {
        array.path: Rows(array.path) for array in found
        if array.shape[0] == count}
    return columns, note_of([array for array in found
                             if array.path not in columns],
                            f'they do not have {count} rows')


def note_of(arrays: Sequence[Array], reason: str) -> tuple[str, ...]:
    """Return a note of what is left out, none if nothing is."""
    if not arrays:
        return ()
    shown = ', '.join(f'{array.path!r} {array.shape}'
                      for array in arrays[:SHOWN])
    more = ', ...' * (len(arrays) > SHOWN)
    return (f'left out, since {reason}: {shown}{more}',)


def calls_by_length(columns: Mapping[int, Mapping[str, FileColumn]],
                    ) -> list[Call] | None:
    """Return a call for the columns of each length, None without any."""
    return [Call(columns[length]) for length in sorted(columns)] or None
