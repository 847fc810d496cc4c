"""Pad sequences of different lengths to one array, and make its mask."""
from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

import numpy
from numpy.typing import ArrayLike, DTypeLike, NDArray

from fuel.kernels._sequences import pad_arrays, pad_lists
from fuel.utils.checks import as_regular
from fuel.utils.masked import is_masked, masked_refusal

__all__ = ['pad_sequences']


def pad_sequences(sequences: Sequence[ArrayLike],
                  mask_dtype: DTypeLike = 'float64') -> Any:
    """Return sequences as one array, padded with zeros, and its mask.

    `sequences`: lists, tuples or arrays of shape (length, ...). Lengths may
        differ and may be 0; the other dimensions must be equal. An array of
        at least two axes is accepted too; its rows have one length.
    Returns: the padded array and the mask. The array has the common dtype of
        the sequences, in native byte order. Empty lists do not affect the
        dtype; if all sequences are empty lists, it is float64. An array that
        needs no padding is returned itself.

    Examples
    --------
    >>> padded, mask = pad_sequences([[1, 2], [], [3.5]])
    >>> padded
    array([[1. , 2. ],
           [0. , 0. ],
           [3.5, 0. ]])
    >>> mask
    array([[1., 1.],
           [0., 0.],
           [1., 0.]])
    """
    mask_dtype = numpy.dtype(mask_dtype).newbyteorder('=')
    if mask_dtype.kind not in 'biufc':
        raise ValueError('the mask must be of a type of number or bool, got '
                         f'{mask_dtype}')
    if isinstance(sequences, numpy.ndarray):
        if sequences.ndim > 1 and sequences.dtype != object:
            return _pad_equal(sequences, mask_dtype)
        sequences = sequences.tolist() if sequences.dtype == object else [
            *sequences]
    else:
        # A copy: the kernels require that no other code changes the list.
        sequences = list(sequences)
    result = pad_lists(sequences, mask_dtype)
    if result is None:
        result = pad_arrays(sequences, mask_dtype)
    if result is None:
        result = _pad_any(sequences, mask_dtype)
    return result


def _pad_equal(array: NDArray[Any], mask_dtype: DTypeLike) -> Any:
    """Pad an array whose rows have equal lengths: there is nothing to pad."""
    _refuse_masked(array)
    dtype = array.dtype.newbyteorder('=')
    return (array.astype(dtype, copy=False),
            numpy.ones(array.shape[:2], mask_dtype))


def _pad_any(sequences: Sequence[ArrayLike], mask_dtype: DTypeLike) -> Any:
    arrays = [_as_sequence(i, item) for i, item in enumerate(sequences)]
    typed = [array for array in arrays if array is not None]
    dtype = _common_dtype(typed)
    rest = _common_rest(arrays)
    longest = max((len(array) for array in typed), default=0)
    padded = numpy.zeros((len(arrays), longest, *rest), dtype)
    mask = numpy.zeros((len(arrays), longest), mask_dtype)
    for i, array in enumerate(arrays):
        if array is not None:
            padded[i, :len(array)] = array
            mask[i, :len(array)] = 1
    return padded, mask


def _as_sequence(place: int, item: object) -> Any:
    """Return a sequence as an array; None for an empty list."""
    if isinstance(item, numpy.ndarray):
        _refuse_masked(item)
        array = item
    else:
        try:
            if isinstance(item, Sized) and not isinstance(item, str) and (
                    len(item) == 0):
                return None
            array = as_regular(item)
        except (TypeError, ValueError) as error:
            raise ValueError(_no_sequence(place, item)) from error
    if array.ndim == 0:
        raise ValueError(_no_sequence(place, item))
    return array


def _refuse_masked(sequence: NDArray[Any]) -> None:
    """Raise an error for a masked array, since its mask would be lost."""
    if is_masked(sequence):
        raise masked_refusal('padding cannot keep the mask of a sequence')


def _no_sequence(place: int, item: object) -> str:
    return (f'element {place} of the batch must be a sequence, got '
            f'{item!r:.80} ({type(item).__name__}): name the sources that '
            'hold sequences as mask_sources')


def _common_dtype(arrays: list[Any]) -> Any:
    dtypes = {array.dtype for array in arrays}
    if not dtypes:
        return numpy.dtype(numpy.float64)
    return numpy.result_type(*dtypes).newbyteorder('=')


def _common_rest(arrays: list[Any]) -> tuple[int, ...]:
    """Return the shape of an element; raise ValueError if shapes differ."""
    rests = {array.shape[1:] for array in arrays if array is not None}
    if len(rests) > 1:
        raise ValueError(
            'all dimensions of the sequences of a batch but the first, '
            f'their length, must be equal, got {sorted(rests)}')
    return next(iter(rests), ())
