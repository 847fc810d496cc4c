"""Make tensors from the data of streams, in the same memory."""
from __future__ import annotations

import functools
import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy
import torch
from numpy.typing import NDArray

from fuel.describe import SourceTypes
from fuel.interop.number_arrays import list_as_array, refusal
from fuel.typing import Batch, StreamLike
from fuel.utils.masked import require_unmasked
from fuel.utils.sparse import SparseRows, canonical_rows, is_sparse

_NUMBERS = (bool, int, float, complex, numpy.number, numpy.bool_)
_HOLDER = 'tensor'
_USER = f'a {_HOLDER}'


def as_tensors(data: Batch, stream: StreamLike,
               chosen: Collection[str] | None = None) -> Batch:
    """Return the data of each source as a tensor, without a copy.

    `stream`: the stream that has the sources.
    `chosen`: the sources to convert; others stay as they are. Defaults to
        all.
    """
    if chosen is None:
        try:
            # This nearly always succeeds, in less time than it takes to get
            # the names of the sources.
            return tuple([_of_plain_array(part) for part in data])
        except (TypeError, ValueError):
            pass
    return tuple([
        as_tensor(part, source)
        if chosen is None or source in chosen else part
        for part, source in zip(data, stream.sources, strict=False)])


def _of_plain_array(array: object) -> torch.Tensor:
    """Return the tensor of an array; raise TypeError if it is not plain.

    Plain arrays are writable, aligned and contiguous, like those of Fuel.
    """
    if type(array) is not numpy.ndarray or not array.flags.carray:
        raise TypeError
    return torch.from_numpy(array)


def as_tensor(value: object, source: str) -> torch.Tensor:
    """Return the data of one source as a tensor.

    Arrays are copied only if they are read-only, are not in native byte order
    or have negative strides; arrays of Fuel are never copied. A sparse batch
    becomes a sparse tensor over the same three arrays.
    """
    require_unmasked(value, source, _USER)
    if isinstance(value, numpy.ndarray):
        return _of_array(value, source)
    if isinstance(value, torch.Tensor):
        return value
    if is_sparse(value):
        return _of_sparse(value, source)
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


def _of_sparse(batch: SparseRows, source: str) -> torch.Tensor:
    # PyTorch's functions assume that the columns of a row are sorted and
    # distinct.
    batch = canonical_rows(batch)
    return sparse_tensor([
        _of_array(array, source)
        for array in (batch.indptr, batch.indices, batch.data)], batch.shape)


def sparse_tensor(parts: Sequence[torch.Tensor],
                  shape: Sequence[int]) -> torch.Tensor:
    """Return the sparse tensor of dense parts; see :func:`dense_parts`."""
    _hear_of_sparse_tensors()
    return torch.sparse_csr_tensor(
        *parts, size=tuple(shape), check_invariants=False)


def expect_sparse(types: SourceTypes) -> None:
    """Prevent a warning of PyTorch if workers will send sparse tensors.

    In the receiving process, PyTorch itself makes these tensors, and would
    warn.
    """
    if any(known.is_sparse for known in types.values()):
        _hear_of_sparse_tensors()


@functools.lru_cache
def _hear_of_sparse_tensors() -> None:
    """Make a first sparse tensor, and hide PyTorch's warning.

    PyTorch warns once that sparse tensors are a new feature.
    """
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        torch.sparse_csr_tensor([0, 0], [], [], size=(1, 1))


def dense_parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the dense tensors that make up a tensor."""
    if tensor.layout is not torch.sparse_csr:
        return [tensor]
    return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]


def as_pinned(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in page-locked memory."""
    parts = [part.pin_memory() for part in dense_parts(tensor)]
    return parts[0] if len(parts) == 1 else sparse_tensor(
        parts, tensor.shape)
