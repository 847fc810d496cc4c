"""The arguments of all data sets that `fuel.load` makes."""
from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from fuel.datasets.built_in import BuiltInDataset
from fuel.datasets.files import FilesDataset
from fuel.datasets.hdf5_dataset import HDF5Dataset
from fuel.layouts.opening import CLASSES
from fuel.suggestions import did_you_mean
from fuel.utils.signatures import keywords_of

# Arguments of `fuel.load` itself.
OWN = 'split', 'layout', 'download', 'url_prefix'
# Classes that need no package to be imported.
COMMON: list[type] = [HDF5Dataset, BuiltInDataset, FilesDataset]


def refuse_misspelled(names: Iterable[str], more: Iterable[str],
                      error: Exception) -> None:
    """Raise TypeError from an error if an argument that no data set takes is
    its cause; its text may speak of an argument that is missing.

    `more`: names of further arguments that some data set takes.
    """
    common = {*OWN, *more, *_keywords_of(COMMON)}
    if common.issuperset(names):
        return
    classes, are_all = _classes()
    known = [*OWN, *dict.fromkeys([*more, *_keywords_of(classes)])]
    for name in names:
        if f'takes no argument {name!r}' in str(error):
            own = did_you_mean(name, OWN)
            if own and 'did you mean' not in str(error):
                raise TypeError(f'{error}; {own}') from error
            return
        hint = did_you_mean(name, known)
        if name not in known and (hint or are_all):
            raise TypeError(
                f'fuel.load takes no argument {name!r}, and no data set does'
                f'{": " * bool(hint)}{hint}') from error


def _keywords_of(classes: Iterable[type]) -> list[str]:
    """Return the names of the arguments of some classes."""
    return [name for cls in classes for name in keywords_of(cls)]


def _classes() -> tuple[list[type], bool]:
    """Return the classes of data sets whose packages are installed, and
    whether all are."""
    found = [*COMMON]
    are_all = True
    for module, name, _ in CLASSES.values():
        try:
            found.append(getattr(import_module(module), name))
        except ImportError:
            are_all = False
    return found, are_all
