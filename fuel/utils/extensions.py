"""Data sets that other packages add to Fuel's own, by name."""
from __future__ import annotations

import importlib
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from typing import Any

from fuel.exceptions import ConfigurationError

# Fills the parser of a data set; returns what converts or downloads it.
Filler = Callable[[ArgumentParser], Callable[..., Any]]


def find_datasets(package: str, extra_packages: Iterable[str],
                  attribute: str) -> dict[str, Filler]:
    """Return what fills the parser of each data set of several packages;
    ImportError if one lacks the attribute, and ConfigurationError if two of
    them have a data set of one name."""
    found: dict[str, Filler] = {}
    origin: dict[str, str] = {}
    for name in [package, *extra_packages]:
        module = importlib.import_module(name)
        if not hasattr(module, attribute):
            raise ImportError(
                f'module {name!r}, named by the setting of extra '
                f'{attribute.removeprefix("all_")}, has no {attribute!r}')
        for dataset, filler in getattr(module, attribute):
            if dataset in found:
                raise ConfigurationError(
                    f'names conflict: {attribute!r} of the module {name!r} '
                    f'and of {origin[dataset]!r} have a data set '
                    f'{dataset!r}; rename it in {name!r}, or leave that out '
                    f'of the setting extra_{attribute.removeprefix("all_")}')
            found[dataset], origin[dataset] = filler, name
    return found
