"""Read data sets in Zarr stores, and check their files for changes."""
from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, Unpack

import numpy
import zarr
import zarr.storage
from numpy.typing import NDArray

from fuel.datasets.options import DatasetOptions
from fuel.datasets.source_dataset import RowsDataset, as_budget
from fuel.datasets.text_files import not_there
from fuel.exceptions import DamagedFileError
from fuel.remote.location import (
    RemotePath, WithStorageOptions, fixed_path, located)
from fuel.remote.stores import filesystem_of
from fuel.remote.urls import Secrets, StorageOptions
from fuel.storage.grouped import Groups, NoFile, open_groups
from fuel.storage.layout import native_type
from fuel.storage.file_bytes import identity_of
from fuel.utils import do_not_pickle_attributes

# Most attempts to open a store that another program changes.
ATTEMPTS = 10

#: A path, a store of Zarr's, a group or an array.
Store: TypeAlias = object

# Typed as Any: versions 2 and 3 of Zarr have different names.
_zarr: Any = zarr
IS_ZARR_2 = zarr.__version__.startswith('2.')


@do_not_pickle_attributes('readers')
class ZarrDataset(RowsDataset, WithStorageOptions):
    """A data set in a Zarr store: arrays with an example in each row.

    Parameters
    ----------
    store : str, path-like or object
        A group or an array of Zarr, or its path or URL. The arrays of a group
        become sources, under their names; an array becomes the source
        ``'data'``.
    which_sets, splits
        As for :class:`~fuel.datasets.npy.NPYDataset`.
    cache_bytes : int, optional
        See :class:`~fuel.interop.arrow.ArrowDataset`.
    storage_options : dict, optional
        Options for a URL, as for :class:`~fuel.datasets.hdf5.H5PYDataset`.
    sources, axis_labels
        Arguments of :class:`~fuel.datasets.Dataset`, `sources` and
        `axis_labels`. The labels default to the names of the dimensions.

    Attributes
    ----------
    num_examples : int
    storage_options : dict or None
        The options without credentials; None for local files. Assign the
        options with credentials to it after unpickling.
    readers : dict of str to Reader

    Raises
    ------
    FileNotFoundError
        If there is no store.
    ValueError
        If a group has no arrays, or they have different lengths.
    DamagedFileError
        If a chunk cannot be decoded, or if a store on a disk was changed while
        in use.

    Notes
    -----
    Zarr decodes the chunks. All chunks of the same rows are decoded together.
    A pickle holds the path or the store. Only arrays of `sources` are read.

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

    unsaved_arguments = ('cache_bytes', 'storage_options')
    paths_in = '_origin'

    def __init__(self, store: Store, which_sets: Sequence[str] | None = None,
                 splits: Mapping[str, Any] | None = None,
                 cache_bytes: int | None = None,
                 storage_options: StorageOptions | None = None,
                 **kwargs: Unpack[DatasetOptions]) -> None:
        self._origin = fixed_path(os.fspath(store), storage_options) if (
            isinstance(store, (str, os.PathLike))) else store
        self.cache_bytes = as_budget(cache_bytes)
        self._labels: dict[str, tuple[str, ...]] = {}
        self.load()
        if self._labels:
            kwargs.setdefault('axis_labels', self._labels)
        super().__init__(which_sets, splits, **kwargs)

    def load(self) -> None:
        """Open the store."""
        for _ in range(ATTEMPTS):
            before = (Folder(located(os.fspath(self._origin))) if isinstance(
                self._origin, (str, os.PathLike)) and not isinstance(
                    self._origin, RemotePath) else None)
            arrays = self._open()
            # Stop if no file changed while the arrays were opened.
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
        secrets = Secrets(*self._origin.reveal()) if isinstance(
            self._origin, RemotePath) else None
        self.readers = {
            name: open_groups(_groups(
                array, name, str(self._origin), folders[folder_of(array)]
                or nowhere, secrets), self.cache_bytes)
            for name, array in arrays.items()}

    def _open(self) -> dict[str, Any]:
        """Return a dict from names to the arrays of the store."""
        found = self._origin
        if isinstance(found, RemotePath):
            found = _open_remote(found)
        elif not isinstance(found, (zarr.Array, zarr.Group)):
            if isinstance(found, (str, os.PathLike)):
                name = os.fspath(found)
                found = located(name)
                if not os.path.exists(found):
                    raise not_there(name, 'Zarr store')
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


def _open_remote(path: RemotePath) -> Any:
    """Return the group or array of a URL."""
    url, options = path.reveal()
    # If the file system is missing, the error names the extra to install.
    filesystem_of(url, options)
    secrets = Secrets(url, options)
    try:
        found = zarr.open(url, mode='r', storage_options={**options})
    except Exception as error:  # noqa: BLE001 (each file system has its own)
        raise _remote_error(secrets, error, (
            f'{path} cannot be opened as a Zarr store'), path.advice) from None
    if isinstance(found, zarr.Group) and not _lists_arrays(found):
        raise FileNotFoundError(
            f'{path} is a group that lists no arrays: a web server does not '
            f'list folders, so have zarr.consolidate_metadata(FOLDER) write '
            f'the names into the store, or name an array, as in '
            f'ZarrDataset({str(path) + "/NAME"!r})')
    return found


def _remote_error(secrets: Secrets, error: Exception, what: str,
                  advice: str = '') -> OSError:
    """Return the error for a store at a URL, with secrets hidden."""
    kind: type[OSError] = OSError
    for known in (FileNotFoundError, PermissionError, TimeoutError):
        if isinstance(error, known):
            kind = known
    return kind(secrets.hide(
        f'{what}: {type(error).__name__}: {error!s:.300}{advice}'))


def _lists_arrays(group: Any) -> bool:
    """Return whether a group at a URL lists its arrays."""
    try:
        return any(True for _ in group.arrays())
    except Exception:  # noqa: BLE001 (of what a server sends as a folder)
        return False


def _labels_of(array: Any) -> tuple[str, ...]:
    """Return the names of an array's dimensions; () if it has none."""
    names = getattr(array.metadata, 'dimension_names', None) or (
        array.attrs.get('_ARRAY_DIMENSIONS')) or ()
    return tuple(names) if all(
        isinstance(name, str) for name in names) else ()


