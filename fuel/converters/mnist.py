"""MNIST: images and labels in four gzipped IDX files."""
import io
import math
import struct

import numpy

from fuel.converters.base import filler_of, write_image_file
from fuel.converters.output import Array
from fuel.converters.raw.files import (
    MAX_UNPACKED, BadInputFile, Folder, inflating, input_paths,
    refuse_namesakes, refuse_page)
from fuel.converters.raw.inflate import Inflated

__all__ = ['convert_mnist', 'fill_subparser', 'read_mnist_images',
           'read_mnist_labels']

MNIST_IMAGE_MAGIC = 2051
MNIST_LABEL_MAGIC = 2049

TRAIN_IMAGES = 'train-images-idx3-ubyte.gz'
TRAIN_LABELS = 'train-labels-idx1-ubyte.gz'
TEST_IMAGES = 't10k-images-idx3-ubyte.gz'
TEST_LABELS = 't10k-labels-idx1-ubyte.gz'
ALL_FILES = [TRAIN_IMAGES, TRAIN_LABELS, TEST_IMAGES, TEST_LABELS]
DTYPES = ('float32', 'float64', 'bool')


def convert_mnist(directory: Folder, output_directory: Folder,
                  output_filename: str | None = None,
                  dtype: str | None = None) -> tuple[str]:
    """Convert MNIST to HDF5.

    The file has the splits 'train' and 'test' with the sources 'features',
    of shape ``(examples, 1, 28, 28)`` and axes (batch, channel, height,
    width), and 'targets', uint8 of shape ``(examples, 1)``, the digits.

    `dtype`: {'float32', 'float64', 'bool'}; type of the features; see
        `read_mnist_images`. Default uint8.
    """
    if not output_filename:
        output_filename = f'mnist_{dtype}.hdf5' if dtype else 'mnist.hdf5'
    return convert_idx_files(directory, output_directory, output_filename,
                             'mnist', dtype)


def convert_idx_files(directory: Folder, output_directory: Folder,
                      output_filename: str, dataset: str,
                      dtype: str | None = None) -> tuple[str]:
    """Convert four files in the format and with the names of MNIST's files.

    It is an error if the files belong to another data set than `dataset`.
    """
    paths = input_paths(directory, ALL_FILES)
    refuse_namesakes(dataset, paths)

    return write_image_file(
        output_directory, output_filename, paths,
        ((split, *read_pair(images, labels, dtype))
         for split, images, labels in (('train', *paths[:2]),
                                       ('test', *paths[2:]))))


def read_pair(images: str, labels: str,
              dtype: str | None = None) -> tuple[Array, Array]:
    """Read an image file and its label file."""
    features = read_mnist_images(images, dtype)
    targets = read_mnist_labels(labels)
    if len(features) != len(targets):
        raise BadInputFile(labels, f'expected {len(features)} labels, one '
                           f'for each image of {images}, got {len(targets)}')
    return features, targets


def read_mnist_images(filename: str, dtype: str | None = None) -> Array:
    """Read images from a gzipped IDX file.

    `filename`: path of the file.
    `dtype`: {'float32', 'float64', 'bool'}; with a float type 0 to 255 become
        0 to 1; with 'bool' pixels of at least 128 become True. Default:
        unsigned bytes as they are.
    Returns: an array of shape ``(images, 1, rows, columns)``.
    """
    kind = None if dtype is None else numpy.dtype(dtype)
    if kind is not None and kind.name not in DTYPES:
        raise ValueError(f'dtype must be one of {", ".join(DTYPES)} or None, '
                         f'got {dtype!r}')
    images = _read_idx(filename, MNIST_IMAGE_MAGIC, 3)
    images = images[:, numpy.newaxis]
    if kind is None:
        return images
    if kind.name == 'bool':
        return images >= 128
    images = images.astype(kind)
    images /= 255.
    return images


def read_mnist_labels(filename: str) -> Array:
    """Read labels from a gzipped IDX file.

    `filename`: path of the file.
    Returns: an array of shape ``(labels, 1)`` and type uint8.
    """
    return _read_idx(filename, MNIST_LABEL_MAGIC, 1)[:, numpy.newaxis]


def _read_idx(path: str, magic: int, ndim: int) -> Array:
    try:
        with open(path, 'rb') as raw, inflating(raw, path) as stream:
            return read_idx(stream, path, magic, ndim)
    except BadInputFile:
        refuse_page(path)
        raise


def read_idx(stream: Inflated | io.BytesIO, path: str, magic: int,
             ndim: int) -> Array:
    """Return the array of unsigned bytes in an IDX file.

    At most one byte more than the header states is unpacked.
    """
    header = 4 * (1 + ndim)
    content = stream.read(header)
    if len(content) < header:
        raise BadInputFile(path, f'expected a header of {header} bytes, got '
                           f'{len(content)} bytes in all')
    found, *shape = struct.unpack(f'>{1 + ndim}i', content)
    if found != magic:
        raise BadInputFile(path, f'wrong magic number: expected {magic}, got '
                           f'{found}')
    size = math.prod(shape)
    wanted = f'expected {header + size} bytes for the shape {tuple(shape)}'
    if min(shape) < 0 or size > MAX_UNPACKED:
        raise BadInputFile(path, f'{wanted}: from 0 to {MAX_UNPACKED} are '
                           'read')
    array = numpy.empty(shape, 'uint8')
    done = stream.readinto(array.reshape(-1).data)
    if done < size:
        raise BadInputFile(path, f'{wanted}, got {header + done}')
    if stream.read(1):
        raise BadInputFile(path, f'{wanted}, got more')
    return array


fill_subparser = filler_of(
    convert_mnist, '--dtype', choices=DTYPES, default=None,
    help='type of the features (default: uint8, as in the raw files)')
