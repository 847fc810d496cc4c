"""The files in a folder, and in the folders below it: listed once, and kept.

Later, only those folders are listed again that have changed, by their times.
"""
from __future__ import annotations

import hashlib
import os
import posixpath
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from fuel.datasets.shards.table import Texts
from fuel.storage.file_bytes import identity_of
from fuel.storage.linked_files import FEWEST_KEPT, kept_arrays, keep_arrays
from fuel.storage.part_index import Arrays
from fuel.utils.paths import looping_link
from fuel.utils.threads import map_chunks

IndexArray = NDArray[numpy.intp]
_name = attrgetter('name')
# Names that operating systems add to folders; those that begin with a dot are
# left out too.
IGNORED = frozenset(('Thumbs.db', 'desktop.ini'))
# A folder that was changed so few nanoseconds ago may change again without
# another time: some file systems count in steps of two seconds.
RECENT = 2 * 10 ** 9
# The identity that is kept of such a folder; no folder has it.
UNSETTLED = (0, 0, 0, 0)


class Names(Texts):
    """Names of files or folders, each followed by a null byte in `content`."""

    @classmethod
    def of_text(cls, text: str) -> Names:
        """Return the names in a text."""
        content = numpy.frombuffer(os.fsencode(text), numpy.uint8)
        return cls(content, numpy.flatnonzero(content == 0) + 1)

    def __getitem__(self, number: int) -> str:
        return super().__getitem__(number)[:-1]

    def text(self, start: int = 0, stop: int | None = None) -> str:
        """Return the names with the numbers ``start:stop`` as one text."""
        stop = len(self) if stop is None else stop
        first = int(self.ends[start - 1]) if start else 0
        last = int(self.ends[stop - 1]) if stop else 0
        return os.fsdecode(self.content[first:last].tobytes())

    def end_with(self, endings: Sequence[str]) -> NDArray[numpy.bool_]:
        """Return a mask of the names with some extensions, in any case."""
        codes = [ending.encode() for ending in endings]
        longest = max(map(len, codes), default=0)
        # One array for each of the last characters, which is fast to compare.
        places = self.ends - 1 - numpy.arange(longest, 0, -1)[:, None]
        last = self.content[numpy.maximum(places, 0)]
        last[(last >= ord('A')) & (last <= ord('Z'))] += 32
        found = numpy.zeros(len(self), bool)
        for code in codes:
            found |= numpy.logical_and.reduce([
                one == wanted for one, wanted in zip(
                    last[longest - len(code):], code, strict=True)])
        return found

    def are_sound(self) -> bool:
        """Return whether arrays from a file are names, and no paths."""
        content, ends = self.content, self.ends
        if (content.dtype != 'uint8' or ends.dtype != 'int64'
                or content.ndim != 1 or not numpy.array_equal(
                    numpy.flatnonzero(content == 0) + 1, ends)):
            return False
        starts = numpy.concatenate([[0], ends[:-1]])[:len(ends)]
        return not (len(content) != ends[-1:].sum()
                    or (content[starts] == ord('.')).any()
                    or (content == ord('/')).any())


class Listing(NamedTuple):
    """The names in a folder, sorted.

    `identity`: of the folder, before it was listed.
    `names`: of the files, each followed by a null byte.
    `inodes`: of the files.
    `folders`: names of the folders.
    """

    identity: tuple[int, ...]
    names: str
    inodes: NDArray[numpy.uint64]
    folders: list[str]


@dataclass
class KeptFolder:
    """A folder whose index is kept, in any state."""

    path: str
    identity: tuple[int, ...] = ()


