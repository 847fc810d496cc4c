"""What every part of Fuel may use: subsets, lazy attributes, paths."""
from fuel.utils.lazy import do_not_pickle_attributes, lazy_property_factory
from fuel.utils.paths import find_in_data_path, remember_cwd
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

# Pickles and error texts name the public path.
Subset.__module__ = __name__
