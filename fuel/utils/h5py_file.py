"""h5py's class of files, also where a program puts another in its place.

``h5py.File = open_hdf5`` gives loaders that exist Fuel's speed. Fuel itself
needs the class, so it is kept here from the first import on.
"""
from __future__ import annotations

from h5py import File

H5PYFile = File
