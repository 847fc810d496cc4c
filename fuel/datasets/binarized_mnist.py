"""MNIST with pixels that are 0 or 1."""
from collections.abc import Sequence
from typing import Unpack

from fuel.datasets.built_in import BuiltInDataset
from fuel.datasets.options import HDF5Options

__all__ = ['BinarizedMNIST']


class BinarizedMNIST(BuiltInDataset):
    """Binarized MNIST, 70,000 images of zeros and ones.

    Source: `features`, uint8 of shape ``(examples, 1, 28, 28)`` with the
    axes ``('batch', 'channel', 'height', 'width')``. There are no targets.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (50,000 examples), 'valid' and 'test' (10,000 each).
    load_in_memory : bool, optional
        Default True.
    subset, driver, sort_indices, cache_bytes, storage_options, splits
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'binarized_mnist.hdf5'

    def __init__(self, which_sets: Sequence[str],
                 load_in_memory: bool = True,
                 **kwargs: Unpack[HDF5Options]) -> None:
        super().__init__(which_sets, load_in_memory=load_in_memory, **kwargs)
