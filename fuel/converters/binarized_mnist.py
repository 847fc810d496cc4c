"""Binarized MNIST: zeros and ones in three text files."""
import re

import numpy

from fuel.converters.base import filler_of, write_file
from fuel.converters.output import IMAGES, Array
from fuel.converters.raw.files import BadInputFile, Folder, input_paths

__all__ = ['convert_binarized_mnist', 'fill_subparser']

TRAIN_FILE = 'binarized_mnist_train.amat'
VALID_FILE = 'binarized_mnist_valid.amat'
TEST_FILE = 'binarized_mnist_test.amat'
ALL_FILES = [TRAIN_FILE, VALID_FILE, TEST_FILE]
PIXELS = 784


def convert_binarized_mnist(
        directory: Folder, output_directory: Folder,
        output_filename: str = 'binarized_mnist.hdf5') -> tuple[str]:
    """Convert binarized MNIST to HDF5.

    The file has the splits 'train' (50,000 examples), 'valid' and 'test'
    (10,000 each) with the source 'features', uint8 of shape ``(examples, 1,
    28, 28)`` and axes (batch, channel, height, width), each pixel 0 or 1.
    """
    paths = input_paths(directory, ALL_FILES)
    return write_file(
        output_directory, output_filename, paths,
        ((split, 'features', _read(path))
         for split, path in zip(('train', 'valid', 'test'), paths,
                                strict=True)),
        {'features': IMAGES})


def _read(path: str) -> Array:
    """Return the images of a file."""
    with open(path, 'rb') as raw:
        content = raw.read()
    pixels = _read_regular(content)
    if pixels is None:
        pixels = _read_any(content)
    if pixels is None or not len(pixels) or len(pixels) % PIXELS:
        raise BadInputFile(
            path, f'expected {PIXELS} numbers for each image, all 0 or 1, ' +
            ('got something else' if pixels is None else
             f'got {len(pixels)} numbers'))
    return pixels.reshape(-1, 1, 28, 28)


def _read_regular(content: bytes) -> Array | None:
    """Read digits, each followed by a space, or by a line feed at the end of
    an image, as in the original files. Return None for another form."""
    stride = 2 * PIXELS
    if len(content) % stride:
        return None
    text = numpy.frombuffer(content, dtype='uint8').reshape(-1, stride)
    digits: Array = text[:, ::2] - numpy.uint8(ord('0'))
    if ((text[:, 1:-1:2] != ord(' ')).any() or
            (text[:, -1] != ord('\n')).any() or (digits > 1).any()):
        return None
    return digits.reshape(-1)


def _read_any(content: bytes) -> Array | None:
    """Read zeros and ones separated by white space, in any notation of
    numbers."""
    tokens = re.sub(rb'#[^\n]*', b'', content).split()
    try:
        value = {token: float(token) for token in set(tokens)}
    except ValueError:
        return None
    if not set(value.values()) <= {0., 1.}:
        return None
    return numpy.array([value[token] for token in tokens], dtype='uint8')


fill_subparser = filler_of(convert_binarized_mnist)
