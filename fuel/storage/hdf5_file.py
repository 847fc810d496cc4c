"""HDF5 files with the interface of h5py, for existing programs."""
from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self, TypeAlias

import h5py
import numpy
from numpy.typing import NDArray

from fuel.remote.urls import StorageOptions, is_url
from fuel.storage.linked_files import LinkedFiles
from fuel.storage.mapped import DirectReader
from fuel.storage.nodes import Node
from fuel.storage.open_files import FileAccess, OpenFile, access_to, find_state
from fuel.storage.reader import Reader
from fuel.storage.reader_choice import choose_reader
from fuel.utils.checks import one_of
from fuel.utils.forks import Step, at_fork
from fuel.utils.hdf5_errors import naming_file

# Number of files that are cached after they are closed, since many loaders
# open a file for each example.
MOST_KEPT = 32


class FileHold:
    """Token that keeps a file open while an object that reads the file holds
    the token."""


class SharedFile:
    """An open file, the targets of its links, and the readers of its arrays.

    `path`: the path as it was given.
    """

    def __init__(self, access: FileAccess, cache_bytes: int | None,
                 follow: str) -> None:
        self.access, self.path = access, access.path
        self._cache_bytes = cache_bytes
        self._anywhere = follow == 'anywhere'
        self._lock = threading.RLock()
        self._held: Callable[[], FileHold | None] = lambda: None
        self._identity: tuple[int, ...] | None = None
        self._opened: OpenFile | None = None
        self._files: LinkedFiles | None = None
        self._nodes: dict[str, Node] = {}
        # Direct readers are kept when the file is closed.
        self._readers: dict[str, Reader] = {}
        self._are_arrays: dict[str, bool] = {}

    def release(self) -> None:
        """Close the file for HDF5; direct readers stay open."""
        with self._lock:
            self.access.close()
            self._forget()

    def _forget(self) -> None:
        """Drop the objects that HDF5 has open."""
        self._opened = self._files = None
        self._nodes = {}
        self._readers = {path: reader for path, reader
                         in self._readers.items()
                         if isinstance(reader, DirectReader)}

    def hold(self) -> FileHold:
        """Return an object that keeps the file open while it is referenced."""
        with self._lock:
            held = self._held()
            if held is None:
                held = FileHold()
                weakref.finalize(held, self.release).atexit = False
                self._held = weakref.ref(held)
            return held

    def start_in_child(self) -> None:
        """Make a new lock in a forked child, since the lock may be held."""
        self._lock = threading.RLock()

    def files(self) -> LinkedFiles:
        """Return the file with its linked files; open it if it is not open."""
        opened = self.access.open()
        if self._files is None or opened is not self._opened:
            self._forget()
            if opened.identity is None or opened.identity != self._identity:
                self._readers, self._are_arrays = {}, {}
            self._opened, self._identity = opened, opened.identity
            self._files = LinkedFiles([opened], [self.path], self._anywhere)
        return self._files

    def is_array(self, path: str) -> bool:
        """Return whether a path is that of an array, not of a group."""
        with self._lock:
            if path not in self._are_arrays:
                self._are_arrays[path] = isinstance(
                    self.node(path), h5py.Dataset)
            return self._are_arrays[path]

    def node(self, path: str) -> Node:
        """Return the group or array at a path; raise KeyError if there is
        none."""
        with self._lock:
            files = self.files()
            if path not in self._nodes:
                try:
                    found = files.find(0, path)
                except FileNotFoundError as error:
                    raise KeyError(str(error)) from error
                if found is None:
                    raise KeyError(f'{self.path!r} has nothing called '
                                   f'{path!r}')
                self._nodes[path] = found
            return self._nodes[path]

    def reader(self, path: str) -> Reader:
        """Return the reader of an array."""
        with self._lock:
            if path not in self._readers or self._opened is not None:
                files = self.files()
            if path not in self._readers:
                with naming_file(self.path, path):
                    reader = choose_reader(self.node(path), self._cache_bytes)
                # HDF5 may have read another version of the file meanwhile.
                files.check()
                self._readers[path] = reader
            return self._readers[path]

    def is_current(self) -> bool:
        """Return whether the path still leads to the same file, unchanged."""
        if self._opened is None and not is_url(self.path):
            return find_state(os.path.abspath(self.path))[1] == self._identity
        return self.access.is_current()

    def known_reader(self, path: str) -> Reader | None:
        """Return the reader of an array, None if it was not opened yet."""
        return self._readers.get(path)

    def check(self) -> None:
        """Raise DamagedFileError if the file has changed."""
        self.files().check()


