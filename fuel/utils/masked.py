"""NumPy's masked arrays, which hide the values that are missing.

What a stage does with them is its attribute `takes_masked`: it keeps the mask
of each element, or refuses them, if what it makes has no place for a mask.
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
    # Without the module, which NumPy imports when it is asked for, there can
    # be no such array.
    module = vars(numpy).get('ma')
    return module is not None and isinstance(value, module.MaskedArray)


def is_constant(value: object) -> bool:
    """Return whether a value is `numpy.ma.masked`, which has no type."""
    return is_masked(value) and value is numpy.ma.masked


def holds_masked(data: object) -> bool:
    """Return whether the data of a source are a masked array, or have a masked
    example."""
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
    """Refuse masked arrays where the result cannot have a mask.

    Parameters
    ----------
    data : object
        Those of a source, of any kind.
    source : str
    user : str
        Who cannot keep the mask, for the error.

    Raises
    ------
    TypeError
        If they are masked; the text says how to make plain arrays of them.
    """
    if type(data) is numpy.ndarray and data.dtype != object:
        # Nearly always, and sooner known than the types of its examples.
        return
    if holds_masked(data):
        raise masked_refusal(
            f'{user} cannot keep the mask of source {source!r}')


def masked_refusal(reason: str) -> TypeError:
    """Return the error for a masked array that cannot be used."""
    return TypeError(
        f'{reason}, which is a masked array: put values in the place of '
        'those that it hides before, by Impute and fit_impute, or by '
        'numpy.ma.filled in a function of Mapping')


def as_kept(data: object) -> NDArray[Any]:
    """Return data as an array, which is masked if they are."""
    return data if is_masked(data) else numpy.asarray(data)


def mask_of(data: object) -> NDArray[Any]:
    """Return the mask of hidden values, in the shape of the data."""
    if is_masked(data):
        mask: NDArray[Any] = numpy.ma.getmaskarray(data)
        return mask
    return numpy.zeros(numpy.shape(data), bool)  # type: ignore[call-overload]


def without_hidden(array: NDArray[Any]) -> NDArray[Any]:
    """Return a plain array with zeros for hidden values.

    Whatever was hidden could be no number, or too large a one. Of records,
    whose fields have masks of their own, it stays.
    """
    values = numpy.array(numpy.ma.getdata(array))
    mask = mask_of(array)
    if mask.dtype == bool:
        # Text of a zero can be cast to a number.
        values[mask] = ('0' if array.dtype.kind in 'SU' else 0 if (
            array.dtype.hasobject) else numpy.zeros((), array.dtype))
    return values


def with_mask(values: Any, mask: NDArray[Any],
              before: NDArray[Any] | None = None) -> Any:
    """Return values as a masked array.

    `mask`: broadcasts with the values.
    `before`: their origin, whose `fill_value` they get.
    """
    values = numpy.asarray(values)
    masked: Any = numpy.ma.masked_array(
        values, mask=numpy.array(numpy.broadcast_to(mask, values.shape)))
    if is_masked(before) and not is_constant(before) and (
            before.fill_value != numpy.ma.default_fill_value(before)):
        # Another type may not have it.
        with suppress(TypeError, ValueError, OverflowError):
            masked.fill_value = before.fill_value
    return masked


def masked_row(array: NDArray[Any], place: int) -> Any:
    """Return an example of a masked array, as a masked array.

    Indexing with brackets gives a number, or `numpy.ma.masked`, which has no
    type.
    """
    return (array[place] if array.ndim > 1
            else array[place:place + 1].reshape(()))


def masked_rows(array: NDArray[Any]) -> Iterable[Any]:
    """Return the examples of a masked array, one after the other."""
    return (masked_row(array, place) for place in range(len(array)))


def plain_values(examples: Sequence[Any]) -> list[Any]:
    """Return the values of examples, some of them masked.

    In the place of `numpy.ma.masked` there is a zero of the type of another
    example.
    """
    typed = next((numpy.ma.getdata(example) for example in examples
                  if not is_constant(example)), numpy.zeros(()))
    zero = '0' if typed.dtype.kind in 'SU' else 0 if (
        typed.dtype.hasobject) else numpy.zeros((), typed.dtype)
    return [zero if is_constant(example) else numpy.ma.getdata(example)
            if is_masked(example) else example for example in examples]


def stack_kept(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays of one shape as one array, with their masks."""
    if not holds_masked(arrays):
        return numpy.stack(arrays)
    masked: NDArray[Any] = with_mask(
        numpy.stack(plain_values(arrays)),
        numpy.stack(list(map(mask_of, arrays))),
        next(filter(is_masked, arrays)))
    return masked


def concatenated(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays one after the other, with their masks."""
    joined = numpy.concatenate([
        numpy.ma.getdata(piece) if is_masked(piece) else piece
        for piece in pieces])
    before = next(filter(is_masked, pieces), None)
    if before is None:
        return joined
    masked: NDArray[Any] = with_mask(
        joined, numpy.concatenate(list(map(mask_of, pieces))), before)
    return masked
