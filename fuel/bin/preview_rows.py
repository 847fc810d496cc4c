"""The choice of the examples that a preview draws."""
from collections.abc import Sequence
from typing import Any

import h5py
import numpy

from fuel.datasets.hdf5.labels import class_names
from fuel.storage import choose_reader

Array = numpy.ndarray[Any, Any]
# The sources that hold classes, best first.
LABELS = ('targets', 'labels', 'fine_labels')


def choose_rows(h5file: h5py.File, source: str, count: int
                ) -> tuple[list[int], list[str]]:
    """Choose up to `count` rows of a source: evenly spread over the classes,
    if the file has so few, else the first. Return the rows and the class of
    each, which are empty without classes."""
    num_rows = len(h5file[source]) if h5file[source].shape else 0
    found = _find_classes(h5file, source, num_rows, count)
    if found is None:
        return list(range(min(num_rows, count))), []
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
    """Return the class of each row and the names of classes, if any."""
    for name in LABELS:
        node = h5file.get(name)
        if name == source or not isinstance(node, h5py.Dataset) or (
                node.dtype.kind not in 'bui'
                or node.shape not in ((num_rows,), (num_rows, 1))):
            continue
        labels = numpy.ravel(node[...]).astype('int64')
        if 1 < len(numpy.unique(labels)) <= count:
            return labels, class_names(h5file, [name]) or ()
    return None


def read_rows(dataset: h5py.Dataset, rows: Sequence[int]) -> list[Any]:
    """Return rows of a source, in any order."""
    if not rows:
        return []
    return list(choose_reader(dataset).read(numpy.asarray(rows)))
