"""The MNIST database of handwritten digits."""
from fuel.datasets.built_in import BuiltInImages

__all__ = ['MNIST']


class MNIST(BuiltInImages):
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
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'mnist.hdf5'
    class_names = (*'0123456789',)
    fits_in_memory = True
