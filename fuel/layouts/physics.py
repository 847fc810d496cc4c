"""Recognise data of physics and astronomy: netCDF, makani, The Well, PDEBench,
MultimodalUniverse."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Flat, Rows
from fuel.datasets.columns.scaled import Scaled
from fuel.datasets.columns.shared import Constant, PerRun, PerStep
from fuel.layouts.call import (
    Call, columns_of_length, note_of, places_of_files, ragged_columns)
from fuel.layouts.seen import Array, Seen, SeenFile

NETCDF_PACKING = (
    'scale_factor', 'add_offset', '_FillValue', 'missing_value')
NETCDF_NOT_A_VARIABLE = 'This is a netCDF dimension but not a netCDF variable'
MAKANI_SCALES = ('timestamp', 'channel', 'lat', 'lon')
WELL_ATTRIBUTES = (
    'dataset_name', 'grid_type', 'n_spatial_dims', 'n_trajectories',
    'simulation_parameters')
WELL_LEFT_OUT = (
    'left out: the grid and the boundary conditions, which belong to no step')
WELL_FIELDS = ('t0_fields', 't1_fields', 't2_fields')
WELL_GROUPS = (*WELL_FIELDS, 'dimensions', 'scalars', 'boundary_conditions')
PDEBENCH_COORDINATES = (
    'x-coordinate', 'y-coordinate', 'z-coordinate', 't-coordinate')
PDEBENCH_SOLUTIONS = ('tensor', 'Vx', 'density', 'pressure')


def recognise_netcdf(seen: Seen) -> Sequence[Call] | None:
    """Recognise files that have the attributes of netCDF, in the root or in
    scales.

    The unlimited dimension counts the examples. If no dimension is unlimited,
    time counts them, unless another dimension is the first dimension of more
    variables. Otherwise there is a call for each dimension.
    """
    file = seen.files[0]
    arrays = file.arrays()
    if file.attribute('_NCProperties') is None and not any(
            file.attribute('_Netcdf4Dimid', array.path) is not None
            for array in file.arrays_with('_Netcdf4Dimid')):
        return None
    variables = [array for array in arrays
                 if not (file.text('NAME', array.path) or '').startswith(
                     NETCDF_NOT_A_VARIABLE)]
    by_dimension: dict[str, list[Array]] = {}
    for array in variables:
        dimension = _first_dimension(file, array)
        if dimension is not None:
            by_dimension.setdefault(dimension, []).append(array)
    chosen = _dimensions_of_examples(file, by_dimension)
    return [_call_of_dimension(file, by_dimension[dimension], variables)
            for dimension in chosen] or None


def _first_dimension(file: SeenFile, array: Array) -> str | None:
    """Return the path of the scale of an array's first axis."""
    if file.text('CLASS', array.path) == 'DIMENSION_SCALE':
        return array.path
    scale = file.scales(array.path)[0]
    return None if scale is None else scale.lstrip('/')


def _dimensions_of_examples(file: SeenFile,
                            by_dimension: Mapping[str, Sequence[Array]],
                            ) -> list[str]:
    """Return the dimension that counts examples, or all candidates."""
    unlimited = [dimension for dimension, arrays in by_dimension.items()
                 if any(file.may_grow(array.path) for array in arrays)]
    if unlimited:
        return unlimited
    # A dimension that has only its own variable has no examples.
    shared = {dimension: len(arrays)
              for dimension, arrays in by_dimension.items()
              if [array.path for array in arrays] != [dimension]}
    most = max(shared.values(), default=0)
    times = [dimension for dimension, count in shared.items()
             if count == most and dimension.rpartition('/')[2] == 'time']
    return times or list(by_dimension)


def _call_of_dimension(file: SeenFile, arrays: Sequence[Array],
                       variables: Sequence[Array]) -> Call:
    """Return the call for the variables of a dimension."""
    columns: dict[str, FileColumn] = {}
    for array in arrays:
        is_packed = array.dtype.kind in 'iuf' and any(
            file.attribute(name, array.path) is not None
            for name in NETCDF_PACKING)
        columns[array.path] = (Scaled if is_packed else Rows)(array.path)
    return Call(columns, notes=note_of(
        [array for array in variables if array.path not in columns],
        'their first dimension is another one'))


