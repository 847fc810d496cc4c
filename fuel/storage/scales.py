"""Labels and scales of axes, read from the attributes that hold them.

HDF5's own functions for them (h5py's ``dataset.dims``) trust the file: where
it is damaged they end the process instead of raising an error.
"""
from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import h5py

from fuel.storage.attributes import check_attribute, read_text
from fuel.utils.hdf5_errors import naming_file

LABELS = 'DIMENSION_LABELS'
SCALES = 'DIMENSION_LIST'
NAME = 'NAME'
CLASS_NAMES = 'class_names'


def axis_labels(node: object) -> tuple[str, ...] | None:
    """Return the labels of the axes of a source."""
    if not isinstance(node, h5py.Dataset):
        return None
    with naming_file(node.file.filename, _name(node)):
        labels = own_labels(node)
        shapes = scale(node, 'shapes')
        if shapes is None:
            return labels
        names = scale(node, 'shape_labels')
        if names is None:
            return labels + ('',) * int(shapes.shape[1])
        return labels + tuple(map(_text, names[...].tolist()))


def class_names(h5file: h5py.File,
                sources: Sequence[str]) -> tuple[str, ...] | None:
    """Return the names of classes in a file, first those of 'targets'."""
    for source in sorted(sources, key=lambda name: name != 'targets'):
        node = h5file[source]
        with naming_file(h5file.filename, source):
            written = (read_text(node, CLASS_NAMES)
                       if isinstance(node, h5py.Dataset) else None)
            if written is None:
                continue
            names = json.loads(written)
            if not isinstance(names, list):
                raise ValueError(f'the attribute {CLASS_NAMES!r} must hold '
                                 'a list of names as JSON')
            return tuple(map(str, names))
    return None


def own_labels(dataset: h5py.Dataset) -> tuple[str, ...]:
    """Return the labels of a data set's axes, '' for those without."""
    if LABELS not in dataset.attrs:
        return ('',) * int(dataset.ndim)
    check_attribute(dataset, LABELS)
    labels = tuple(map(_text, dataset.attrs[LABELS]))
    if len(labels) != dataset.ndim:
        raise ValueError(f'there are {len(labels)} labels for '
                         f'{dataset.ndim} axes')
    return labels


def labels_of_batch(labels: Sequence[str]) -> tuple[str, ...] | None:
    """Return the labels of a batch of rows, by those of the axes of the array
    that they are rows of; None unless each other axis has one."""
    if not any(labels) or not all(labels[1:]):
        return None
    return 'batch', *labels[1:]


def scale(node: object, name: str) -> h5py.Dataset | None:
    """Return the dimension scale of that name on the first axis."""
    if not isinstance(node, h5py.Dataset) or not node.shape:
        return None
    with naming_file(node.file.filename, _name(node)):
        if SCALES not in node.attrs:
            return None
        check_attribute(node, SCALES)
        for reference in node.attrs[SCALES][0]:
            found = node.file[reference] if reference else None
            if found is not None and NAME in found.attrs and (
                    _text(found.attrs[NAME]) == name):
                return found
    return None


def _name(dataset: h5py.Dataset) -> str:
    return str(dataset.name).lstrip('/')


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode('utf8', 'surrogateescape')
    return str(value)
