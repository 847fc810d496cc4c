"""Data sets: the interface to data on disk and in memory."""
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fuel.datasets.base import Dataset as Dataset
from fuel.datasets.base import IndexableDataset as IndexableDataset
from fuel.datasets.base import IterableDataset as IterableDataset
from fuel.datasets.hdf5 import H5PYDataset as H5PYDataset
from fuel.datasets.stream_dataset import StreamDataset as StreamDataset

if TYPE_CHECKING:
    from fuel.datasets.adult import Adult as Adult
    from fuel.datasets.billion import OneBillionWord as OneBillionWord
    from fuel.datasets.binary import BinaryDataset as BinaryDataset
    from fuel.datasets.binarized_mnist import BinarizedMNIST as BinarizedMNIST
    from fuel.datasets.caltech101_silhouettes import (
        CalTech101Silhouettes as CalTech101Silhouettes)
    from fuel.datasets.celeba import CelebA as CelebA
    from fuel.datasets.cifar10 import CIFAR10 as CIFAR10
    from fuel.datasets.cifar100 import CIFAR100 as CIFAR100
    from fuel.datasets.columns import CSR as CSR
    from fuel.datasets.columns import Categorical as Categorical
    from fuel.datasets.columns import Constant as Constant
    from fuel.datasets.columns import Flat as Flat
    from fuel.datasets.columns import PerRun as PerRun
    from fuel.datasets.columns import PerStep as PerStep
    from fuel.datasets.columns import Ragged as Ragged
    from fuel.datasets.columns import Rows as Rows
    from fuel.datasets.columns import Scaled as Scaled
    from fuel.datasets.csv import CSVDataset as CSVDataset
    from fuel.datasets.dogs_vs_cats import DogsVsCats as DogsVsCats
    from fuel.datasets.files import FilesDataset as FilesDataset
    from fuel.datasets.hdf5_dataset import HDF5Dataset as HDF5Dataset
    from fuel.datasets.imagenet import ILSVRC2010 as ILSVRC2010
    from fuel.datasets.imagenet import ILSVRC2012 as ILSVRC2012
    from fuel.datasets.iris import Iris as Iris
    from fuel.datasets.jsonl import JSONLDataset as JSONLDataset
    from fuel.datasets.mnist import EMNIST as EMNIST
    from fuel.datasets.mnist import KMNIST as KMNIST
    from fuel.datasets.mnist import MNIST as MNIST
    from fuel.datasets.mnist import FashionMNIST as FashionMNIST
    from fuel.datasets.npy import NPYDataset as NPYDataset
    from fuel.datasets.omniglot import Omniglot as Omniglot
    from fuel.datasets.random_splits import random_split as random_split
    from fuel.datasets.runs import Runs as Runs
    from fuel.datasets.shards.mds import MDSDataset as MDSDataset
    from fuel.datasets.shards.tar import TarDataset as TarDataset
    from fuel.datasets.shards.tfrecord import (
        TFRecordDataset as TFRecordDataset)
    from fuel.datasets.stl10 import STL10 as STL10
    from fuel.datasets.svhn import SVHN as SVHN
    from fuel.datasets.text import TextFile as TextFile
    from fuel.datasets.windows import Windows as Windows
    from fuel.datasets.youtube_audio import YouTubeAudio as YouTubeAudio

# These are imported when they are first used, and so are the built-in data
# sets.
_LAZY = {'BinaryDataset': 'binary', 'CSR': 'columns', 'CSVDataset': 'csv',
         'Categorical': 'columns', 'Constant': 'columns',
         'FilesDataset': 'files', 'Flat': 'columns',
         'HDF5Dataset': 'hdf5_dataset', 'JSONLDataset': 'jsonl',
         'MDSDataset': 'shards.mds',
         'NPYDataset': 'npy', 'PerRun': 'columns', 'PerStep': 'columns',
         'Ragged': 'columns', 'Rows': 'columns', 'Runs': 'runs',
         'Scaled': 'columns', 'TFRecordDataset': 'shards.tfrecord',
         'TarDataset': 'shards.tar', 'TextFile': 'text',
         'Windows': 'windows', 'random_split': 'random_splits'}

# Modules with functions and classes of their own.
_MODULES = ('built_in', 'hdf5', 'toy', 'vocabulary')


def __getattr__(name: str) -> Any:
    later = _LAZY if name in _LAZY else {**_LAZY, **_built_in()}
    if name in later:
        return getattr(import_module(f'{__name__}.{later[name]}'), name)
    if name in _MODULES or name in later.values():
        return import_module(f'{__name__}.{name}')
    if name == '__all__':
        return sorted([*later, 'Dataset', 'H5PYDataset', 'IndexableDataset',
                       'IterableDataset', 'StreamDataset'])
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def _built_in() -> dict[str, str]:
    """Return a dict from the name of each registered class to its module."""
    # The registry parses arguments and computes digests, which few programs
    # need.
    from fuel.downloaders.registry import registered
    return {name: module for module, name in (
        facts['class'].split('.') for facts in registered().values())}


def __dir__() -> list[str]:
    # Include the names that are loaded on demand, but not the names that this
    # module imports.
    return sorted({*_MODULES, *__getattr__('__all__'), *(
        name for name in globals() if name.startswith('__'))})
