"""Photographs of dogs and cats, of any size."""
from fuel.datasets.built_in import BuiltInDataset
from fuel.transformers import ScaleAndShift

__all__ = ['DogsVsCats']


class DogsVsCats(BuiltInDataset):
    """Dogs vs. Cats, 37,500 photographs.

    Sources: `image_features`, uint8 images of different shapes ``(channel,
    height, width)``; `targets`, uint8 of shape ``(examples, 1)`` with the
    axes ``('batch', 'index')``: 0 for a cat, 1 for a dog.

    The default transformer scales the images to ``[0, 1]``.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (25,000 examples) and 'test' (12,500, without
        targets).
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'dogs_vs_cats.hdf5'
    class_names = ('cat', 'dog')
    default_transformers = (
        (ScaleAndShift, [1 / 255., 0],
         {'which_sources': ('image_features',)}),)
