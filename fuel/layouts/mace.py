"""Recognise atoms as MACE has them: a group for each configuration."""
from __future__ import annotations

from collections.abc import Sequence

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Rows
from fuel.datasets.columns.shared import Constant
from fuel.layouts.call import Call
from fuel.layouts.seen import Seen, SeenFile

FIRST = 'config_batch_0/config_0'
ATOMS = ('atomic_numbers', 'positions')
# Another number of rows than of positions is an error when they are opened.
OF_ATOMS = (*ATOMS, 'charges', 'forces')
# What a configuration has as a whole, though it be as long as three atoms.
OF_ALL = ('cell', 'dipole', 'pbc', 'polarizability', 'stress', 'virials')
# Groups of values, beside those of a configuration itself.
GROUPS = ('', 'properties/', 'property_weights/')
LEFT_OUT = 'left out, since some configurations have no value or text there'
# Of more configurations the first are looked at.
MOST_SEEN = 1000


def recognise(seen: Seen) -> Call | None:
    """Recognise groups of batches of groups of configurations.

    An example is a configuration: arrays of its atoms, and single values.
    """
    file = seen.files[0]
    if any(file.array(f'{FIRST}/{name}') is None for name in ATOMS):
        return None
    configurations = _configurations(file)
    columns: dict[str, FileColumn] = {}
    left_out = []
    for path in [f'{group}{name}' for group in GROUPS
                 for name in file.names(f'{FIRST}/{group}')]:
        if file.is_group(f'{FIRST}/{path}'):
            continue
        if _is_of_atoms(file, configurations, path):
            columns[path] = Rows(path)
        elif len({_kind(file, f'{one}/{path}')
                  for one in configurations}) == 1 and (
                      _value(file, f'{FIRST}/{path}') != b'None'):
            columns[path] = Constant(path)
        else:
            left_out.append(repr(path))
    return Call(columns, parts='config_batch_*/config_*', are_runs=True,
                notes=(f'{LEFT_OUT}: {", ".join(left_out)}',) if left_out
                else ())


def _configurations(file: SeenFile) -> Sequence[str]:
    """Return the paths of the first configurations."""
    found: list[str] = []
    for batch in file.groups('/', 'config_batch_[0-9]+'):
        found += file.groups(batch, 'config_[0-9]+')
        if len(found) >= MOST_SEEN:
            break
    return found[:MOST_SEEN]


def _is_of_atoms(file: SeenFile, configurations: Sequence[str],
                 path: str) -> bool:
    """Return whether an array has a row for each atom, in each of them."""
    name = path.rpartition('/')[2]
    if name in (*OF_ALL, *OF_ATOMS):
        return name in OF_ATOMS
    return all(file.length(f'{one}/{path}') == file.length(f'{one}/positions')
               for one in configurations)


def _kind(file: SeenFile, path: str) -> str | None:
    """Return the kind of a value's type, None if there is none."""
    node = file.node(path)
    return None if node is None or file.is_group(path) else node.dtype.kind


def _value(file: SeenFile, path: str) -> object:
    """Return a single value, None of an array."""
    value = file.read(path)
    return value.item() if value.shape == () else None
