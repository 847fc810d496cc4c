"""The boxes in SVHN's ``digitStruct.mat``; also a script that saves them.

h5py blocks all other threads while it follows hundreds of thousands of
references, so another process runs this script for a large file. The script
imports little of Fuel, so that it starts quickly.
"""
from __future__ import annotations

import sys
from typing import Any, Union

import h5py
import numpy

from fuel.utils.h5py_file import H5PYFile

NAMES = (b'height', b'label', b'left', b'top', b'width')
LABEL = 1
# Most digits of an image: no photograph of a house has more.
MAX_DIGITS = 1000
ALL = h5py.h5s.ALL
NUMBERS = (h5py.h5t.INTEGER, h5py.h5t.FLOAT)
# Made once, since h5py takes long to find HDF5's type for a NumPy type.
REFERENCES = h5py.h5t.py_create(h5py.ref_dtype)
TEXT = (h5py.h5t.STRING, h5py.h5t.VLEN)

Array = numpy.ndarray[Any, Any]
# A reference to a box, or its name in a group.
Key = Union['h5py.Reference', bytes, str]


def read_boxes(struct: str, images: int) -> tuple[Array, Array]:
    """Return the number of boxes of each image, and for each box its height,
    label, left, top and width.

    Negative numbers and the label 10 become 0.
    """
    with H5PYFile(struct, 'r') as h5file:
        references = _References(h5file)
        tables = [references.boxes(key)
                  for key in references.images(images)]
    numbers = numpy.concatenate([*tables, numpy.empty((0, len(NAMES)))])
    if not (numbers <= 65535).all():
        raise ValueError('expected numbers up to 65535, got '
                         f'{numbers.max(initial=0)}')
    table = numpy.maximum(numbers, 0).astype('int64')
    if (table[:, LABEL] > 10).any():
        raise ValueError('expected labels from 1 to 10, got '
                         f'{table[:, LABEL].max()}')
    table[table[:, LABEL] == 10, LABEL] = 0
    return numpy.array([len(part) for part in tables], 'int64'), table


class _References:
    """Follows the references of a digitStruct.

    Each image has five tiny data sets, and in an image with several boxes
    each box has five more. So this class uses h5py's low-level interface,
    which takes a fifth of the time of a `Dataset`.
    """

    def __init__(self, h5file: h5py.File) -> None:
        self._file = h5file.id
        self._group = h5py.h5g.open(self._file, b'digitStruct')

    def images(self, expected: int) -> list[Any]:
        """Return the key that leads to each image's boxes."""
        dataset = self._member(self._group, b'bbox')
        count = _length(dataset)
        if count != expected:
            raise ValueError(f'expected boxes of {expected} images, got those '
                             f'of {count}')
        return _keys(dataset, count)

    def boxes(self, key: Key) -> Array:
        """Return the boxes that a key leads to."""
        image = self._open(key)
        found = []
        for name in NAMES:
            dataset = self._member(image, name)
            if dataset.get_type().get_class() in NUMBERS:
                values = _numbers(dataset)
            else:
                values = numpy.concatenate([
                    _numbers(self._open(key)) for key in
                    _keys(dataset, _num_digits(dataset))])
            found.append(values)
        if len({len(values) for values in found}) != 1:
            raise ValueError(f'the boxes of {key!r} lack numbers')
        return numpy.stack(found, axis=1)

    def _open(self, key: Key) -> Any:
        """Open the object of a reference, or of a name in the group."""
        if isinstance(key, h5py.Reference):
            return h5py.h5r.dereference(key, self._file)
        name = key if isinstance(key, bytes) else key.encode('utf8')
        # A path goes through groups, which must all be in this file.
        place = self._file if name.startswith(b'/') else self._group
        for part in name.strip(b'/').split(b'/'):
            place = self._member(place, part)
        return place

    @staticmethod
    def _member(group: h5py.h5g.GroupID, name: bytes) -> Any:
        """Open a member of a group; refuse a soft or external link."""
        if group.links.get_info(name).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f'{name!r} is a link to another place')
        return h5py.h5o.open(group, name)


def _length(dataset: h5py.h5d.DatasetID) -> int:
    return int(dataset.get_space().get_simple_extent_npoints())


def _num_digits(dataset: h5py.h5d.DatasetID) -> int:
    """Return the number of digits of one image."""
    count = _length(dataset)
    if not 0 < count <= MAX_DIGITS:
        raise ValueError(f'expected 1 to {MAX_DIGITS} digits, got {count}')
    return count


def _check_place(dataset: h5py.h5d.DatasetID) -> None:
    """Refuse a data set whose data are in other files."""
    if dataset.get_offset() is None:  # not one piece of this file
        creation = dataset.get_create_plist()
        if creation.get_external_count() or (
                creation.get_layout() == h5py.h5d.VIRTUAL):
            raise ValueError('the numbers are in another file')


def _numbers(dataset: h5py.h5d.DatasetID) -> Array:
    """Return the numbers in a data set, flat."""
    _check_place(dataset)
    values = numpy.empty(_num_digits(dataset))
    dataset.read(ALL, ALL, values, h5py.h5t.NATIVE_DOUBLE)
    return values


def _keys(dataset: h5py.h5d.DatasetID, count: int) -> list[Any]:
    """Return references or names."""
    _check_place(dataset)
    if dataset.get_type().get_class() in TEXT:
        keys = numpy.empty(dataset.shape, dtype=dataset.dtype)
        dataset.read(ALL, ALL, keys)
    else:
        keys = numpy.empty(count, dtype=h5py.ref_dtype)
        dataset.read(ALL, ALL, keys, REFERENCES)
    found: list[Any] = keys.ravel().tolist()
    return found


if __name__ == '__main__':
    numpy.savez(sys.argv[2], *read_boxes(sys.argv[1], int(sys.argv[3])))
