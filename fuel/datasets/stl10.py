"""Colour images of ten classes, most of them unlabelled."""
from fuel.datasets.built_in import BuiltInImages

__all__ = ['STL10']


class STL10(BuiltInImages):
    """STL-10, 113,000 images of ten classes.

    Sources: `features`, uint8 of shape ``(examples, 3, 96, 96)`` with the
    axes ``('batch', 'channel', 'height', 'width')``; `targets`, uint8 of
    shape ``(examples, 1)`` with the axes ``('batch', 'index')``: 1 airplane,
    2 bird, 3 car, 4 cat, 5 deer, 6 dog, 7 horse, 8 monkey, 9 ship, 10 truck.

    The default transformers scale the images to ``[0, 1]`` in
    ``config.floatX``.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (5,000 examples), 'test' (8,000), 'unlabeled'
        (100,000, without targets), and 'fold_0' to 'fold_9', 1,000 examples
        of 'train' each.
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'stl10.hdf5'
    class_names = (
        '', 'airplane', 'bird', 'car', 'cat', 'deer', 'dog', 'horse',
        'monkey', 'ship', 'truck')
