"""Types of the sources of HDF5 files, and how they are stored."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import h5py
import numpy

from fuel.describe.source_types import SourceType
from fuel.utils.hdf5_errors import names_file


class Summary(NamedTuple):
    """Types of the sources of a file, and how they are stored."""

    types: dict[str, SourceType]
    layout: str


@names_file
def target_columns(h5file: h5py.File,
                   sources: Sequence[str]) -> tuple[str, ...]:
    """Return the sources with one target an example, of the shape (n, 1).

    They are called 'targets', or their second axis 'index'.
    """
    nodes = {source: h5file[source] for source in sources}
    return tuple(
        source for source, node in nodes.items()
        if isinstance(node, h5py.Dataset) and node.shape[1:] == (1,)
        and (source == 'targets' or node.dims[1].label == 'index'))


def summarize(h5file: h5py.File, sources: Sequence[str],
              flat: Sequence[str] = ()) -> Summary:
    """Return the summary of some sources of a file.

    `flat`: sources whose rows lose their axis of one element.
    """
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
            dtype.newbyteorder('='), () if source in flat
            else None if is_ragged else node.shape[1:])
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
