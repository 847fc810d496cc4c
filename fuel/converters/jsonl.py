"""A user's own records, in a file of JSON lines."""
import logging
import os
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

import numpy

from fuel.converters.base import Converter, write_file
from fuel.converters.custom_data import (add_split_options, advise,
                                         as_classes, divided, parse_source,
                                         split_rows)
from fuel.converters.filling import add_fill_option
from fuel.converters.output import LABELS, Array
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.converters.table import (
    columns_of, filled_by, read_with_mask)
from fuel.datasets.json_values import (
    BLANK, fields_in, known_fields, parse_objects)
from fuel.datasets.jsonl import JSONLDataset
from fuel.datasets.records import SAMPLE, RecordFile, RecordIndex, FirstRecords
from fuel.storage.file_bytes import raw_file_at

log = logging.getLogger(__name__)

__all__ = ['convert_jsonl', 'fill_subparser']


@advise
def convert_jsonl(directory: Folder, output_directory: Folder, filename: str,
                  output_filename: str | None = None,
                  sources: Sequence[str] = (), target: str | None = None,
                  ignore: Sequence[str] = (), on_missing: str = 'raise',
                  fill: str | None = None,
                  hold_out: Sequence[tuple[str, float]] | None = None,
                  seed: int = 1, stratify: bool = False) -> tuple[str]:
    """Convert JSON lines to an HDF5 file that `H5PYDataset` reads.

    Fields of numbers, truth values, text and lists of numbers become sources
    with the names of the fields. In the name of a field of a nested object,
    ``_`` replaces each slash. Fields that none of the first 1000 records has
    are logged and left out.

    `filename`: a file with a JSON object in each line, in UTF-8.
    `sources`: ``'SOURCE=FIELD,...'``: the fields that form a source.
        Default: each field is a source.
    `target`: the field that becomes the source 'targets'. Text becomes class
        numbers, in alphabetical order; the attribute 'class_names' is a list
        of the names, in JSON. Default: none.
    `ignore`: fields to leave out.
    `on_missing`: {'raise', 'null'}; whether a field that a record lacks is an
        error or null. Default 'raise'.
    `fill`: value that replaces null: 'mean', 'median' or 'most-frequent' of
        the split 'train', or a value. Default: null becomes NaN among
        floating-point numbers, and an empty text among texts. For a source of
        integers or truth values with null, a source of masks is added,
        ``SOURCE_mask``.
    `hold_out`: splits to draw at random, and their shares.
    `seed`: seed of the random splits. Default 1.
    `stratify`: whether the same share of every class is held out.
    """
    path, = input_paths(directory, [filename])
    try:
        return _convert(
            path, output_directory, output_filename or (os.path.splitext(
                os.path.basename(filename))[0] + '.hdf5'),
            dict(map(parse_source, sources)), target, ignore, on_missing,
            fill, hold_out, seed, stratify)
    except BadInputFile:
        raise
    except ValueError as error:
        prefix = f'{path}, '
        if not str(error).startswith(prefix):
            raise
        raise BadInputFile(
            path, str(error).removeprefix(prefix)) from error


def _convert(path: str, output_directory: Folder, output_filename: str,
             columns: dict[str, Any], target: str | None,
             ignore: Sequence[str], on_missing: str, fill: str | None,
             hold_out: Sequence[tuple[str, float]] | None, seed: int,
             stratify: bool) -> tuple[str]:
    fields, later = ([], []) if columns else _fields_of(path)
    for name in ignore:
        if name not in (*fields, *later):
            raise ValueError(f'{path} has no field {name!r} to leave out; it '
                             f'has {", ".join([*fields, *later])}')
    for name in later:
        if name not in ignore:
            log.warning('left out: field %r, which has no value in the first '
                        '%d records', name, SAMPLE)
    for field in fields:
        source = field.replace('/', '_')
        if field == target or field in ignore:
            continue
        if source in columns:
            raise ValueError(f'two fields would be the source {source!r}: '
                             f'choose names with --source')
        columns[source] = field
    if target is not None:
        if 'targets' in columns:
            raise ValueError("there are two sources 'targets': choose names "
                             'with --source, or no --target')
        columns['targets'] = target
    if not columns:
        raise ValueError(f'{path}: no field is left')
    dataset = JSONLDataset(path, columns, on_missing=on_missing,
                           masks=tuple(columns))
    arrays: dict[str, Any] = {}
    class_names: dict[str, list[str]] = {}
    if target is not None:
        arrays['targets'], names = _targets(dataset, path, target)
        if names:
            class_names['targets'] = names
        del columns['targets']
    advice = ': one field must be named as the --target'
    splits = split_rows(dataset.num_examples, hold_out, seed, stratify,
                        arrays.get('targets'), advice)
    found = columns_of(dataset, list(columns), fill, splits['train'])
    return write_file(
        output_directory, output_filename, [path],
        divided({**arrays, **found}.items(), hold_out, seed, stratify,
                advice),
        {**dict.fromkeys(found, LABELS[:1]), **dict.fromkeys(arrays, LABELS)},
        {'class_names': class_names, 'fill_values': filled_by(found)})


def _fields_of(path: str) -> tuple[list[str], list[str]]:
    """Return the names of all fields of the first records of a file, and the
    names of fields that have values only in later records."""
    file = raw_file_at(path)
    records = RecordFile(
        file, RecordIndex(file, blank=BLANK), parse_objects)
    known = known_fields(FirstRecords(records, SAMPLE).records(), path)
    later = {'/'.join(keys) for first, last in records.groups(
                 SAMPLE, len(records.index))
             for record in records.records(numpy.arange(first, last))
             for keys, value in fields_in(record)
             if value is not None and value != {}}
    return list(known), sorted(later.difference(known))


def _targets(dataset: JSONLDataset, path: str, name: str,
             ) -> tuple[Array, list[str]]:
    """Return a field as numbers, and the names of the classes of text."""
    values, are_missing = read_with_mask(dataset, 'targets')
    missing = numpy.flatnonzero(are_missing)
    if len(missing):
        raise BadInputFile(
            path, f'field {name!r} has no value in {len(missing)} of '
            f'{len(values)} records, the first of them number '
            f'{missing[0]}, from 0')
    is_text = values.dtype.hasobject
    if values.ndim > 1 or (is_text and not all(
            isinstance(value, str) for value in values)):
        raise BadInputFile(path, f'field {name!r} holds neither text nor '
                           f'numbers, such as {values[0]!r:.80}')
    return as_classes(values.tolist()) if is_text else (
        values[:, numpy.newaxis], [])


def fill_subparser(subparser: ArgumentParser) -> Converter:
    """Set up the parser of ``fuel-convert jsonl FILE``."""
    subparser.add_argument('filename', help='name of the file')
    subparser.add_argument(
        '--source', action='append', default=[], dest='sources',
        metavar='SOURCE=FIELD,...',
        help='a source and its fields, such as lang=meta/lang; may be '
        'repeated (default: each field is a source)')
    subparser.add_argument('--target', metavar='FIELD', default=None,
                           help='field for the source targets')
    subparser.add_argument('--ignore', metavar='FIELD', action='append',
                           default=[], help='field to leave out; may be '
                           'repeated')
    subparser.add_argument(
        '--on-missing', choices=('raise', 'null'), default='raise',
        help='a field that a record lacks is an error (raise, the default) '
        'or null')
    add_fill_option(subparser)
    add_split_options(subparser)
    return convert_jsonl
