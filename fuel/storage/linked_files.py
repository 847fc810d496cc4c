"""The files of a data set, the files to which they lead, and kept metadata.

Reading the metadata of a hundred thousand groups with HDF5 takes a minute. So
the metadata are kept on disk, for the present state of the files. A checksum
detects metadata that were changed or belong to other files. Since any program
could have written the arrays, the code that uses them checks them too.
"""
from __future__ import annotations

import hashlib
import logging
import os
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, TypeAlias

import h5py
import numpy
from numpy.lib.format import read_array

from fuel.config_parser import config
from fuel.remote.location import RemotePath
from fuel.storage.file_bytes import FileBytes
from fuel.storage.nodes import Node, check_virtual, find_node, linked_path
from fuel.storage.open_files import OpenFile, open_files
from fuel.storage.part_index import Arrays
from fuel.utils.atomic_files import atomic_path
from fuel.utils.hdf5_errors import OF_DAMAGE, raise_named

logger = logging.getLogger(__name__)

# Number that is written into each file of kept arrays. Arrays in a file with
# another number are made again.
FORMAT = 2


class Identified(Protocol):
    """Interface of a file, or a folder, that has an identity."""

    path: str

    @property
    def identity(self) -> tuple[int, ...]:
        """Equal for a file in one state."""


def kept_arrays(files: Sequence[Identified], key: str) -> Arrays | None:
    """Return the arrays that were kept on disk under a key, for the present
    state of files; None if there are none, or if they are damaged.

    Examples
    --------
    >>> kept_arrays([], 'never kept') is None
    True
    """
    path = _path_of(files, key)
    if path is None or not os.path.exists(path):
        return None
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                # The archive has a checksum of each array.
                with archive.open(name) as member:
                    arrays[name.removesuffix('.npy')] = read_array(
                        member, allow_pickle=False)
    except (OSError, ValueError, zipfile.BadZipFile, EOFError, KeyError,
            NotImplementedError, MemoryError) as error:
        logger.warning('%s is damaged and will be made again: %s', path,
                       error)
        return None
    made = arrays.pop('format', None)
    if made is None or made.dtype.kind != 'i' or made.tolist() != FORMAT:
        return None
    checksum = arrays.pop('checksum', None)
    if checksum is None or checksum.tolist() != _checksum(path, arrays):
        logger.warning('%s was changed, or is that of other files, and will '
                       'be made again', path)
        return None
    return arrays


def keep_arrays(files: Sequence[Identified], key: str, arrays: Arrays) -> None:
    """Keep arrays on disk under a key, for the present state of files.

    Arrays that were kept under this key for other states of the files are
    removed. If the disk cannot be written to, a warning is logged, and nothing
    is kept.
    """
    path = _path_of(files, key)
    if path is None:
        return
    folder, name = os.path.split(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with atomic_path(path, mode=0o600) as temporary, zipfile.ZipFile(
                temporary, 'w') as archive:
            more = {'format': numpy.array(FORMAT),
                    'checksum': numpy.array(_checksum(path, arrays))}
            for each, array in {**arrays, **more}.items():
                with archive.open(f'{each}.npy', 'w',
                                  force_zip64=True) as member:
                    numpy.save(member, array)
        for other in os.listdir(folder):
            if other != name and other.startswith(name.split('-')[0]):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(folder, other))
    except OSError as error:
        logger.warning('%s cannot be kept: %s', path, error)


