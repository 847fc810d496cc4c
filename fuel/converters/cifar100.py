"""CIFAR-100: two pickles in a tar archive."""

from collections.abc import Iterator

from fuel.converters.base import Part, filler_of, write_file
from fuel.converters.cifar10 import read_batches
from fuel.converters.output import IMAGES, LABELS
from fuel.converters.raw.files import Folder, input_paths

__all__ = ['convert_cifar100', 'fill_subparser']

DISTRIBUTION_FILE = 'cifar-100-python.tar.gz'
MEMBERS = {'train': 'cifar-100-python/train',
           'test': 'cifar-100-python/test'}
KEYS = {'coarse_labels': 'coarse_labels', 'fine_labels': 'fine_labels'}


def convert_cifar100(directory: Folder, output_directory: Folder,
                     output_filename: str = 'cifar100.hdf5') -> tuple[str]:
    """Convert CIFAR-100 to HDF5.

    The file has the splits 'train' (50,000 examples) and 'test' (10,000)
    with the sources 'features', uint8 of shape ``(examples, 3, 32, 32)`` and
    axes (batch, channel, height, width), 'coarse_labels' and 'fine_labels',
    uint8 of shape ``(examples, 1)``: 0 to 19 and 0 to 99.
    """
    path, = input_paths(directory, [DISTRIBUTION_FILE])

    def data() -> Iterator[Part]:
        batches = read_batches(path, MEMBERS.values(), KEYS)
        for split, name in MEMBERS.items():
            for source in ('features', *KEYS):
                yield split, source, batches[name][source]

    return write_file(output_directory, output_filename, [path], data(),
                      {'features': IMAGES, **dict.fromkeys(KEYS, LABELS)})

fill_subparser = filler_of(convert_cifar100)
