"""NumPy's masked arrays, which hide missing values.

The attribute `takes_masked` of a stage says whether it keeps the mask of each
element, or raises an error because its results cannot have a mask.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeGuard

import numpy
from numpy.typing import NDArray


def is_masked(value: object) -> TypeGuard[numpy.ma.MaskedArray[Any, Any]]:
    """Return whether a value is a masked array, with hidden values or not."""
    if type(value) is numpy.ndarray:
        return False
    # NumPy imports `numpy.ma` at its first use. Before that, there cannot be a
    # masked array.
    module = vars(numpy).get('ma')
    return module is not None and isinstance(value, module.MaskedArray)


def is_constant(value: object) -> bool:
    """Return whether a value is `numpy.ma.masked`, which has no type."""
    return is_masked(value) and value is numpy.ma.masked


def holds_masked(data: object) -> bool:
    """Return whether the data of a source are a masked array, or contain a
    masked array as an example."""
    module = vars(numpy).get('ma')
    if module is None:
        return False
    kinds = {type(data)}
    if isinstance(data, (list, tuple)):
        kinds = set(map(type, data))
    elif type(data) is numpy.ndarray and data.dtype == object:
        kinds = set(map(type, data.flat))
    return any(issubclass(kind, module.MaskedArray) for kind in kinds)


def require_unmasked(data: Any, source: str, user: str) -> None:
    """Raise TypeError if data are masked, where a result cannot have a mask.

    Parameters
    ----------
    data : object
        The data of a source, of any kind.
    source : str
        Name of the source, for the error.
    user : str
        Name of the function or class that cannot keep the mask, for the error.

    Raises
    ------
    TypeError
        If the data are masked; the text says how to make plain arrays.
    """
    if type(data) is numpy.ndarray and data.dtype != object:
        # This is nearly always the case, and faster to check than the types of
        # the examples.
        return
    if holds_masked(data):
        raise masked_refusal(
            f'{user} cannot keep the mask of source {source!r}')


def masked_refusal(reason: str) -> TypeError:
    """Return the error for a masked array that cannot be used."""
    return TypeError(
        f'{reason}, which is a masked array: before this, fill the values '
        'that its mask hides, by Impute and fit_impute, or by '
        'numpy.ma.filled in a function of Mapping')


def as_kept(data: object) -> NDArray[Any]:
    """Return data as an array; a masked array is returned as it is."""
    return data if is_masked(data) else numpy.asarray(data)


def mask_of(data: object) -> NDArray[Any]:
    """Return the mask of hidden values, in the shape of the data."""
    if is_masked(data):
        mask: NDArray[Any] = numpy.ma.getmaskarray(data)
        return mask
    return numpy.zeros(numpy.shape(data), bool)  # type: ignore[call-overload]


def without_hidden(array: NDArray[Any]) -> NDArray[Any]:
    """Return a plain array with zeros in place of the hidden values.

    A hidden value may be NaN, or a number that is too large. Records, whose
    fields have masks of their own, keep their hidden values.
    """
    values = numpy.array(numpy.ma.getdata(array))
    mask = mask_of(array)
    if mask.dtype == bool:
        # The text '0' can be cast to a number.
        values[mask] = ('0' if array.dtype.kind in 'SU' else 0 if (
            array.dtype.hasobject) else numpy.zeros((), array.dtype))
    return values


def with_mask(values: Any, mask: NDArray[Any],
              before: NDArray[Any] | None = None) -> Any:
    """Return values as a masked array.

    `mask`: the mask; it is broadcast to the shape of the values.
    `before`: array from which the values were made; its `fill_value` is kept.
    """
    values = numpy.asarray(values)
    masked: Any = numpy.ma.masked_array(
        values, mask=numpy.array(numpy.broadcast_to(mask, values.shape)))
    if is_masked(before) and not is_constant(before) and (
            before.fill_value != numpy.ma.default_fill_value(before)):
        # The type of the new values may not be able to represent this fill
        # value.
        with suppress(TypeError, ValueError, OverflowError):
            masked.fill_value = before.fill_value
    return masked


def masked_row(array: NDArray[Any], place: int) -> Any:
    """Return an example of a masked array, as a masked array.

    Indexing an array of one axis would return a number, or `numpy.ma.masked`,
    which has no type.
    """
    return (array[place] if array.ndim > 1
            else array[place:place + 1].reshape(()))


def masked_rows(array: NDArray[Any]) -> Iterable[Any]:
    """Return the examples of a masked array, one after the other."""
    return (masked_row(array, place) for place in range(len(array)))


def plain_values(examples: Sequence[Any]) -> list[Any]:
    """Return the values of examples without their masks.

    `numpy.ma.masked` becomes a zero of the type of another example.
    """
    typed = next((numpy.ma.getdata(example) for example in examples
                  if not is_constant(example)), numpy.zeros(()))
    zero = '0' if typed.dtype.kind in 'SU' else 0 if (
        typed.dtype.hasobject) else numpy.zeros((), typed.dtype)
    return [zero if is_constant(example) else numpy.ma.getdata(example)
            if is_masked(example) else example for example in examples]


def stack_kept(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays of one shape stacked as one array, with their masks."""
    if not holds_masked(arrays):
        return numpy.stack(arrays)
    masked: NDArray[Any] = with_mask(
        numpy.stack(plain_values(arrays)),
        numpy.stack(list(map(mask_of, arrays))),
        next(filter(is_masked, arrays)))
    return masked


def concatenated(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays concatenated along the first axis, with their masks."""
    joined = numpy.concatenate([
        numpy.ma.getdata(piece) if is_masked(piece) else piece
        for piece in pieces])
    before = next(filter(is_masked, pieces), None)
    if before is None:
        return joined
    masked: NDArray[Any] = with_mask(
        joined, numpy.concatenate(list(map(mask_of, pieces))), before)
    return masked
