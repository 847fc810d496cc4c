"""Convert between tensors and arrays."""
from __future__ import annotations

from typing import Any

import numpy
import torch

from fuel.interop import parts


def as_array(value: Any) -> Any:
    """Return a tensor, picture or number as an array of its own.

    Tensors of bfloat16, which NumPy does not have, become float32. Strings
    and other objects are returned as they are.
    """
    if isinstance(value, torch.Tensor):
        return numpy.array(tensor_as_array(value))
    return parts.as_array(value)


def tensor_as_array(tensor: torch.Tensor) -> numpy.ndarray[Any, Any]:
    """Return a tensor as an array, over the same memory if possible."""
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.float()
    array: numpy.ndarray[Any, Any] = tensor.numpy()
    return array
