"""The Adult (census income) data."""
from fuel.datasets.built_in import BuiltInDataset

__all__ = ['Adult']


class Adult(BuiltInDataset):
    """Adult, records of a census.

    Sources: `features`, float64 of shape ``(examples, 104)`` with the axes
    ``('batch', 'feature')``; `targets`, bool of shape ``(examples, 1)`` with
    the axes ``('batch', 'index')``, True for an income of more than 50,000
    dollars.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (30,162 examples) and 'test' (15,060).
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'adult.hdf5'
    class_names = ('<=50K', '>50K')
    fits_in_memory = True
