"""Street View House Numbers."""
from fuel.datasets.built_in import DatasetInFormats
from fuel.transformers.defaults import uint8_pixels_to_floatX

__all__ = ['SVHN']


class SVHN(DatasetInFormats):
    """SVHN, photographs of house numbers.

    Format 1 has photographs of whole numbers, with a box around each digit;
    all sources differ in shape from example to example: `bbox_heights`,
    `bbox_labels`, `bbox_lefts`, `bbox_tops`, `bbox_widths` and `features`.

    Format 2 has single digits: `features`, uint8 of shape ``(examples, 3,
    32, 32)`` with the axes ``('batch', 'channel', 'height', 'width')``, and
    `targets`, uint8 of shape ``(examples, 1)`` with the axes ``('batch',
    'index')``, the digit.

    The default transformers scale the images to ``[0, 1]`` in
    ``config.floatX``.

    Parameters
    ----------
    which_format : {1, 2}
        Which file to read, ``svhn_format_1.hdf5`` or
        ``svhn_format_2.hdf5``.
    which_sets : tuple of str
        Among 'train' (33,402 examples of format 1 and 73,257 of format 2),
        'test' (13,068 and 26,032) and 'extra' (202,353 and 531,131).
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    class_names = (*'0123456789',)
    _filename = 'svhn_format_{}.hdf5'
    default_transformers = uint8_pixels_to_floatX(('features',))
