"""Data sets in Zarr stores."""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, Unpack

import numpy
import zarr
from numpy.typing import NDArray

from fuel.datasets.options import DatasetOptions
from fuel.datasets.rows_dataset import RowsDataset
from fuel.exceptions import DamagedFileError
from fuel.interop.zarr.folder import Folder, folder_of
from fuel.storage.grouped import Groups, NoFile, open_groups
from fuel.storage.layout import native_type
from fuel.utils import do_not_pickle_attributes
from fuel.utils.checks import not_negative

# To open a store that is changed at the same time.
ATTEMPTS = 10

#: A path, a store of Zarr's, a group or an array.
Store: TypeAlias = object


@do_not_pickle_attributes('readers')
class ZarrDataset(RowsDataset):
    """A data set in a Zarr store: arrays with an example in each row.

    Parameters
    ----------
    store : str, path-like or object
        A group, whose arrays become the sources under their names, or an
        array, the source ``'data'``; or where there is one.
    which_sets, splits
        As for :class:`~fuel.datasets.npy.NPYDataset`.
    cache_bytes : int, optional
        See :class:`~fuel.interop.arrow.ArrowDataset`.
    sources, axis_labels
        Arguments of :class:`~fuel.datasets.Dataset`, `sources` and
        `axis_labels`. The labels default to the names of the dimensions.

    Attributes
    ----------
    num_examples : int
    readers : dict of str to Reader

    Raises
    ------
    FileNotFoundError
        If there is no store.
    ValueError
        If a group has no arrays, or they have different lengths.
    DamagedFileError
        If a chunk cannot be decoded.

    Notes
    -----
    Chunks are decoded by Zarr, all that share the first axis at once. A
    pickle holds the path or the store. Only arrays of `sources` are read.

    Examples
    --------
    This needs the extra ``zarr``.

    >>> import numpy, zarr
    >>> group = zarr.open_group('squares.zarr', mode='w')
    >>> group['roots'] = numpy.arange(10)
    >>> group['squares'] = numpy.arange(10) ** 2
    >>> dataset = ZarrDataset('squares.zarr')
    >>> dataset.get_data(None, [7, 2])
    (array([7, 2]), array([49,  4]))
    """

    unsaved_arguments = ('cache_bytes',)

    def __init__(self, store: Store, which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 cache_bytes: int | None = None,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self._origin = store
        self.cache_bytes = None if cache_bytes is None else not_negative(
            'cache_bytes', cache_bytes)
        self._labels: dict[str, tuple[str, ...]] = {}
        self.load()
        if self._labels:
            kwargs.setdefault('axis_labels', self._labels)
        super().__init__(which_sets, splits, **kwargs)

    def load(self) -> None:
        """Open the store."""
        for _ in range(ATTEMPTS):
            before = (Folder(os.fspath(self._origin)) if isinstance(
                self._origin, (str, os.PathLike)) else None)
            arrays = self._open()
            # What was read of it is of the state that was looked at.
            if before is None or before.is_current():
                break
        else:
            raise DamagedFileError(
                f'{self._origin} was changed each time it was opened, in '
                f'{ATTEMPTS} attempts: open it when it is written')
        self._labels = {name: labels for name, array in arrays.items()
                        if (labels := _labels_of(array))}
        folders = {path: Folder(path) if path else None for path in map(
            folder_of, arrays.values())}
        nowhere = NoFile(str(self._origin))
        self.readers = {
            name: open_groups(_groups(
                array, name, str(self._origin), folders[folder_of(array)]
                or nowhere), self.cache_bytes)
            for name, array in arrays.items()}

    def _open(self) -> dict[str, Any]:
        """Return the arrays of the store."""
        found = self._origin
        if not isinstance(found, (zarr.Array, zarr.Group)):
            found = zarr.open(found, mode='r')
        arrays = {'data': found} if isinstance(found, zarr.Array) else {
            name: array for name, array in sorted(found.arrays())
            if array.ndim}
        if not arrays or not all(array.ndim for array in arrays.values()):
            raise ValueError(
                f'{self._origin} has no arrays with an example in each row')
        return arrays

    def details(self) -> Sequence[str]:
        """Return the store and the splits."""
        return [str(self._origin), *super().details()]


def _labels_of(array: Any) -> tuple[str, ...]:
    """Return the names of the dimensions of an array, if it has them."""
    names = getattr(array.metadata, 'dimension_names', None) or (
        array.attrs.get('_ARRAY_DIMENSIONS')) or ()
    return tuple(names) if all(
        isinstance(name, str) for name in names) else ()


def _groups(array: zarr.Array[Any], name: str, path: str,
            file: Folder | NoFile) -> Groups:
    """Return the chunks of an array, by their first axis."""
    size = (getattr(array, 'shards', None) or array.chunks)[0]
    count = array.shape[0]
    lengths = [min(size, count - start) for start in range(0, count, size)]
    dtype = array.dtype
    if not isinstance(dtype, numpy.dtype) or dtype.kind not in 'biufcmMSUV':
        dtype = numpy.dtype(object)
    folder = None if isinstance(file, NoFile) else file
    return Groups(
        path, name, array.shape, native_type(dtype), lengths,
        _decoder(array, name, path, size, dtype, folder), file, None,
        array.name)


def _decoder(array: zarr.Array[Any], name: str, path: str, size: int,
             dtype: numpy.dtype[Any], folder: Folder | None,
             ) -> Callable[[int], NDArray[Any]]:
    """Return what decodes the chunks that share their first index."""
    def check(group: int) -> None:
        if folder is not None:
            folder.check_chunks(array, group)

    def read(group: int) -> NDArray[Any]:
        try:
            rows = array[group * size:(group + 1) * size]
        except Exception as error:
            # If it was changed, that is the reason.
            check(group)
            raise DamagedFileError(
                f'{path}, source {name!r}: chunks {group} of the first axis '
                f'cannot be decoded: {error!s:.300}') from error
        check(group)
        return numpy.asarray(rows).astype(dtype, copy=False)

    return read
