"""What a data set remembers of its file, to describe itself."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import h5py
import numpy

from fuel.describe.source_types import SourceType


class Summary(NamedTuple):
    """Types of the sources of a file, and how they are stored."""

    types: dict[str, SourceType]
    layout: str


def summarize(h5file: h5py.File, sources: Sequence[str]) -> Summary:
    """Return the summary of some sources of a file."""
    types, layouts = {}, {}
    for source in sources:
        node = h5file[source]
        if not isinstance(node, h5py.Dataset):
            continue
        is_ragged = node.dtype.hasobject
        vlen = h5py.check_vlen_dtype(node.dtype)
        # Text and bytes are elements of objects, not of a type of NumPy.
        dtype = vlen if isinstance(vlen, numpy.dtype) else node.dtype
        types[source] = SourceType(
            dtype.newbyteorder('='), None if is_ragged else node.shape[1:])
        layouts[source] = _layout(node)
    return Summary(types, ', '.join(
        f'{source} {layout}' for source, layout in layouts.items())
        if len({*layouts.values()}) > 1 else next(
            iter(layouts.values()), ''))


def _layout(node: h5py.Dataset) -> str:
    """Return how the rows of a source lie in its file."""
    if node.chunks is None:
        return 'contiguous'
    packed = f', {node.compression}' if node.compression else ''
    return f'chunks of {node.chunks[0]}{packed}'
