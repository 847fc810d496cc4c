"""Adult: two text files of a census."""
from collections.abc import Sequence
from typing import Any

import numpy

from fuel.converters.base import filler_of, write_file
from fuel.converters.output import LABELS
from fuel.converters.raw.files import BadInputFile, Folder, input_paths

__all__ = ['convert_adult', 'convert_to_one_hot', 'fill_subparser']

FILES = {'train': 'adult.data', 'test': 'adult.test'}
CONTINUOUS = (0, 2, 4, 10, 11, 12)
NUM_FIELDS = 15
CLASSES = {'<=50K': False, '>50K': True}


def convert_adult(directory: Folder, output_directory: Folder,
                  output_filename: str = 'adult.hdf5') -> tuple[str]:
    """Convert Adult to HDF5.

    The file has the splits 'train' (30,162 examples) and 'test' (15,060)
    with the sources 'features', float64 of shape ``(examples, 104)``, and
    'targets', bool of shape ``(examples, 1)``: an income of more than 50,000
    dollars. Records with a missing value are left out. A continuous field is
    one column. A categorical field is one-hot: one column for each of its
    values in either split, in alphabetical order.
    """
    paths = dict(zip(FILES, input_paths(directory, FILES.values()),
                     strict=True))
    records = {split: _read(path) for split, path in paths.items()}
    # All splits have the same columns: a value that is in one split only
    # is a column of zeros in the other split.
    categories = {
        field: sorted({record[field] for split in records.values()
                       for record in split})
        for field in range(NUM_FIELDS - 1) if field not in CONTINUOUS}
    data = []
    for split, path in paths.items():
        data += [(split, 'features', _features(records[split], categories,
                                               path)),
                 (split, 'targets', numpy.array(
                     [[CLASSES[record[-1]]] for record in records[split]],
                     dtype=bool).reshape(-1, 1))]
    return write_file(
        output_directory, output_filename, paths.values(), data,
        {'features': ('batch', 'feature'), 'targets': LABELS})


def _read(path: str) -> list[list[str]]:
    """Return the complete records of a file, each a list of fields."""
    records = []
    with open(path, encoding='ascii', errors='replace') as lines:
        for number, raw_line in enumerate(lines, 1):
            line = raw_line.strip()
            if not line or line.startswith('|'):
                continue
            fields = [field.strip() for field in line.split(',')]
            fields[-1] = fields[-1].removesuffix('.')
            if len(fields) != NUM_FIELDS or fields[-1] not in CLASSES:
                raise BadInputFile(
                    path, f'expected {NUM_FIELDS} fields, the last <=50K or '
                    f'>50K, in line {number}, got {line[:80]!r}')
            if '?' not in fields:
                records.append(fields)
    return records


def _features(records: list[list[str]], categories: dict[int, list[str]],
              path: str) -> numpy.ndarray[Any, Any]:
    blocks = []
    for field in range(NUM_FIELDS - 1):
        column = [record[field] for record in records]
        if field in CONTINUOUS:
            try:
                blocks.append(numpy.array(
                    [float(value) for value in column]).reshape(-1, 1))
            except ValueError as error:
                raise BadInputFile(
                    path, f'expected numbers in field {field + 1}: {error}'
                ) from error
        else:
            codes = numpy.searchsorted(categories[field], column)
            blocks.append(numpy.eye(len(categories[field]))[codes])
    return numpy.concatenate(blocks, axis=1)


def convert_to_one_hot(y: Sequence[int]) -> numpy.ndarray[Any, Any]:
    """Convert integers to one-hot rows.

    `y`: the integers.
    Returns: shape ``(len(y), max(y) - min(y) + 1)``; each row has a one in the
        column of its integer, and zeros elsewhere.

    Examples
    --------
    >>> convert_to_one_hot([1, 3])
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    codes = numpy.asarray(y, dtype='int64')
    codes = codes - codes.min()
    one_hot = numpy.zeros((len(codes), codes.max() + 1))
    one_hot[numpy.arange(len(codes)), codes] = 1
    return one_hot


fill_subparser = filler_of(convert_adult)