def recognise_makani(seen: Seen) -> Call | None:
    """Recognise arrays whose four axes are time, channel, latitude and
    longitude."""
    file = seen.files[0]
    found = [array.path for array in file.arrays_with('DIMENSION_LIST')
             if len(array.shape) == 4
             and tuple([(scale or '').rpartition('/')[2] for scale in
                        file.scales(array.path)]) == MAKANI_SCALES]
    if not found:
        return None
    times = str(file.scales(found[0])[0]).lstrip('/')
    columns = {path: Rows(path) for path in [*found, times]}
    return Call(columns, runs='all' if _are_even(seen, times) else None)


def _are_even(seen: Seen, times: str) -> bool:
    """Return whether times have equal steps, within and between files."""
    steps = numpy.diff(numpy.concatenate([
        file.read(times).ravel() for file in seen.files]))
    return bool(len(steps) == 0 or (steps[0] > 0
                                    and (steps == steps[0]).all()))


def recognise_the_well(seen: Seen) -> Call | None:
    """Recognise the groups of fields, and the attributes that describe the
    grid."""
    file = seen.files[0]
    if not set(WELL_ATTRIBUTES) <= file.attribute_names() or not all(
            map(file.is_group, WELL_GROUPS)):
        return None
    columns: dict[str, FileColumn] = {}
    for group in (*WELL_FIELDS, 'scalars'):
        for name in file.names(group):
            path = f'{group}/{name}'
            if not file.is_group(path):
                columns[path] = _column_of_field(file, path)
    time = file.array('dimensions/time')
    if time is not None:
        columns[time.path] = (Flat if len(time.shape) > 1 else PerStep)(
            time.path)
    varying = [path for path, column in columns.items()
               if path != 'dimensions/time'
               and isinstance(column, (Flat, PerRun))]
    for one in seen.files:
        # If arrays have unequal lengths, opening the files raises an error
        # that names them.
        if len({one.length(path) for path in varying}) == 1:
            one.check_length('n_trajectories', '/', varying[0])
    return Call(columns, notes=(WELL_LEFT_OUT,))


def _column_of_field(file: SeenFile, path: str) -> FileColumn:
    """Return the column of a field, which may vary by trajectory, by time, by
    both or by neither."""
    by_sample, by_time = [bool(file.integer(name, path))
                          for name in ('sample_varying', 'time_varying')]
    if by_sample and by_time:
        return Flat(path)
    return PerRun(path) if by_sample else PerStep(path) if by_time else (
        Constant(path))


def recognise_pdebench(seen: Seen) -> Call | None:
    """Recognise solutions with their coordinates in one group, or groups of a
    solution and its grid. Coordinates are not sources."""
    file = seen.files[0]
    solution = next(filter(None, map(file.array, PDEBENCH_SOLUTIONS)), None)
    if solution is not None and (
            file.length(PDEBENCH_COORDINATES[0]) is not None):
        return Call({array.path: Rows(array.path) for array in file.arrays()
                     if array.path not in PDEBENCH_COORDINATES},
                    independent_rows='Flat(path), in the place of the path '
                    'of an array, makes examples of the times of each '
                    'solution, and runs of solutions')
    groups = file.groups('/', '[0-9]+')
    if groups and file.array(f'{groups[0]}/data') is not None and (
            file.is_group(f'{groups[0]}/grid')):
        data: dict[str, FileColumn] = {'data': Rows('data')}
        return Call(data, parts='*')
    return None


def recognise_multimodal_universe(seen: Seen) -> Call | None:
    """Recognise names of objects, and arrays with a row for each object."""
    file = seen.files[0]
    if file.length('object_id') is None:
        return None
    columns, left_out = columns_of_length(
        places_of_files(seen, 'object_id'),
        always=[array.path for array in file.arrays()])
    # Spectra are padded to the longest spectrum of their file.
    return Call({**columns, **ragged_columns(seen, columns)}, notes=left_out,
                independent_rows='objects have no order')
