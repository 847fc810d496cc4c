"""SVHN's images of whole numbers, with a box around each digit."""
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import h5py
import numpy

from fuel.converters._archives import open_tar, read_member, walk_tar
from fuel.converters._inputs import BadInputFile
from fuel.converters._parallel import ordered_map
from fuel.converters._pictures import decode
from fuel.converters._ragged import create_ragged, write_ragged, write_rows
from fuel.converters.base import progress_bar

__all__ = ['NumbersSplit', 'create_sources']

# Source, its name in digitStruct.mat, type, label of the second axis.
BOXES = (('bbox_heights', b'height', 'uint16', 'height'),
         ('bbox_labels', b'label', 'uint8', 'index'),
         ('bbox_lefts', b'left', 'uint16', 'x'),
         ('bbox_tops', b'top', 'uint16', 'y'),
         ('bbox_widths', b'width', 'uint16', 'width'))
IMAGES_AT_ONCE = 256
ALL = h5py.h5s.ALL


def create_sources(h5file: h5py.File, rows: int) -> dict[str, h5py.Dataset]:
    """Create the six sources, for `rows` examples."""
    def create(name: str, dtype: str, labels: tuple[str, ...]) -> Any:
        return create_ragged(h5file, name, rows, dtype, labels,
                             f'{name}_shapes', f'{name}_vlen_axis_labels',
                             'uint16')

    return {'features': create('features', 'uint8',
                               ('channel', 'height', 'width')),
            **{source: create(source, dtype, ('bounding_box', label))
               for source, _, dtype, label in BOXES}}


class NumbersSplit:
    """One archive: images, and a MATLAB 7.3 file about them.

    Parameters
    ----------
    path : str
        The archive.
    struct : str
        Where to put the MATLAB file while it is needed.
    """

    def __init__(self, path: str, struct: str) -> None:
        self.path = path
        self._struct = struct
        self._count = self._scan()

    def __len__(self) -> int:
        return self._count

    def _scan(self) -> int:
        """Unpack the MATLAB file; return the number of images."""
        numbers = []
        with open_tar(self.path) as archive:
            for member in walk_tar(self.path, archive):
                if '.png' in member.name:
                    numbers.append(self._row(member.name))
                elif os.path.basename(member.name) == 'digitStruct.mat':
                    with open(self._struct, 'wb') as struct:
                        struct.write(read_member(self.path, archive, member))
        if sorted(numbers) != list(range(len(numbers))):
            raise BadInputFile(self.path, 'expected images named 1.png to '
                               f'{len(numbers)}.png')
        if not os.path.exists(self._struct):
            raise BadInputFile(self.path, 'there is no digitStruct.mat')
        return len(numbers)

    def _row(self, name: str) -> int:
        number = re.search(r'(\d+)\.png$', name)
        if number is None:
            raise BadInputFile(self.path, f'the name {name!r} has no number')
        return int(number[1]) - 1

    def write(self, sources: Mapping[str, h5py.Dataset], start: int) -> None:
        """Write all examples from row `start` on."""
        # Boxes are read by one thread while others decode images.
        with ThreadPoolExecutor(1) as pool:
            boxes = pool.submit(read_boxes, self._struct, self.path)
            self._write_images(sources['features'], start)
            for i, (source, _, dtype, _) in enumerate(BOXES):
                arrays = [box[i].astype(dtype) for box in boxes.result()]
                if len(arrays) != len(self):
                    raise BadInputFile(
                        self.path, f'expected boxes of {len(self)} images, '
                        f'got those of {len(arrays)}')
                write_ragged(sources[source], start, arrays)

    def _write_images(self, features: h5py.Dataset, start: int) -> None:
        shapes = numpy.zeros((len(self), 3), dtype='uint16')
        rows: list[int] = []
        flat: list[Any] = []
        with progress_bar(os.path.basename(self.path), len(self)) as bar:
            for done, (row, image) in enumerate(
                    ordered_map(self._decode, self._images()), 1):
                shapes[row] = image.shape
                rows.append(start + row)
                flat.append(image.reshape(-1))
                if len(rows) == IMAGES_AT_ONCE or done == len(self):
                    write_rows(features, numpy.array(rows), flat)
                    bar.update(done)
                    rows, flat = [], []
        features.dims[0]['shapes'][start:start + len(self)] = shapes

    def _images(self) -> Iterator[tuple[str, bytes]]:
        with open_tar(self.path) as archive:
            for member in walk_tar(self.path, archive):
                if '.png' in member.name:
                    yield member.name, read_member(self.path, archive, member)

    def _decode(self, item: tuple[str, bytes]) -> tuple[int, Any]:
        name, content = item
        return self._row(name), decode(content, f'{self.path}: {name}')


def read_boxes(struct: str, path: str) -> list[list[Any]]:
    """Read the boxes of all images.

    Parameters
    ----------
    struct : str
        Path of ``digitStruct.mat``.
    path : str
        What to call it in error texts.

    Returns
    -------
    list of list of numpy.ndarray
        For each image one array of shape ``(boxes, 1)`` for each of the
        sources, in their order. Negative places are 0, and so is the label
        10, which stands for the digit zero.
    """
    try:
        with h5py.File(struct, 'r') as h5file:
            reader = _Reader(h5file)
            return [reader.boxes(key) for key in reader.images()]
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise BadInputFile(path, f'digitStruct.mat cannot be read ({error})'
                           ) from error


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

    def boxes(self, key: Any) -> list[Any]:
        """Return the boxes that a key leads to."""
        image = self._open(key)
        found = []
        for source, name, _, _ in BOXES:
            values = self._read(h5py.h5d.open(image, name)).ravel()
            if values.dtype.kind not in 'iuf':
                values = numpy.array([self._one(key)
                                      for key in values.tolist()])
            whole = values.astype('int64').reshape(-1, 1)
            numpy.maximum(whole, 0, out=whole)
            if source == 'bbox_labels':
                whole[whole == 10] = 0
            found.append(whole)
        if len({len(values) for values in found}) != 1:
            raise ValueError(f'the boxes of {key!r} lack numbers')
        return found

    def _one(self, key: Any) -> float:
        """Return the number that a key leads to."""
        return float(self._read(self._open(key)).item())

    def _open(self, key: Any) -> Any:
        """Open what a reference, or a name in the group, leads to."""
        if isinstance(key, h5py.Reference):
            return h5py.h5r.dereference(key, self._file)
        name = key if isinstance(key, bytes) else key.encode('utf8')
        return h5py.h5o.open(self._group, name)

    @staticmethod
    def _read(dataset: Any) -> numpy.ndarray[Any, Any]:
        array = numpy.empty(dataset.shape, dtype=dataset.dtype)
        dataset.read(ALL, ALL, array)
        return array
