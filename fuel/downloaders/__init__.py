"""Downloaders: from the network to raw files that converters read.

`all_downloaders` is a tuple of pairs of a name and a function that fills the
parser of ``fuel-download <name>`` and returns the download function.
"""
from fuel.downloaders import (
    adult, binarized_mnist, caltech101_silhouettes, celeba, cifar10, cifar100,
    dogs_vs_cats, emnist, fashion_mnist, ilsvrc2010, ilsvrc2012, iris, kmnist,
    mnist, omniglot, one_billion_word, stl10, svhn, youtube_audio)

__all__ = ['adult', 'all_downloaders', 'binarized_mnist',
           'caltech101_silhouettes', 'celeba', 'cifar10', 'cifar100',
           'dogs_vs_cats', 'emnist', 'fashion_mnist', 'ilsvrc2010',
           'ilsvrc2012', 'iris', 'kmnist', 'mnist', 'omniglot',
           'one_billion_word', 'stl10', 'svhn', 'youtube_audio']

all_downloaders = tuple((name, globals()[name].fill_subparser)
                        for name in __all__ if name != 'all_downloaders')
