"""Handwritten characters of fifty alphabets."""
from fuel.datasets.built_in import BuiltInDataset

__all__ = ['Omniglot']


class Omniglot(BuiltInDataset):
    """Omniglot, 1,623 characters, each drawn by twenty people.

    Sources: `alphabets`, uint8 of shape ``(examples, 1)`` with the axes
    ``('batch', 'index')``; `drawers`, uint8 of the same shape and axes, from 1
    to 20; `features`, uint8 of shape ``(examples, 1, 105, 105)`` with the axes
    ``('batch', 'channel', 'height', 'width')``, 1 for paper and 0 for ink;
    `targets`, int16 of the same shape and axes as `alphabets`, the character.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'background' (19,280 examples) and 'evaluation' (13,180).
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'omniglot.hdf5'
    fits_in_memory = True
