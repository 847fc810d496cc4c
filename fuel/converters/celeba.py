"""CelebA: JPEG files in a zip archive, and a table of attributes."""
from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from fuel.converters.base import (converted_file, create_source,
                                  filler_of, label_axes)
from fuel.converters.images import write_images, zipped_images
from fuel.converters.output import IMAGES, Array
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.datasets.hdf5 import H5PYDataset

if TYPE_CHECKING:
    from PIL import Image

__all__ = ['convert_celeba', 'convert_celeba_64',
           'convert_celeba_aligned_cropped', 'fill_subparser']

IMAGE_FILE = 'img_align_celeba.zip'
ATTRIBUTES_FILE = 'list_attr_celeba.txt'
DATASET_FILES = [IMAGE_FILE, ATTRIBUTES_FILE]
OUTPUT_FILENAME = 'celeba_{}.hdf5'
NUM_EXAMPLES = 202599
TRAIN_STOP = 162770
VALID_STOP = 182637
TEST_STOP = 202599
NUM_ATTRIBUTES = 40
FORMATS = ('aligned_cropped', '64')
ROWS_AT_ONCE = 256


def convert_celeba(which_format: str, directory: Folder,
                   output_directory: Folder,
                   output_filename: str | None = None) -> tuple[str]:
    """Convert CelebA to HDF5.

    The file has the splits 'train' (162,770 examples), 'valid' (19,867) and
    'test' (19,962) with the sources 'features', uint8 of shape ``(examples,
    3, height, width)`` and axes (batch, channel, height, width), and
    'targets', uint8 of shape ``(examples, 40)``: for each attribute 1 or 0.
    An excerpt, whose table states another number of rows in its first line,
    is divided in the same proportions.

    `which_format`: {'aligned_cropped', '64'}; the original images, with a
        height of 218 and a width of 178 pixels; or images that are reduced to
        a height of 78 and a width of 64 pixels, and then cut to the 64 x 64
        pixels in the middle.
    """
    if which_format not in FORMATS:
        raise ValueError("CelebA has the formats 'aligned_cropped' and '64', "
                         f'got {which_format!r}')
    output_filename = output_filename or OUTPUT_FILENAME.format(which_format)
    convert = (convert_celeba_64 if which_format == '64'
               else convert_celeba_aligned_cropped)
    return convert(directory, output_directory, output_filename)


def convert_celeba_aligned_cropped(
        directory: Folder, output_directory: Folder,
        output_filename: str = 'celeba_aligned_cropped.hdf5') -> tuple[str]:
    """Convert the images as they are; see `convert_celeba`."""
    return _convert(directory, output_directory, output_filename, (218, 178))


def convert_celeba_64(directory: Folder, output_directory: Folder,
                      output_filename: str = 'celeba_64.hdf5') -> tuple[str]:
    """Convert the images to 64 x 64 pixels; see `convert_celeba`."""
    return _convert(directory, output_directory, output_filename, (64, 64),
                    _reduce)


def _reduce(image: Image.Image) -> Image.Image:
    from PIL import Image
    return image.resize((64, 78), Image.Resampling.LANCZOS).crop(
        (0, 7, 64, 71))


def _convert(directory: Folder, output_directory: Folder, output_filename: str,
             size: tuple[int, int],
             change: Callable[[Any], Any] | None = None) -> tuple[str]:
    paths = input_paths(directory, DATASET_FILES)
    targets = _read_attributes(paths[1])
    count = len(targets)
    names = [f'img_align_celeba/{i + 1:06d}.jpg' for i in range(count)]
    with converted_file(output_directory, output_filename, paths) as h5file:
        features = create_source(h5file, 'features', (count, 3, *size),
                                 'uint8')
        create_source(h5file, 'targets', targets.shape, 'uint8')[...] = (
            targets)
        write_images(features, 0, zipped_images(
            paths[0], names, change=change, size=size), ROWS_AT_ONCE)
        h5file.attrs['split'] = _split_array(count)
        label_axes(h5file, {'features': IMAGES,
                            'targets': ('batch', 'target')})
    return (os.path.join(output_directory, output_filename),)


def _split_array(count: int) -> Array:
    """Return the splits of `NUM_EXAMPLES` examples, or of an excerpt."""
    borders = [0, TRAIN_STOP, VALID_STOP, TEST_STOP]
    if count != NUM_EXAMPLES:
        borders = [round(count * stop / TEST_STOP) for stop in borders]
    splits: Array = H5PYDataset.create_split_array({
        split: dict.fromkeys(('features', 'targets'), (start, stop))
        for split, start, stop in zip(('train', 'valid', 'test'), borders,
                                      borders[1:], strict=False)})
    # If a program has changed NUM_EXAMPLES, only the end of the last split
    # changes.
    splits['stop'][splits['stop'] == borders[-1]] = count
    return splits


def _read_attributes(path: str) -> Array:
    """Return the table of attributes as zeros and ones."""
    with open(path, encoding='ascii', errors='replace') as lines:
        head, *rows = [line.split() for line in lines] or [[]]
    rows = [row for row in rows[1:] if row]
    # An excerpt states its own number of rows; a truncated table still
    # states the whole number.
    if not rows or (
            len(rows) != NUM_EXAMPLES and head != [str(len(rows))]):
        raise BadInputFile(path, f'expected {NUM_EXAMPLES} rows, or as many '
                           'as the first line says, got '
                           f'{len(rows)}')
    for i, row in enumerate(rows):
        if (len(row) != 1 + NUM_ATTRIBUTES or
                row[0] != f'{i + 1:06d}.jpg' or
                not set(row[1:]) <= {'-1', '1'}):
            raise BadInputFile(
                path, f'expected {i + 1:06d}.jpg and {NUM_ATTRIBUTES} times '
                f'-1 or 1 in row {i + 1}, got {" ".join(row)[:60]!r}')
    return numpy.array([[value == '1' for value in row[1:]]
                        for row in rows], dtype='uint8')


fill_subparser = filler_of(
    convert_celeba, 'which_format', choices=FORMATS,
    help='images as they are, or of 64 x 64 pixels')
