"""Tiny colour images of ten classes."""
from fuel.datasets.built_in import BuiltInImages

__all__ = ['CIFAR10']


class CIFAR10(BuiltInImages):
    """CIFAR-10, 60,000 tiny images of ten classes.

    Sources: `features`, uint8 of shape ``(examples, 3, 32, 32)`` with the
    axes ``('batch', 'channel', 'height', 'width')``; `targets`, uint8 of
    shape ``(examples, 1)`` with the axes ``('batch', 'index')``: 0 airplane,
    1 automobile, 2 bird, 3 cat, 4 deer, 5 dog, 6 frog, 7 horse, 8 ship, 9
    truck.

    The default transformers scale the images to ``[0, 1]`` in
    ``config.floatX``.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (50,000 examples) and 'test' (10,000).
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'cifar10.hdf5'
    class_names = (
        'airplane', 'automobile', 'bird', 'cat', 'deer', 'dog', 'frog',
        'horse', 'ship', 'truck')
    fits_in_memory = True
