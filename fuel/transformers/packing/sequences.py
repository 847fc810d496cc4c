"""Convert sequences to arrays that can be packed by copying their bytes."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels.packing import measure
from fuel.utils.checks import as_regular
from fuel.utils.sparse import require_plain

#: Type of the items of a source, and their shape.
Kind: TypeAlias = tuple[numpy.dtype[Any], tuple[int, ...]]


def as_sequences(
        part: list[Any], source: str, kind: Kind | None, dtype: Any,
        first: int) -> tuple[list[Any], NDArray[numpy.int64], Kind | None]:
    """Return the sequences of a source as C-contiguous arrays of one kind.

    `kind`: kind of the earlier sequences, None if it is not known.
    `dtype`: the requested type, None if no type is requested.
    `first`: number of the first sequence, for errors.

    Returns: the arrays, their lengths, and their kind. The kind is None if it
        was not known and all sequences are empty.
    """
    lengths = None if kind is None else measure(part, *kind)
    if lengths is not None:
        return part, lengths, kind
    arrays = [_as_array(item, source, first + place)
              for place, item in enumerate(part)]
    if kind is None:
        found = next((array for array in arrays if len(array)), None)
        if found is None:
            return arrays, numpy.zeros(len(arrays), numpy.int64), None
        kind = (found.dtype.newbyteorder('=') if dtype is None else dtype,
                found.shape[1:])
    arrays = [_as_kind(array, source, kind, dtype is not None, first + place)
              for place, array in enumerate(arrays)]
    return arrays, numpy.array(
        [len(array) for array in arrays], numpy.int64), kind


def _as_array(item: object, source: str, number: int) -> NDArray[Any]:
    """Return a sequence as an array of numbers."""
    require_plain(item, source, 'Pack')
    try:
        array = as_regular(item)
    except ValueError:
        array = numpy.asarray(None)
    if not array.ndim or (len(array) and array.dtype.kind not in 'biufc'):
        raise ValueError(
            f'sequence {number} of {source!r} must be numbers of shape '
            f'(length, ...), got {item!r:.80} ({type(item).__name__}): leave '
            'other sources out with FilterSources')
    return array


def _as_kind(array: NDArray[Any], source: str, kind: Kind,
             is_wanted: bool, number: int) -> NDArray[Any]:
    """Return an array in the type of the rows."""
    dtype, shape = kind
    if not len(array):
        return numpy.empty((0, *shape), dtype)
    if array.shape[1:] != shape:
        raise ValueError(
            f'the items of sequence {number} of {source!r} have the shape '
            f'{array.shape[1:]}, but the items of the rows have the shape '
            f'{shape}: all items must have the same shape')
    if array.dtype == dtype:
        return numpy.ascontiguousarray(array, dtype)
    casting = 'same_kind' if is_wanted else 'safe'
    if not numpy.can_cast(array.dtype, dtype, casting):  # type: ignore[arg-type]
        raise TypeError(
            f'sequence {number} of {source!r} is of the type {array.dtype}, '
            f'which cannot be converted to that of the rows, {dtype}, '
            'without loss: pass a dtype that holds all, or put Cast before '
            'Pack')
    converted = numpy.ascontiguousarray(array, dtype)
    if dtype.kind in 'iu' and (converted != array).any():
        raise TypeError(
            f'sequence {number} of {source!r} has numbers that {dtype} does '
            'not hold: pass another dtype')
    return converted


def check_lengths(sources: Sequence[str], lengths: list[Any],
                  first: int) -> None:
    """Raise ValueError if the sources of an example differ in length."""
    for source, each in zip(sources[1:], lengths[1:], strict=True):
        if len(each) != len(lengths[0]):
            raise ValueError(
                'all sources of a batch must have the same number of '
                f'sequences, but {sources[0]!r} has {len(lengths[0])} and '
                f'{source!r} {len(each)}')
        wrong = numpy.flatnonzero(each != lengths[0])
        if len(wrong):
            place = wrong[0]
            raise ValueError(
                f'the sources of an example must be equally long, but of '
                f'sequence {first + place} of the epoch {sources[0]!r} has '
                f'{lengths[0][place]} items and {source!r} {each[place]}: '
                'leave a source out with FilterSources')


def pieces_of(length: int, most: int, mode: str) -> list[slice]:
    """Return the kept pieces of a sequence, each of at most `most` items."""
    if mode == 'cut' or length <= most:
        return [slice(0, min(length, most))]
    return [slice(start, min(start + most, length))
            for start in range(0, length, most)]
