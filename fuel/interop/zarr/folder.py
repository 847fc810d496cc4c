"""The files of a Zarr store in a folder, and whether they change."""
from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator
from typing import Any

import zarr
import zarr.storage

from fuel.exceptions import DamagedFileError
from fuel.storage.raw_file import identity_of

# Of either version, which have other names in them.
_zarr: Any = zarr
IS_ZARR_2 = zarr.__version__.startswith('2.')


class Folder:
    """A folder that is read in one state, as a file is.

    A Zarr store has no mark of its version: it is that of all its files, which
    are looked at when it is opened and at the beginning of an epoch; those of
    a chunk again when it was read.

    `path`: of the folder.
    `identity`: equal for two looks at one state.
    """

    is_remote = False

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._states = dict(_look(self.path))
        self.identity = _identity(self._states)

    def is_current(self) -> bool:
        """Return whether all files are as they were."""
        now = dict(_look(self.path))
        return not now or now == self._states

    def check(self) -> None:
        """Raise DamagedFileError if a file is not as it was."""
        if not self.is_current():
            raise self._changed('a file of it')

    def check_chunks(self, array: zarr.Array[Any], first: int) -> None:
        """Raise DamagedFileError if the chunks of an array with this first
        index were written since the folder was opened."""
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
        return DamagedFileError(
            f'{self.path} was written to while it was in use ({what}), so '
            f'old and new rows would be mixed: begin another epoch, or open '
            f'the data set again (to replace a store in use, rename the new '
            f'folder onto its name)')


def folder_of(array: zarr.Array[Any]) -> str | None:
    """Return the folder of an array's store, None if it is in none."""
    store, module = array.store, _zarr
    if IS_ZARR_2:
        return str(store.path) if isinstance(
            store, module.DirectoryStore) else None
    return str(store.root) if isinstance(
        store, module.storage.LocalStore) else None


def _keys(array: zarr.Array[Any], index: tuple[int, ...]) -> list[str]:
    """Return the names that the file of a chunk may have."""
    if not IS_ZARR_2:
        return [array.metadata.encode_chunk_key(index)]
    # It does not say which character is between the numbers.
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