# Mapping from path and options to the files that were used most recently.
_kept: OrderedDict[tuple[object, ...], SharedFile] = OrderedDict()
_kept_lock = threading.Lock()


def _start_in_child() -> None:
    global _kept_lock
    _kept_lock = threading.Lock()
    for shared in _kept.values():
        shared.start_in_child()


at_fork(Step.OWNERSHIP, in_child=_start_in_child)


def shared_file(path: Any, arguments: Mapping[str, Any]) -> SharedFile:
    """Return an open file; calls with the same arguments share it."""
    access = access_to(path, None, arguments['storage_options'])
    key = (os.path.abspath(access.path), repr(access.storage_options),
           arguments['cache_bytes'], arguments['follow'])
    with _kept_lock:
        shared = _kept.pop(key, None)
        if shared is None or not shared.is_current():
            shared = SharedFile(access, arguments['cache_bytes'],
                                arguments['follow'])
            shared.files()
        _kept[key] = shared
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return shared


#: A selection between brackets, as h5py accepts it.
Selection: TypeAlias = Any


def open_hdf5(path: str | os.PathLike[str], mode: str = 'r', *,
              cache_bytes: int | None = None,
              storage_options: StorageOptions | None = None,
              follow: str = 'folder', **kwargs: Any) -> HDF5Group:
    """Open an HDF5 file with the interface of h5py and the speed of Fuel.

    Random rows of an array are read as fast as by Fuel's data sets. Any number
    of threads may read at once, and so may forked children. The returned
    objects can be pickled. In an existing loader, use this function instead
    of ``h5py.File``.

    Parameters
    ----------
    path : str or path-like
        The path or the URL of the file.
    mode : {'r'}, optional
        Files can only be opened for reading.
    cache_bytes : int, optional
        See :class:`~fuel.datasets.H5PYDataset`.
    storage_options : dict, optional
        Options for a URL; see :class:`~fuel.datasets.H5PYDataset`.
    follow : {'folder', 'anywhere'}, optional
        Where the files may be to which links and virtual data sets lead: in
        the folder of this file and the folders below it, or anywhere.
    **kwargs
        Other arguments of ``h5py.File``, such as ``swmr`` and ``libver``,
        which have no effect.

    Returns
    -------
    HDF5Group
        The root group.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If `mode` is not 'r'.
    DamagedFileError
        If the file is damaged. A read raises it too if the file was changed;
        then open the file again.

    Examples
    --------
    >>> import h5py, numpy, os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, 'a.hdf5')
    >>> with h5py.File(path, 'w') as file:
    ...     file['obs/x'] = numpy.arange(10) ** 2
    >>> array = open_hdf5(path)['obs/x']
    >>> array.shape, array[[7, 2, 7]]
    ((10,), array([49,  4, 49]))
    >>> folder.cleanup()
    """
    if mode != 'r':
        raise ValueError(
            f"open_hdf5 only reads: mode must be 'r', got {mode!r}")
    arguments = {
        'cache_bytes': cache_bytes, 'storage_options': storage_options,
        'follow': one_of('follow', follow, ('folder', 'anywhere'))}
    return HDF5Group(shared_file(path, arguments), '/', arguments)


