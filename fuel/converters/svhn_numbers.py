"""SVHN's images of whole numbers, with a box around each digit."""
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import h5py
import numpy

from fuel.converters import svhn_boxes
from fuel.converters.images import (batched, create_ragged, ordered_map,
                                    write_ragged)
from fuel.converters.output import write_arrays
from fuel.converters.raw.archives import MAX_IMAGE
from fuel.converters.raw.files import BadInputFile
from fuel.converters.raw.images import decode_image
from fuel.converters.raw.tar import open_tar

# Source, type, label of the second axis; in the order of read_boxes.
BOXES = (('bbox_heights', 'uint16', 'height'),
         ('bbox_labels', 'uint8', 'index'),
         ('bbox_lefts', 'uint16', 'x'),
         ('bbox_tops', 'uint16', 'y'),
         ('bbox_widths', 'uint16', 'width'))
IMAGES_AT_ONCE = 256
# The least number of images for which it is faster to start another process.
ANOTHER_PROCESS = 2000
# Seconds for each image: many times the time that reading its boxes takes.
SECONDS_AN_IMAGE = .1
SECONDS = 60
MAX_SIDE = 65535


def create_sources(h5file: h5py.File, rows: int) -> dict[str, h5py.Dataset]:
    """Create the six sources, for `rows` examples."""
    def create(name: str, dtype: str, labels: tuple[str, ...]) -> Any:
        return create_ragged(h5file, name, rows, dtype, labels,
                             f'{name}_shapes', f'{name}_vlen_axis_labels',
                             'uint16')

    return {'features': create('features', 'uint8',
                               ('channel', 'height', 'width')),
            **{source: create(source, dtype, ('bounding_box', label))
               for source, dtype, label in BOXES}}


class NumbersSplit:
    """One split's archive: images, and a MATLAB 7.3 file with their boxes.

    `path`: the archive.
    `struct`: the temporary path of the MATLAB file.
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
            for member in archive.walk():
                if '.png' in member.name:
                    numbers.append(self._row(member.name))
                elif os.path.basename(member.name) == 'digitStruct.mat':
                    with open(self._struct, 'wb') as struct:
                        struct.writelines(archive.blocks(member))
        if sorted(numbers) != list(range(len(numbers))):
            raise BadInputFile(self.path, 'expected images named 1.png to '
                               f'{len(numbers)}.png')
        if not os.path.exists(self._struct):
            raise BadInputFile(self.path, 'there is no digitStruct.mat')
        return len(numbers)

    def _row(self, name: str) -> int:
        number = re.search(r'(?<!\d)(\d{1,9})\.png$', name)
        if number is None:
            raise BadInputFile(self.path, f'the name {name!r} has no number')
        return int(number[1]) - 1

    def write(self, sources: Mapping[str, h5py.Dataset], start: int) -> None:
        """Write all examples from row `start` on."""
        # Boxes are read by one thread while others decode images.
        with ThreadPoolExecutor(1) as pool:
            boxes = pool.submit(self._read_boxes)
            self._write_images(sources['features'], start)
            counts, table = boxes.result()
        borders = numpy.cumsum(counts)[:-1]
        for i, (source, dtype, _) in enumerate(BOXES):
            write_ragged(sources[source], start, numpy.split(
                table[:, i:i + 1].astype(dtype), borders))

    def _read_boxes(self) -> tuple[Any, Any]:
        """Read the boxes, in another process if there are many."""
        if len(self) >= ANOTHER_PROCESS and sys.executable:
            saved = f'{self._struct}.npz'
            try:
                done = subprocess.run(  # noqa: S603 - a script of ours
                    [sys.executable, svhn_boxes.__file__, self._struct,
                     saved, str(len(self))], check=False,
                    stdin=subprocess.DEVNULL, capture_output=True,
                    timeout=SECONDS + SECONDS_AN_IMAGE * len(self))
            except subprocess.TimeoutExpired as error:
                raise BadInputFile(
                    self.path, 'digitStruct.mat could not be read in '
                    f'{error.timeout:.0f} seconds') from error
            if not done.returncode:
                with numpy.load(saved) as arrays:
                    return arrays['arr_0'], arrays['arr_1']
            if done.returncode < 0:
                raise BadInputFile(self.path, 'digitStruct.mat is damaged: '
                                   'it crashes the library for HDF5')
        # If the other process failed, this raises the same error here.
        try:
            return svhn_boxes.read_boxes(self._struct, len(self))
        except (KeyError, OSError, TypeError, ValueError, RuntimeError,
                AttributeError, MemoryError) as error:
            raise BadInputFile(self.path, 'digitStruct.mat cannot be read '
                               f'({error})') from error

    def _write_images(self, features: h5py.Dataset, start: int) -> None:
        shapes = numpy.zeros((len(self), 3), dtype='uint16')
        decoded = ordered_map(self._decode, self._images(),
                              os.path.basename(self.path), len(self))
        for batch in batched(decoded, IMAGES_AT_ONCE):
            rows, images = zip(*batch, strict=True)
            shapes[list(rows)] = [image.shape for image in images]
            write_arrays(features, start + numpy.array(rows),
                         [image.reshape(-1) for image in images])
        features.dims[0]['shapes'][start:start + len(self)] = shapes

    def _images(self) -> Iterator[tuple[str, bytes]]:
        with open_tar(self.path) as archive:
            for member in archive.walk():
                if '.png' in member.name:
                    yield member.name, archive.read(member, MAX_IMAGE)

    def _decode(self, item: tuple[str, bytes]) -> tuple[int, Any]:
        name, content = item
        image = decode_image(content, f'{self.path}: {name}')
        if max(image.shape) > MAX_SIDE:
            raise BadInputFile(self.path, f'the image {name!r} has the shape '
                               f'{image.shape}, more than {MAX_SIDE}')
        return self._row(name), image
