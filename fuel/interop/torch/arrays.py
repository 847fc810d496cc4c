"""Convert between tensors and arrays."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
import torch

from fuel.datasets.rows import own

# An example has numbers in these; anything else stays an object.
_NUMBERS = (bool, int, float, complex, numpy.generic)


def as_array(value: Any) -> Any:
    """Return a tensor, picture or number as an array of its own.

    Tensors of bfloat16, which NumPy does not have, become float32. Strings
    and other objects are returned as they are.
    """
    if isinstance(value, torch.Tensor):
        return numpy.array(tensor_as_array(value))
    if isinstance(value, _NUMBERS) or hasattr(value, '__array_interface__'):
        return own(numpy.asarray(value))
    return own(value)


def tensor_as_array(tensor: torch.Tensor) -> numpy.ndarray[Any, Any]:
    """Return a tensor as an array, over the same memory if possible."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.float()
    array: numpy.ndarray[Any, Any] = tensor.numpy()
    return array


def stacked(values: Sequence[Any]) -> Any:
    """Return one array of arrays of the same shape, others as a list."""
    first = values[0]
    if isinstance(first, numpy.ndarray) and not first.dtype.hasobject and all(
            isinstance(value, numpy.ndarray) and value.shape == first.shape
            for value in values):
        return numpy.stack(values)
    return list(values)
