"""Kuzushiji-MNIST: images of cursive Japanese characters."""
from fuel.datasets.built_in import BuiltInImages

__all__ = ['KMNIST']


class KMNIST(BuiltInImages):
    """Kuzushiji-MNIST, 70,000 images of cursive Japanese characters.

    Sources: `features`, uint8 of shape ``(examples, 1, 28, 28)`` with the
    axes ``('batch', 'channel', 'height', 'width')``; `targets`, uint8 of
    shape ``(examples, 1)`` with the axes ``('batch', 'index')``: the
    characters o, ki, su, tsu, na, ha, ma, ya, re, wo.

    The default transformers scale the images to ``[0, 1]`` in
    ``config.floatX``.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (60,000 examples) and 'test' (10,000).
    **kwargs
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'kmnist.hdf5'
    class_names = ('o', 'ki', 'su', 'tsu', 'na', 'ha', 'ma', 'ya', 're', 'wo')
    fits_in_memory = True
