"""Fill the parsers of data sets, including those of other packages."""
from __future__ import annotations

import importlib
from argparse import Action, ArgumentParser
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from fuel.exceptions import ConfigurationError

# Fills the parser of a data set; returns the function that converts or
# downloads the data set.
Filler = Callable[[ArgumentParser], Callable[..., Any]]
F = TypeVar('F', bound=Callable[..., Any])


def filler_of(function: F, *flags: str, **settings: Any
              ) -> Callable[[ArgumentParser], F]:
    """Return a function that fills the parser of a converter or downloader.

    `flags`, `settings`: flags and settings of the only argument that is added
        to the common arguments; without flags, no argument is added.
    """
    def fill_subparser(subparser: ArgumentParser) -> F:
        """Set up the parser; return the function."""
        if flags:
            subparser.add_argument(*flags, **settings)
        return function

    return fill_subparser


class NotingParser(ArgumentParser):
    """Parser that records the names of its positional arguments.

    `positional`: these names, including those of arguments in groups.
    """

    def __init__(self, **settings: Any) -> None:
        self.positional: list[str] = []
        super().__init__(**settings)

    def add_argument(self, *args: Any, **settings: Any) -> Action:
        """Add an argument; record its name if it is positional."""
        return self._noted(super().add_argument(*args, **settings))

    def add_argument_group(self, *args: Any, **settings: Any) -> Any:
        """Add a group of arguments whose names are recorded too."""
        group: Any = super().add_argument_group(*args, **settings)
        add = group.add_argument
        group.add_argument = lambda *args, **settings: self._noted(
            add(*args, **settings))
        return group

    def _noted(self, action: Action) -> Action:
        if not action.option_strings:
            self.positional.append(action.dest)
        return action


def find_datasets(package: str, extra_packages: Iterable[str],
                  attribute: str) -> dict[str, Filler]:
    """Return a mapping from the names of the data sets of several packages to
    the functions that fill their parsers.

    Raises: ImportError if a package lacks the attribute; ConfigurationError
        if two data sets have the same name.
    """
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
