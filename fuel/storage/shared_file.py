"""HDF5 files that several objects read, closed ones among them."""
from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import h5py

from fuel.remote.urls import is_url
from fuel.storage.file_access import FileAccess, access_to
from fuel.storage.linked_files import LinkedFiles
from fuel.storage.mapped import DirectReader
from fuel.storage.nodes import Node
from fuel.storage.open_files import OpenFile, find_state
from fuel.storage.reader import Reader
from fuel.storage.reader_choice import choose_reader
from fuel.utils.forks import Step, at_fork
from fuel.utils.hdf5_errors import naming_file

# Of files that were closed, of how many it is remembered what was known: many
# loaders open one for each example.
MOST_KEPT = 32


class FileHold:
    """Kept by each object that reads a file."""


class SharedFile:
    """An open file, what its links lead to, and the readers of its arrays.

    `path`: as it was given.
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
        # What is known of a file also when it is closed, and read directly.
        self._readers: dict[str, Reader] = {}
        self._are_arrays: dict[str, bool] = {}

    def release(self) -> None:
        """Close the file, but for what is read beside HDF5."""
        with self._lock:
            self.access.close()
            self._forget()

    def _forget(self) -> None:
        """Forget what HDF5 has open."""
        self._opened = self._files = None
        self._nodes = {}
        self._readers = {path: reader for path, reader
                         in self._readers.items()
                         if isinstance(reader, DirectReader)}

    def hold(self) -> FileHold:
        """Return what keeps the file open while somebody has it."""
        with self._lock:
            held = self._held()
            if held is None:
                held = FileHold()
                weakref.finalize(held, self.release).atexit = False
                self._held = weakref.ref(held)
            return held

    def start_in_child(self) -> None:
        """Begin anew after a fork, in which a lock may have been held."""
        self._lock = threading.RLock()

    def files(self) -> LinkedFiles:
        """Return the file, opened if need be."""
        opened = self.access.open()
        if self._files is None or opened is not self._opened:
            self._forget()
            if opened.identity is None or opened.identity != self._identity:
                self._readers, self._are_arrays = {}, {}
            self._opened, self._identity = opened, opened.identity
            self._files = LinkedFiles([opened], [self.path], self._anywhere)
        return self._files

    def is_array(self, path: str) -> bool:
        """Return whether an array has a path, rather than a group."""
        with self._lock:
            if path not in self._are_arrays:
                self._are_arrays[path] = isinstance(
                    self.node(path), h5py.Dataset)
            return self._are_arrays[path]

    def node(self, path: str) -> Node:
        """Return the group or array of a path; KeyError if there is none."""
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
        """Return what reads the rows of an array."""
        with self._lock:
            if path not in self._readers or self._opened is not None:
                files = self.files()
            if path not in self._readers:
                with naming_file(self.path, path):
                    reader = choose_reader(self.node(path), self._cache_bytes)
                # What HDF5 knew of it is about the file as it was.
                files.check()
                self._readers[path] = reader
            return self._readers[path]

    def is_current(self) -> bool:
        """Return whether to open the file again would open the same."""
        if self._opened is None and not is_url(self.path):
            return find_state(os.path.abspath(self.path))[1] == self._identity
        return self.access.is_current()

    def known_reader(self, path: str) -> Reader | None:
        """Return the reader of an array, None if there is none yet."""
        return self._readers.get(path)

    def check(self) -> None:
        """Raise DamagedFileError if the file is not what it was."""
        self.files().check()


# Those that were used last, by path and options.
_kept: OrderedDict[tuple[object, ...], SharedFile] = OrderedDict()
_kept_lock = threading.Lock()


def _start_in_child() -> None:
    global _kept_lock
    _kept_lock = threading.Lock()
    for shared in _kept.values():
        shared.start_in_child()


at_fork(Step.OWNERSHIP, in_child=_start_in_child)


def shared_file(path: Any, arguments: Mapping[str, Any]) -> SharedFile:
    """Return an open file, the same for all who open it alike."""
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
