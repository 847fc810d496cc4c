"""Look up dtypes, and cast data to them."""
from __future__ import annotations

from typing import Any

import numpy
from numpy.typing import DTypeLike

from fuel import config
from fuel.kernels.outputs import empty
from fuel.transformers.ragged import as_array, is_ragged, map_elements
from fuel.utils.masked import (
    is_masked, mask_of, with_mask, without_hidden)
from fuel.utils.sparse import cast_rows, is_sparse


def as_dtype(dtype: DTypeLike) -> Any:
    """Return a NumPy dtype; ``'floatX'`` means the configured dtype."""
    if isinstance(dtype, str) and dtype == 'floatX':
        dtype = config.floatX
    try:
        return numpy.dtype(dtype)
    except TypeError as error:
        raise TypeError(
            f"dtype must be one of NumPy's types or 'floatX', got {dtype!r} "
            f'({error})') from None


def cast(data: Any, dtype: numpy.dtype[Any]) -> Any:
    """Return data as an array of a type, copied only where needed."""
    if is_sparse(data):
        if dtype.kind not in 'biufc':
            raise TypeError(f'sparse batches hold numbers, and no {dtype}')
        return cast_rows(data, dtype)
    array: Any = as_array(data)
    if is_ragged(array) and not dtype.hasobject:
        return map_elements(lambda element: cast(element, dtype), data)
    if is_masked(array):
        return array if array.dtype == dtype else with_mask(
            cast(without_hidden(array), dtype), mask_of(array), array)
    if dtype.kind == 'f' and array.dtype.kind in 'mM':
        # NumPy would cast NaT to a large number.
        is_missing = numpy.isnat(array)
        times = numpy.where(is_missing, numpy.zeros((), array.dtype), array)
        return numpy.where(is_missing, dtype.type('nan'), times.astype(dtype))
    if dtype.kind in 'iub' and array.dtype.kind in 'mM' and numpy.isnat(
            array).any():
        raise ValueError(
            f'NaT, a time that is missing, is not a valid {dtype}: cast to '
            f'float64, which makes NaN of it')
    if array is not data and array.dtype != object:
        # Convert Python's numbers directly, or large ones might be rounded.
        array = data
    if type(array) is numpy.ndarray and array.flags.c_contiguous \
            and array.dtype.kind in 'biuf' and dtype.kind in 'biuf' \
            and array.dtype != dtype:
        # The same cast as below, into memory that another process may read.
        result = empty(array.shape, dtype)
        numpy.copyto(result, array, casting='unsafe')
        return result
    result = numpy.asarray(array, dtype)
    return result if result.flags.writeable else result.copy()
