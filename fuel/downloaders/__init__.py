"""Downloaders: from the network to raw files that converters read.

`all_downloaders` is a tuple of pairs of a name and a function that fills the
parser of ``fuel-download <name>`` and returns the download function.
"""
from fuel.downloaders import iris, mnist

__all__ = ['all_downloaders', 'iris', 'mnist']

all_downloaders = (
    ('iris', iris.fill_subparser),
    ('mnist', mnist.fill_subparser))
