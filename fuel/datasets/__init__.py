"""Data sets: the interface to data on disk and in memory."""
from fuel.datasets.base import Dataset, IndexableDataset, IterableDataset
from fuel.datasets.hdf5 import H5PYDataset
from fuel.datasets.iris import Iris
from fuel.datasets.mnist import MNIST

__all__ = ['MNIST', 'Dataset', 'H5PYDataset', 'IndexableDataset', 'Iris',
           'IterableDataset']
