"""Base class of the built-in data sets."""
from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Unpack

from fuel.datasets.hdf5 import H5PYDataset
from fuel.datasets.options import BuiltInOptions, HDF5Options
from fuel.transformers.defaults import uint8_pixels_to_floatX
from fuel.utils import find_in_data_path

__all__ = ['BuiltInDataset', 'BuiltInImages', 'BuiltInOptions',
           'DatasetInFormats', 'HDF5Options']


class BuiltInDataset(H5PYDataset):
    """A data set in an HDF5 file of a known name, found in the data path.

    Parameters
    ----------
    which_sets : tuple of str
        The splits to use.
    load_in_memory : bool, optional
        Whether to read the examples once and keep them in memory. Defaults
        to `fits_in_memory`.
    subset, driver, sort_indices, cache_bytes, storage_options, splits
        For :class:`~fuel.datasets.hdf5.H5PYDataset`.
    flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.hdf5.H5PYDataset`.

    Attributes
    ----------
    filename : str
        Name of the file. A program may assign another name to this attribute
        of a class.
    fits_in_memory : bool
        Class attribute: default of `load_in_memory`.

    Raises
    ------
    FileNotFoundError
        If the data path has no such file. To make the file, run
        ``fuel-download`` and ``fuel-convert`` with the name of the data set.
    """

    fits_in_memory: ClassVar[bool] = False
    # Template of the file's name, if the name depends on arguments.
    _filename: ClassVar[str]

    def __init__(self, which_sets: Sequence[str], *,
                 load_in_memory: bool | None = None,
                 **kwargs: Unpack[HDF5Options]) -> None:
        if load_in_memory is None:
            load_in_memory = self.fits_in_memory
        super().__init__(find_in_data_path(self.filename), which_sets,
                         load_in_memory=load_in_memory, **kwargs)

    @property
    def filename(self) -> str:
        """Name of the file (str)."""
        raise NotImplementedError(
            f'{type(self).__name__} must set the class attribute filename')

    @classmethod
    def filename_for(cls, *arguments: object) -> str:
        """Return the name of the file that a data set of this class opens.

        Parameters
        ----------
        *arguments
            The arguments of the class that determine the name, such as a
            format.

        Returns
        -------
        str
            The name of a file, which may be absent from the data path.

        Examples
        --------
        >>> from fuel.datasets import MNIST, SVHN
        >>> MNIST.filename_for(), SVHN.filename_for(2)
        ('mnist.hdf5', 'svhn_format_2.hdf5')
        """
        name: object = cls.filename
        return name if name and isinstance(name, str) else (
            cls._filename.format(*arguments))


class BuiltInImages(BuiltInDataset):
    """A built-in data set of images, which are the source 'features'.

    The default transformers scale the images to ``[0, 1]`` in
    ``config.floatX``.

    Parameters
    ----------
    which_sets : tuple of str
        The splits to use.
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`BuiltInDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`BuiltInDataset`.
    """

    default_transformers = uint8_pixels_to_floatX(('features',))


class DatasetInFormats(BuiltInDataset):
    """A data set with several files, each in its own format.

    Parameters
    ----------
    which_format : object
        The format, which is a part of the file's name.
    which_sets : tuple of str
        The splits to use.
    load_in_memory, subset, driver, sort_indices, cache_bytes
        For :class:`~fuel.datasets.hdf5.H5PYDataset`.
    storage_options, splits, flat_targets, sources, axis_labels
        For :class:`~fuel.datasets.hdf5.H5PYDataset`.
    """

    def __init__(self, which_format: object, which_sets: Sequence[str],
                 **kwargs: Unpack[BuiltInOptions]) -> None:
        self.which_format = which_format
        super().__init__(which_sets, **kwargs)

    @property
    def filename(self) -> str:
        """Name of the file, which depends on the format (str)."""
        return self._filename.format(self.which_format)
