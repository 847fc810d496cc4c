"""The data sets that commands know: Fuel's own, and other packages'."""
import importlib
import logging
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ['find_datasets']

log = logging.getLogger(__name__)

Filler = Callable[[Any], Callable[..., Any]]


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
