"""Take the examples of other libraries apart into sources."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from fuel.datasets.rows import own
from fuel.typing import Sources

# An example has numbers in these; anything else stays an object.
_NUMBERS = (bool, int, float, complex, numpy.generic)


def names_of_parts(owner: str, example: Any,
                   names: Sequence[str] | None) -> Sources:
    """Return the names of the parts of an example.

    Default: the keys of a dict, ``('features', 'targets')`` for a pair,
    ``('data',)`` for a single part.

    `owner`: class of the data set, for errors.
    """
    if names is not None:
        if isinstance(names, str):
            raise ValueError(f'names must be a tuple of names, got the '
                             f'string {names!r}: write ({names!r},)')
        return tuple(names)
    if isinstance(example, Mapping):
        return tuple(example)
    count = len(_as_tuple(example))
    if count not in (1, 2):
        raise ValueError(
            f'an example of {owner} has {count} parts: name them, '
            'names=(...)')
    return ('features', 'targets') if count == 2 else ('data',)


def parts_of(which: str, example: Any, names: Sources) -> Sequence[Any]:
    """Return the parts of an example, in the order of their names.

    `which`: the example, for errors.
    """
    if isinstance(example, Mapping):
        missing = set(names) - example.keys()
        if missing:
            raise ValueError(f'{which} lacks '
                             f'{sorted(missing)}, it has {sorted(example)}')
        return [example[name] for name in names]
    parts = _as_tuple(example)
    if len(parts) != len(names):
        raise ValueError(f'{which} has {len(parts)} parts, '
                         f'but the sources are {names}')
    return parts


def _as_tuple(example: Any) -> Sequence[Any]:
    return example if isinstance(example, (tuple, list)) else (example,)


def as_array(value: Any) -> Any:
    """Return an array, picture or number as an array of its own.

    Strings and other objects are returned as they are.
    """
    if isinstance(value, _NUMBERS) or hasattr(value, '__array_interface__'):
        return own(numpy.asarray(value))
    return own(value)


def stacked(values: Sequence[Any]) -> Any:
    """Return one array of arrays of the same shape, others as a list."""
    first = values[0]
    if isinstance(first, numpy.ndarray) and not first.dtype.hasobject and all(
            isinstance(value, numpy.ndarray) and value.shape == first.shape
            for value in values):
        return numpy.stack(values)
    return list(values)