def _groups(array: zarr.Array[Any], name: str, path: str,
            file: Folder | NoFile, secrets: Secrets | None) -> Groups:
    """Return the chunks of an array as groups of rows."""
    size = (getattr(array, 'shards', None) or array.chunks)[0]
    count = array.shape[0]
    lengths = [min(size, count - start) for start in range(0, count, size)]
    dtype = array.dtype
    if not isinstance(dtype, numpy.dtype) or dtype.kind not in 'biufcmMSUV':
        dtype = numpy.dtype(object)
    folder = None if isinstance(file, NoFile) else file
    return Groups(
        path, name, array.shape, native_type(dtype), lengths,
        _decoder(array, name, path, size, dtype, folder, secrets), file,
        None, array.name)


def _decoder(array: zarr.Array[Any], name: str, path: str, size: int,
             dtype: numpy.dtype[Any], folder: Folder | None,
             secrets: Secrets | None) -> Callable[[int], NDArray[Any]]:
    """Return a function that decodes the chunks of a group of rows.

    `secrets`: secrets of a store at a URL, which errors must not show.
    """
    def check(group: int) -> None:
        if folder is not None:
            folder.check_chunks(array, group)

    def read(group: int) -> NDArray[Any]:
        try:
            rows = array[group * size:(group + 1) * size]
        except Exception as error:
            if secrets is not None:
                raise _remote_error(secrets, error, (
                    f'{path}, source {name!r}: chunks {group} of the first '
                    f'axis cannot be read')) from None
            # If the store was changed, raise the error that says so.
            check(group)
            raise DamagedFileError(
                f'{path}, source {name!r}: chunks {group} of the first axis '
                f'cannot be decoded: {error!s:.300}') from error
        check(group)
        return numpy.asarray(rows).astype(dtype, copy=False)

    return read


class Folder:
    """A folder that must not change while its files are read.

    A Zarr store has no mark of its version, so the states of all its files are
    compared: when the store is opened and at the beginning of an epoch. The
    files of a chunk are compared again after the chunk was read.

    `path`: path of the folder.
    `identity`: numbers that stay equal as long as no file of the folder
        changes.
    """

    is_remote = False

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._states = dict(_look(self.path))
        self.identity = _identity(self._states)

    def is_current(self) -> bool:
        """Return whether all files are as they were when the folder was
        opened; True if the folder was removed."""
        now = dict(_look(self.path))
        return not now or now == self._states

    def check(self) -> None:
        """Raise DamagedFileError if a file was changed."""
        if not self.is_current():
            raise self._changed('a file of it')

    def check_chunks(self, array: zarr.Array[Any], first: int) -> None:
        """Raise DamagedFileError if the chunks of a group were changed.

        `first`: the index of these chunks along the first axis.
        """
        parts = array.chunks if IS_ZARR_2 else array.shards or array.chunks
        rest = [range(-(-length // part)) for length, part in zip(
            array.shape[1:], parts[1:], strict=True)]
        for others in itertools.product(*rest):
            for key in _keys(array, (first, *others)):
                name = os.path.join(array.path, key)
                try:
                    state = identity_of(
                        os.stat(os.path.join(self.path, name)))
                except (FileNotFoundError, NotADirectoryError):
                    state = None
                if state != self._states.get(name):
                    raise self._changed(name)

    def _changed(self, what: str) -> DamagedFileError:
        if not os.path.isdir(self.path):
            return DamagedFileError(
                f'{self.path} was deleted or renamed while it was in use: put '
                f'it back, or open the data set of the store that there is')
        return DamagedFileError(
            f'{self.path} was written to while it was in use ({what}), so '
            f'old and new rows would be mixed: begin another epoch, or open '
            f'the data set again (to replace a store in use, rename the new '
            f'folder onto its name)')


def folder_of(array: zarr.Array[Any]) -> str | None:
    """Return the folder of an array's store; None for other stores."""
    store, module = array.store, _zarr
    if IS_ZARR_2:
        return str(store.path) if isinstance(
            store, module.DirectoryStore) else None
    return str(store.root) if isinstance(
        store, module.storage.LocalStore) else None


def _keys(array: zarr.Array[Any], index: tuple[int, ...]) -> list[str]:
    """Return the possible names of the file of a chunk."""
    if not IS_ZARR_2:
        return [array.metadata.encode_chunk_key(index)]
    # Zarr 2 has no attribute for the character that separates the numbers.
    return [separator.join(map(str, index)) for separator in './']


def _look(root: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the names and states of the files in a folder."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            try:
                state = identity_of(os.stat(path))
            except FileNotFoundError:
                # Removed since the folder was listed.
                continue
            yield os.path.relpath(path, root), state


def _identity(states: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    found = hashlib.sha256(repr(sorted(states.items())).encode())
    return len(states), int.from_bytes(found.digest()[:8], 'little')
