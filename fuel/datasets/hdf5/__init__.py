"""Data sets in HDF5 files."""
import h5py  # noqa: F401 (scripts reach it through this module)

from fuel.datasets.hdf5.dataset import H5PYDataset
from fuel.datasets.hdf5.costs import EpochCost, epoch_cost
from fuel.datasets.hdf5.pytables import PytablesDataset

__all__ = ['EpochCost', 'H5PYDataset', 'PytablesDataset', 'epoch_cost']

# Classes are pickled, and shown, under the name that users import.
for _public in (EpochCost, H5PYDataset, PytablesDataset, epoch_cost):
    _public.__module__ = __name__
