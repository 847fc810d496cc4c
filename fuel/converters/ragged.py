"""Sources whose examples differ in shape."""
from collections.abc import Sequence
from typing import Any

import h5py
import numpy

from fuel.converters.output import Array, check_room, create_source


def create_ragged(h5file: h5py.File, name: str, rows: int, dtype: str,
                  labels: Sequence[str], shapes_name: str, labels_name: str,
                  shapes_dtype: str) -> h5py.Dataset:
    """Create a source of arrays of different shapes, stored flat, and two
    data sets that are its dimension scales: the shapes of the examples, and
    the labels of their axes."""
    source = create_source(h5file, name, (rows,), h5py.vlen_dtype(
        numpy.dtype(dtype)))
    shapes = h5file.create_dataset(shapes_name, (rows, len(labels)),
                                   dtype=shapes_dtype)
    texts = numpy.array([label.encode('utf8') for label in labels])
    axis_labels = h5file.create_dataset(labels_name, data=texts)
    for scale, scale_name in ((shapes, 'shapes'),
                              (axis_labels, 'shape_labels')):
        scale.make_scale(scale_name)
        source.dims[0].attach_scale(scale)
    source.dims[0].label = 'batch'
    return source


def write_rows(dataset: h5py.Dataset, rows: slice | Array,
               arrays: Sequence[numpy.ndarray[Any, Any]]) -> None:
    """Write flat arrays of any lengths into rows of a source of variable
    length, in any order."""
    # h5py takes arrays of equal length for a table, and refuses it.
    cells = numpy.empty(len(arrays), dtype=dataset.dtype)
    for i, array in enumerate(arrays):
        cells[i] = array
    if not len(cells):
        return
    target = dataset.id.get_space()
    if isinstance(rows, slice):
        target.select_hyperslab((rows.start,), (len(cells),))
    else:
        target.select_elements(numpy.asarray(rows, 'uint64')[:, None])
    dataset.id.write(h5py.h5s.create_simple((len(cells),)), target, cells,
                     h5py.h5t.py_create(dataset.dtype))
    check_room(dataset)


def write_ragged(dataset: h5py.Dataset, start: int,
                 arrays: Sequence[numpy.ndarray[Any, Any]]) -> None:
    """Write arrays of different shapes, and their shapes, from row `start`
    of a source made by `create_ragged` on."""
    rows = slice(start, start + len(arrays))
    if arrays:
        write_rows(dataset, rows, [array.reshape(-1) for array in arrays])
        dataset.dims[0]['shapes'][rows] = numpy.array(
            [array.shape for array in arrays])
