"""Make tensors of what streams return, over the same memory."""
from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy
import torch

from fuel.typing import Batch, StreamLike

_NUMBERS = (bool, int, float, complex, numpy.number, numpy.bool_)
_RAGGED = ('has elements of several shapes, or other Python objects, which '
           'no tensor holds: pad them (fuel.transformers.Padding), give '
           'images one size (fuel.transformers.image), or leave the source '
           'out, which_sources=(...)')
_STRINGS = ('holds strings, which no tensor does: encode them as numbers, '
            'or leave the source out, which_sources=(...), so that it stays '
            'as it is')


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


def _of_plain_array(array: Any) -> torch.Tensor:
    """Return the tensor of an array laid out as those of Fuel."""
    if type(array) is not numpy.ndarray or not array.flags.carray:
        raise TypeError
    return torch.from_numpy(array)


def as_tensor(value: Any, source: str) -> torch.Tensor:
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
        return _of_list(value, source)
    raise _refusal(value, source)


def _of_array(array: Any, source: str) -> torch.Tensor:
    dtype = array.dtype
    if dtype.kind not in 'biufc':
        raise _refusal(array, source)
    if not array.flags.writeable or not dtype.isnative or any(
            stride < 0 for stride in array.strides):
        array = array.astype(dtype.newbyteorder('='), order='C')
    try:
        return torch.from_numpy(array)
    except TypeError as error:
        raise TypeError(f'source {source!r}: {error}') from None


def _of_list(values: Sequence[Any], source: str) -> torch.Tensor:
    """Return the tensor of a list of numbers, or of arrays of one shape."""
    if any(isinstance(value, (str, bytes)) for value in values):
        raise _refusal(values[0], source)
    try:
        array = numpy.asarray(values)
    except ValueError:
        raise _refusal(values, source) from None
    return _of_array(array, source)


def _refusal(value: Any, source: str) -> TypeError:
    """Return the error for what no tensor holds."""
    dtype = getattr(value, 'dtype', None)
    kind = getattr(dtype, 'kind', '')
    if isinstance(value, (str, bytes)) or kind in ('S', 'U', 'T') or (
            kind == 'O' and value.size
            and isinstance(value.flat[0], (str, bytes))):
        reason = _STRINGS
    elif kind in ('M', 'm'):
        reason = (f'has the type {dtype}, which no tensor has: cast it to '
                  'int64, Cast(stream, "int64", which_sources=(...))')
    elif kind == 'V':
        reason = ('is an array of records, which no tensor is: make each '
                  'field a source of its own')
    else:
        reason = _RAGGED
    what = (f'{type(value).__name__} of type {dtype}' if dtype is not None
            else type(value).__name__)
    return TypeError(f'source {source!r} ({what}) {reason}')
