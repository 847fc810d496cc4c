"""Read the bytes of data sets in HDF5 files."""
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fuel.storage.layout import Description, describe
from fuel.storage.reader import Reader
from fuel.storage.reader_choice import choose_reader, open_parts

if TYPE_CHECKING:
    from fuel.storage.hdf5_file import HDF5Array, HDF5Group, open_hdf5

__all__ = ['Description', 'HDF5Array', 'HDF5Group', 'Reader', 'choose_reader',
           'describe', 'open_hdf5', 'open_parts']


def __getattr__(name: str) -> Any:
    # Only programs that use h5py's names need this module.
    if name in ('HDF5Array', 'HDF5Group', 'open_hdf5'):
        return getattr(import_module('fuel.storage.hdf5_file'), name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
