"""A description of an HDF5 file as plain data."""
import json
from collections.abc import Mapping
from functools import partial
from typing import Any, TypeAlias

import h5py
import numpy
from numpy.typing import NDArray

from fuel import storage
from fuel.datasets.hdf5.format import INPUTS_ATTRIBUTE
from fuel.storage.attributes import axis_labels, read_text, scale
from fuel.datasets.hdf5.format import Part, read_parts
from fuel.remote.urls import file_name
from fuel.storage.global_heap import REFERENCE
from fuel.storage.file_bytes import raw_file
from fuel.utils.hdf5_errors import names_file

NAMES = ('class_names', 'column_names')
ROWS_AT_ONCE = 256

# A row for each example, with the lengths of its axes.
Shapes: TypeAlias = NDArray[numpy.int64]


@names_file
def describe_file(h5file: h5py.File) -> dict[str, Any]:
    """Return a description of a file, ready for JSON: a dict of 'file', 'size'
    in bytes, 'command', 'versions', 'inputs', 'splits' and 'sources'."""
    attribute = partial(read_text, h5file)
    rows = split_rows(h5file)
    return {
        'file': file_name(h5file.filename),
        'size': raw_file(h5file).size,
        'command': attribute('fuel_convert_command'),
        'versions': {'H5PYDataset': attribute('h5py_interface_version'),
                     'fuel.converters': attribute('fuel_convert_version')},
        'inputs': _inputs(attribute(INPUTS_ATTRIBUTE)),
        'splits': {split: _split(h5file, parts)
                   for split, parts in rows.items()},
        'sources': {name: _source(h5file[name])
                    for name in source_names(h5file)}}


def _inputs(written: str | None) -> dict[str, dict[str, Any]]:
    """Return a mapping from the names of the input files to their sizes and
    digests."""
    found = json.loads(written or '{}')
    if not isinstance(found, dict) or not all(
            isinstance(raw, dict) and isinstance(raw.get('size'), int)
            for raw in found.values()):
        raise ValueError(f'expected sizes and digests by name in the '
                         f'attribute {INPUTS_ATTRIBUTE!r}, got '
                         f'{str(written)[:80]!r}')
    return found


def split_rows(h5file: h5py.File) -> dict[str, dict[str, Part]]:
    """Return a mapping from splits to mappings from sources to available rows,
    as in the attribute 'split' and in its order."""
    found: dict[str, dict[str, Part]] = {}
    for part in read_parts(h5file) if 'split' in h5file.attrs else ():
        parts = found.setdefault(part.split, {})
        if part.available:
            parts[part.source] = part
    return found


def source_names(h5file: h5py.File) -> list[str]:
    """Return the names of the sources; without splits, the names of all arrays
    in the root."""
    names = {source for parts in split_rows(h5file).values()
             for source in parts}
    if not names:
        names = {name for name, item in h5file.items()
                 if isinstance(item, h5py.Dataset)}
    return sorted(name for name in names
                  if isinstance(h5file.get(name), h5py.Dataset))


def _split(h5file: h5py.File, parts: Mapping[str, Part]) -> dict[str, Any]:
    sources = {}
    for source, part in sorted(parts.items()):
        if part.indices:
            sources[source] = {'examples': len(h5file[part.indices]),
                               'indices': h5file[part.indices].name}
        else:
            sources[source] = {'examples': part.stop - part.start,
                               'start': part.start, 'stop': part.stop}
    counts = {part['examples'] for part in sources.values()}
    return {'examples': min(counts, default=0), 'sources': sources}


def is_ragged(dataset: h5py.Dataset) -> bool:
    """Return whether examples are sequences of numbers, which may have
    different lengths."""
    kind = h5py.check_vlen_dtype(dataset.dtype)
    return kind is not None and not isinstance(kind, type)


def _source(dataset: h5py.Dataset) -> dict[str, Any]:
    labels = axis_labels(dataset)
    shapes = _shapes(dataset)
    if is_ragged(dataset):
        kind = f'{h5py.check_vlen_dtype(dataset.dtype)}, variable length'
    else:
        kind = 'text' if h5py.check_string_dtype(dataset.dtype) and (
            dataset.dtype.kind == 'O') else str(dataset.dtype)
    return {'type': kind, 'shape': list(dataset.shape),
            'axes': list(labels) if labels and any(labels) else None,
            'shapes of examples': _extremes(shapes),
            'names': _names(dataset), 'layout': storage_facts(dataset),
            'size': _size(dataset, shapes)}


def _shapes(dataset: h5py.Dataset) -> Shapes | None:
    """Return the shape of each example if examples differ in shape and the
    file has their shapes; otherwise None."""
    stored = scale(dataset, 'shapes') if is_ragged(dataset) else None
    return None if stored is None else stored[...].astype('int64')


def _extremes(shapes: Shapes | None) -> dict[str, list[int]] | None:
    """Return the least and the greatest length of each axis of the
    examples."""
    if shapes is None or not len(shapes):
        return None
    return {'least': shapes.min(axis=0).tolist(),
            'greatest': shapes.max(axis=0).tolist()}


def _names(dataset: h5py.Dataset) -> dict[str, list[str]]:
    """Return the names of classes and of columns that a converter wrote."""
    found = {}
    for kind in NAMES:
        names = json.loads(read_text(dataset, kind) or 'null')
        if isinstance(names, list):
            found[kind] = [str(name) for name in names]
    return found


def storage_facts(dataset: h5py.Dataset) -> dict[str, Any]:
    """Return a description of an array's storage: chunks, filters and
    sizes."""
    found = storage.describe(dataset)
    return {'kind': found.storage,
            'chunks': list(found.chunk_shape) if found.chunk_shape else None,
            'filters': list(found.filters), 'stored': found.stored_nbytes,
            'decoded': found.decoded_nbytes, 'read by': found.reader}


def _size(dataset: h5py.Dataset, shapes: Shapes | None) -> int:
    """Return the bytes of an array on disk; for examples of variable length,
    the bytes of the references and of the examples."""
    size = int(dataset.id.get_storage_size())
    if is_ragged(dataset):
        item = h5py.check_vlen_dtype(dataset.dtype).itemsize
        if shapes is None:
            return size + _total_length(dataset) * int(item)
        return size + int(shapes.prod(axis=1).sum()) * int(item)
    if h5py.check_string_dtype(dataset.dtype) and dataset.dtype.kind == 'O':
        return size + _total_length(dataset)
    return size


def _total_length(dataset: h5py.Dataset) -> int:
    """Return the sum of the lengths of all examples."""
    offset = dataset.id.get_offset()
    if offset is not None and dataset.size * REFERENCE.itemsize == (
            dataset.id.get_storage_size()):
        references = numpy.frombuffer(raw_file(dataset).read(
            offset, dataset.size * REFERENCE.itemsize), REFERENCE)
        return int(references['count'].sum(dtype='int64'))
    # The references are in chunks, perhaps compressed: read the examples.
    return sum(len(example) for start in range(0, len(dataset), ROWS_AT_ONCE)
               for example in numpy.ravel(
                   dataset[start:start + ROWS_AT_ONCE]))
