"""Convert columns of Arrow to NumPy arrays."""
from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy
import pyarrow
import pyarrow.compute
from numpy.typing import NDArray
from pyarrow import types

OBJECT = numpy.dtype(object)
# Beginning of the names that Hugging Face's array types have in files.
ARRAYS = 'datasets.features.features.Array'
# Lengths of lists of a fixed length are below this number.
MOST = 1 << 31
# Timestamps with these time zones become timestamps of NumPy, which are in
# UTC.
UTC = (None, 'UTC', 'Etc/UTC', '+00:00')


def type_of(arrow: pyarrow.DataType) -> tuple[numpy.dtype[Any],
                                              tuple[int, ...]]:
    """Return the type of a column's elements, and the shape of an example.

    The type is object where NumPy has no type, such as for text and lists of
    different lengths.
    """
    if types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
        return type_of(arrow.value_type)
    if isinstance(arrow, pyarrow.FixedShapeTensorType):
        dtype, _ = type_of(arrow.value_type)
        return dtype, tuple(numpy.array(arrow.shape)[_axes(arrow)].tolist())
    if isinstance(arrow, pyarrow.Bool8Type):
        return numpy.dtype(bool), ()
    if isinstance(arrow, pyarrow.BaseExtensionType):
        return type_of(arrow.storage_type)
    if types.is_fixed_size_list(arrow):
        dtype, shape = type_of(arrow.value_type)
        return ((OBJECT, ()) if dtype.hasobject
                else (dtype, (arrow.list_size, *shape)))
    if types.is_timestamp(arrow):
        return (numpy.dtype(f'datetime64[{arrow.unit}]')
                if arrow.tz in UTC else OBJECT), ()
    if types.is_duration(arrow):
        return numpy.dtype(f'timedelta64[{arrow.unit}]'), ()
    if types.is_date(arrow):
        return numpy.dtype('datetime64[D]'), ()
    if types.is_boolean(arrow):
        return numpy.dtype(bool), ()
    if types.is_integer(arrow) or types.is_floating(arrow):
        # PyArrow's own conversion of the type needs pandas.
        kind = ('f' if types.is_floating(arrow) else
                'u' if types.is_unsigned_integer(arrow) else 'i')
        return numpy.dtype(f'{kind}{arrow.bit_width // 8}'), ()
    return OBJECT, ()


def shape_of_arrays(field: pyarrow.Field) -> tuple[int, ...] | None:
    """Return the shape of a column of Hugging Face's Array2D, Array3D, ...

    The result is None for other columns, and if a length differs between
    rows. The files store these arrays as lists of lists, with their shape, so
    Hugging Face's library need not be installed.
    """
    shape: Any = None
    if isinstance(field.type, pyarrow.ExtensionType):
        if field.type.extension_name.startswith(ARRAYS):
            shape = field.type.shape
    else:
        metadata = field.metadata or {}
        if metadata.get(b'ARROW:extension:name', b'').startswith(
                ARRAYS.encode()):
            with suppress(KeyError, RecursionError, TypeError, ValueError):
                shape, _ = json.loads(metadata[b'ARROW:extension:metadata'])
    return tuple(shape) if isinstance(shape, (list, tuple)) and all(
        isinstance(length, int) and 0 < length < MOST for length in shape
        ) else None


def as_tensor_type(field: pyarrow.Field) -> pyarrow.Field:
    """Return a field of Hugging Face's arrays as a field of tensors.

    Other fields are returned unchanged.
    """
    shape = shape_of_arrays(field)
    if shape is None:
        return field
    element = _storage(field.type)
    for _ in shape:
        if not _is_list(element):
            return field
        element = element.value_type
    dtype, below = type_of(element)
    if dtype == OBJECT or below:
        # The elements are not numbers, but text, say, or lists.
        return field
    return pyarrow.field(field.name, pyarrow.fixed_shape_tensor(
        element, shape), field.nullable)


