"""Data sets in HDF5 files."""
import h5py  # noqa: F401 (scripts reach it through this module)

from fuel.datasets.hdf5.dataset import H5PYDataset
from fuel.datasets.hdf5.pytables import PytablesDataset

__all__ = ['H5PYDataset', 'PytablesDataset']

# Classes are pickled, and shown, under the name that users import.
H5PYDataset.__module__ = PytablesDataset.__module__ = __name__
