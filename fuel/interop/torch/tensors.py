"""Make tensors of what streams return, over the same memory."""
from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy
import torch
from numpy.typing import NDArray

from fuel.interop.number_arrays import list_as_array, refusal
from fuel.typing import Batch, StreamLike

_NUMBERS = (bool, int, float, complex, numpy.number, numpy.bool_)
_HOLDER = 'tensor'


def as_tensors(data: Batch, stream: StreamLike,
               chosen: Collection[str] | None = None) -> Batch:
    """Return the data of each source as a tensor, without a copy.

    `stream`: names the sources.
    `chosen`: sources to convert. Default: all. Others stay as they are.
    """
    if chosen is None:
        try:
            # Nearly always; the names of sources take longer than this.
            return tuple([_of_plain_array(part) for part in data])
        except (TypeError, ValueError):
            pass
    return tuple([
        as_tensor(part, source)
        if chosen is None or source in chosen else part
        for part, source in zip(data, stream.sources, strict=False)])


def _of_plain_array(array: object) -> torch.Tensor:
    """Return the tensor of an array laid out as those of Fuel."""
    if type(array) is not numpy.ndarray or not array.flags.carray:
        raise TypeError
    return torch.from_numpy(array)


def as_tensor(value: object, source: str) -> torch.Tensor:
    """Return the data of one source as a tensor.

    Arrays are not copied, unless they are read-only or in the other byte
    order, which those of Fuel never are.
    """
    if isinstance(value, numpy.ndarray):
        return _of_array(value, source)
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, _NUMBERS):
        return torch.as_tensor(value)
    if isinstance(value, (list, tuple)):
        return _of_array(list_as_array(value, source, _HOLDER), source)
    raise refusal(value, source, _HOLDER)


def _of_array(array: NDArray[Any], source: str) -> torch.Tensor:
    dtype = array.dtype
    if dtype.kind not in 'biufc':
        raise refusal(array, source, _HOLDER)
    if not array.flags.writeable or not dtype.isnative or any(
            stride < 0 for stride in array.strides):
        array = array.astype(dtype.newbyteorder('='), order='C')
    try:
        return torch.from_numpy(array)
    except TypeError as error:
        raise TypeError(f'source {source!r}: {error}') from None
