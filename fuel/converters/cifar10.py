"""CIFAR-10: six pickles in a tar archive."""
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy

from fuel.converters.base import (Part, Pieces, filler_of,
                                  write_file)
from fuel.converters.output import IMAGES, LABELS
from fuel.converters.raw.files import BadInputFile, Folder, input_paths
from fuel.converters.raw.pickles import load_arrays
from fuel.converters.raw.tar import open_tar

__all__ = ['convert_cifar10', 'fill_subparser', 'read_batches']

DISTRIBUTION_FILE = 'cifar-10-python.tar.gz'
FOLDER = 'cifar-10-batches-py/'
MEMBERS = {'train': [f'{FOLDER}data_batch_{i}' for i in range(1, 6)],
           'test': [f'{FOLDER}test_batch']}
# A batch of 10,000 images is 31 MB.
MAX_BATCH = 1 << 28

Batch = dict[str, numpy.ndarray[Any, Any]]


def convert_cifar10(directory: Folder, output_directory: Folder,
                    output_filename: str = 'cifar10.hdf5') -> tuple[str]:
    """Convert CIFAR-10 to HDF5.

    The file has the splits 'train' (50,000 examples) and 'test' (10,000)
    with the sources 'features', uint8 of shape ``(examples, 3, 32, 32)`` and
    axes (batch, channel, height, width), and 'targets', uint8 of shape
    ``(examples, 1)``, the class from 0 to 9.
    """
    path, = input_paths(directory, [DISTRIBUTION_FILE])
    return convert_batches(path, output_directory, output_filename,
                           MEMBERS, {'targets': 'labels'})


def convert_batches(path: str, output_directory: Folder, output_filename: str,
                    members: Mapping[str, list[str]], labels: dict[str, str]
                    ) -> tuple[str]:
    """Convert the pickled batches of an archive; see `read_batches`.

    In the HDF5 file, the batches of a split follow each other.
    """
    def data() -> Iterator[Part]:
        batches = read_batches(path, chain(*members.values()), labels)
        for split, names in members.items():
            for source in ('features', *labels):
                yield split, source, Pieces([batches[name][source]
                                             for name in names])

    return write_file(output_directory, output_filename, [path], data(),
                      {'features': IMAGES, **dict.fromkeys(labels, LABELS)})


def read_batches(path: str, names: Iterable[str],
                 labels: dict[str, str]) -> dict[str, Batch]:
    """Read the pickled batches of an archive, in one pass over the archive.

    `path`: the archive.
    `names`: the members that are needed.
    `labels`: a mapping from each source of labels to its key in the pickled
        dictionaries.
    Returns: a mapping from each member to its sources: 'features' and the
        sources in `labels`.
    """
    missing = list(names)
    batches = {}
    with open_tar(path) as archive:
        for member in archive.walk(MAX_BATCH):
            if member.name in missing:
                missing.remove(member.name)
                content = archive.read(member)
                where = f'{path}: {member.name}'
                batches[member.name] = _read_batch(
                    load_arrays(content, where), where, labels)
            if not missing:
                break
    if missing:
        raise BadInputFile(path, f'there is no member {missing[0]!r}')
    return batches


def _read_batch(batch: Mapping[str, Any], where: str, labels: dict[str, str]
                ) -> Batch:
    try:
        features = numpy.asarray(batch['data'])
        if features.dtype != 'uint8':
            raise TypeError(f'data of type {features.dtype}')
        features = features.reshape(-1, 3, 32, 32)
        sources: Batch = {'features': features}
        for source, key in labels.items():
            column = numpy.asarray(batch[key])
            if column.dtype.kind not in 'iu':
                raise TypeError(f'{key} of type {column.dtype}')
            if column.size and (column.min() < 0 or column.max() > 255):
                raise ValueError(f'{key} from {column.min()} to '
                                 f'{column.max()}')
            sources[source] = column.astype('uint8').reshape(-1, 1)
    except (KeyError, TypeError, ValueError) as error:
        raise BadInputFile(where, 'expected images of 3072 bytes and '
                           f'labels, got {error}') from error
    lengths = {name: len(array) for name, array in sources.items()}
    if len(set(lengths.values())) > 1:
        raise BadInputFile(where, 'expected as many labels as images, got '
                           f'{lengths}')
    return sources


fill_subparser = filler_of(convert_cifar10)
