"""The format of HDF5 files of data sets: splits, labels, types."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import h5py
import numpy

from fuel.describe.source_types import SourceType
from fuel.utils.hdf5_errors import names_file

#: For each split and source: start, stop, perhaps indices and a comment.
Splits: TypeAlias = Mapping[str, Mapping[str, Sequence[Any]]]


def split_array(split_dict: Splits) -> Any:
    """Make the value of the attribute ``split``; see `H5PYDataset`."""
    for split, content in split_dict.items():
        if not isinstance(content, Mapping):
            raise ValueError(
                f'split {split!r} must map names of sources to (start, '
                f'stop), got {content!r}: write {{{split!r}: '
                f"{{'features': {content!r}}}}}")
    if not any(split_dict.values()):
        raise ValueError(
            'split_dict must map split names to sources, such as '
            "{'train': {'features': (0, 8)}}, got " + repr(split_dict))
    sources = sorted({source for split in split_dict.values()
                      for source in split})
    rows = [_row(split, source, content.get(source))
            for split, content in split_dict.items() for source in sources]
    array = numpy.zeros(len(rows), dtype=[
        ('split', numpy.array([row[0] for row in rows]).dtype),
        ('source', numpy.array([row[1] for row in rows]).dtype),
        ('start', numpy.int64),
        ('stop', numpy.int64),
        ('indices', h5py.ref_dtype),
        ('available', numpy.bool_),
        ('comment', numpy.array([row[6] for row in rows]).dtype)])
    for place, row in enumerate(rows):
        array[place] = row
    return array


def _row(split: str, source: str,
         content: Sequence[Any] | None) -> tuple[Any, ...]:
    names = split.encode('utf8'), source.encode('utf8')
    if content is None:
        return (*names, 0, 0, h5py.Reference(), False, b'.')
    if not isinstance(content, Sequence) or not 2 <= len(content) <= 4:
        raise ValueError(
            f'expected (start, stop), (start, stop, indices) or (start, '
            f'stop, indices, comment) for source {source!r} in split '
            f'{split!r}, got {content!r}')
    start, stop, indices, comment = (*content, None, None)[:4]
    for border in (start, stop):
        if not isinstance(border, Integral):
            raise ValueError(
                f'start and stop of source {source!r} in split {split!r} '
                f'must be integers, got {content!r}')
    if not indices and not 0 <= start <= stop:
        raise ValueError(
            f'source {source!r} in split {split!r} must start at 0 or later '
            f'and stop no earlier than it starts, got {content!r}')
    # NumPy and HDF5 disagree on empty strings, so none is ever written.
    return (*names, start, stop, indices or h5py.Reference(), True,
            (comment or '.').encode('utf8'))


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
