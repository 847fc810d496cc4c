"""Fuel feeds training loops: data sets, iteration schemes, streams."""
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fuel.config_parser import config
from fuel.version import version as __version__

if TYPE_CHECKING:
    from fuel.loading import load

__all__ = ['__version__', 'config', 'load']


def __getattr__(name: str) -> Any:
    # It needs data sets, which `import fuel` alone does not load.
    if name == 'load':
        return import_module('fuel.loading').load
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
    # With what is loaded on demand.
    return sorted({*globals(), *__all__})
