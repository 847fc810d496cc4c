"""Downloaders: from the network to raw files that converters read.

`all_downloaders` is a tuple of pairs of a name and a function. The function
fills the parser of ``fuel-download <name>`` and returns the download function.
The names are the data sets of ``registry.json``. A data set that needs more
than a list of files has a module here.
"""
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from fuel.downloaders.registry import dataset_names
from fuel.utils.extensions import Filler

all_downloaders: tuple[tuple[str, Filler], ...]


def __getattr__(name: str) -> Any:
    if name == 'all_downloaders':
        return tuple((dataset, _filler_of(dataset))
                     for dataset in dataset_names())
    if name in dataset_names() and find_spec(f'{__name__}.{name}'):
        return import_module(f'{__name__}.{name}')
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def _filler_of(dataset: str) -> Filler:
    if find_spec(f'{__name__}.{dataset}'):
        filler: Filler = import_module(f'{__name__}.{dataset}').fill_subparser
        return filler
    from fuel.downloaders.base import filler_of
    return filler_of(dataset)


def __dir__() -> list[str]:
    return sorted({'all_downloaders', *dataset_names(), *globals()})
