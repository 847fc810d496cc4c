"""The ImageNet Large Scale Visual Recognition Challenges."""
from fuel.datasets.built_in import BuiltInDataset
from fuel.transformers.defaults import rgb_images_from_encoded_bytes

__all__ = ['ILSVRC2010', 'ILSVRC2012']


class ILSVRC2010(BuiltInDataset):
    """ILSVRC 2010, 1.4 million photographs of a thousand classes.

    Sources: `encoded_images`, the bytes of JPEG files; `filenames`, bytes of
    shape ``(examples, 1)``; `targets`, int16 of shape ``(examples, 1)``, the
    class from 0 to 999.

    The default transformers decode the images to RGB.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (1,261,406 examples), 'valid' (50,000) and 'test'
        (150,000).
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'ilsvrc2010.hdf5'
    default_transformers = rgb_images_from_encoded_bytes(
        ('encoded_images',))


class ILSVRC2012(BuiltInDataset):
    """ILSVRC 2012, 1.4 million photographs of a thousand classes.

    Sources: `encoded_images`, the bytes of JPEG files; `filenames`, bytes of
    shape ``(examples, 1)``; `targets`, int16 of shape ``(examples, 1)``, the
    class from 0 to 999; 'test' has no targets.

    The default transformers decode the images to RGB.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (1,281,167 examples), 'valid' (50,000) and 'test'
        (100,000).
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'ilsvrc2012.hdf5'
    default_transformers = rgb_images_from_encoded_bytes(
        ('encoded_images',))
