"""Tiny colour images of a hundred classes."""
from fuel.datasets.built_in import BuiltInDataset
from fuel.transformers.defaults import uint8_pixels_to_floatX

__all__ = ['CIFAR100']


class CIFAR100(BuiltInDataset):
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
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'cifar100.hdf5'
    fits_in_memory = True
    default_transformers = uint8_pixels_to_floatX(('features',))