class FolderIndex:
    """The files in a folder and in the folders below it.

    `path`: absolute path of the folder.
    `anywhere`: whether links may lead out of the folder.
    `folders`: paths of the folders relative to `path`, with ``/``; the first
        one is ``''``. A folder comes after the folder that it lies in.
    `identities`: of the folders; shape (folders, 4).
    `bounds`: the first file of each folder, and the number of files.
    `names`, `inodes`: of the files.
    """

    is_remote = False

    def __init__(self, path: str, anywhere: bool, folders: list[str],
                 identities: NDArray[numpy.int64], bounds: IndexArray,
                 names: Names, inodes: NDArray[numpy.uint64]) -> None:
        self.path, self.anywhere = path, anywhere
        self.folders, self.identities = folders, identities
        self.bounds, self.names, self.inodes = bounds, names, inodes
        digest = hashlib.sha256('\0'.join(folders).encode(
            'utf-8', 'surrogateescape'))
        for array in (bounds, names.content, inodes):
            digest.update(array.tobytes())
        # Other files have another one.
        self.identity: tuple[int, ...] = (
            int.from_bytes(digest.digest()[:8], 'little'),)

    def check(self) -> None:
        """Do nothing: each file is checked when it is read."""

    def is_current(self) -> bool:
        """Return whether listing the folders now would find the same."""
        return all(map(self.is_same, range(len(self.folders))))

    def is_same(self, folder: int) -> bool:
        """Return whether a folder has not changed since it was listed."""
        try:
            status = os.stat(_below(self.path, self.folders[folder]))
        except OSError:
            return False
        return identity_of(status) == tuple(self.identities[folder].tolist())

    def folder_of(self, files: Any) -> Any:
        """Return the number of the folder of a file, or of each of several."""
        return self.bounds.searchsorted(files, 'right') - 1

    def name_of(self, file: int) -> str:
        """Return the path of a file relative to `path`, with ``/``."""
        return posixpath.join(
            self.folders[self.folder_of(file)], self.names[file])

    def updated(self, now: FolderIndex) -> FolderIndex:
        """Return the index of the same files in the state of a newer index.

        Files that were added are left out. Files that are gone stay, so that
        reading them is an error.
        """
        known, inodes = now.listings(), self.inodes.copy()
        identities = numpy.tile(numpy.array(UNSETTLED), (len(self.folders), 1))
        for number, (folder, mine) in enumerate(self.listings().items()):
            if folder not in known:
                continue
            one = known[folder]
            identities[number] = one.identity
            first, stop = self.bounds[number:number + 2].tolist()
            if one.names == mine.names:
                inodes[first:stop] = one.inodes
                continue
            found = dict(zip(one.names.split('\0')[:-1], one.inodes.tolist(),
                             strict=True))
            for place, name in enumerate(mine.names.split('\0')[:-1], first):
                inodes[place] = found.get(name, inodes[place])
        return FolderIndex(self.path, self.anywhere, self.folders, identities,
                           self.bounds, self.names, inodes)

    def listings(self) -> dict[str, Listing]:
        """Return a dict from the folders to what they contain."""
        below: dict[str, list[str]] = {folder: [] for folder in self.folders}
        for folder in self.folders[1:]:
            above, _, name = folder.rpartition('/')
            below[above].append(name)
        return {folder: Listing(
            tuple(identity), self.names.text(first, stop),
            self.inodes[first:stop], below[folder])
            for folder, identity, first, stop in zip(
                self.folders, self.identities.tolist(),
                self.bounds[:-1].tolist(), self.bounds[1:].tolist(),
                strict=True)}


def _below(root: str, folder: str) -> str:
    """Return the path of a folder, without a slash at its end."""
    return os.path.join(root, folder) if folder else root


def folder_index(path: str, anywhere: bool) -> FolderIndex:
    """Return the index of a folder; folders that have not changed since they
    were listed are not listed again.

    `anywhere`: whether links may lead out of the folder.
    """
    where, key = [KeptFolder(path)], f'files {anywhere}'
    known = _restored(path, anywhere, kept_arrays(where, key) or {})
    if known is not None and known.is_current():
        return known
    index = _list_all(path, anywhere, {} if known is None
                      else known.listings())
    if len(index.names) >= FEWEST_KEPT:
        folders = Names.of_text('\0'.join([*index.folders[1:], '']))
        keep_arrays(where, key, {
            'folders': folders.content, 'folder_ends': folders.ends,
            'identities': index.identities, 'bounds': index.bounds,
            'names': index.names.content, 'name_ends': index.names.ends,
            'inodes': index.inodes})
    return index


