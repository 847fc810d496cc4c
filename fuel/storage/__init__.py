"""How bytes leave an HDF5 file."""
from typing import TYPE_CHECKING, Any

from fuel.storage.reader import Reader
from fuel.storage.reader_choice import open_reader

if TYPE_CHECKING:
    from fuel.storage.description import Description, describe

__all__ = ['Description', 'Reader', 'describe', 'open_reader']


def __getattr__(name: str) -> Any:
    # Only programs that show files describe them.
    if name not in ('Description', 'describe'):
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    from fuel.storage import description
    return getattr(description, name)
