"""Data sets: the interface to data on disk and in memory."""
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fuel.datasets.adult import Adult
from fuel.datasets.base import Dataset, IndexableDataset, IterableDataset
from fuel.datasets.binarized_mnist import BinarizedMNIST
from fuel.datasets.caltech101_silhouettes import CalTech101Silhouettes
from fuel.datasets.celeba import CelebA
from fuel.datasets.cifar10 import CIFAR10
from fuel.datasets.cifar100 import CIFAR100
from fuel.datasets.dogs_vs_cats import DogsVsCats
from fuel.datasets.emnist import EMNIST
from fuel.datasets.fashion_mnist import FashionMNIST
from fuel.datasets.hdf5 import H5PYDataset
from fuel.datasets.iris import Iris
from fuel.datasets.kmnist import KMNIST
from fuel.datasets.mnist import MNIST
from fuel.datasets.omniglot import Omniglot
from fuel.datasets.stl10 import STL10
from fuel.datasets.stream_dataset import StreamDataset
from fuel.datasets.svhn import SVHN

if TYPE_CHECKING:
    from fuel.datasets.billion import OneBillionWord
    from fuel.datasets.csv import CSVDataset
    from fuel.datasets.npy import NPYDataset
    from fuel.datasets.random_splits import random_split
    from fuel.datasets.text import TextFile

# These need modules that most programs do not: they wait until asked for.
_LATER = {'CSVDataset': 'csv', 'NPYDataset': 'npy',
          'OneBillionWord': 'billion', 'TextFile': 'text',
          'random_split': 'random_splits'}

# Modules with functions and classes of their own.
_MODULES = ('hdf5', 'toy', 'vocabulary')

__all__ = ['CIFAR10', 'CIFAR100', 'EMNIST', 'KMNIST', 'MNIST', 'STL10',
           'SVHN', 'Adult', 'BinarizedMNIST', 'CSVDataset',
           'CalTech101Silhouettes', 'CelebA', 'Dataset', 'DogsVsCats',
           'FashionMNIST', 'H5PYDataset', 'IndexableDataset', 'Iris',
           'IterableDataset', 'NPYDataset', 'Omniglot',
           'OneBillionWord', 'StreamDataset', 'TextFile', 'random_split']


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f'{__name__}.{name}')
    if name not in _LATER:
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    module = import_module(f'{__name__}.{_LATER[name]}')
    return getattr(module, name)


def __dir__() -> list[str]:
    # With what is loaded on demand, and without what is imported here.
    return sorted({*_MODULES, *__all__, *(
        name for name in globals() if name.startswith('__'))})
