"""MNIST, handwritten digits, and other data sets of the same form."""
import functools
import string
from typing import Any

from fuel.datasets.built_in import BuiltInImages, DatasetInFormats
from fuel.transformers.defaults import uint8_pixels_to_floatX

__all__ = ['EMNIST', 'KMNIST', 'MNIST', 'FashionMNIST']

DIGITS, UPPER, LOWER = (
    string.digits, string.ascii_uppercase, string.ascii_lowercase)
# The small letters that differ from the capital ones.
MERGED = DIGITS + UPPER + 'abdefghnqrt'
CLASSES = {
    'balanced': MERGED, 'byclass': DIGITS + UPPER + LOWER, 'bymerge': MERGED,
    'digits': DIGITS, 'letters': ['', *UPPER], 'mnist': DIGITS}


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
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'mnist.hdf5'
    class_names = (*'0123456789',)
    fits_in_memory = True


class EMNIST(DatasetInFormats):
    """EMNIST, images of handwritten letters and digits.

    Sources: `features`, uint8 of shape ``(examples, 1, 28, 28)`` with the axes
    ``('batch', 'channel', 'height', 'width')``, where rows and columns are
    swapped in comparison with MNIST; `targets`, uint8 of shape ``(examples,
    1)`` with the axes ``('batch', 'index')``. The classes of 'letters' begin
    at 1.

    The default transformers scale the images to ``[0, 1]`` in
    ``config.floatX``.

    Parameters
    ----------
    which_format : str
        'balanced' (47 classes), 'byclass' (62), 'bymerge' (47), 'digits'
        (10), 'letters' (26) or 'mnist' (10).
    which_sets : tuple of str
        Among 'train' and 'test'.
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    _filename = 'emnist_{}.hdf5'
    fits_in_memory = True
    default_transformers = uint8_pixels_to_floatX(('features',))

    @functools.cached_property
    def class_names(self) -> Any:
        """Names of the classes, digits and letters (tuple of str).

        The first name of 'letters' is empty, since the classes of 'letters'
        begin at 1."""
        return tuple(CLASSES[str(self.which_format)])


class FashionMNIST(BuiltInImages):
    """Fashion-MNIST, 70,000 images of articles of clothing.

    Sources: `features`, uint8 of shape ``(examples, 1, 28, 28)`` with the
    axes ``('batch', 'channel', 'height', 'width')``; `targets`, uint8 of
    shape ``(examples, 1)`` with the axes ``('batch', 'index')``: 0 T-shirt,
    1 trouser, 2 pullover, 3 dress, 4 coat, 5 sandal, 6 shirt, 7 sneaker, 8
    bag, 9 ankle boot.

    The default transformers scale the images to ``[0, 1]`` in
    ``config.floatX``.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (60,000 examples) and 'test' (10,000).
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'fashion_mnist.hdf5'
    class_names = (
        'T-shirt', 'trouser', 'pullover', 'dress', 'coat', 'sandal', 'shirt',
        'sneaker', 'bag', 'ankle boot')
    fits_in_memory = True


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
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'kmnist.hdf5'
    class_names = ('o', 'ki', 'su', 'tsu', 'na', 'ha', 'ma', 'ya', 're', 'wo')
    fits_in_memory = True
