"""Converters: from raw files to HDF5 files that data sets read.

`all_converters` is a tuple of pairs of a name and a function. The function
fills the parser of ``fuel-convert <name>`` and returns the converter. The
names are the data sets of ``registry.json`` and formats of users' own data.
"""
from importlib import import_module
from typing import Any

from fuel.downloaders.registry import dataset_names
from fuel.utils.extensions import Filler

__version__ = '0.2'

# Formats of users' own data, with a description.
OWN = {
    'audio_folder': 'audio files, one folder for each class',
    'csv': 'a table in a CSV file, one example a line',
    'image_folder': 'photographs, one folder for each class',
    'jsonl': 'records in a file of JSON lines',
    'npy': 'arrays in .npy or .npz files',
    'parquet': 'a table in Parquet files',
    'tokens': 'texts, as the tokens of a language model'}

all_converters: tuple[tuple[str, Filler], ...]


def __getattr__(name: str) -> Any:
    names = sorted([*dataset_names(), *OWN])
    if name == 'all_converters':
        return tuple((one, import_module(f'{__name__}.{one}').fill_subparser)
                     for one in names)
    if name in names:
        return import_module(f'{__name__}.{name}')
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
    return sorted({'all_converters', *dataset_names(), *globals()})
