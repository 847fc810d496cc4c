"""Columns: what of an HDF5 file becomes a source."""
from fuel.datasets.columns.rows import Rows

__all__ = ['Rows']

# Classes are pickled, and shown, under the name that users import.
for _public in (Rows,):
    _public.__module__ = __name__
