"""Folders of pictures or of audio files."""
from __future__ import annotations

import errno
import itertools
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from fuel.datasets.columns.part_names import natural_key
from fuel.layouts.formats import (
    ADVICE, DATA_ENDINGS, SHARDS, TABLES_OF_TEXT, without_number)
from fuel.utils.other_libraries import is_hugging_face_cache
from fuel.utils.paths import looping_link

# Most folders, and most entries of each, that are examined before all folders
# are listed.
FOLDERS, ENTRIES = 10, 1000


class Entries:
    """The entries of folders; each folder is listed once.

    The first entries of a folder may be examined before all of them are
    needed.
    """

    def __init__(self) -> None:
        self._begun: dict[str, tuple[list[os.DirEntry[str]], Any]] = {}

    def first(self, folder: str) -> list[os.DirEntry[str]]:
        """Return the first entries of a folder."""
        entries = os.scandir(folder)
        found = list(itertools.islice(entries, ENTRIES))
        self._begun[folder] = found, entries
        return found

    @contextmanager
    def all(self, folder: str) -> Iterator[Iterable[os.DirEntry[str]]]:
        """Return a context with all entries of a folder."""
        found, entries = self._begun.pop(folder, None) or (
            [], os.scandir(folder))
        with entries:
            yield itertools.chain(found, entries)

    def close(self) -> None:
        """Close the folders that were not listed to their end."""
        for _, entries in self._begun.values():
            entries.close()
        self._begun.clear()


def look_into(folder: str, endings: tuple[str, ...] = DATA_ENDINGS,
              listed: Entries | None = None,
              ) -> tuple[list[str], list[str]]:
    """Return the paths of the data files and of the folders in a folder, in
    natural order."""
    files, folders = [], []
    with (listed or Entries()).all(folder) as entries:
        for entry in entries:
            if entry.name.startswith('.') or is_hugging_face_cache(entry.name):
                continue
            try:
                is_folder = entry.is_dir()
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise looping_link(entry.path) from None
                raise
            if is_folder:
                folders.append(entry.path)
            elif without_number(entry.name.lower()).endswith(endings):
                files.append(entry.path)
    return sorted(files, key=natural_key), sorted(folders, key=natural_key)


def are_in(folder: str, entries: Entries, kwargs: Mapping[str, Any]) -> bool:
    """Return whether a folder is one of pictures or audio files: whether it
    has no files of data, and most of the other files are such files.

    `kwargs`: arguments of the data set.
    """
    # Imported only for a folder, since most data sets are files.
    from fuel.datasets.file_tables import TABLES, find_tables
    from fuel.datasets.files import ENDINGS
    from fuel.datasets.folder_index import folder_index
    media = tuple(itertools.chain.from_iterable(ENDINGS.values()))
    first = list(_first_names(folder, entries))
    data = (*DATA_ENDINGS, *SHARDS)
    if not _count(first, media) or _count({*first} - {*TABLES}, data):
        return False
    try:
        index = folder_index(os.path.abspath(folder),
                             kwargs.get('follow') == 'anywhere')
    except (OSError, ValueError):
        # Such as a link that leads out of the folder: tables may be read
        # without it.
        if _count(first, media) > _count(first, tuple(TABLES_OF_TEXT)):
            raise
        return False
    names = index.names
    tables = find_tables(index)
    if names.end_with(data).sum() > _count(tables, data):
        return False
    found = names.end_with(media).sum()
    others = names.end_with([*ADVICE.keys() - {*media}]).sum()
    texts = names.end_with([*TABLES_OF_TEXT]).sum()
    return bool(found and (tables or (found > texts and found >= others)))


def _first_names(folder: str, entries: Entries) -> Iterator[str]:
    """Yield the names of the first files of the first folders, in lower
    case."""
    pending = deque([folder])
    for _ in range(FOLDERS):
        if not pending:
            break
        for entry in entries.first(pending.popleft()):
            if not entry.is_dir(follow_symlinks=False):
                yield entry.name.lower()
            if len(pending) < FOLDERS and _is_folder(entry):
                pending.append(entry.path)


def _count(names: Iterable[str], endings: tuple[str, ...]) -> int:
    """Return the number of names with one of some extensions."""
    return sum(without_number(name).endswith(endings) for name in names)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder that may be searched."""
    try:
        return not entry.name.startswith('.') and entry.is_dir() and (
            os.access(entry.path, os.R_OK | os.X_OK))
    except OSError:
        # Another function reports links that lead back to themselves.
        return False