class HDF5Node:
    """Base class of the groups and arrays of a file.

    Attributes
    ----------
    name : str
        Path of the group or array in the file.
    """

    def __init__(self, shared: SharedFile, name: str,
                 arguments: Mapping[str, Any]) -> None:
        self.name = name
        self._shared: SharedFile | None = shared
        self._hold: FileHold | None = shared.hold()
        self._path = shared.path
        self._arguments = dict(arguments)

    def __getstate__(self) -> dict[str, Any]:
        # The path contains the options of a remote file, without credentials.
        return {**vars(self), '_shared': None, '_hold': None,
                '_arguments': {**self._arguments, 'storage_options': None}}

    @property
    def _open(self) -> SharedFile:
        """The open file, which is opened again after it was closed."""
        if self._shared is None:
            self._shared = shared_file(self._path, self._arguments)
            self._hold = self._shared.hold()
        return self._shared

    @property
    def _node(self) -> Node:
        return self._open.node(self.name)

    @property
    def attrs(self) -> h5py.AttributeManager:
        """The attributes of the group or array (h5py.AttributeManager)."""
        return self._node.attrs

    @property
    def file(self) -> HDF5Group:
        """The root group of the file (HDF5Group)."""
        return HDF5Group(self._open, '/', self._arguments)

    @property
    def parent(self) -> HDF5Group:
        """The group that contains the group or array (HDF5Group)."""
        return HDF5Group(self._open, self.name.rpartition('/')[0] or '/',
                         self._arguments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HDF5Node) and (
            (self._path, self.name) == (other._path, other.name))

    def __hash__(self) -> int:
        return hash((self._path, self.name))


class HDF5Group(HDF5Node, Mapping[str, 'HDF5Group | HDF5Array']):
    """A group of an HDF5 file, or its root, as :func:`open_hdf5` returns it.

    It is a mapping from names to groups and arrays. It has the attributes
    ``attrs``, ``file``, ``filename``, ``name`` and ``parent`` of h5py's groups
    and files. As a context manager, it closes the file at the end.
    """

    @property
    def filename(self) -> str:
        """The path of the file, as it was given (str)."""
        return self._path

    def __getitem__(self, name: str) -> HDF5Group | HDF5Array:
        path = name if name.startswith('/') else (
            f'{self.name.rstrip("/")}/{name}')
        path = '/' + '/'.join(part for part in path.split('/') if part)
        kind = HDF5Array if self._open.is_array(path) else HDF5Group
        return kind(self._open, path, self._arguments)

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and self[name] is not None
        except KeyError:
            return False

    def __iter__(self) -> Iterator[str]:
        return iter(self._node)

    def __len__(self) -> int:
        return len(self._node)

    def visititems(self, function: Any) -> Any:
        """Call a function with the name and the node of each object below the
        group.

        When the function returns a value other than None, stop, and return
        this value.
        """
        for name, node in self.items():
            found = function(name, node)
            if found is None and isinstance(node, HDF5Group):
                def below(path: str, one: object, name: str = name) -> Any:
                    return function(f'{name}/{path}', one)
                found = node.visititems(below)
            if found is not None:
                return found
        return None

    def visit(self, function: Any) -> Any:
        """Call a function with the name of each object below the group; see
        :meth:`visititems`."""
        return self.visititems(lambda name, _: function(name))

    def close(self) -> None:
        """Close the file; a later read opens it again."""
        if self._shared is not None:
            self._shared.release()
        self._shared = self._hold = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f'<HDF5Group {self.name!r} of {self._path!r}>'


