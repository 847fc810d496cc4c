"""Recognise netCDF files, as netCDF4 and xarray write them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.rows import Rows
from fuel.datasets.columns.scaled import Scaled
from fuel.layouts.call import Call
from fuel.layouts.rows import note_of
from fuel.layouts.seen import Array, Seen, SeenFile

PACKING = ('scale_factor', 'add_offset', '_FillValue', 'missing_value')
NOT_A_VARIABLE = 'This is a netCDF dimension but not a netCDF variable'


def recognise(seen: Seen) -> Sequence[Call] | None:
    """Recognise files that say that they are netCDF, or whose scales do.

    The examples are along the unlimited dimension, else along time where
    most variables have it first; otherwise there is a call for each
    dimension.
    """
    file = seen.files[0]
    arrays = file.arrays()
    if file.attribute('_NCProperties') is None and not any(
            file.attribute('_Netcdf4Dimid', array.path) is not None
            for array in file.arrays_with('_Netcdf4Dimid')):
        return None
    variables = [array for array in arrays
                 if not (file.text('NAME', array.path) or '').startswith(
                     NOT_A_VARIABLE)]
    by_dimension: dict[str, list[Array]] = {}
    for array in variables:
        dimension = _first_dimension(file, array)
        if dimension is not None:
            by_dimension.setdefault(dimension, []).append(array)
    chosen = _chosen(file, by_dimension)
    return [_call(file, by_dimension[dimension], variables)
            for dimension in chosen] or None


def _first_dimension(file: SeenFile, array: Array) -> str | None:
    """Return the path of the scale of the first axis."""
    if file.text('CLASS', array.path) == 'DIMENSION_SCALE':
        return array.path
    scale = file.scales(array.path)[0]
    return None if scale is None else scale.lstrip('/')


def _chosen(file: SeenFile,
            by_dimension: Mapping[str, Sequence[Array]]) -> list[str]:
    """Return the dimension of the examples, or those that may be it."""
    unlimited = [dimension for dimension, arrays in by_dimension.items()
                 if any(file.may_grow(array.path) for array in arrays)]
    if unlimited:
        return unlimited
    # A dimension without a variable but its own has no examples.
    shared = {dimension: len(arrays)
              for dimension, arrays in by_dimension.items()
              if [array.path for array in arrays] != [dimension]}
    most = max(shared.values(), default=0)
    times = [dimension for dimension, count in shared.items()
             if count == most and dimension.rpartition('/')[2] == 'time']
    return times or list(by_dimension)


def _call(file: SeenFile, arrays: Sequence[Array],
          variables: Sequence[Array]) -> Call:
    """Return the call for the variables of a dimension."""
    columns: dict[str, FileColumn] = {}
    for array in arrays:
        is_packed = array.dtype.kind in 'iuf' and any(
            file.attribute(name, array.path) is not None for name in PACKING)
        columns[array.path] = (Scaled if is_packed else Rows)(array.path)
    return Call(columns, notes=note_of(
        [array for array in variables if array.path not in columns],
        'their first dimension is another one'))
