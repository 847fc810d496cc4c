"""The data sets that commands know: Fuel's own, and other packages'."""
import importlib
import logging
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from fuel import config
from fuel.exceptions import ConfigurationError

__all__ = ['check_settings', 'find_datasets', 'registered']

log = logging.getLogger(__name__)

Filler = Callable[[Any], Callable[..., Any]]


def _give_up(program: str, error: Exception) -> NoReturn:
    text = ' '.join(str(error).split())
    print(f'{program}: {text}', file=sys.stderr)
    sys.exit(2)


def check_settings(program: str) -> None:
    """Read the configuration file; end the command if it is of no use.

    Parameters
    ----------
    program : str
        Name of the command, for the message.
    """
    try:
        config.load_yaml()
    except ConfigurationError as error:
        _give_up(program, error)


def registered(program: str, package: str, kind: str) -> dict[str, Filler]:
    """Return the data sets a command knows; end it if they cannot be had.

    Parameters
    ----------
    program : str
        Name of the command, for the message.
    package : str
        Name of Fuel's own package.
    kind : str
        ``'downloaders'`` or ``'converters'``.

    Returns
    -------
    dict of str to callable
        As of `find_datasets`.
    """
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
    """Gather the data sets of several packages.

    Parameters
    ----------
    package : str
        Name of Fuel's own package.
    extra_packages : iterable of str
        Names of further modules. A data set of theirs takes the place of one
        of the same name before it.
    attribute : str
        Name of the tuple of pairs: ``'all_downloaders'`` or
        ``'all_converters'``.

    Returns
    -------
    dict of str to callable
        What fills the parser of each data set.

    Raises
    ------
    ImportError
        If a module cannot be imported, or lacks the attribute.
    """
    found: dict[str, Filler] = {}
    for name in [package, *extra_packages]:
        module = importlib.import_module(name)
        if not hasattr(module, attribute):
            raise ImportError(
                f'module {name!r}, named by the setting of extra '
                f'{attribute.removeprefix("all_")}, has no {attribute!r}')
        for dataset, filler in getattr(module, attribute):
            if dataset in found:
                log.info('%s: %r of %s replaces the one before',
                         attribute, dataset, name)
            found[dataset] = filler
    return found
