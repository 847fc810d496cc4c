"""How bytes leave an HDF5 file."""
from typing import TYPE_CHECKING, Any

from fuel.storage._ahead import RequestsAhead
from fuel.storage._open import open_reader
from fuel.storage._reader import Reader

if TYPE_CHECKING:
    from fuel.storage._describe import Description, describe

__all__ = ['Description', 'Reader', 'RequestsAhead', 'describe', 'open_reader']


def __getattr__(name: str) -> Any:
    # Only programs that show files describe them.
    if name not in ('Description', 'describe'):
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    from fuel.storage import _describe
    return getattr(_describe, name)
