"""Silhouettes of the objects in CalTech 101."""
from typing import Any

from fuel.datasets.hdf5 import H5PYDataset
from fuel.utils import find_in_data_path

__all__ = ['CalTech101Silhouettes']


class CalTech101Silhouettes(H5PYDataset):
    """CalTech 101 Silhouettes, images of zeros and ones.

    Sources: `features`, uint8 of shape ``(examples, 1, size, size)`` with
    the axes ``('batch', 'channel', 'height', 'width')``; `targets`, uint8 of
    shape ``(examples, 1)`` with the axes ``('batch', 'index')``, the class
    from 1 to 101.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (4,100 examples; 4,082 of size 16), 'valid' (2,264;
        2,257) and 'test' (2,307; 2,302).
    size : {16, 28}, optional
        Height and width of the images, in pixels. Default 28.
    load_in_memory : bool, optional
        Default True.
    **kwargs
        For :class:`~fuel.datasets.hdf5.H5PYDataset`.

    Raises
    ------
    ValueError
        If there is no such size.
    FileNotFoundError
        If the data path has no ``caltech101_silhouettes<size>.hdf5``;
        ``fuel-download caltech101_silhouettes`` and ``fuel-convert
        caltech101_silhouettes`` with the size make it.

    """

    def __init__(self, which_sets: Any, size: Any = 28,
                 load_in_memory: bool = True, **kwargs: Any) -> None:
        if size not in (16, 28):
            raise ValueError('CalTech 101 Silhouettes has the sizes 16 and '
                             f'28, got size={size!r}')
        self.filename: Any = f'caltech101_silhouettes{size}.hdf5'
        super().__init__(self.data_path, which_sets,
                         load_in_memory=load_in_memory, **kwargs)

    @property
    def data_path(self) -> str:
        """Path of the file."""
        return find_in_data_path(self.filename)