def _restored(path: str, anywhere: bool, arrays: Arrays,
              ) -> FolderIndex | None:
    """Return the index from which arrays were kept; None if the arrays are not
    sound."""
    try:
        folders = Names(arrays['folders'], arrays['folder_ends'])
        names = Names(arrays['names'], arrays['name_ends'])
        identities, bounds, inodes = (
            arrays[name] for name in ('identities', 'bounds', 'inodes'))
        listed = ['', *folders.text().split('\0')[:-1]]
    except (KeyError, TypeError, ValueError):
        return None
    if not (names.are_sound() and identities.dtype == 'int64'
            and identities.shape == (len(listed), 4)
            and bounds.dtype == 'int64' and bounds.shape == (len(listed) + 1,)
            and bounds[0] == 0 and (numpy.diff(bounds) >= 0).all()
            and bounds[-1] == len(names) and inodes.dtype == 'uint64'
            and inodes.shape == (len(names),)
            and {folder.rpartition('/')[0] for folder in listed} <= {*listed}
            and not any('/.' in f'/{folder}' for folder in listed)):
        return None
    return FolderIndex(path, anywhere, listed, identities,
                       bounds.astype(numpy.intp), names, inodes)


def _list_all(root: str, anywhere: bool,
              known: dict[str, Listing]) -> FolderIndex:
    """Return the index of a folder.

    `known`: folders that were listed before.
    """
    real = os.path.realpath(root)

    def list_some(first: int, stop: int) -> list[Listing]:
        return [_list(_below(root, folder), root, real, anywhere,
                      known.get(folder)) for folder in level[first:stop]]

    folders, found, level = [], [], ['']
    while level:
        listed = list(chain.from_iterable(map_chunks(list_some, len(level))))
        folders += level
        found += listed
        level = [posixpath.join(folder, name) for folder, one in zip(
            level, listed, strict=True) for name in one.folders]
    return FolderIndex(
        root, anywhere, folders,
        numpy.array([one.identity for one in found], numpy.int64),
        numpy.cumsum([0, *[len(one.inodes) for one in found]]),
        Names.of_text(''.join([one.names for one in found])),
        numpy.concatenate([one.inodes for one in found]))


def _list(folder: str, root: str, real: str, anywhere: bool,
          known: Listing | None) -> Listing:
    """Return the names in a folder.

    `root`, `real`: the folder that was asked for, and its real path.
    `known`: what was listed before.
    """
    now = time.time_ns()
    status = os.stat(folder)
    identity = identity_of(status)
    if known is not None and known.identity == identity:
        return known
    if status.st_mtime_ns > now - RECENT:
        identity = UNSETTLED
    # There may be millions of entries: no line of Python runs for each.
    with os.scandir(folder) as entries:
        found = sorted(entries, key=_name)
    names = '\0'.join([*map(_name, found), ''])
    if names.startswith('.') or any(
            f'\0{ignored}' in f'\0{names}' for ignored in ('.', *IGNORED)):
        found = [entry for entry in found if not entry.name.startswith('.')
                 and entry.name not in IGNORED]
    links = list(filter(os.DirEntry.is_symlink, found))
    for link in links:
        _check_link(link, root, real, anywhere)
    folders = [entry.name for entry in filter(os.DirEntry.is_dir, found)]
    if len(folders) == len(found):
        found = []
    elif folders:
        found = [entry for entry in found if not entry.is_dir()]
    return Listing(identity, '\0'.join([*map(_name, found), '']),
                   numpy.fromiter(map(_inode_of if links else
                                      os.DirEntry.inode, found),
                                  numpy.uint64, len(found)), folders)


def _check_link(link: os.DirEntry[str], root: str, real: str,
                anywhere: bool) -> None:
    """Raise an error if a link leads out of the root, or to a folder that it
    lies in."""
    target = os.path.realpath(link.path)
    if not anywhere and os.path.commonpath([real, target]) != real:
        raise ValueError(
            f'{link.path!r} is a link that leads out of the folder {root!r}, '
            f"to {target!r}: if that is meant, pass follow='anywhere'")
    folder = os.path.dirname(link.path)
    while os.path.isdir(target) and len(folder) >= len(root):
        if os.path.realpath(folder) == target:
            raise looping_link(link.path, 'a folder that it lies in')
        folder = os.path.dirname(folder)


def _inode_of(entry: os.DirEntry[str]) -> int:
    """Return the inode of a file, or of the file that a link leads to; 0 if
    there is none."""
    try:
        return entry.stat().st_ino if entry.is_symlink() else entry.inode()
    except OSError:
        return 0
