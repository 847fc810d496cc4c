"""Data sets: the interface to data on disk and in memory."""
from fuel.datasets.adult import Adult
from fuel.datasets.base import Dataset, IndexableDataset, IterableDataset
from fuel.datasets.billion import OneBillionWord
from fuel.datasets.binarized_mnist import BinarizedMNIST
from fuel.datasets.caltech101_silhouettes import CalTech101Silhouettes
from fuel.datasets.celeba import CelebA
from fuel.datasets.cifar10 import CIFAR10
from fuel.datasets.cifar100 import CIFAR100
from fuel.datasets.csv import CSVDataset
from fuel.datasets.dogs_vs_cats import DogsVsCats
from fuel.datasets.emnist import EMNIST
from fuel.datasets.fashion_mnist import FashionMNIST
from fuel.datasets.hdf5 import H5PYDataset
from fuel.datasets.iris import Iris
from fuel.datasets.kmnist import KMNIST
from fuel.datasets.mnist import MNIST
from fuel.datasets.npy import NPYDataset
from fuel.datasets.omniglot import Omniglot
from fuel.datasets.stl10 import STL10
from fuel.datasets.svhn import SVHN
from fuel.datasets.text import TextFile

__all__ = ['CIFAR10', 'CIFAR100', 'EMNIST', 'KMNIST', 'MNIST', 'STL10',
           'SVHN', 'Adult', 'BinarizedMNIST', 'CSVDataset',
           'CalTech101Silhouettes', 'CelebA', 'Dataset', 'DogsVsCats',
           'FashionMNIST', 'H5PYDataset', 'IndexableDataset', 'Iris',
           'IterableDataset', 'NPYDataset', 'Omniglot',
           'OneBillionWord', 'TextFile']
