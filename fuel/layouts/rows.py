"""Columns of all arrays that have one length."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call, LeftOutSources
from fuel.layouts.seen import Array, Seen, SeenFile

# Of what is left out, how many a note names.
SHOWN = 10


class Place(NamedTuple):
    """Where examples are counted: a file, or a group in it.

    `rows`: how many there are.
    """

    file: SeenFile
    group: str
    rows: int


def columns_of_length(places: Sequence[Place], besides: Sequence[str] = (),
                      always: Sequence[str] = (),
                      ) -> tuple[dict[str, FileColumn],
                                 tuple[LeftOutSources, ...]]:
    """Return a column for each array that has a row for each example in one
    of several places, such as the first and the last part; and a note of the
    others. What one of them lacks is an error when it is opened.

    `besides`: paths that are no sources, nor what is below them.
    `always`: paths that are sources, and what is below them: another number
        of rows is an error when they are opened.
    """
    hidden, known = [tuple([f'{path}/' for path in paths])
                     for paths in (besides, always)]
    columns: dict[str, FileColumn] = {}
    others: dict[str, Array] = {}
    for file, group, count in places:
        for array in file.arrays(group):
            if f'{array.path}/'.startswith(hidden):
                continue
            if array.shape[0] == count or f'{array.path}/'.startswith(known):
                columns[array.path] = Rows(array.path)
            else:
                others[array.path] = array
    return columns, note_of(
        [array for path, array in others.items() if path not in columns],
        f'they do not have {places[0].rows} rows')


def ragged_columns(seen: Seen, paths: Iterable[str]) -> dict[str, FileColumn]:
    """Return columns of those arrays whose rows have another shape in
    another file, such as what is padded to the widest of its file."""
    return {path: Rows(path, ragged=True) for path in paths
            if len({file.row_shape(path) for file in seen.files}) > 1}


def places_of_files(seen: Seen, counting: str) -> list[Place]:
    """Return the first and the last file, with the rows of an array."""
    return [Place(file, '/', file.length(counting) or 0)
            for file in (seen.files[0], seen.files[-1])]


def note_of(arrays: Sequence[Array], reason: str,
            ) -> tuple[LeftOutSources, ...]:
    """Return a note of what is left out, none if nothing is."""
    if not arrays:
        return ()
    shown = ', '.join(f'{array.path!r} {array.shape}'
                      for array in arrays[:SHOWN])
    more = ', ...' * (len(arrays) > SHOWN)
    return (LeftOutSources(f'left out, since {reason}: {shown}{more}',
                    [array.path for array in arrays]),)


def calls_by_length(columns: Mapping[int, Mapping[str, FileColumn]],
                    ) -> list[Call] | None:
    """Return a call for the columns of each length, None without any."""
    return [Call(columns[length]) for length in sorted(columns)] or None
