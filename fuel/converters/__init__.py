"""Converters: from raw files to HDF5 files that data sets read.

`all_converters` is a tuple of pairs of a name and a function that fills the
parser of ``fuel-convert <name>`` and returns the converter.
"""
from fuel.converters import iris, mnist

__version__ = '0.2'

__all__ = ['__version__', 'all_converters', 'iris', 'mnist']

all_converters = (
    ('iris', iris.fill_subparser),
    ('mnist', mnist.fill_subparser))
