"""Converters: from raw files to HDF5 files that data sets read.

`all_converters` is a tuple of pairs of a name and a function that fills the
parser of ``fuel-convert <name>`` and returns the converter.
"""
from fuel.converters import (adult, binarized_mnist, caltech101_silhouettes,
                             celeba, cifar10, cifar100, csv, dogs_vs_cats,
                             emnist, fashion_mnist, ilsvrc2010, ilsvrc2012,
                             image_folder, iris, kmnist, mnist, npy, omniglot,
                             one_billion_word, parquet, stl10, svhn,
                             youtube_audio)

__version__ = '0.2'

__all__ = ['__version__', 'adult', 'all_converters', 'binarized_mnist',
           'caltech101_silhouettes', 'celeba', 'cifar10', 'cifar100', 'csv',
           'dogs_vs_cats', 'emnist', 'fashion_mnist', 'ilsvrc2010',
           'ilsvrc2012', 'image_folder', 'iris', 'kmnist', 'mnist', 'npy',
           'omniglot', 'one_billion_word', 'parquet', 'stl10', 'svhn',
           'youtube_audio']

all_converters = tuple((name, globals()[name].fill_subparser)
                       for name in __all__
                       if name not in ('__version__', 'all_converters'))
