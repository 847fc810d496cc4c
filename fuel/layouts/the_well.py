"""Recognise simulations of The Well."""
from __future__ import annotations

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.flat import Flat
from fuel.datasets.columns.shared import Constant, PerRun, PerStep
from fuel.layouts.call import Call
from fuel.layouts.seen import Seen, SeenFile

ATTRIBUTES = ('dataset_name', 'grid_type', 'n_spatial_dims',
              'n_trajectories', 'simulation_parameters')
LEFT_OUT = ('left out: the grid and the boundary conditions, which belong to '
            'no step')
FIELDS = ('t0_fields', 't1_fields', 't2_fields')
GROUPS = (*FIELDS, 'dimensions', 'scalars', 'boundary_conditions')


def recognise(seen: Seen) -> Call | None:
    """Recognise the groups of fields, and what the file says of its grid."""
    file = seen.files[0]
    if not set(ATTRIBUTES) <= file.attribute_names() or not all(
            map(file.is_group, GROUPS)):
        return None
    columns: dict[str, FileColumn] = {}
    for group in (*FIELDS, 'scalars'):
        for name in file.names(group):
            path = f'{group}/{name}'
            if not file.is_group(path):
                columns[path] = _column(file, path)
    time = file.array('dimensions/time')
    if time is not None:
        columns[time.path] = (Flat if len(time.shape) > 1 else PerStep)(
            time.path)
    varying = [path for path, column in columns.items()
               if path != 'dimensions/time'
               and isinstance(column, (Flat, PerRun))]
    for one in seen.files:
        # Of arrays of unequal lengths it is said which those are.
        if len({one.length(path) for path in varying}) == 1:
            one.check_length('n_trajectories', '/', varying[0])
    return Call(columns, notes=(LEFT_OUT,))


def _column(file: SeenFile, path: str) -> FileColumn:
    """Return how a field varies: by trajectory, by time, both or neither."""
    by_sample, by_time = [bool(file.integer(name, path))
                          for name in ('sample_varying', 'time_varying')]
    if by_sample and by_time:
        return Flat(path)
    return PerRun(path) if by_sample else PerStep(path) if by_time else (
        Constant(path))
