"""CIFAR-100: two pickles in a tar archive."""
from fuel.converters.base import filler_of
from fuel.converters.cifar10 import convert_batches
from fuel.converters.raw.files import Folder, input_paths

__all__ = ['convert_cifar100', 'fill_subparser']

DISTRIBUTION_FILE = 'cifar-100-python.tar.gz'
MEMBERS = {split: [f'cifar-100-python/{split}']
           for split in ('train', 'test')}
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
    return convert_batches(path, output_directory, output_filename,
                           MEMBERS, KEYS)


fill_subparser = filler_of(convert_cifar100)
