"""Fuel feeds training loops: data sets, iteration schemes, streams."""
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from fuel.config_parser import config
from fuel.version import version as __version__

if TYPE_CHECKING:
    from fuel import export as export
    from fuel.loading import load
    from fuel.profiling import profile

__all__ = ['__version__', 'config', 'load', 'profile']


# These names need data sets and stages, which `import fuel` does not load.
_LAZY = {'export': 'fuel.export', 'load': 'fuel.loading',
         'profile': 'fuel.profiling'}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        found = import_module(_LAZY[name])
        return found if name == 'export' else getattr(found, name)
    text = f'module {__name__!r} has no attribute {name!r}'
    for module in ('datasets', 'schemes', 'streams', 'transformers'):
        # Import modules for names of classes only: tools look up many other
        # names that do not exist.
        if name[:1].isupper() and name in import_module(
                f'{__name__}.{module}').__all__:
            text += f': it is in {__name__}.{module}'
    if name[:1].islower() and find_spec(f'{__name__}.{name}') is not None:
        text += f' until it is imported: write import {__name__}.{name}'
    raise AttributeError(text)


def __dir__() -> list[str]:
    # Include the names that are loaded on demand, and leave out the names that
    # this module imports.
    return sorted({*__all__, *(
        name for name in globals() if name.startswith('__')
        or f'{__name__}.{name}' in sys.modules)})
