"""Data types as JSON."""
from __future__ import annotations

import sys
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.wire.header import WireError

# Kinds that are plain bytes: no objects, no types of other packages.
_KINDS = frozenset('biufcmMSUV')
_MOST_FIELDS = 1000
_LONGEST_NAME = 40
_LARGEST_ITEM = 1 << 31
LONGEST_AXIS = 1 << 48


def describe_dtype(dtype: numpy.dtype[Any]) -> Any:
    """Return a data type as JSON.

    Returns: A list is a type and the shape of a sub-array, a dict a structure.
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
    if dtype.hasobject or dtype.kind not in _KINDS \
            or numpy.dtype(dtype.str) != dtype:
        raise TypeError(
            f'arrays of type {dtype} cannot be sent: convert them to numbers '
            'or bytes before')
    return dtype.str


def rebuild(described: object, depth: int = 4) -> numpy.dtype[Any]:
    """Return the data type that :func:`describe_dtype` was given."""
    try:
        dtype = _rebuild(described, depth)
    except (TypeError, ValueError, OverflowError, MemoryError,
            SyntaxError) as error:
        raise WireError(
            f'not a data type: {str(described)[:80]} ({error})') from None
    # An array has no type with a shape of its own; only fields have.
    if (dtype.hasobject or dtype.itemsize > _LARGEST_ITEM
            or dtype.subdtype is not None):
        raise WireError(f'a data type that is not allowed: {dtype}')
    return dtype


def _rebuild(described: object, depth: int) -> numpy.dtype[Any]:
    if depth < 0:
        raise ValueError('nested too deeply')
    if isinstance(described, str):
        # Only what `dtype.str` gives: NumPy's own parser takes much more.
        if len(described) > _LONGEST_NAME or described[:1] not in '<>|=' \
                or described[1:2] not in _KINDS:
            raise ValueError('unknown')
        return numpy.dtype(described)
    if isinstance(described, list):
        base, shape = described
        lengths = tuple(check_shape(shape))
        return numpy.dtype((_rebuild(base, depth - 1), lengths))
    if not isinstance(described, dict) or described.keys() != {
            'names', 'formats', 'offsets', 'itemsize'}:
        raise ValueError('unknown')
    if len(described['formats']) > _MOST_FIELDS or not all(
            type(number) is int and 0 <= number <= _LARGEST_ITEM
            for number in [*described['offsets'], described['itemsize']]):
        raise ValueError('too large')
    return numpy.dtype({
        'names': [_check_name(name) for name in described['names']],
        'formats': [_rebuild(one, depth - 1)
                    for one in described['formats']],
        'offsets': described['offsets'], 'itemsize': described['itemsize']})


def _check_name(name: object) -> str:
    if not isinstance(name, str):
        raise ValueError('a name is a text')
    return name


def check_text(array: NDArray[Any]) -> None:
    """Refuse code points that no text has; Python fails on them later."""
    dtype = array.dtype
    if dtype.names is not None:
        for name in dtype.names:
            check_text(array[name])
    elif dtype.kind == 'U' and array.size and dtype.itemsize:
        codes = numpy.ascontiguousarray(array).view(
            numpy.dtype(numpy.uint32).newbyteorder(dtype.byteorder))
        if int(codes.max()) > sys.maxunicode:
            raise WireError('a text with a code point beyond Unicode')


def check_shape(shape: object) -> list[int]:
    """Return a shape, if it is one."""
    if not isinstance(shape, list) or len(shape) > 32 or not all(
            type(length) is int and 0 <= length < LONGEST_AXIS
            for length in shape):
        raise WireError(f'not a shape: {str(shape)[:80]}')
    return shape
