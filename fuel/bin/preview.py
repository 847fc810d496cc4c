"""A picture of the examples in an HDF5 file."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h5py
import numpy

from fuel.bin.describe import is_ragged, source_names
from fuel.describe.examples import Array, shown_array
from fuel.describe.panels import COLUMNS, ROWS, Panel
from fuel.describe.preview import Preview
from fuel.describe.samples import FEW, LABELS
from fuel.remote.urls import is_url
from fuel.storage import choose_reader
from fuel.storage.attributes import class_names, scale
from fuel.utils.hdf5_errors import names_file

# Columns of integers up to this size are read whole: to count the numbers,
# and to choose examples of each class.
MOST_BYTES = 1 << 24


@names_file
def preview_file(h5file: h5py.File) -> Preview:
    """Return a preview of each source: examples, as :func:`choose_rows`
    chooses them, with the names of their classes. For a column of integers,
    the preview has the whole column, to count each number in it."""
    panels = []
    for name in source_names(h5file):
        rows, captions = choose_rows(
            h5file, name, FEW if is_url(h5file.filename) else COLUMNS * ROWS)
        examples = _examples(h5file[name], rows)
        num_rows = len(h5file[name]) if h5file[name].shape else 0
        count = (f'{len(rows)} of {len(set(captions))} classes' if captions
                 else f'{len(rows)} of {num_rows}')
        column = _read_integers(h5file[name])
        if column.size:
            count = f'counts of all {num_rows}'
        panels.append(Panel(
            name, examples, captions, count,
            class_names=(class_names(h5file, [name]) or ()),
            column=column))
    return Preview(h5file.filename, panels)


def _examples(dataset: h5py.Dataset, rows: Sequence[int]) -> list[Array]:
    examples = read_rows(dataset, rows)
    shapes = scale(dataset, 'shapes')
    if is_ragged(dataset) and shapes is not None:
        return [row.reshape(shape) for row, shape in zip(
            examples, read_rows(shapes, rows), strict=True)]
    return list(map(shown_array, examples))


def _read_integers(dataset: h5py.Dataset) -> Array:
    """Return a column of integers; an empty one if the array is too large, or
    is not such a column."""
    if (dataset.dtype.kind not in 'bui' or dataset.ndim not in (1, 2)
            or dataset.shape[1:] not in ((), (1,))
            or dataset.size * dataset.dtype.itemsize > MOST_BYTES):
        return numpy.zeros(0, 'int64')
    return numpy.ravel(dataset[...])


def choose_rows(h5file: h5py.File, source: str, count: int
                ) -> tuple[list[int], list[str]]:
    """Return up to `count` rows of a source, and the class of each row.

    If the file has two or more classes, but at most `count`, the rows are
    evenly spread over the classes. Otherwise the rows are evenly spread over
    the source, and the list of classes is empty.
    """
    num_rows = len(h5file[source]) if h5file[source].shape else 0
    found = _find_classes(h5file, source, num_rows, count)
    if found is None:
        return numpy.linspace(0, num_rows - 1, min(num_rows, count)).astype(
            'int64').tolist(), []
    labels, names = found
    rows: list[int] = []
    classes = numpy.unique(labels)
    for label in classes:
        members = numpy.flatnonzero(labels == label)
        taken = min(len(members), count // len(classes))
        places = numpy.linspace(0, len(members) - 1, taken).astype('int64')
        rows += members[places].tolist()
    return rows, [names[label] if 0 <= label < len(names) else str(label)
                  for label in labels[rows].tolist()]


def _find_classes(h5file: h5py.File, source: str, num_rows: int, count: int
                  ) -> tuple[Array, Sequence[str]] | None:
    """Return the class of each row and the names of the classes; None if the
    file has fewer than two classes, or more than `count`."""
    for name in LABELS:
        node = h5file.get(name)
        if name == source or not isinstance(node, h5py.Dataset):
            continue
        labels = _read_integers(node).astype('int64')
        if len(labels) != num_rows:
            continue
        if 1 < len(numpy.unique(labels)) <= count:
            return labels, class_names(h5file, [name]) or ()
    return None


def read_rows(dataset: h5py.Dataset, rows: Sequence[int]) -> list[Any]:
    """Return rows of a source; their numbers may have any order."""
    if not rows:
        return []
    return list(choose_reader(dataset).read(numpy.asarray(rows)))
