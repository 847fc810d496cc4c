"""Recognise molecules: their conformations in SPICE and ANI, and the
configurations of MACE."""
from __future__ import annotations

from collections.abc import Sequence

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Rows
from fuel.datasets.columns.shared import Constant
from fuel.layouts.call import Call, LeftOutSources, note_of
from fuel.layouts.seen import Array, Seen, SeenFile

# Names of the arrays of conformations, and of the elements of their atoms.
POSITIONS = ('conformations', 'coordinates')
ELEMENTS = ('atomic_numbers', 'species')
# ANI has further conformations of high energy, which are not examples.
ANI_FURTHER = 'HE'
MOST_LEVELS = 8
# Most molecules that are examined; of more, the first ones and the last.
MOST_MOLECULES = 50
MACE_FIRST = 'config_batch_0/config_0'
MACE_ATOMS = ('atomic_numbers', 'positions')
# Arrays that must have as many rows as positions when they are opened.
MACE_OF_ATOMS = (*MACE_ATOMS, 'charges', 'forces')
# Arrays of a whole configuration, even if it has as many atoms as they have
# rows.
MACE_OF_ALL = ('cell', 'dipole', 'pbc', 'polarizability', 'stress', 'virials')
# Groups with values of a configuration: its own group, and groups below it.
MACE_GROUPS = ('', 'properties/', 'property_weights/')
MACE_LEFT_OUT = (
    'left out, since some configurations have no value or text there')
# Most configurations that are examined; of more, the first ones.
MOST_CONFIGURATIONS = 1000


def recognise_molecules(seen: Seen) -> Call | None:
    """Recognise groups of molecules, with positions of the atoms in every
    conformation.

    An example is a conformation.
    """
    file = seen.files[0]
    path, levels = '', 0
    while levels < MOST_LEVELS:
        names = file.names(path or '/')
        for positions in POSITIONS:
            if levels and positions in names and {*ELEMENTS} & {*names}:
                return _call_of_molecules(file, path, levels, positions)
        if not names or not file.is_group(f'{path}/{names[0]}'):
            break
        path = f'{path}/{names[0]}'
        levels += 1
    return None


def _call_of_molecules(file: SeenFile, path: str, levels: int,
                       positions: str) -> Call:
    """Return the call for molecules.

    `path`: the path of one molecule.
    """
    found = file.array(f'{path}/{positions}')
    count, atoms = (*(() if found is None else found.shape), 0, 0)[:2]
    group = path.rpartition('/')[0]
    last = f'{group}/{file.names(group or "/")[-1]}'.lstrip('/')
    columns: dict[str, FileColumn] = {}
    others: list[Array] = []
    for array in file.arrays(path):
        is_number = array.dtype.kind in 'iuf' and array.path not in ELEMENTS
        is_counted = count == array.shape[0] or (
            # The first molecule may have lost rows.
            file.length(f'{last}/{array.path}')
            == file.length(f'{last}/{positions}'))
        if len(array.shape) == 1 and not (is_number and is_counted) and (
                not is_number or array.shape[0] in (1, atoms)):
            columns[array.path] = Constant(array.path)
        elif array.shape[0] != count and array.path.endswith(ANI_FURTHER):
            others.append(array)
        else:
            # Opening an array with another number of rows is an error.
            columns[array.path] = Rows(array.path, ragged=_is_of_molecule(
                file, path, array.path, positions))
    return Call(columns, parts='/'.join('*' * levels), notes=note_of(
        others, f'they do not have {count} conformations'))


def _is_of_molecule(file: SeenFile, path: str, name: str,
                 positions: str) -> bool:
    """Return whether the second axis of an array counts the atoms of a
    molecule, in the first molecules and the last one."""
    group = path.rpartition('/')[0]
    molecules = file.names(group or '/')
    for molecule in (*molecules[:MOST_MOLECULES], molecules[-1]):
        of_array, of_positions = [
            file.row_shape(f'{group}/{molecule}/{one}')
            for one in (name, positions)]
        if of_array is not None and of_positions is not None and (
                of_array[:1] != of_positions[:1]):
            return False
    return True


def recognise_mace(seen: Seen) -> Call | None:
    """Recognise groups of batches of groups of configurations.

    An example is a configuration: arrays of its atoms, and single values.
    """
    file = seen.files[0]
    if any(file.array(f'{MACE_FIRST}/{name}') is None for name in MACE_ATOMS):
        return None
    configurations = _configurations(file)
    columns: dict[str, FileColumn] = {}
    left_out = []
    for path in [f'{group}{name}' for group in MACE_GROUPS
                 for name in file.names(f'{MACE_FIRST}/{group}')]:
        if file.is_group(f'{MACE_FIRST}/{path}'):
            continue
        if _is_of_atoms(file, configurations, path):
            columns[path] = Rows(path)
        elif len({_kind(file, f'{one}/{path}')
                  for one in configurations}) == 1 and (
                      _value(file, f'{MACE_FIRST}/{path}') != b'None'):
            columns[path] = Constant(path)
        else:
            left_out.append(path)
    return Call(columns, parts='config_batch_*/config_*', are_runs=True,
                notes=(LeftOutSources(
                    f'{MACE_LEFT_OUT}: {", ".join(map(repr, left_out))}',
                    left_out),) if left_out else ())


def _configurations(file: SeenFile) -> Sequence[str]:
    """Return the paths of the first configurations."""
    found: list[str] = []
    for batch in file.groups('/', 'config_batch_[0-9]+'):
        found += file.groups(batch, 'config_[0-9]+')
        if len(found) >= MOST_CONFIGURATIONS:
            break
    return found[:MOST_CONFIGURATIONS]


def _is_of_atoms(file: SeenFile, configurations: Sequence[str],
                 path: str) -> bool:
    """Return whether an array has a row for each atom, in each of some
    configurations."""
    name = path.rpartition('/')[2]
    if name in (*MACE_OF_ALL, *MACE_OF_ATOMS):
        return name in MACE_OF_ATOMS
    return all(file.length(f'{one}/{path}') == file.length(f'{one}/positions')
               for one in configurations)


def _kind(file: SeenFile, path: str) -> str | None:
    """Return the kind of a value's type; None if there is no value."""
    node = file.node(path)
    return None if node is None or file.is_group(path) else node.dtype.kind


def _value(file: SeenFile, path: str) -> object:
    """Return a single value; None if the path is of an array."""
    value = file.read(path)
    return value.item() if value.shape == () else None
