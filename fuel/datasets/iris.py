"""Fisher's Iris measurements."""
from fuel.datasets.built_in import BuiltInDataset

__all__ = ['Iris']


class Iris(BuiltInDataset):
    """Iris, 150 measurements of three kinds of iris plants.

    Sources: `features`, float32 of shape ``(150, 4)`` with the axes
    ``('batch', 'feature')``: sepal length, sepal width, petal length and
    petal width in centimetres; `targets`, uint8 of shape ``(150, 1)`` with
    the axes ``('batch', 'index')``: 0 setosa, 1 versicolor, 2 virginica.

    Parameters
    ----------
    which_sets : tuple of str
        The only split is 'all'.
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'iris.hdf5'
    class_names = ('setosa', 'versicolor', 'virginica')
    fits_in_memory = True
