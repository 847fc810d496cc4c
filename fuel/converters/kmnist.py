"""Kuzushiji-MNIST: four files in the format and with the names of MNIST's."""

from fuel.converters.base import filler_of
from fuel.converters.mnist import convert_idx_files
from fuel.converters.raw.files import Folder

__all__ = ['convert_kmnist', 'fill_subparser']


def convert_kmnist(
        directory: Folder, output_directory: Folder,
        output_filename: str = 'kmnist.hdf5') -> tuple[str]:
    """Convert Kuzushiji-MNIST to HDF5.

    The file is like that of MNIST: splits 'train' (60,000 examples) and
    'test' (10,000), sources 'features' and 'targets'.
    """
    return convert_idx_files(directory, output_directory, output_filename,
                             'kmnist')


fill_subparser = filler_of(convert_kmnist)
