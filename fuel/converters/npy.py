"""A user's own arrays, in ``.npy`` files."""
import os
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import numpy

from fuel.converters.custom_data import (Rows, add_split_options, advise,
                                          divided)
from fuel.converters.base import Converter, write_file
from fuel.converters.output import Array
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.storage.npy import read_npy_header

__all__ = ['convert_npy', 'fill_subparser']


@advise
def convert_npy(directory: Folder, output_directory: Folder,
                files: Sequence[str], output_filename: str = 'data.hdf5',
                axes: Sequence[str] = (),
                hold_out: Sequence[tuple[str, float]] | None = None,
                seed: int = 1, stratify: bool = False) -> tuple[str]:
    """Convert arrays to an HDF5 file that `H5PYDataset` reads.

    `files`: ``'SPLIT:SOURCE=FILE'``; or ``'SOURCE=FILE'``: then all examples
        that are not held out belong to the split 'train'. A file ``NAME.npy``
        alone becomes the source NAME.
    `axes`: axis labels, such as ``'features=batch,channel,height,width'``.
        Default: axis 0 is 'batch'.
    `hold_out`: splits to draw at random, and their shares. Not for arrays
        that come with splits.
    `seed`: seed of the random splits. Default 1.
    `stratify`: whether the same share of every class is held out.
    """
    named = [_parse(text) for text in files]
    paths = input_paths(directory, [name for _, _, name in named])
    arrays = [(split, source, _open(path)) for (split, source, _), path in
              zip(named, paths, strict=True)]
    data = _with_splits(arrays, hold_out, seed, stratify)
    labels: dict[str, tuple[str, ...]] = {
        source: ('batch',) for _, source, _ in data}
    labels.update(_axes(text, {source: array.ndim
                               for _, source, array in arrays})
                  for text in axes)
    return write_file(output_directory, output_filename, paths, data, labels)


def _parse(text: str) -> tuple[str, str, str]:
    """Return split, source and file name; the split may be empty."""
    source, equals, name = text.partition('=')
    split, colon, rest = source.partition(':')
    stem, extension = os.path.splitext(os.path.basename(text))
    if not equals and extension.lower() == '.npy' and not colon:
        return '', stem, text
    if not equals or not name or not (rest if colon else source):
        raise ValueError('expected SOURCE=FILE or SPLIT:SOURCE=FILE, or '
                         f'SOURCE.npy, got {text!r}')
    source = rest if colon else source
    if '/' in source or source == '.':
        raise ValueError('expected a name without a slash for a source, got '
                         f'{source!r}')
    return split if colon else '', source, name


def _open(path: str) -> Array:
    try:
        with open(path, 'rb') as stream:
            shape, by_columns, dtype = read_npy_header(stream)
            if not shape or dtype.kind not in 'biufc':
                raise ValueError('examples are on axis 0, and no objects or '
                                 f'texts; got {dtype} of shape {shape}')
            return numpy.memmap(path, dtype, 'r', stream.tell(), shape,
                                'F' if by_columns else 'C')
    except (ValueError, OverflowError) as error:
        raise BadInputFile(path, 'expected an array of numbers in a .npy '
                           f'file ({error})') from error


def _with_splits(arrays: Sequence[tuple[str, str, Any]],
                 hold_out: Sequence[tuple[str, float]] | None,
                 seed: int, stratify: bool) -> list[tuple[str, str, Rows]]:
    with_splits = {bool(split) for split, _, _ in arrays}
    if with_splits == {True} and not hold_out:
        return [(split, source, Rows(array))
                for split, source, array in arrays]
    lengths = {source: len(array) for _, source, array in arrays}
    if with_splits != {False} or len(set(lengths.values())) != 1:
        raise ValueError(
            'either all files name their splits and none is held out, or '
            f'none does and all have as many examples; got {lengths} '
            'examples')
    return divided([(source, array) for _, source, array in arrays],
                   hold_out, seed, stratify)


def _axes(text: str, ranks: dict[str, int]) -> tuple[str, tuple[str, ...]]:
    source, _, names = text.partition('=')
    labels = tuple(names.split(','))
    if ranks.get(source) != len(labels):
        raise ValueError(f'expected SOURCE=LABEL,... with a label for each '
                         f'of the axes {ranks}, got {text!r}')
    return source, labels


def fill_subparser(subparser: ArgumentParser) -> Converter:
    """Set up the parser of ``fuel-convert npy [SOURCE=]FILE...``."""
    subparser.add_argument(
        'files', nargs='+', metavar='[[SPLIT:]SOURCE=]FILE',
        help='an array, such as features=x.npy or test:targets=y.npy; the '
        'source of features.npy alone is features')
    subparser.add_argument(
        '--axes', action='append', default=[], metavar='SOURCE=LABEL,...',
        help='labels of the axes of a source; may be repeated')
    add_split_options(subparser)
    return convert_npy