def as_tensors(column: pyarrow.Array | pyarrow.ChunkedArray,
               tensor: pyarrow.FixedShapeTensorType,
               ) -> pyarrow.Array | pyarrow.ChunkedArray:
    """Return a column of Hugging Face's arrays as a column of tensors.

    Raises: ValueError if an array has another shape than the tensor type.
    """
    if isinstance(column, pyarrow.ChunkedArray):
        return pyarrow.chunked_array(
            [as_tensors(chunk, tensor) for chunk in column.chunks], tensor)
    if isinstance(column, pyarrow.ExtensionArray):
        column = column.storage
    there = column.is_valid()
    values = column.drop_null()
    for length in tensor.shape:
        lengths = pyarrow.compute.list_value_length(values)
        if values.null_count or pyarrow.compute.any(
                pyarrow.compute.not_equal(lengths, length)).as_py():
            raise ValueError(
                f'an array of the column has another shape than '
                f'{tuple(tensor.shape)}, which its type says')
        values = values.flatten()
    rows = pyarrow.FixedSizeListArray.from_arrays(
        values, type=tensor.storage_type)
    if column.null_count:
        numbers = numpy.cumsum(there.to_numpy(zero_copy_only=False)) - 1
        rows = rows.take(pyarrow.compute.if_else(
            there, pyarrow.array(numbers), None))
    return pyarrow.ExtensionArray.from_storage(tensor, rows)


def _storage(arrow: pyarrow.DataType) -> pyarrow.DataType:
    return arrow.storage_type if isinstance(
        arrow, pyarrow.BaseExtensionType) else arrow


def common_type(one: pyarrow.DataType,
                other: pyarrow.DataType) -> pyarrow.DataType | None:
    """Return the common type of a column that has two types in two files.

    Types count as one type if their rows become the same arrays of NumPy. The
    common type of two types of numbers is the smallest type that holds both
    exactly. A column of nulls fits any type.

    Returns: None if there is no common type.
    """
    one, other = _plain(one), _plain(other)
    if one == other or types.is_null(other):
        return one
    if types.is_null(one):
        return other
    if not all(types.is_integer(each) or types.is_floating(each)
               for each in (one, other)):
        return None
    found = pyarrow.from_numpy_dtype(numpy.result_type(
        type_of(one)[0], type_of(other)[0]))
    if types.is_floating(found) and any(
            types.is_integer(each) and each.bit_width == 64
            for each in (one, other)):
        return None
    return found


def _plain(arrow: pyarrow.DataType) -> pyarrow.DataType:
    """Return the simplest type whose rows become the same NumPy arrays."""
    if types.is_dictionary(arrow) or types.is_run_end_encoded(arrow):
        return _plain(arrow.value_type)
    if types.is_large_string(arrow) or types.is_string_view(arrow):
        return pyarrow.string()
    if types.is_large_binary(arrow) or types.is_binary_view(arrow):
        return pyarrow.binary()
    if _is_list(arrow):
        return pyarrow.list_(_plain(arrow.value_type))
    if isinstance(arrow, pyarrow.Bool8Type):
        return pyarrow.bool_()
    return arrow


def _is_list(arrow: pyarrow.DataType) -> bool:
    """Return whether a type is a list type without a fixed length."""
    return bool(types.is_list(arrow) or types.is_large_list(arrow)
                or types.is_list_view(arrow)
                or types.is_large_list_view(arrow))


def _axes(tensor: pyarrow.FixedShapeTensorType) -> list[int]:
    """Return the place in memory of each axis of a tensor."""
    return tensor.permutation or list(range(len(tensor.shape)))


def rows_of(column: pyarrow.Array | pyarrow.ChunkedArray,
            name: str, are_below: bool = False) -> NDArray[Any]:
    """Return the rows of a column as an array, without a copy if possible.

    `name`: name of the column, for errors.
    `are_below`: whether the rows are the elements of lists.

    Raises: ValueError if the column has nulls that its NumPy type cannot
        hold, or if the order of the axes of tensors is ambiguous.
    """
    arrow = column.type
    dtype, shape = type_of(arrow)
    if isinstance(column, pyarrow.ChunkedArray):
        chunks = [rows_of(chunk, name, are_below) for chunk in column.chunks]
        if len(chunks) == 1:
            return chunks[0]
        return numpy.concatenate([numpy.empty((0, *shape), dtype), *chunks])
    if dtype.kind in 'iub' or shape:
        _check_nulls(column, name, are_below or bool(shape))
    if types.is_dictionary(arrow):
        return _of_dictionary(column, name, are_below)
    if types.is_run_end_encoded(arrow):
        return rows_of(pyarrow.compute.run_end_decode(column), name,
                       are_below)
    if dtype == OBJECT:
        return _objects(column, name)
    if isinstance(arrow, pyarrow.FixedShapeTensorType):
        _check_permutation(arrow, name)
        rows = rows_of(column.storage, name, are_below).reshape(
            len(column), *arrow.shape)
        return rows.transpose(0, *[1 + axis for axis in _axes(arrow)])
    if isinstance(arrow, pyarrow.BaseExtensionType):
        return rows_of(column.storage, name, are_below).astype(
            dtype, copy=False)
    if shape:
        return rows_of(column.flatten(), name, True).reshape(
            len(column), *shape)
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values.astype(dtype, copy=False)


