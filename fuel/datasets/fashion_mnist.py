"""Fashion-MNIST: images of articles of clothing."""
from fuel.datasets.built_in import BuiltInImages

__all__ = ['FashionMNIST']


class FashionMNIST(BuiltInImages):
    """Fashion-MNIST, 70,000 images of articles of clothing.

    Sources: `features`, uint8 of shape ``(examples, 1, 28, 28)`` with the
    axes ``('batch', 'channel', 'height', 'width')``; `targets`, uint8 of
    shape ``(examples, 1)`` with the axes ``('batch', 'index')``: 0 T-shirt,
    1 trouser, 2 pullover, 3 dress, 4 coat, 5 sandal, 6 shirt, 7 sneaker, 8
    bag, 9 ankle boot.

    The default transformers scale the images to ``[0, 1]`` in
    ``config.floatX``.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (60,000 examples) and 'test' (10,000).
    **kwargs
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    """

    filename = 'fashion_mnist.hdf5'
    class_names = (
        'T-shirt', 'trouser', 'pullover', 'dress', 'coat', 'sandal', 'shirt',
        'sneaker', 'bag', 'ankle boot')
    fits_in_memory = True
