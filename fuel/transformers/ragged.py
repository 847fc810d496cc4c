"""Batches made of examples, of equal shapes or of different ones.

A ragged batch is a one-dimensional array of objects, or a list of arrays,
with one element for each example. Stages keep the form. A list of examples
of equal shapes is not a ragged batch: stages that compute make one array of
it.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.utils.masked import (
    as_kept, holds_masked, is_constant, is_masked, mask_of, plain_values,
    with_mask)
from fuel.utils.sparse import is_sparse, stack_rows, take_rows
from fuel.utils.threads import map_chunks

_NESTED = (numpy.ndarray, list, tuple)

# Before 1.24, NumPy made an array of objects, with a warning, where it now
# raises ValueError.
_MAKES_RAGGED = numpy.lib.NumpyVersion(numpy.__version__) < '1.24.0'


def as_batch(examples: Sequence[Any]) -> Any:
    """Return examples as one array, new and writable.

    Returns: the result of :func:`numpy.array`; for sparse examples a sparse
        batch, for masked examples a masked array. If shapes differ, or if
        strings would lose null characters at their end, an array of objects
        of shape (batch,) with the examples themselves.
    """
    if examples and is_sparse(examples[0]) and all(
            map(is_sparse, examples)):
        return stack_rows(examples)
    kinds = set(map(type, examples))
    if _differ_in_shape(examples, kinds):
        return _as_objects(examples)
    if kinds != {numpy.ndarray} and holds_masked(examples):
        return _as_masked(examples)
    try:
        batch = numpy.array(examples)
    except ValueError:
        # Shapes differ at a deeper level.
        return _as_objects(examples)
    # NumPy pads strings with null characters, so those at the end are lost.
    if batch.dtype.kind in 'SU' and batch.tolist() != _plain(examples):
        return _as_objects(examples)
    return batch


def as_array(data: object) -> NDArray[Any]:
    """Return the data of a source as an array; it has objects if ragged."""
    if isinstance(data, (list, tuple)):
        data = as_batch(data)
    return as_kept(data)


def as_matrix(array: NDArray[Any]) -> NDArray[Any]:
    """Return a batch with each example as one row."""
    # Not -1: for an empty batch NumPy cannot compute the length of a row.
    return array.reshape(len(array), math.prod(array.shape[1:]))


def at_place(error: Exception, place: int) -> Exception:
    """Set the place of an error in the batch, and return the error."""
    error.place = place  # type: ignore[attr-defined]
    return error


def map_places(function: Callable[[int], Any], count: int,
               num_threads: int | None, noun: str) -> list[Any]:
    """Call a function for each place of a batch, on several threads.

    `noun`: the kind of example, for the note of an error.
    """
    def run(start: int, stop: int) -> list[Any]:
        results = []
        for place in range(start, stop):
            try:
                results.append(function(place))
            except Exception as error:
                error.add_note(f'{noun} {place} of the batch')
                at_place(error, place)
                raise
        return results

    return [one for part in map_chunks(run, count, 1, num_threads)
            for one in part]


def pick_examples(data: Any, places: list[int]) -> Any:
    """Return the examples of a source at `places`, in the form of the data.

    Data that are neither sparse nor an array become a list.
    """
    if is_sparse(data):
        return take_rows(data, places)
    if isinstance(data, numpy.ndarray):
        return data[places]
    return [data[place] for place in places]


def is_ragged(array: NDArray[Any]) -> bool:
    """Return whether an array is made of other arrays (or lists)."""
    return array.dtype == object and any(
        isinstance(element, _NESTED) and not is_constant(element)
        for element in array.flat)


def map_elements(function: Callable[[Any], Any], data: Iterable[Any]) -> Any:
    """Return ragged data with a function applied to each element.

    A list of arrays stays a list, anything else becomes an array of objects.
    """
    if not isinstance(data, numpy.ndarray):
        if any(isinstance(element, numpy.ndarray) for element in data):
            return [function(element) for element in data]
        data = as_array(data)
    mapped = numpy.empty(data.shape, object)
    for place in numpy.ndindex(data.shape):
        element = data[place]
        mapped[place] = None if is_constant(element) else function(element)
    return with_mask(mapped, mask_of(data), data) if is_masked(data) else (
        mapped)


def _differ_in_shape(examples: Sequence[Any], kinds: set[type]) -> bool:
    """Return whether the examples have different shapes that versions of NumPy
    treat differently."""
    if all(issubclass(kind, numpy.ndarray) for kind in kinds):
        return len({example.shape for example in examples}) > 1
    if not any(issubclass(kind, _NESTED) for kind in kinds):
        return False
    if len({_length(example) for example in examples}) > 1:
        return True
    return _MAKES_RAGGED and is_ragged(numpy.array(examples, object))


def _length(example: object) -> int | None:
    if isinstance(example, numpy.ndarray) and not example.ndim:
        return None
    return len(example) if isinstance(example, _NESTED) else None


def _as_objects(examples: Sequence[Any]) -> NDArray[Any]:
    batch = numpy.empty(len(examples), object)
    for place, example in enumerate(examples):
        batch[place] = example
    return batch


def _as_masked(examples: Sequence[Any]) -> Any:
    """Return examples of one shape, some of them masked, as a masked array."""
    batch = as_batch(plain_values(examples))
    return with_mask(batch, numpy.array(list(map(mask_of, examples))), next(
        example for example in examples if is_masked(example)))


def _plain(value: object) -> Any:
    if isinstance(value, numpy.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value