class HDF5Array(HDF5Node):
    """An array of an HDF5 file, as :func:`open_hdf5` returns it.

    It is indexed in the same ways as an array of h5py. In addition, lists and
    arrays of rows may be in any order, with repetitions and negative numbers.
    The result is a new array in native byte order; text of variable length is
    bytes. It also has the other methods and attributes of
    :class:`h5py.Dataset` for reading, such as ``asstr``, ``astype``,
    ``chunks`` and ``maxshape``.

    Raises
    ------
    IndexError
        If a row is out of range.
    DamagedFileError
        If the file was changed.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array (tuple of int)."""
        known = self._open.known_reader(self.name)
        return tuple(self._node.shape or ()) if known is None else known.shape

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """The type of the returned rows (dtype), in native byte order."""
        dtype: numpy.dtype[Any] = self._node.dtype
        return dtype if dtype.hasobject else dtype.newbyteorder('=')

    @property
    def ndim(self) -> int:
        """Number of axes (int)."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements (int)."""
        return int(self._node.size or 0)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f'{self!r} is a single value, and has no rows')
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        for row in range(len(self)):
            yield self[row]

    def __array__(self, dtype: Any = None, copy: bool | None = None,
                  ) -> NDArray[Any]:
        if copy is False:
            raise ValueError(f'{self!r} is in a file, so an array of it is a '
                             f'copy')
        return numpy.asarray(self[()], dtype)

    def __getattr__(self, name: str) -> Any:
        # Other attributes of h5py's arrays, for reading.
        if name.startswith('_'):
            raise AttributeError(name)
        return getattr(self._node, name)

    def __getitem__(self, key: Selection) -> Any:
        rows, rest = _rows_of(key)
        if rows is None or not self.shape or 0 in self.shape:
            return self._ask_hdf5(key)
        places = _places(rows, len(self))
        if isinstance(places, (int, slice)) and rest:
            # HDF5 reads only the requested part of a row.
            return self._ask_hdf5(key)
        batch = self._open.reader(self.name).read(places)
        if not rest:
            return batch
        return batch[(slice(None), *rest)]

    def read_direct(self, dest: NDArray[Any], source_sel: Selection = None,
                    dest_sel: Selection = None) -> None:
        """Read into an existing array, as h5py's ``read_direct`` does.

        Parameters
        ----------
        dest : ndarray
            The array to write to. Its type is the type of this array, or a
            compound type of some of its fields.
        source_sel, dest_sel : optional
            The indices to read, and the indices to write to. Default: all.
        """
        fields = dest.dtype.names
        stored: Mapping[str, Any] = self.dtype.fields or {}
        if fields is None or any(
                name not in stored or stored[name][0] != dest.dtype[name]
                for name in fields):
            # HDF5 converts types in its own way.
            self._node.read_direct(dest, source_sel, dest_sel)
            self._open.check()
            return
        rows = self[() if source_sel is None else source_sel]
        for name in fields:
            dest[name][() if dest_sel is None else dest_sel] = rows[name]

    def _ask_hdf5(self, key: Selection) -> Any:
        """Return h5py's result, in native byte order."""
        found = self._node[key]
        self._open.check()
        if isinstance(found, numpy.ndarray) and not found.dtype.hasobject:
            return found.astype(found.dtype.newbyteorder('='), copy=False)
        return found

    def __repr__(self) -> str:
        return (f'<HDF5Array {self.name!r} of {self._path!r}: {self.dtype} '
                f'{self.shape}>')


def _rows_of(key: Selection) -> tuple[Any, tuple[Any, ...]]:
    """Return the selection of rows, and the selections of the other axes.

    The selection of rows is None if only HDF5 can read this key.
    """
    parts = key if isinstance(key, tuple) else (key,)
    if any(isinstance(part, str) for part in parts):
        return None, ()
    if not parts or parts[0] is Ellipsis:
        return (slice(None), ()) if len(parts) < 2 else (None, ())
    first, *rest = parts
    while rest and (rest[-1] is Ellipsis or (
            isinstance(rest[-1], slice) and rest[-1] == slice(None))):
        rest.pop()
    if not all(isinstance(part, (int, numpy.integer, slice))
               and not isinstance(part, bool) for part in rest):
        return None, ()
    return first, tuple(rest)


def _places(rows: Any, count: int) -> Any:
    """Return rows in the form for a reader: an integer or an array of integers
    from 0, or the slice that was given.

    Raises: IndexError if a row is out of range, TypeError if `rows` is not an
        integer, a slice, a list or array of integers with one axis, or a mask.
    """
    if isinstance(rows, slice):
        return rows
    if isinstance(rows, (int, numpy.integer)) and not isinstance(rows, bool):
        place = int(rows) + count * (rows < 0)
        if not 0 <= place < count:
            raise IndexError(f'row {rows} is out of range: there are {count}')
        return place
    array = numpy.asarray(rows)
    if array.dtype == bool:
        if array.shape != (count,):
            raise IndexError(
                f'a mask of rows must have the shape {(count,)}, got '
                f'{array.shape}')
        return numpy.flatnonzero(array)
    if not array.size:
        array = array.astype(numpy.intp)
    if array.ndim != 1 or array.dtype.kind not in 'iu':
        raise TypeError(
            f'rows are chosen by an integer, a slice, or a list or array of '
            f'one axis of integers or of one bool for each, got '
            f'{type(rows).__name__} {rows!r:.80}')
    places = array.astype(numpy.intp)
    places = places + count * (places < 0)
    if places.size and not 0 <= places.min() <= places.max() < count:
        wrong = array[(places < 0) | (places >= count)][0]
        raise IndexError(f'row {wrong} is out of range: there are {count}')
    return places
