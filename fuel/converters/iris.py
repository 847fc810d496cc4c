"""Iris: one text file of 150 flowers."""
import numpy

from fuel.converters.base import filler_of, write_file
from fuel.converters.output import LABELS, Array
from fuel.converters.raw.files import BadInputFile, Folder, input_paths

__all__ = ['convert_iris', 'fill_subparser']

CLASSES = {'Iris-setosa': 0, 'Iris-versicolor': 1, 'Iris-virginica': 2}


def convert_iris(directory: Folder, output_directory: Folder,
                 output_filename: str = 'iris.hdf5') -> tuple[str]:
    """Convert the Iris data to HDF5.

    The file has a split ``'all'`` with the sources 'features', float32 of
    shape ``(150, 4)``, and 'targets', uint8 of shape ``(150, 1)``: 0 is
    Iris-setosa, 1 is Iris-versicolor, 2 is Iris-virginica.
    """
    path, = input_paths(directory, ['iris.data'])
    features, targets = _read(path)
    return write_file(
        output_directory, output_filename, [path],
        [('all', 'features', features), ('all', 'targets', targets)],
        {'features': ('batch', 'feature'), 'targets': LABELS})


def _read(path: str) -> tuple[Array, Array]:
    features, targets = [], []
    with open(path, encoding='ascii', errors='replace') as lines:
        for number, line in enumerate(lines, 1):
            fields = line.strip().split(',')
            if fields == ['']:
                continue
            try:
                *measures, name = fields
                a, b, c, d = (float(field) for field in measures)
                targets.append([CLASSES[name]])
            except (KeyError, ValueError) as error:
                raise BadInputFile(
                    path, f'expected four numbers and one of '
                    f'{", ".join(CLASSES)} in line {number}, got '
                    f'{line.strip()[:60]!r}') from error
            features.append([a, b, c, d])
    if not features:
        raise BadInputFile(path, 'there are no examples')
    return (numpy.array(features, dtype='float32'),
            numpy.array(targets, dtype='uint8'))


fill_subparser = filler_of(convert_iris)
