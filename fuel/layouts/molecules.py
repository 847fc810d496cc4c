"""Recognise molecules with their conformations: SPICE, ANI."""
from __future__ import annotations

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Rows
from fuel.datasets.columns.shared import Constant
from fuel.layouts.call import Call
from fuel.layouts.rows import note_of
from fuel.layouts.seen import Array, Seen, SeenFile

# The arrays of conformations, and of the elements of their atoms.
SIGNS = (('conformations', 'atomic_numbers'), ('coordinates', 'species'))
ELEMENTS = ('atomic_numbers', 'species')
MOST_LEVELS = 8


def recognise(seen: Seen) -> Call | None:
    """Recognise groups of molecules, each with positions of its atoms in
    every conformation. An example is a conformation."""
    file = seen.files[0]
    path, levels = '', 0
    while levels < MOST_LEVELS:
        names = file.names(path or '/')
        for positions, elements in SIGNS:
            if levels and {positions, elements} <= set(names):
                return _call(file, path, levels, positions)
        if not names or not file.is_group(f'{path}/{names[0]}'):
            break
        path = f'{path}/{names[0]}'
        levels += 1
    return None


def _call(file: SeenFile, path: str, levels: int, positions: str) -> Call:
    """Return the call for molecules of which one has a path."""
    shape = getattr(file.array(f'{path}/{positions}'), 'shape', (0, 0))
    columns: dict[str, FileColumn] = {}
    others: list[Array] = []
    for array in file.arrays(path):
        is_number = array.dtype.kind in 'iuf' and array.path not in ELEMENTS
        if array.shape[0] == shape[0] and (
                len(array.shape) > 1 or is_number):
            columns[array.path] = Rows(
                array.path, ragged=shape[1] in array.shape[1:2])
        elif len(array.shape) == 1:
            columns[array.path] = Constant(array.path)
        else:
            others.append(array)
    return Call(columns, parts='/'.join('*' * levels), notes=note_of(
        others, f'they do not have {shape[0]} conformations'))
