"""Handwritten characters of fifty alphabets."""
from typing import Any

from fuel.datasets.hdf5 import H5PYDataset
from fuel.utils import find_in_data_path

__all__ = ['Omniglot']


class Omniglot(H5PYDataset):
    """Omniglot, 1,623 characters, each drawn by twenty people.

    Sources: `alphabets`, uint8 of shape ``(examples, 1)`` with the axes
    ``('batch', 'index')``; `drawers`, uint8, likewise, from 1 to 20;
    `features`, uint8 of shape ``(examples, 1, 105, 105)`` with the axes
    ``('batch', 'channel', 'height', 'width')``, 1 for paper and 0 for ink;
    `targets`, int16, the character, like the alphabets.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'background' (19,280 examples) and 'evaluation' (13,180).
    **kwargs
        For :class:`~fuel.datasets.hdf5.H5PYDataset`; `load_in_memory`
        defaults to True.

    Raises
    ------
    FileNotFoundError
        If the data path has no ``omniglot.hdf5``; ``fuel-download
        omniglot`` and ``fuel-convert omniglot`` make it.

    """

    filename: Any = 'omniglot.hdf5'

    def __init__(self, which_sets: Any, **kwargs: Any) -> None:
        kwargs.setdefault('load_in_memory', True)
        super().__init__(find_in_data_path(self.filename), which_sets,
                         **kwargs)
