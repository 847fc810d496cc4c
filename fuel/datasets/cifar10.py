"""Tiny colour images of ten classes."""
from typing import Any

from fuel.datasets.hdf5 import H5PYDataset
from fuel.transformers.defaults import uint8_pixels_to_floatX
from fuel.utils import find_in_data_path

__all__ = ['CIFAR10']


class CIFAR10(H5PYDataset):
    """CIFAR-10, 60,000 tiny images of ten classes.

    Sources: `features`, uint8 of shape ``(examples, 3, 32, 32)`` with the
    axes ``('batch', 'channel', 'height', 'width')``; `targets`, uint8 of
    shape ``(examples, 1)`` with the axes ``('batch', 'index')``: 0 airplane,
    1 automobile, 2 bird, 3 cat, 4 deer, 5 dog, 6 frog, 7 horse, 8 ship, 9
    truck.

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
        If the data path has no ``cifar10.hdf5``; ``fuel-download
        cifar10`` and ``fuel-convert cifar10`` make it.

    """

    filename: Any = 'cifar10.hdf5'
    default_transformers: Any = uint8_pixels_to_floatX(('features',))

    def __init__(self, which_sets: Any, **kwargs: Any) -> None:
        kwargs.setdefault('load_in_memory', True)
        super().__init__(find_in_data_path(self.filename), which_sets,
                         **kwargs)
