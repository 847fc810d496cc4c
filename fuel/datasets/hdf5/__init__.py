"""Data sets in HDF5 files."""
from importlib import import_module
from typing import TYPE_CHECKING, Any

import h5py  # noqa: F401 (scripts reach it through this module)

from fuel.datasets.hdf5.dataset import H5PYDataset

if TYPE_CHECKING:
    from fuel.datasets.hdf5.costs import EpochCost, epoch_cost
    from fuel.datasets.hdf5.pytables import PytablesDataset

__all__ = ['EpochCost', 'H5PYDataset', 'PytablesDataset', 'epoch_cost']

# Most programs do not use these, so they are imported on first use.
_LAZY = {'EpochCost': 'costs', 'PytablesDataset': 'pytables',
         'epoch_cost': 'costs'}

# Classes are pickled, and shown, under the name that users import.
H5PYDataset.__module__ = __name__


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f'{__name__}.{_LAZY[name]}'), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
