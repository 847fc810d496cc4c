"""Utilities for all parts of Fuel: subsets, lazy attributes, paths."""
from typing import TYPE_CHECKING, Any

from fuel.utils.lazy import do_not_pickle_attributes, lazy_property_factory
from fuel.utils.paths import find_in_data_path, remember_cwd

if TYPE_CHECKING:
    from fuel.utils.sequences import buffer_, iterable_fancy_indexing
    from fuel.utils.subset import Subset

__all__ = [
    'Subset',
    'buffer_',
    'do_not_pickle_attributes',
    'find_in_data_path',
    'iterable_fancy_indexing',
    'lazy_property_factory',
    'remember_cwd',
]


def __getattr__(name: str) -> Any:
    # Load these names on demand: they import the kernels, and thereby HDF5,
    # which commands do not need.
    if name == 'Subset':
        from fuel.utils.subset import Subset
        return Subset
    if name in ('buffer_', 'iterable_fancy_indexing'):
        from fuel.utils import sequences
        return getattr(sequences, name)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
    # Include the names that are loaded on demand.
    return sorted({*globals(), *__all__})
