"""EMNIST: handwritten letters and digits."""
from typing import Any

from fuel.datasets.hdf5 import H5PYDataset
from fuel.transformers.defaults import uint8_pixels_to_floatX
from fuel.utils import find_in_data_path

__all__ = ['EMNIST']


class EMNIST(H5PYDataset):
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
        For :class:`~fuel.datasets.hdf5.H5PYDataset`; `load_in_memory`
        defaults to True.

    Raises
    ------
    FileNotFoundError
        If the data path has no ``emnist_<which_format>.hdf5``;
        ``fuel-download emnist`` and ``fuel-convert emnist`` make it.

    """

    _filename: Any = 'emnist_{}.hdf5'
    default_transformers: Any = uint8_pixels_to_floatX(('features',))

    def __init__(self, which_format: Any, which_sets: Any,
                 **kwargs: Any) -> None:
        self.which_format = which_format
        kwargs.setdefault('load_in_memory', True)
        super().__init__(find_in_data_path(self.filename), which_sets,
                         **kwargs)

    @property
    def filename(self) -> Any:
        """Name of the file, which depends on the set."""
        return self._filename.format(self.which_format)
