"""The data sets that commands know: Fuel's own, and other packages'."""
import importlib
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from fuel import config
from fuel.exceptions import ConfigurationError

__all__ = ['check_settings', 'find_datasets', 'registered']

# Fills the parser of a data set; returns what converts or downloads it.
Filler = Callable[[ArgumentParser], Callable[..., Any]]


def _give_up(program: str, error: Exception) -> NoReturn:
    text = ' '.join(str(error).split())
    print(f'{program}: {text}', file=sys.stderr)
    sys.exit(2)


def check_settings(program: str) -> None:
    """Read the configuration file; end the command if it is invalid."""
    try:
        config.load_yaml()
    except ConfigurationError as error:
        _give_up(program, error)


def registered(program: str, package: str, kind: str) -> dict[str, Filler]:
    """Return the data sets that a command knows; end it if a package is
    missing. `kind` is ``'downloaders'`` or ``'converters'``."""
    check_settings(program)
    setting = f'extra_{kind}'
    try:
        return find_datasets(package, getattr(config, setting),
                             f'all_{kind}')
    except ConfigurationError as error:
        _give_up(program, error)
    except ImportError as error:
        _give_up(program, ImportError(
            f'the setting {setting!r} ({config.origin(setting)}) names '
            f'modules that cannot be used: {error}'))


def find_datasets(package: str, extra_packages: Iterable[str],
                  attribute: str) -> dict[str, Filler]:
    """Return what fills the parser of each data set of several packages;
    ImportError if one lacks the attribute, and ValueError if two of them
    have a data set of one name."""
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
                raise ValueError(
                    f'{attribute}: the data set {dataset!r} of {name} has '
                    f'the name of one of {origin[dataset]}; rename it')
            found[dataset], origin[dataset] = filler, name
    return found
