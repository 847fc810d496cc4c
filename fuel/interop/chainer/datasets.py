"""What ``chainer.datasets`` has to combine and split data sets."""
from fuel.interop.chainer.combining import (
    ConcatenatedDataset,
    DictDataset,
    TransformDataset,
    TupleDataset,
)
from fuel.interop.chainer.subsets import (
    SubDataset,
    get_cross_validation_datasets,
    get_cross_validation_datasets_random,
    split_dataset,
    split_dataset_n,
    split_dataset_n_random,
    split_dataset_random,
)

__all__ = ['ConcatenatedDataset', 'DictDataset', 'SubDataset',
           'TransformDataset', 'TupleDataset',
           'get_cross_validation_datasets',
           'get_cross_validation_datasets_random', 'split_dataset',
           'split_dataset_n', 'split_dataset_n_random',
           'split_dataset_random']
