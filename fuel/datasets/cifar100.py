"""Tiny colour images of a hundred classes."""
from typing import Any

from fuel.datasets.hdf5 import H5PYDataset
from fuel.transformers.defaults import uint8_pixels_to_floatX
from fuel.utils import find_in_data_path

__all__ = ['CIFAR100']


class CIFAR100(H5PYDataset):
    """CIFAR-100, 60,000 tiny images of a hundred classes.

    Sources, in this order: `coarse_labels`, uint8 of shape ``(examples, 1)``
    with the axes ``('batch', 'index')``, from 0 to 19; `features`, uint8 of
    shape ``(examples, 3, 32, 32)`` with the axes ``('batch', 'channel',
    'height', 'width')``; `fine_labels`, like the coarse ones, from 0 to 99.

    The default transformers scale the images to ``[0, 1]`` in
    ``config.floatX``.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (50,000 examples) and 'test' (10,000).
    **kwargs
        For :class:`~fuel.datasets.hdf5.H5PYDataset`; `load_in_memory`
        defaults to True.

    Raises
    ------
    FileNotFoundError
        If the data path has no ``cifar100.hdf5``; ``fuel-download
        cifar100`` and ``fuel-convert cifar100`` make it.

    """

    filename: Any = 'cifar100.hdf5'
    default_transformers: Any = uint8_pixels_to_floatX(('features',))

    def __init__(self, which_sets: Any, **kwargs: Any) -> None:
        kwargs.setdefault('load_in_memory', True)
        super().__init__(find_in_data_path(self.filename), which_sets,
                         **kwargs)
