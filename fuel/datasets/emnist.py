"""EMNIST: handwritten letters and digits."""
import functools
import string
from typing import Any

from fuel.datasets.built_in import DatasetInFormats
from fuel.transformers.defaults import uint8_pixels_to_floatX

__all__ = ['EMNIST']

DIGITS, UPPER, LOWER = (
    string.digits, string.ascii_uppercase, string.ascii_lowercase)
# The small letters that differ from the capital ones.
MERGED = DIGITS + UPPER + 'abdefghnqrt'
CLASSES = {
    'balanced': MERGED, 'byclass': DIGITS + UPPER + LOWER, 'bymerge': MERGED,
    'digits': DIGITS, 'letters': ['', *UPPER], 'mnist': DIGITS}


class EMNIST(DatasetInFormats):
    """EMNIST, images of handwritten letters and digits.

    Sources: `features`, uint8 of shape ``(examples, 1, 28, 28)`` with the
    axes ``('batch', 'channel', 'height', 'width')``, where rows and columns
    change places with regard to MNIST; `targets`, uint8 of shape
    ``(examples, 1)`` with the axes ``('batch', 'index')``. The classes of
    'letters' begin at 1.

    The default transformers scale the images to ``[0, 1]`` in
    ``config.floatX``.

    Parameters
    ----------
    which_format : str
        'balanced' (47 classes), 'byclass' (62), 'bymerge' (47), 'digits'
        (10), 'letters' (26) or 'mnist' (10).
    which_sets : tuple of str
        Among 'train' and 'test'.
    **kwargs
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    _filename = 'emnist_{}.hdf5'
    fits_in_memory = True
    default_transformers = uint8_pixels_to_floatX(('features',))

    @functools.cached_property
    def class_names(self) -> Any:
        """Names of the classes, digits and letters (tuple of str).

        The first of 'letters' is empty, since its classes begin at 1."""
        return tuple(CLASSES[str(self.which_format)])
