"""Recognise solutions of differential equations: PDEBench."""
from __future__ import annotations

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Rows
from fuel.layouts.call import Call
from fuel.layouts.seen import Seen

COORDINATES = ('x-coordinate', 'y-coordinate', 'z-coordinate',
               't-coordinate')
SOLUTIONS = ('tensor', 'Vx', 'density', 'pressure')


def recognise(seen: Seen) -> Call | None:
    """Recognise solutions beside their coordinates, or groups of a solution
    and its grid. Coordinates are no sources."""
    file = seen.files[0]
    solution = next(filter(None, map(file.array, SOLUTIONS)), None)
    if file.length(COORDINATES[0]) is not None and solution is not None:
        return Call({array.path: Rows(array.path) for array in file.arrays()
                     if array.path not in COORDINATES},
                    independent_rows='Flat(path), in the place of the path '
                    'of an array, makes examples of the times of each '
                    'solution, and runs of solutions')
    groups = file.groups('/', '[0-9]+')
    if groups and file.array(f'{groups[0]}/data') is not None and (
            file.is_group(f'{groups[0]}/grid')):
        data: dict[str, FileColumn] = {'data': Rows('data')}
        return Call(data, parts='*')
    return None
