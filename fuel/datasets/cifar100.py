"""Tiny colour images of a hundred classes."""
from fuel.datasets.built_in import BuiltInImages

__all__ = ['CIFAR100']


class CIFAR100(BuiltInImages):
    """CIFAR-100, 60,000 tiny images of a hundred classes.

    Sources, in this order: `coarse_labels`, uint8 of shape ``(examples, 1)``
    with the axes ``('batch', 'index')``, from 0 to 19; `features`, uint8 of
    shape ``(examples, 3, 32, 32)`` with the axes ``('batch', 'channel',
    'height', 'width')``; `fine_labels`, like the coarse ones, from 0 to 99.

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

    Attributes
    ----------
    class_names : tuple of str
        Names of the 100 classes in `fine_labels`.
    coarse_class_names : tuple of str
        Names of the 20 groups in `coarse_labels`.
    """

    filename = 'cifar100.hdf5'
    class_names = (
        'apple', 'aquarium_fish', 'baby', 'bear', 'beaver', 'bed', 'bee',
        'beetle', 'bicycle', 'bottle', 'bowl', 'boy', 'bridge', 'bus',
        'butterfly', 'camel', 'can', 'castle', 'caterpillar', 'cattle',
        'chair', 'chimpanzee', 'clock', 'cloud', 'cockroach', 'couch',
        'crab', 'crocodile', 'cup', 'dinosaur', 'dolphin', 'elephant',
        'flatfish', 'forest', 'fox', 'girl', 'hamster', 'house', 'kangaroo',
        'keyboard', 'lamp', 'lawn_mower', 'leopard', 'lion', 'lizard',
        'lobster', 'man', 'maple_tree', 'motorcycle', 'mountain', 'mouse',
        'mushroom', 'oak_tree', 'orange', 'orchid', 'otter', 'palm_tree',
        'pear', 'pickup_truck', 'pine_tree', 'plain', 'plate', 'poppy',
        'porcupine', 'possum', 'rabbit', 'raccoon', 'ray', 'road', 'rocket',
        'rose', 'sea', 'seal', 'shark', 'shrew', 'skunk', 'skyscraper',
        'snail', 'snake', 'spider', 'squirrel', 'streetcar', 'sunflower',
        'sweet_pepper', 'table', 'tank', 'telephone', 'television', 'tiger',
        'tractor', 'train', 'trout', 'tulip', 'turtle', 'wardrobe', 'whale',
        'willow_tree', 'wolf', 'woman', 'worm')
    coarse_class_names = (
        'aquatic_mammals', 'fish', 'flowers', 'food_containers',
        'fruit_and_vegetables', 'household_electrical_devices',
        'household_furniture', 'insects', 'large_carnivores',
        'large_man-made_outdoor_things', 'large_natural_outdoor_scenes',
        'large_omnivores_and_herbivores', 'medium_mammals',
        'non-insect_invertebrates', 'people', 'reptiles', 'small_mammals',
        'trees', 'vehicles_1', 'vehicles_2')
    fits_in_memory = True
