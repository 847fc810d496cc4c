"""Recognise molecules with their conformations: SPICE, ANI."""
from __future__ import annotations

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Rows
from fuel.datasets.columns.shared import Constant
from fuel.layouts.call import Call
from fuel.layouts.rows import note_of
from fuel.layouts.seen import Array, Seen, SeenFile

# The arrays of conformations, and of the elements of their atoms.
POSITIONS = ('conformations', 'coordinates')
ELEMENTS = ('atomic_numbers', 'species')
# ANI has further conformations, of high energy: others than the examples.
FURTHER = 'HE'
MOST_LEVELS = 8
# Of more molecules the first are looked at, and the last.
MOST_SEEN = 50


def recognise(seen: Seen) -> Call | None:
    """Recognise groups of molecules, each with positions of its atoms in
    every conformation. An example is a conformation."""
    file = seen.files[0]
    path, levels = '', 0
    while levels < MOST_LEVELS:
        names = file.names(path or '/')
        for positions in POSITIONS:
            if levels and positions in names and {*ELEMENTS} & {*names}:
                return _call(file, path, levels, positions)
        if not names or not file.is_group(f'{path}/{names[0]}'):
            break
        path = f'{path}/{names[0]}'
        levels += 1
    return None


def _call(file: SeenFile, path: str, levels: int, positions: str) -> Call:
    """Return the call for molecules of which one has a path."""
    found = file.array(f'{path}/{positions}')
    count, atoms = (*(() if found is None else found.shape), 0, 0)[:2]
    group = path.rpartition('/')[0]
    last = f'{group}/{file.names(group or "/")[-1]}'.lstrip('/')
    columns: dict[str, FileColumn] = {}
    others: list[Array] = []
    for array in file.arrays(path):
        is_number = array.dtype.kind in 'iuf' and array.path not in ELEMENTS
        is_counted = count == array.shape[0] or (
            # The first may have lost rows.
            file.length(f'{last}/{array.path}')
            == file.length(f'{last}/{positions}'))
        if len(array.shape) == 1 and not (is_number and is_counted) and (
                not is_number or array.shape[0] in (1, atoms)):
            columns[array.path] = Constant(array.path)
        elif array.shape[0] != count and array.path.endswith(FURTHER):
            others.append(array)
        else:
            # Another number of rows is an error when it is opened.
            columns[array.path] = Rows(array.path, ragged=_is_of_atoms(
                file, path, array.path, positions))
    return Call(columns, parts='/'.join('*' * levels), notes=note_of(
        others, f'they do not have {count} conformations'))


def _is_of_atoms(file: SeenFile, path: str, name: str,
                 positions: str) -> bool:
    """Return whether the second axis of an array is as long as a molecule
    has atoms, in the first molecules and the last."""
    group = path.rpartition('/')[0]
    molecules = file.names(group or '/')
    for molecule in (*molecules[:MOST_SEEN], molecules[-1]):
        of_array, of_positions = [
            file.row_shape(f'{group}/{molecule}/{one}')
            for one in (name, positions)]
        if of_array is not None and of_positions is not None and (
                of_array[:1] != of_positions[:1]):
            return False
    return True
