"""Photographs of celebrities' faces."""
from fuel.datasets.built_in import DatasetInFormats
from fuel.transformers.defaults import uint8_pixels_to_floatX

__all__ = ['CelebA']


class CelebA(DatasetInFormats):
    """CelebA, 202,599 photographs of faces, with 40 attributes each.

    Sources: `features`, uint8 of shape ``(examples, 3, 218, 178)`` or
    ``(examples, 3, 64, 64)`` with the axes ``('batch', 'channel', 'height',
    'width')``; `targets`, uint8 of shape ``(examples, 40)`` with the axes
    ``('batch', 'target')``, each 0 or 1.

    The default transformers scale the images to ``[0, 1]`` in
    ``config.floatX``.

    Parameters
    ----------
    which_format : {'aligned_cropped', '64'}
        Which file to read, ``celeba_aligned_cropped.hdf5`` or
        ``celeba_64.hdf5``.
    which_sets : tuple of str
        Among 'train' (162,770 examples), 'valid' (19,867) and 'test'
        (19,962).
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.

    Attributes
    ----------
    attribute_names : tuple of str
        Names of the columns of `targets`.
    """

    _filename = 'celeba_{}.hdf5'
    attribute_names = (
        '5_o_Clock_Shadow', 'Arched_Eyebrows', 'Attractive',
        'Bags_Under_Eyes', 'Bald', 'Bangs', 'Big_Lips', 'Big_Nose',
        'Black_Hair', 'Blond_Hair', 'Blurry', 'Brown_Hair',
        'Bushy_Eyebrows', 'Chubby', 'Double_Chin', 'Eyeglasses', 'Goatee',
        'Gray_Hair', 'Heavy_Makeup', 'High_Cheekbones', 'Male',
        'Mouth_Slightly_Open', 'Mustache', 'Narrow_Eyes', 'No_Beard',
        'Oval_Face', 'Pale_Skin', 'Pointy_Nose', 'Receding_Hairline',
        'Rosy_Cheeks', 'Sideburns', 'Smiling', 'Straight_Hair', 'Wavy_Hair',
        'Wearing_Earrings', 'Wearing_Hat', 'Wearing_Lipstick',
        'Wearing_Necklace', 'Wearing_Necktie', 'Young')
    default_transformers = uint8_pixels_to_floatX(('features',))
