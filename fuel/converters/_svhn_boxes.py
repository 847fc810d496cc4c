"""The boxes in SVHN's ``digitStruct.mat``; also a script that saves them.

h5py keeps the interpreter to itself while it follows hundreds of thousands of
references, so for a large file this is run by another interpreter. It imports
nothing of Fuel, for the sake of a quick start.
"""
import sys
from typing import Any

import h5py
import numpy

__all__ = ['read_boxes']

NAMES = (b'height', b'label', b'left', b'top', b'width')
LABEL = 1
ALL = h5py.h5s.ALL
NUMBERS = (h5py.h5t.INTEGER, h5py.h5t.FLOAT)

Array = numpy.ndarray[Any, Any]


def read_boxes(struct: str) -> tuple[Array, Array]:
    """Read the boxes of all images.

    Parameters
    ----------
    struct : str
        Path of ``digitStruct.mat``.

    Returns
    -------
    counts : numpy.ndarray of int
        Number of boxes of each image.
    table : numpy.ndarray of int
        For each box height, label, left, top and width. Negative numbers
        are 0, and so is the label 10, which stands for the digit zero.
    """
    with h5py.File(struct, 'r') as h5file:
        reader = _Reader(h5file)
        tables = [reader.boxes(key) for key in reader.images()]
    table = numpy.maximum(numpy.concatenate(
        [*tables, numpy.empty((0, len(NAMES)))]).astype('int64'), 0)
    table[table[:, LABEL] == 10, LABEL] = 0
    return numpy.array([len(part) for part in tables], 'int64'), table


class _Reader:
    """Follows the references of a digitStruct.

    Each image has five tiny data sets, and each box of an image with several
    has five more, so this uses h5py's low level, which costs a fifth of a
    `Dataset` apiece.
    """

    def __init__(self, h5file: h5py.File) -> None:
        self._file = h5file.id
        self._group = h5py.h5g.open(self._file, b'digitStruct')

    def images(self) -> list[Any]:
        """Return the key of each image's boxes."""
        keys = self._read(h5py.h5d.open(self._group, b'bbox'))
        return keys.ravel().tolist()

    def boxes(self, key: Any) -> Array:
        """Return the boxes that a key leads to."""
        image = self._open(key)
        found = []
        for name in NAMES:
            dataset = h5py.h5d.open(image, name)
            if dataset.get_type().get_class() in NUMBERS:
                values = self._numbers(dataset)
            else:
                values = numpy.concatenate([
                    self._numbers(self._open(key)) for key in
                    self._read(dataset).ravel().tolist()])
            found.append(values)
        if len({len(values) for values in found}) != 1:
            raise ValueError(f'the boxes of {key!r} lack numbers')
        return numpy.stack(found, axis=1)

    @staticmethod
    def _numbers(dataset: Any) -> Array:
        """Return the numbers in a data set, flat."""
        values = numpy.empty(dataset.get_space().get_simple_extent_npoints())
        dataset.read(ALL, ALL, values, h5py.h5t.NATIVE_DOUBLE)
        return values

    def _open(self, key: Any) -> Any:
        """Open what a reference, or a name in the group, leads to."""
        if isinstance(key, h5py.Reference):
            return h5py.h5r.dereference(key, self._file)
        name = key if isinstance(key, bytes) else key.encode('utf8')
        return h5py.h5o.open(self._group, name)

    @staticmethod
    def _read(dataset: Any) -> Array:
        array = numpy.empty(dataset.shape, dtype=dataset.dtype)
        dataset.read(ALL, ALL, array)
        return array


if __name__ == '__main__':
    numpy.savez(sys.argv[2], *read_boxes(sys.argv[1]))