def without_nulls(column: pyarrow.Array | pyarrow.ChunkedArray,
                  ) -> pyarrow.Array | pyarrow.ChunkedArray:
    """Return a column with 0 or False for nulls that NumPy cannot hold."""
    column = _decoded(column)
    if types.is_boolean(column.type):
        return pyarrow.compute.fill_null(column, False)
    if types.is_integer(column.type):
        return pyarrow.compute.fill_null(column, 0)
    return column


def is_there(column: pyarrow.Array | pyarrow.ChunkedArray,
             ) -> pyarrow.Array | pyarrow.ChunkedArray:
    """Return a mask that is True for the values that are not null."""
    return _decoded(column).is_valid()


def _decoded(column: pyarrow.Array | pyarrow.ChunkedArray,
             ) -> pyarrow.Array | pyarrow.ChunkedArray:
    """Return a column after decoding its dictionary or run-end encoding."""
    if types.is_dictionary(column.type):
        return pyarrow.compute.cast(column, column.type.value_type)
    if types.is_run_end_encoded(column.type):
        return pyarrow.compute.run_end_decode(column)
    return column


def _of_dictionary(column: pyarrow.DictionaryArray, name: str,
                   are_below: bool) -> NDArray[Any]:
    """Return the rows of a column that is encoded by a dictionary."""
    values, places = column.dictionary, column.indices
    if type_of(column.type)[0] != OBJECT:
        # Nulls in the dictionary matter only if a row refers to them.
        return rows_of(values.take(places), name, are_below)
    rows = numpy.empty(len(values) + 1, object)
    rows[:-1] = rows_of(values, name)
    numbers = numpy.asarray(places.fill_null(0)).astype(numpy.intp)
    found: NDArray[Any] = rows[numpy.where(
        places.is_null(), len(values), numbers)]
    return found


def _objects(column: pyarrow.Array, name: str) -> NDArray[Any]:
    """Return the rows of a column as an array of objects.

    A list of numbers becomes an array.
    """
    rows = numpy.empty(len(column), object)
    arrow = _storage(column.type)
    if not _is_list(arrow) or type_of(arrow.value_type)[0] == OBJECT:
        element, depth = arrow, 0
        while _is_list(element):
            element, depth = element.value_type, depth + 1
        dtype = type_of(element)[0]
        for place, value in enumerate(column.to_pylist()):
            rows[place] = value if dtype == OBJECT else _as_array(
                value, dtype, depth)
        return rows
    values = rows_of(column.flatten(), name, True)
    stops = numpy.cumsum(column.value_lengths().fill_null(0))
    start = 0
    for place, is_there in enumerate(column.is_valid().to_pylist()):
        if is_there:
            rows[place] = values[start:stops[place]]
        start = stops[place]
    return rows


def _as_array(value: Any, dtype: numpy.dtype[Any], depth: int) -> Any:
    """Return nested lists of numbers as an array.

    Lists of different lengths are returned unchanged.
    """
    if value is None:
        return None
    try:
        found = numpy.array(value, dtype)
    except (TypeError, ValueError):
        return value
    return found if found.ndim == depth else found.reshape((0,) * depth)


def _check_permutation(arrow: pyarrow.FixedShapeTensorType,
                       name: str) -> None:
    """Raise ValueError if the order of a tensor's axes is ambiguous.

    By the definition of the format, the permutation lists the place in memory
    of each axis. In tensors that PyArrow makes of NumPy arrays, it lists the
    axis at each place instead.
    """
    axes = _axes(arrow)
    if [axes[axis] for axis in axes] != sorted(axes):
        raise ValueError(
            f'column {name!r} has tensors with the permutation {axes}, which '
            'PyArrow writes with another meaning than the format defines: '
            'write them without one, as of numpy.ascontiguousarray(tensors), '
            'or leave the column out with sources=')


def _check_nulls(column: pyarrow.Array, name: str,
                 are_lists: bool) -> None:
    """Raise ValueError if a column has nulls.

    `are_lists`: whether the rows are lists, or elements of lists.
    """
    if column.null_count:
        remedy = ('write the column without nulls, since masks= does not mark '
                  'nulls in lists (among floating numbers they are NaN)'
                  if are_lists else 'name its source in masks=, which makes '
                  'the nulls 0 and marks them')
        raise ValueError(
            f'column {name!r} ({column.type}) has {column.null_count} nulls, '
            f'which its type in NumPy cannot represent: {remedy}, or leave '
            f'the column out with sources=')
