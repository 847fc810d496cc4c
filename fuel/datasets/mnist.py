"""The MNIST database of handwritten digits."""
from typing import Any

from fuel.datasets.hdf5 import H5PYDataset
from fuel.transformers.defaults import uint8_pixels_to_floatX
from fuel.utils import find_in_data_path

__all__ = ['MNIST']


class MNIST(H5PYDataset):
    """MNIST, 70,000 images of handwritten digits.

    Sources: `features`, uint8 of shape ``(examples, 1, 28, 28)`` with the
    axes ``('batch', 'channel', 'height', 'width')``, grey values from 0 to
    255; `targets`, uint8 of shape ``(examples, 1)`` with the axes
    ``('batch', 'index')``, the digit.

    The default transformers scale the images to ``[0, 1]`` in
    ``config.floatX``.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (60,000 examples) and 'test' (10,000).
    **kwargs
        For :class:`~fuel.datasets.hdf5.H5PYDataset`; `load_in_memory`
        defaults to True.

    Raises
    ------
    FileNotFoundError
        If the data path has no ``mnist.hdf5``; ``fuel-download mnist`` and
        ``fuel-convert mnist`` make it.

    """

    filename: Any = 'mnist.hdf5'
    default_transformers: Any = uint8_pixels_to_floatX(('features',))

    def __init__(self, which_sets: Any, **kwargs: Any) -> None:
        kwargs.setdefault('load_in_memory', True)
        super().__init__(find_in_data_path(self.filename), which_sets,
                         **kwargs)
