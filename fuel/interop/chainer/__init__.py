"""Chainer's data sets and iterators, implemented on Fuel.

Names, arguments and modules are those of Chainer 7:
``from fuel.interop.chainer import dataset, datasets, iterators`` replaces
``from chainer import ...``. Chainer itself is not needed.
"""
from fuel.interop.chainer import dataset, datasets, iterators
from fuel.interop.chainer.dataset import (
    DatasetMixin,
    Iterator,
    cache_or_load_file,
    cached_download,
    concat_examples,
    get_dataset_directory,
    get_dataset_root,
    set_dataset_root,
    to_device,
)
from fuel.interop.chainer.datasets import (
    ConcatenatedDataset,
    DictDataset,
    SubDataset,
    TransformDataset,
    TupleDataset,
    get_cross_validation_datasets,
    get_cross_validation_datasets_random,
    split_dataset,
    split_dataset_n,
    split_dataset_n_random,
    split_dataset_random,
)
from fuel.interop.chainer.from_fuel import as_dataset, as_iterator
from fuel.interop.chainer.iterators import (
    MultiprocessIterator,
    MultithreadIterator,
    OrderSampler,
    SerialIterator,
    ShuffleOrderSampler,
)
from fuel.interop.chainer.to_fuel import ChainerDataset

__all__ = [
    'ChainerDataset', 'ConcatenatedDataset', 'DatasetMixin', 'DictDataset',
    'Iterator', 'MultiprocessIterator', 'MultithreadIterator',
    'OrderSampler', 'SerialIterator', 'ShuffleOrderSampler', 'SubDataset',
    'TransformDataset', 'TupleDataset', 'as_dataset', 'as_iterator',
    'cache_or_load_file', 'cached_download', 'concat_examples', 'dataset',
    'datasets', 'get_cross_validation_datasets',
    'get_cross_validation_datasets_random', 'get_dataset_directory',
    'get_dataset_root', 'iterators', 'set_dataset_root', 'split_dataset',
    'split_dataset_n', 'split_dataset_n_random', 'split_dataset_random',
    'to_device']

# Classes are pickled, and shown, under the name that users import.
for _public in map(globals().get, __all__):
    if isinstance(_public, type):
        _public.__module__ = __name__
