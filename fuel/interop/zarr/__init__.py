"""Zarr stores as data sets."""
from fuel.utils.extras import from_extra

with from_extra('zarr', 'zarr'):
    from fuel.interop.zarr.dataset import ZarrDataset

__all__ = ['ZarrDataset']

# Classes are pickled, and shown, under the name that users import.
ZarrDataset.__module__ = __name__
