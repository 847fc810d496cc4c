"""Columns of Arrow as NumPy arrays."""
from __future__ import annotations

from typing import Any

import numpy
import pyarrow
from numpy.typing import NDArray

OBJECT = numpy.dtype(object)


def type_of(arrow: pyarrow.DataType) -> tuple[numpy.dtype[Any],
                                              tuple[int, ...]]:
    """Return the type of a column's elements, and the shape of an example.

    What NumPy has no type for, such as text and lists of different lengths,
    are objects.
    """
    types = pyarrow.types
    if types.is_dictionary(arrow):
        return type_of(arrow.value_type)
    if isinstance(arrow, pyarrow.FixedShapeTensorType):
        dtype, shape = type_of(arrow.value_type)
        return dtype, (*arrow.shape, *shape)
    if isinstance(arrow, pyarrow.BaseExtensionType):
        return type_of(arrow.storage_type)
    if types.is_fixed_size_list(arrow):
        dtype, shape = type_of(arrow.value_type)
        return ((OBJECT, ()) if dtype.hasobject
                else (dtype, (arrow.list_size, *shape)))
    if types.is_timestamp(arrow):
        return numpy.dtype(f'datetime64[{arrow.unit}]'), ()
    if types.is_duration(arrow):
        return numpy.dtype(f'timedelta64[{arrow.unit}]'), ()
    if types.is_date(arrow):
        return numpy.dtype('datetime64[D]'), ()
    if types.is_boolean(arrow) or types.is_integer(arrow) \
            or types.is_floating(arrow):
        return numpy.dtype(arrow.to_pandas_dtype()), ()
    return OBJECT, ()


def rows_of(column: Any, name: str) -> NDArray[Any]:
    """Return the rows of a column, without a copy where that can be.

    Raises: ValueError if there are nulls in a column of a type that has none
        in NumPy.
    """
    if isinstance(column, pyarrow.ChunkedArray):
        column = (column.chunk(0) if column.num_chunks == 1
                  else column.combine_chunks())
    arrow = column.type
    if pyarrow.types.is_dictionary(arrow):
        return rows_of(column.dictionary_decode(), name)
    if isinstance(column, pyarrow.ExtensionArray):
        rows = rows_of(column.storage, name)
        return rows.reshape(len(column), *type_of(arrow)[1])
    dtype, shape = type_of(arrow)
    if shape:
        _check_nulls(column, name)
        return rows_of(column.flatten(), name).reshape(len(column), *shape)
    if dtype != OBJECT:
        if dtype.kind in 'iub':
            _check_nulls(column, name)
        values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return values.astype(dtype, copy=False)
    rows = numpy.empty(len(column), object)
    is_list = pyarrow.types.is_list(arrow) or pyarrow.types.is_large_list(
        arrow)
    if is_list and type_of(arrow.value_type)[0] != OBJECT:
        return _ragged(column, rows, name)
    for place, value in enumerate(column.to_pylist()):
        rows[place] = value
    return rows


def _ragged(column: Any, rows: NDArray[Any], name: str) -> NDArray[Any]:
    """Return lists of numbers as one array for each row."""
    values = rows_of(column.values, name)
    offsets = column.offsets.to_numpy()
    is_there = column.is_valid().to_numpy(zero_copy_only=False)
    for place in range(len(rows)):
        if is_there[place]:
            rows[place] = values[offsets[place]:offsets[place + 1]]
    return rows


def _check_nulls(column: Any, name: str) -> None:
    if column.null_count:
        raise ValueError(
            f'column {name!r} ({column.type}) has {column.null_count} nulls, '
            'which its type does not have in NumPy: fill them, such as by '
            f'table[{name!r}].fill_null(0), or leave the column out with '
            'sources=')
