"""The Adult (census income) data."""
from typing import Any

from fuel.datasets.hdf5 import H5PYDataset
from fuel.utils import find_in_data_path

__all__ = ['Adult']


class Adult(H5PYDataset):
    """Adult, records of a census.

    Sources: `features`, float64 of shape ``(examples, 104)`` with the axes
    ``('batch', 'feature')``; `targets`, bool of shape ``(examples, 1)`` with
    the axes ``('batch', 'index')``, an income of more than 50,000 dollars.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (30,162 examples) and 'test' (15,060).
    **kwargs
        For :class:`~fuel.datasets.hdf5.H5PYDataset`; `load_in_memory`
        defaults to True.

    Raises
    ------
    FileNotFoundError
        If the data path has no ``adult.hdf5``; ``fuel-download
        adult`` and ``fuel-convert adult`` make it.

    """

    filename: Any = 'adult.hdf5'

    def __init__(self, which_sets: Any, **kwargs: Any) -> None:
        kwargs.setdefault('load_in_memory', True)
        super().__init__(find_in_data_path(self.filename), which_sets,
                         **kwargs)
