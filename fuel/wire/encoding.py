"""Encode a batch as a description in JSON and buffers."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.utils.checks import as_regular
from fuel.utils.masked import is_masked, masked_refusal
from fuel.utils.sparse import SparseRows, is_sparse
from fuel.wire.header import LIMITS, PLAIN_KINDS

_NUMBERS = frozenset((bool, int, float, complex))

Buffers = list[Any]


def encode(data: Iterable[object]) -> tuple[list[Any], Buffers]:
    """Return a description of the data of each source, and their buffers.

    `data`: arrays of any type but object, sparse batches, lists (a rectangular
        one arrives as an array, a ragged one as a list of arrays), bytes,
        text, numbers.
    Returns: descriptions, ready for JSON.
    Returns: buffers: contiguous arrays and bytes, not copied where possible.
    """
    buffers: Buffers = []
    items = []
    for place, source in enumerate(data):
        try:
            items.append(encode_item(source, buffers, 0))
        except TypeError as error:
            error.add_note(f'in source number {place}')
            raise
    count = sum(map(_count_ragged, items))
    most = LIMITS.most_arrays(sum(len(buffer) for buffer in buffers))
    if count > most:
        raise TypeError(
            f'a batch of {count} small arrays cannot be sent, at most {most} '
            'of this size: return fewer examples a batch, or an array and '
            'the lengths of its parts')
    return items, buffers


def _count_ragged(item: dict[str, Any]) -> int:
    """Return the number of ragged arrays in the description of an item."""
    kind = item['type']
    if kind == 'ragged':
        count: int = item['count']
        return count
    if kind == 'list':
        return sum(map(_count_ragged, item['items']))
    return _count_ragged(item['items']) if kind == 'objects' else 0


def encode_item(value: object, buffers: Buffers, depth: int) -> Any:
    """Return the description of one value, and add its bytes to the
    buffers."""
    if depth > LIMITS.depth:
        raise TypeError('lists are nested too deeply to be sent')
    if isinstance(value, numpy.ndarray):
        if is_masked(value):
            raise masked_refusal('a server cannot send the mask of an array')
        if value.dtype.hasobject:
            return _encode_objects(value, buffers, depth)
        return encode_array('array', numpy.asarray(value), buffers)
    if isinstance(value, numpy.generic):
        return encode_array('scalar', numpy.asarray(value), buffers)
    if isinstance(value, (bytes, bytearray, memoryview)):
        buffers.append(bytes(value))
        return {'type': 'bytes'}
    if isinstance(value, (list, tuple)):
        return _encode_sequence(value, buffers, depth)
    if value is None or isinstance(value, (bool, int, str)):
        return {'type': 'value', 'value': value}
    if isinstance(value, float):
        return {'type': 'float', 'value': value.hex()}
    if is_sparse(value):
        return _encode_sparse(value, buffers)
    if hasattr(value, '__array__'):
        return encode_item(numpy.asarray(value), buffers, depth + 1)
    raise TypeError(
        f'data of type {type(value).__name__} cannot be sent: return arrays, '
        'lists, bytes, text or numbers')


def encode_array(kind: str, array: NDArray[Any],
                 buffers: Buffers) -> dict[str, Any]:
    """Return the description of an array or scalar, and add its bytes to the
    buffers."""
    described = describe_dtype(array.dtype)
    order = 'C'
    if not array.flags.c_contiguous and array.flags.f_contiguous:
        order = 'F'
        flat = array.T
    else:
        # Not ascontiguousarray, which adds a dimension to a scalar.
        flat = array if array.flags.c_contiguous else _copy(array)
    if array.nbytes:
        buffers.append(flat.reshape(-1).view(numpy.uint8))
    return {'type': kind, 'dtype': described, 'shape': list(array.shape),
            'order': order}


def _encode_sparse(batch: SparseRows, buffers: Buffers) -> Any:
    """Return the description of a sparse batch, by its three arrays."""
    # In SciPy, data and indices may be longer than their used part.
    used = slice(int(batch.indptr[-1]))
    return {'type': 'csr', 'shape': list(map(int, batch.shape)),
            'data': encode_array('array', batch.data[used], buffers),
            'indices': encode_array('array', batch.indices[used], buffers),
            'indptr': encode_array('array', batch.indptr, buffers)}


def _copy(array: NDArray[Any]) -> NDArray[Any]:
    """Return a copy in C order, with the bytes between fields as they are.

    NumPy copies structures field by field. In such a copy, the bytes between
    the fields would be former contents of the memory, and these would be sent.
    """
    if array.dtype.names is None:
        return array.copy(order='C')
    return array.view(f'V{array.dtype.itemsize}').copy(order='C')


def _encode_objects(array: NDArray[Any], buffers: Buffers,
                    depth: int) -> Any:
    """Return the description of an array of objects, each encoded by itself
    unless all are arrays of one type."""
    if array.dtype != object:
        raise TypeError(
            f'arrays of type {array.dtype} cannot be sent, since parts are '
            'Python objects')
    elements = list(array.reshape(-1))
    item = (_encode_ragged(elements, buffers)
            or _encode_each(elements, buffers, depth))
    return {'type': 'objects', 'shape': list(array.shape), 'items': item}


def _encode_sequence(values: Iterable[object], buffers: Buffers,
                     depth: int) -> Any:
    elements: list[Any] = list(values)
    kinds = set(map(type, elements))
    if kinds == {bytes}:
        return _encode_strings(elements, buffers, 'bytes')
    if kinds == {str}:
        return _encode_strings(
            [one.encode('utf-8', 'surrogatepass') for one in elements],
            buffers, 'text')
    array = _as_rectangular(elements)
    if array is not None:
        return encode_array('array', array, buffers)
    elements = [
        numbers if (isinstance(one, (list, tuple))
                    and (numbers := _as_rectangular(list(one))) is not None)
        else one for one in elements]
    return (_encode_ragged(elements, buffers)
            or _encode_each(elements, buffers, depth))


def _as_rectangular(elements: list[Any]) -> NDArray[Any] | None:
    """Return a list of numbers, nested at any depth, as an array; None if it
    is ragged, or has other elements."""
    if not _holds_numbers(elements):
        return None
    try:
        array = as_regular(elements)
    except (ValueError, OverflowError):
        return None
    return None if array.dtype.kind not in 'biufcmMV' else array


def _holds_numbers(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        # This checks long lists of plain numbers at the speed of C.
        return _NUMBERS.issuperset(map(type, value)) or all(
            map(_holds_numbers, value))
    if isinstance(value, numpy.ndarray):
        return (value.dtype.kind in 'biufcmMV' and not value.dtype.hasobject
                and not is_masked(value))
    return isinstance(value, (bool, int, float, complex, numpy.generic))


def _encode_each(elements: list[Any], buffers: Buffers, depth: int) -> Any:
    return {'type': 'list', 'items': [
        encode_item(one, buffers, depth + 1) for one in elements]}


def _encode_strings(parts: list[bytes], buffers: Buffers, kind: str) -> Any:
    buffers.append(numpy.array(
        [len(part) for part in parts], '<i8').view(numpy.uint8))
    buffers.append(b''.join(parts))
    return {'type': 'strings', 'of': kind, 'count': len(parts)}


def _encode_ragged(elements: list[Any], buffers: Buffers) -> Any:
    """Return the description of arrays of one type and different shapes, in
    two buffers; None for other elements."""
    if not elements or not all(
            type(one) is numpy.ndarray and one.ndim and one.dtype.itemsize
            and not one.dtype.hasobject for one in elements):
        return None
    first = elements[0]
    if any(one.dtype != first.dtype or one.ndim != first.ndim
           for one in elements):
        return None
    buffers.append(numpy.array(
        [one.shape for one in elements], '<i8').reshape(-1).view(
            numpy.uint8))
    buffers.append(numpy.concatenate(
        [one.reshape(-1) for one in elements]).view(numpy.uint8))
    return {'type': 'ragged', 'dtype': describe_dtype(first.dtype),
            'dimensions': first.ndim, 'count': len(elements)}


def describe_dtype(dtype: numpy.dtype[Any]) -> Any:
    """Return the description of a data type, ready for JSON.

    Returns: a text for a plain type, a list of type and shape for a sub-array,
    a dict for a structure.
    """
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return [describe_dtype(base), list(shape)]
    if dtype.fields is not None and dtype.names is not None:
        return {'names': list(dtype.names),
                'formats': [describe_dtype(dtype.fields[name][0])
                            for name in dtype.names],
                'offsets': [dtype.fields[name][1] for name in dtype.names],
                'itemsize': dtype.itemsize}
    if dtype.hasobject or dtype.kind not in PLAIN_KINDS \
            or numpy.dtype(dtype.str) != dtype:
        raise TypeError(
            f'arrays of type {dtype} cannot be sent: convert them to numbers '
            'or bytes before')
    return dtype.str
