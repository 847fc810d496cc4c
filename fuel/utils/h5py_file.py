"""Reference to h5py's class `File`, which a program may replace in h5py.

A program may assign ``h5py.File = open_hdf5`` so that existing loaders read
with Fuel. Fuel itself needs the original class, which is kept here at import.
"""
from __future__ import annotations

from h5py import File

H5PYFile = File
