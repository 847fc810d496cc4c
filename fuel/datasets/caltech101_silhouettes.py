"""Silhouettes of the objects in CalTech 101."""
from collections.abc import Sequence
from typing import Unpack

from fuel.datasets.built_in import BuiltInDataset
from fuel.datasets.options import HDF5Options
from fuel.utils import find_in_data_path

__all__ = ['CalTech101Silhouettes']


class CalTech101Silhouettes(BuiltInDataset):
    """CalTech 101 Silhouettes, images of zeros and ones.

    Sources: `features`, uint8 of shape ``(examples, 1, size, size)`` with
    the axes ``('batch', 'channel', 'height', 'width')``; `targets`, uint8 of
    shape ``(examples, 1)`` with the axes ``('batch', 'index')``, the class
    from 1 to 101.

    Parameters
    ----------
    which_sets : tuple of str
        Among 'train' (4,100 examples of size 28, or 4,082 of size 16), 'valid'
        (2,264 or 2,257) and 'test' (2,307 or 2,302).
    size : {16, 28}, optional
        Height and width of the images, in pixels. Default 28.
    load_in_memory : bool, optional
        Default True.
    subset, driver, sort_indices, cache_bytes, storage_options, splits
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.
    flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.built_in.BuiltInDataset`.

    Raises
    ------
    ValueError
        If there is no such size.
    """

    filename = ''
    _filename = 'caltech101_silhouettes{}.hdf5'

    def __init__(self, which_sets: Sequence[str], size: int = 28,
                 load_in_memory: bool = True,
                 **kwargs: Unpack[HDF5Options]) -> None:
        if size not in (16, 28):
            raise ValueError('CalTech 101 Silhouettes has the sizes 16 and '
                             f'28, got size={size!r}')
        self.filename = self.filename_for(size)
        super().__init__(which_sets, load_in_memory=load_in_memory, **kwargs)

    @property
    def data_path(self) -> str:
        """Path of the file."""
        return find_in_data_path(self.filename)
