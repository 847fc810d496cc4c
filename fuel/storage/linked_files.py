"""The files of a data set, those that they lead to, and what is kept."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeAlias

import h5py

from fuel.remote.location import RemotePath
from fuel.storage.file_bytes import FileBytes
from fuel.storage.kept_arrays import Arrays, keep_arrays, kept_arrays
from fuel.storage.nodes import Node, find_node, linked_path
from fuel.storage.open_files import OpenFile, open_files
from fuel.storage.virtual import check_virtual
from fuel.utils.hdf5_errors import OF_DAMAGE, raise_named

# What is asked of fewer parts is not kept.
FEWEST_KEPT = 1000

#: Makes arrays that may be kept; none if they may not.
MakeArrays: TypeAlias = Callable[[], Arrays]
#: Returns whether arrays that were kept can be used.
CheckArrays: TypeAlias = Callable[[Arrays], bool]


class LinkedFiles:
    """The files of a data set, and those that their links lead to.

    `files`: held open.
    `paths`: of the files, as they were given.
    """

    def __init__(self, files: Sequence[OpenFile], paths: Sequence[str],
                 anywhere: bool) -> None:
        self.files, self.paths = files, paths
        self._anywhere = anywhere
        self._linked: dict[str, OpenFile] = {}

    def find(self, number: int, path: str,
             root: h5py.Group | None = None) -> Node | None:
        """Return what a path in a file leads to, None if nothing is there.

        `root`: a group in which the path begins. Default: that of the file.
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
        """Raise an error where HDF5 should not read an array of a file."""
        try:
            check_virtual(array, self._other_path)
        except OF_DAMAGE as error:
            raise_named(error, self.paths[number])
            raise

    def open_linked(self, file: h5py.File, name: str) -> h5py.File:
        """Return the file that a link in another one names."""
        target = self._other_path(file, name)
        if target not in self._linked:
            self._linked[target] = open_files.get(target)
        return self._linked[target].file

    def _other_path(self, file: h5py.File, name: str) -> str:
        """Return the path of a file that another one names."""
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
        """Return the bytes of the files that are read beside HDF5."""
        return [opened.raw for opened in self.files if opened.raw is not None]

    def all_bytes(self) -> Sequence[FileBytes]:
        """Return the same, with those of files that links lead to."""
        return [*self.own_bytes(), *[
            opened.raw for opened in self._linked.values()
            if opened.raw is not None]]

    def check(self) -> None:
        """Raise DamagedFileError if a file is not what it was."""
        for opened in (*self.files, *self._linked.values()):
            opened.check()

    def kept(self, key: str, make: MakeArrays, are_sound: CheckArrays,
             fewest: int | None = None) -> Arrays:
        """Return arrays that are kept of these files, made where there are
        none yet.

        `fewest`: how long the longest must be to be kept. Default: a
            thousand.
        """
        files = self.own_bytes()
        if len(files) < len(self.files):
            # The state of some is not known.
            return make()
        key = f'{key} {self._anywhere}'
        arrays = kept_arrays(files, key)
        if arrays is not None and are_sound(arrays):
            return arrays
        arrays = make()
        if max(map(len, arrays.values()), default=0) >= (
                FEWEST_KEPT if fewest is None else fewest):
            self.check()
            # What lies in files that links lead to may change without these.
            if not self._linked:
                keep_arrays(files, key, arrays)
        return arrays
