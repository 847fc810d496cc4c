"""EMNIST: gzipped IDX files in a zip archive."""
import io
from typing import Any

from fuel.converters.base import filler_of, write_image_file
from fuel.converters.mnist import (MNIST_IMAGE_MAGIC, MNIST_LABEL_MAGIC,
                                   read_idx)
from fuel.converters.raw.archives import open_zip, read_zipped
from fuel.converters.raw.files import (MAX_UNPACKED, BadInputFile, Folder,
                                       input_paths, inflating)

__all__ = ['convert_emnist', 'fill_subparser']

ARCHIVE = 'gzip.zip'
SETS = ('balanced', 'byclass', 'bymerge', 'digits', 'letters', 'mnist')


def convert_emnist(directory: Folder, output_directory: Folder,
                   which_format: str = 'balanced',
                   output_filename: str | None = None) -> tuple[str]:
    """Convert one of the six sets of EMNIST to HDF5.

    The file has the splits 'train' and 'test' with the sources 'features',
    uint8 of shape ``(examples, 1, 28, 28)``, and 'targets', uint8 of shape
    ``(examples, 1)``. Images and labels are as NIST stores them: compared with
    MNIST, rows and columns are exchanged, and the labels of 'letters' begin at
    1.

    `which_format`: 'balanced' (the default), 'byclass', 'bymerge', 'digits',
        'letters' or 'mnist'.
    """
    if which_format not in SETS:
        raise ValueError(f'expected one of {", ".join(SETS)}, got '
                         f'{which_format!r}')
    output_filename = output_filename or f'emnist_{which_format}.hdf5'
    path, = input_paths(directory, [ARCHIVE])
    return write_image_file(
        output_directory, output_filename, [path],
        ((split, *_read_pair(path, f'gzip/emnist-{which_format}-{split}'))
         for split in ('train', 'test')))


def _read_pair(path: str, prefix: str) -> tuple[Any, Any]:
    images = _read(path, f'{prefix}-images-idx3-ubyte.gz', MNIST_IMAGE_MAGIC,
                   3)
    labels = _read(path, f'{prefix}-labels-idx1-ubyte.gz', MNIST_LABEL_MAGIC,
                   1)
    if len(images) != len(labels):
        raise BadInputFile(path, f'{prefix} has {len(images)} images and '
                           f'{len(labels)} labels')
    return images[:, None], labels[:, None]


def _read(path: str, name: str, magic: int, ndim: int) -> Any:
    with open_zip(path) as archive:
        packed = read_zipped(path, archive, name, MAX_UNPACKED)
    where = f'{path}: {name}'
    with inflating(io.BytesIO(packed), where) as stream:
        return read_idx(stream, where, magic, ndim)


fill_subparser = filler_of(
    convert_emnist, 'which_format', choices=SETS, metavar='SET',
    help='one of ' + ', '.join(SETS))