def _checksum(path: str, arrays: Arrays) -> bytes:
    """Return a checksum of all arrays, their names and their key.

    Each checksum in the archive is that of the bytes of a single array.
    """
    digest = hashlib.sha256(os.path.basename(path).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest().encode()


def _path_of(files: Sequence[Identified], key: str) -> str | None:
    """Return the path of kept arrays; None if the cache on disk is turned
    off."""
    folder: str = config.remote_cache_path
    if folder == 'off':
        return None
    names = '\n'.join([key, *(str(file.path) for file in files)])
    state = repr([file.identity for file in files])
    return os.path.join(folder, 'indexes', '-'.join([
        hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()[
            :24] for text in (names, state)]) + '.npz')


# Arrays are kept only if the longest of them has at least this length.
FEWEST_KEPT = 1000

#: Makes arrays that may be kept; returns {} if they must not be kept.
MakeArrays: TypeAlias = Callable[[], Arrays]
#: Returns whether arrays that were kept can be used.
CheckArrays: TypeAlias = Callable[[Arrays], bool]


class LinkedFiles:
    """The files of a data set, and the files to which their links lead.

    `files`: the files of the data set, held open.
    `paths`: the paths of these files, as they were given.
    `anywhere`: whether links may lead out of the folder of a file.
    """

    def __init__(self, files: Sequence[OpenFile], paths: Sequence[str],
                 anywhere: bool) -> None:
        self.files, self.paths = files, paths
        self._anywhere = anywhere
        self._linked: dict[str, OpenFile] = {}

    def find(self, number: int, path: str,
             root: h5py.Group | None = None) -> Node | None:
        """Return the node at a path in a file, None if there is none.

        `number`: number of the file.
        `root`: group at which the path begins. Defaults to the root of the
            file.
        """
        try:
            node = find_node(self.files[number].file['/'] if root is None
                             else root, path, self.open_linked)
        except OF_DAMAGE as error:
            raise_named(error, self.paths[number])
            raise
        if isinstance(node, h5py.Dataset):
            self.check_array(number, node)
        return node

    def check_array(self, number: int, array: h5py.Dataset) -> None:
        """Raise an error if HDF5 should not read an array of a file; see
        :func:`~fuel.storage.nodes.check_virtual`."""
        try:
            check_virtual(array, self._other_path)
        except OF_DAMAGE as error:
            raise_named(error, self.paths[number])
            raise

    def open_linked(self, file: h5py.File, name: str) -> h5py.File:
        """Return the open file that a link in another file names."""
        target = self._other_path(file, name)
        if target not in self._linked:
            self._linked[target] = open_files.get(target)
        return self._linked[target].file

    def _other_path(self, file: h5py.File, name: str) -> str:
        """Return the path of a file that another file names."""
        path = os.fsdecode(file.filename)
        if isinstance(self.paths[0], RemotePath):
            raise ValueError(
                f'{path!r} leads to another file, {name!r}, which is not '
                f'followed from a remote file')
        origin = next((given for given, opened in zip(
            self.paths, self.files, strict=True) if opened.file == file), path)
        return linked_path(os.path.dirname(os.path.abspath(origin)), origin,
                           name, self._anywhere)

    def own_bytes(self) -> Sequence[FileBytes]:
        """Return the bytes of those files that Fuel can read directly."""
        return [opened.raw for opened in self.files if opened.raw is not None]

    def all_bytes(self) -> Sequence[FileBytes]:
        """Return the bytes of the files, and of the files to which links
        lead, as far as Fuel can read them directly."""
        return [*self.own_bytes(), *[
            opened.raw for opened in self._linked.values()
            if opened.raw is not None]]

    def check(self) -> None:
        """Raise DamagedFileError if a file has changed."""
        for opened in (*self.files, *self._linked.values()):
            opened.check()

    def kept(self, key: str, make: MakeArrays, are_sound: CheckArrays,
             fewest: int | None = None) -> Arrays:
        """Return arrays that are kept for these files; make them if there are
        none.

        `fewest`: the arrays are kept only if the longest of them has at least
            this length. Defaults to a thousand.
        """
        files = self.own_bytes()
        if len(files) < len(self.files):
            # The state of some files is not known.
            return make()
        key = f'{key} {self._anywhere}'
        arrays = kept_arrays(files, key)
        if arrays is not None and are_sound(arrays):
            return arrays
        arrays = make()
        if max(map(len, arrays.values()), default=0) >= (
                FEWEST_KEPT if fewest is None else fewest):
            self.check()
            # Files to which links lead may change while these files do not.
            if not self._linked:
                keep_arrays(files, key, arrays)
        return arrays
