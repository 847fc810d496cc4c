"""Street View House Numbers: whole numbers, or single digits."""
import os

from fuel.converters.svhn_numbers import NumbersSplit, create_sources
from fuel.converters.base import (consecutive, converted_file, filler_of,
                                  write_image_file, write_splits)
from fuel.converters.output import Array
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.converters.raw.matlab import (MatlabImages, as_bytes,
                                        read_variables)
from fuel.utils.atomic_files import scratch_folder

__all__ = ['convert_svhn', 'convert_svhn_format_1', 'convert_svhn_format_2',
           'fill_subparser']

SPLITS = ('train', 'test', 'extra')
FORMAT_1_FILES = [f'{split}.tar.gz' for split in SPLITS]
FORMAT_2_FILES = [f'{split}_32x32.mat' for split in SPLITS]


def convert_svhn(which_format: int, directory: Folder,
                 output_directory: Folder,
                 output_filename: str | None = None) -> tuple[str]:
    """Convert SVHN to HDF5.

    `which_format`: {1, 2}; 1 is for images of whole numbers, 2 for images of
        single digits.
    """
    if which_format not in (1, 2):
        raise ValueError(f'SVHN has the formats 1 and 2, got '
                         f'{which_format!r}')
    if not output_filename:
        output_filename = f'svhn_format_{which_format}.hdf5'
    convert = (convert_svhn_format_1 if which_format == 1
               else convert_svhn_format_2)
    return convert(directory, output_directory, output_filename)


def convert_svhn_format_1(
        directory: Folder, output_directory: Folder,
        output_filename: str = 'svhn_format_1.hdf5') -> tuple[str]:
    """Convert the images of whole numbers.

    The file has the splits 'train' (33,402 examples), 'test' (13,068) and
    'extra' (202,353). The examples of all sources differ in shape. The source
    'features' has uint8 images (channel, height, width). The other sources
    have a row for each digit: 'bbox_labels', uint8, and 'bbox_heights',
    'bbox_widths', 'bbox_lefts' and 'bbox_tops', uint16. The label of the digit
    zero is 0.
    """
    paths = input_paths(directory, FORMAT_1_FILES)
    with converted_file(output_directory, output_filename, paths) as h5file:
        with scratch_folder('fuel-svhn-') as scratch:
            splits = [NumbersSplit(path, os.path.join(scratch, name))
                      for name, path in zip(SPLITS, paths, strict=True)]
            sources = create_sources(h5file, sum(map(len, splits)))
            start = 0
            for split in splits:
                split.write(sources, start)
                start += len(split)
        write_splits(h5file, consecutive(dict(zip(
            SPLITS, map(len, splits), strict=True)), sources))
    return (os.path.join(output_directory, output_filename),)


def convert_svhn_format_2(
        directory: Folder, output_directory: Folder,
        output_filename: str = 'svhn_format_2.hdf5') -> tuple[str]:
    """Convert the images of single digits.

    The file has the splits 'train' (73,257 examples), 'test' (26,032) and
    'extra' (531,131) with the sources 'features', uint8 of shape
    ``(examples, 3, 32, 32)`` and axes (batch, channel, height, width), and
    'targets', uint8 of shape ``(examples, 1)``, the digit.
    """
    paths = input_paths(directory, FORMAT_2_FILES)
    return write_image_file(
        output_directory, output_filename, paths,
        ((split, *_read(path))
         for split, path in zip(SPLITS, paths, strict=True)))


def _read(path: str) -> tuple[MatlabImages, Array]:
    features, targets = MatlabImages(path, 'X'), _digits(path)
    if features.shape != (len(targets), 3, 32, 32):
        raise BadInputFile(
            path, f'expected X of shape (32, 32, 3, {len(targets)}) for '
            f'{len(targets)} labels, got examples of shape {features.shape}')
    return features, targets


def _digits(path: str) -> Array:
    content = read_variables(path, ['y'])
    targets: Array = as_bytes(
        content['y'], path, 'y').reshape(-1, 1)
    if (targets > 10).any():
        raise BadInputFile(path, f'expected labels from 1 to 10, got '
                           f'{targets.max()}')
    targets[targets == 10] = 0
    return targets


fill_subparser = filler_of(
    convert_svhn, 'which_format', type=int, choices=(1, 2),
    help='1: images of whole numbers; 2: images of single digits')
