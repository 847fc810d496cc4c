"""One's own table, in Parquet or Arrow files."""
from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module
from typing import Any


from fuel.converters.base import Converter, write_file
from fuel.converters.custom_data import (add_split_options, advise,
                                         as_classes, divided, parse_source)
from fuel.converters.output import LABELS
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.exceptions import DamagedFileError
from fuel.storage import Reader

__all__ = ['convert_parquet', 'fill_subparser']


@advise
def convert_parquet(directory: Folder, output_directory: Folder,
                    files: Sequence[str],
                    output_filename: str | None = None,
                    sources: Sequence[str] = (),
                    hold_out: Sequence[tuple[str, float]] | None = None,
                    seed: int = 1, stratify: bool = False) -> tuple[str]:
    """Convert Parquet files to an HDF5 file that `H5PYDataset` reads.

    A column of text becomes class numbers, in alphabetical order; the names
    are a list in JSON, the attribute 'class_names' of the source.

    `files`: Parquet or Arrow files of one schema, one after the other.
    `output_filename`: default: the name of the first file.
    `sources`: ``'SOURCE=COLUMN,...'``: the columns, of numbers, that become a
        source. Default: each column is a source.
    `hold_out`: splits to make of random examples, and their shares.
    `seed`: seed of that choice. Default 1.
    `stratify`: whether the same share of every class, in the source
        'targets', is held out.
    """
    # Loaded where it is used: it needs the extra.
    arrow: Any = import_module('fuel.interop.arrow')
    paths = input_paths(directory, files)
    columns = dict(map(parse_source, sources)) or None
    try:
        dataset = arrow.ArrowDataset(paths, columns)
    except DamagedFileError as error:
        raise BadInputFile(paths[0], str(error)) from error
    arrays: dict[str, Any] = {}
    class_names: dict[str, list[str]] = {}
    for source in dataset.provides_sources:
        reader = dataset.readers[source]
        if reader.dtype.hasobject:
            arrays[source], class_names[source] = _classes(
                reader, source, paths[0])
        elif reader.dtype.kind in 'biufc':
            arrays[source] = reader
        else:
            raise ValueError(
                f'source {source!r} holds {reader.dtype}, for which HDF5 has '
                'no type: leave it out with --source')
    output_filename = output_filename or (
        os.path.splitext(os.path.basename(files[0]))[0] + '.hdf5')
    return write_file(
        output_directory, output_filename, paths,
        divided(arrays.items(), hold_out, seed, stratify,
                ': name one with --source'),
        {source: LABELS if source in class_names else LABELS[:1]
         for source in arrays}, {'class_names': class_names})


def _classes(reader: Reader, source: str, path: str) -> Any:
    """Return a column of text as class numbers, and their names."""
    texts = reader.read(slice(None)).tolist()
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise BadInputFile(
                path, f'source {source!r} must hold numbers or text, but row '
                f'{place} is {text!r:.80}; name other columns with --source')
    return as_classes(texts)


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
    add_split_options(subparser)
    return convert_parquet
