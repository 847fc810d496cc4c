"""Checking what users give as indices: lists, index arrays, slices."""
from collections.abc import Sequence
from numbers import Integral
from typing import Any, TypeAlias, TypeGuard

import numpy
from numpy.typing import NDArray

IndexArray: TypeAlias = NDArray[numpy.intp]
IndexList: TypeAlias = Sequence[int] | NDArray[numpy.integer[Any]]

_LARGEST = numpy.iinfo(numpy.intp).max
_NO_BOOLEANS = ('booleans are not indices; numpy.flatnonzero(mask) gives the '
                'indices that a boolean mask selects')
_NO_FLOATS = ('floats are not indices; if they are whole numbers, convert '
              'them with numpy.asarray(indices).astype(int)')


def is_integer(value: object) -> TypeGuard[int]:
    """Whether `value` is an integer of any width, and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def to_index_array(indices: IndexList, name: str = 'indices') -> IndexArray:
    """Return a list of integers as an index array; refuse anything else."""
    if isinstance(indices, numpy.ndarray):
        _check_array(indices, name)
    elif isinstance(indices, range):
        return numpy.arange(
            indices.start, indices.stop, indices.step, dtype=numpy.intp)
    elif isinstance(indices, (list, tuple)):
        _check_elements(indices, name)
    else:
        raise ValueError(
            f'{name}: expected a list of integers or a one-dimensional '
            f'integer array, got {_describe(indices)}')
    try:
        return numpy.asarray(indices, dtype=numpy.intp)
    except OverflowError as error:
        largest = max(indices, key=abs)
        raise ValueError(
            f'{name}: {largest} is too large for an index') from error


def _check_array(indices: NDArray[Any], name: str) -> None:
    kind = indices.dtype.kind
    if kind not in 'iu':
        remedy = {'b': _NO_BOOLEANS, 'f': _NO_FLOATS}.get(
            kind, 'convert it with .astype(int)')
        raise ValueError(
            f'{name}: expected integers, got an array of {indices.dtype} of '
            f'shape {indices.shape}: {remedy}')
    if indices.ndim != 1:
        raise ValueError(
            f'{name}: expected one dimension, got an array of shape '
            f'{indices.shape}; flatten it with .ravel()')
    if indices.dtype == numpy.uint64 and indices.size:
        largest = int(indices.max())
        if largest > _LARGEST:
            raise ValueError(f'{name}: {largest} is too large for an index')


def _check_elements(indices: Sequence[Any], name: str) -> None:
    # Looking at each *type* once keeps Python out of the loop.
    types: set[type[Any]] = set(map(type, indices))
    for type_ in types:
        if type_ is not bool and issubclass(type_, Integral):
            continue
        position, value = next(
            (i, value) for i, value in enumerate(indices)
            if type(value) is type_)
        remedy = 'give plain integers'
        if issubclass(type_, (bool, numpy.bool_)):
            remedy = _NO_BOOLEANS
        elif issubclass(type_, (float, numpy.floating)):
            remedy = _NO_FLOATS
        raise ValueError(
            f'{name}: expected integers, got {_describe(value)} at position '
            f'{position}: {remedy}')


def check_bounds(indices: IndexArray, num_examples: int,
                 name: str = 'indices') -> None:
    """Raise ValueError unless ``0 <= index < num_examples`` for each."""
    if not indices.size:
        return
    lowest, highest = int(indices.min()), int(indices.max())
    if lowest < 0:
        raise ValueError(
            f'{name}: {lowest} is negative; indices count from the start, '
            f'from 0 to {num_examples - 1}')
    if highest >= num_examples:
        raise ValueError(
            f'{name}: {highest} is out of range; there are {num_examples} '
            f'examples, so the last index is {num_examples - 1}')


def check_integer(index: object, num_examples: int,
                  name: str = 'index') -> int:
    """Return `index` as an int in ``range(num_examples)``, or ValueError."""
    if not is_integer(index):
        raise ValueError(
            f'{name}: expected an integer, a slice, or a list or array of '
            f'integers, got {_describe(index)}')
    value = int(index)
    if not 0 <= value < num_examples:
        raise ValueError(
            f'{name}: expected 0 <= index < {num_examples}, got {value}')
    return value


def plain_slice(slice_: slice, name: str = 'slice') -> slice:
    """Return `slice_` with Python ints or None; ValueError for negatives."""
    parts: list[int | None] = []
    for part in ('start', 'stop', 'step'):
        value = getattr(slice_, part)
        if value is None:
            parts.append(None)
            continue
        if not is_integer(value):
            raise ValueError(
                f'{name}: expected {part} to be an integer or None, got '
                f'{_describe(value)} in {slice_}')
        if value < 0 or (part == 'step' and value == 0):
            kind = 'negative' if value else 'zero'
            raise ValueError(
                f'{name}: {part} must not be {kind}, got {slice_}; count '
                'from the start, in steps of at least 1')
        parts.append(int(value))
    return slice(*parts)


def _describe(value: object) -> str:
    text = repr(value)
    if len(text) > 60:
        text = text[:57] + '...'
    return f'{text} ({type(value).__name__})'
