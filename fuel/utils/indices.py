"""Checks of single indices and slices; for lists see `fuel.kernels.rows`."""
from collections.abc import Sequence
from numbers import Integral
from typing import Any, TypeAlias, TypeGuard

import numpy
from numpy.typing import NDArray

IndexArray: TypeAlias = NDArray[numpy.intp]
IndexList: TypeAlias = Sequence[int] | NDArray[numpy.integer[Any]]


def is_integer(value: object) -> TypeGuard[int]:
    """Return whether a value is an integer of any width, and no boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_integer(index: object, num_examples: int) -> int:
    """Return `index` as an int in ``range(num_examples)``, or ValueError."""
    if not is_integer(index):
        raise ValueError(
            'a request: expected an integer, a slice, or a list or array of '
            f'integers, got {_describe(index)}')
    value = int(index)
    if not 0 <= value < num_examples:
        raise ValueError(
            f'a request: expected 0 <= index < {num_examples}, got {value}')
    return value


def plain_slice(slice_: slice, name: str) -> slice:
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


def check_slice(slice_: slice, num_examples: int) -> slice:
    """Return a slice of integers; refuse one that is empty, negative or out
    of range."""
    slice_ = plain_slice(slice_, 'a request')
    start = slice_.start or 0
    stop = num_examples if slice_.stop is None else slice_.stop
    if stop > num_examples:
        reason = f'there are only {num_examples} examples'
    elif start >= stop:
        reason = 'it holds no example'
    else:
        return slice_
    raise ValueError(
        f'a request must be a slice within the {num_examples} examples, got '
        f'{slice_}: {reason}')


def _describe(value: object) -> str:
    text = repr(value)
    if len(text) > 60:
        text = text[:57] + '...'
    return f'{text} ({type(value).__name__})'
