"""Convert integer targets to int64, which losses of PyTorch require."""
from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy

from fuel.describe.source_types import types_of
from fuel.epochs.read_options import Conversion
from fuel.iterator import DataIterator
from fuel.typing import Batch, StreamLike

INT64, AS_STORED = 'int64', 'as stored'


def checked_targets(targets: str) -> str:
    """Return the argument `targets`; raise ValueError if it is not valid."""
    if targets not in (INT64, AS_STORED):
        raise ValueError(
            f'targets must be {INT64!r}, the type that losses of PyTorch '
            f'take, or {AS_STORED!r}, got {targets!r}')
    return targets


def is_narrow(dtype: numpy.dtype[Any]) -> bool:
    """Return whether a type is an integer type smaller than 64 bits.

    Truth values do not count as integers.
    """
    return dtype.kind in 'iu' and dtype.itemsize < 8


def num_axes(stream: StreamLike) -> int:
    """Return the number of axes of a source with one number per example."""
    return 0 if stream.produces_examples else 1


def as_int64(data: Batch, axes: int, chosen: Collection[bool]) -> Batch:
    """Return data with integer targets converted to int64.

    A source is converted if it has one integer per example.

    `axes`: the number of axes of such data; see :func:`num_axes`.
    `chosen`: for each source, whether it becomes a tensor.
    """
    return tuple([
        part.astype(numpy.int64) if is_chosen and isinstance(
            part, (numpy.ndarray, numpy.integer)) and part.ndim == axes
        and is_narrow(part.dtype) else part
        for part, is_chosen in zip(data, chosen, strict=False)])


def request_int64(iterator: object, stream: StreamLike,
                  chosen: Collection[str] | None = None) -> None:
    """Request that an epoch reads integer targets as int64.

    `chosen`: the sources that become tensors. Defaults to all.
    """
    if not isinstance(iterator, DataIterator):
        return
    axes = num_axes(stream)
    wanted = {
        source: Conversion(numpy.dtype(numpy.int64))
        for source, known in types_of(stream).items()
        if known.dtype is not None and is_narrow(known.dtype)
        and known.shape is not None and len(known.shape) == axes
        and (chosen is None or source in chosen)}
    if wanted:
        iterator.request_conversions(wanted)
