"""A user's own table, in Parquet or Arrow files."""
from __future__ import annotations

import logging
import os
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.converters.base import Converter, write_file
from fuel.converters.custom_data import (add_split_options, advise,
                                         as_classes, divided, parse_source,
                                         split_rows)
from fuel.converters.filling import add_fill_option
from fuel.converters.output import LABELS
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.converters.table import (
    Column, columns_of, filled_by, read_with_mask)
from fuel.datasets.splits import files_by_name
from fuel.datasets.source_dataset import SplitDataset
from fuel.exceptions import DamagedFileError

log = logging.getLogger(__name__)

__all__ = ['convert_parquet', 'fill_subparser']

# The source whose classes may be held out in equal shares.
TARGETS = 'targets'


@advise
def convert_parquet(directory: Folder, output_directory: Folder,
                    files: Sequence[str],
                    output_filename: str | None = None,
                    sources: Sequence[str] = (), target: str | None = None,
                    ignore: Sequence[str] = (), fill: str | None = None,
                    hold_out: Sequence[tuple[str, float]] | None = None,
                    seed: int = 1, stratify: bool = False) -> tuple[str]:
    """Convert Parquet files to an HDF5 file that `H5PYDataset` reads.

    A column of text becomes class numbers, in alphabetical order. The
    attribute 'class_names' of the source is a list of the names, in JSON; a
    source of Hugging Face's type ClassLabel gets this attribute too. Lists of
    numbers become rows of variable length. Times are stored in h5py's own type
    for times.

    `files`: Parquet or Arrow files of one schema, one after the other.
    `output_filename`: default: the name of the first file.
    `sources`: ``'SOURCE=COLUMN,...'``: the columns of numbers that form a
        source. Default: each column is a source.
    `target`: the column that becomes the source 'targets', of shape
        ``(n, 1)``. Default: none.
    `ignore`: columns to leave out.
    `fill`: value that replaces nulls: 'mean', 'median' or 'most-frequent' of
        the split 'train', or a value. Default: nulls become NaN among
        floating-point numbers; for a source of integers or truth values with
        nulls, a source of masks is added, ``SOURCE_mask``; nulls in text are
        an error. Nulls in 'targets' are always an error.
    `hold_out`: splits to draw at random, and their shares.
    `seed`: seed of the random splits. Default 1.
    `stratify`: whether the same share of every class, in the source
        'targets', is held out.
    """
    # Imported here, since this module needs an extra of Fuel.
    arrow: Any = import_module('fuel.interop.arrow')
    paths = input_paths(directory, files)
    by_split = files_by_name(paths, os.path.commonpath(
        [os.path.dirname(path) for path in paths]))
    if len(by_split) > 1:
        log.warning('files of the splits %s become one: convert those of each '
                    'by themselves, unless this is meant',
                    ', '.join(by_split))
    columns: dict[str, Any] = dict(map(parse_source, sources))
    try:
        if not columns:
            columns = {name: name for name in arrow.ArrowDataset(
                paths).provides_sources}
        columns = _chosen(columns, target, ignore, paths[0])
        names = arrow.ArrowDataset(paths, columns).provides_sources
        dataset = arrow.ArrowDataset(paths, columns, masks=names)
    except DamagedFileError as error:
        raise BadInputFile(paths[0], str(error)) from error
    arrays: dict[str, Any] = {}
    class_names: dict[str, list[str]] = {}
    if TARGETS in names:
        values = _without_gaps(dataset, paths[0])
        _add(arrays, class_names, TARGETS, Column(dataset, TARGETS), paths[0])
        if target is not None and TARGETS not in class_names and (
                values.ndim == 1 and values.dtype.kind in 'biuf'):
            arrays[TARGETS] = values[:, numpy.newaxis]
    advice = ': one column must be named as the --target'
    splits = split_rows(dataset.num_examples, hold_out, seed, stratify,
                        arrays.get(TARGETS), advice)
    found = columns_of(dataset, [name for name in names if name != TARGETS],
                       fill, splits['train'])
    for source, column in found.items():
        _add(arrays, class_names, source, column, paths[0])
    labels = {source: LABELS if source in class_names or (
        isinstance(arrays[source], numpy.ndarray)) else LABELS[:1]
        for source in arrays}
    class_names |= {source: list(names)
                    for source, names in dataset.categories.items()
                    if source in arrays and arrays[source].dtype.kind in 'iu'}
    output_filename = output_filename or (
        os.path.splitext(os.path.basename(files[0]))[0] + '.hdf5')
    return write_file(
        output_directory, output_filename, paths,
        divided(arrays.items(), hold_out, seed, stratify, advice),
        labels, {'class_names': class_names, 'fill_values': filled_by(found)})


def _add(arrays: dict[str, Any], class_names: dict[str, list[str]],
         source: str, column: Column, path: str) -> None:
    """Add a column to the arrays, as class numbers if it is text."""
    arrays[source] = column
    if h5py.check_string_dtype(column.dtype) is None:
        return
    texts = [text for block in column.blocks() for text in block]
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise BadInputFile(
                path, f'source {source!r} must hold numbers or text, but row '
                f'{place} is {text!r:.80}; choose --fill, or name other '
                f'columns with --source')
    arrays[source], class_names[source] = as_classes(texts)


def _chosen(columns: dict[str, Any], target: str | None,
            ignore: Sequence[str], path: str) -> dict[str, Any]:
    """Return the columns of each source, including 'targets'."""
    for name in ignore:
        if name not in columns:
            raise ValueError(f'{path} has no column {name!r} to leave out; '
                             f'it has {", ".join(columns)}')
    found = {source: wanted for source, wanted in columns.items()
             if source not in ignore}
    if target is None:
        return found
    if found.get(TARGETS, target) != target:
        raise ValueError("there are two sources 'targets': choose names with "
                         '--source, or no --target')
    found = {source: wanted for source, wanted in found.items()
             if wanted != target}
    return {**found, TARGETS: target}


def _without_gaps(dataset: SplitDataset, path: str) -> NDArray[Any]:
    """Return the targets; raise BadInputFile if one is missing."""
    values, are_missing = read_with_mask(dataset, TARGETS)
    missing = numpy.flatnonzero(are_missing)
    if len(missing):
        raise BadInputFile(
            path, f'source {TARGETS!r} has no value in {len(missing)} of '
            f'{len(values)} rows, the first of them number '
            f'{missing[0]}, from 0')
    return values


def fill_subparser(subparser: ArgumentParser) -> Converter:
    """Set up the parser of ``fuel-convert parquet FILE...``."""
    subparser.add_argument(
        'files', nargs='+', metavar='FILE',
        help='a Parquet or Arrow file; several are put one after the other')
    subparser.add_argument(
        '--source', action='append', default=[], dest='sources',
        metavar='SOURCE=COLUMN,...',
        help='a source and its columns; may be repeated (default: each '
        'column is a source)')
    subparser.add_argument('--target', metavar='COLUMN', default=None,
                           help='column for the source targets')
    subparser.add_argument('--ignore', metavar='COLUMN', action='append',
                           default=[], help='column to leave out; may be '
                           'repeated')
    add_fill_option(subparser)
    add_split_options(subparser)
    return convert_parquet
