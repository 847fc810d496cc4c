"""The data files of a folder, whose subfolders may be splits."""
from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from fuel.datasets.columns.part_names import natural_key
from fuel.layouts.formats import (
    ADVICE, COMPRESSED_TARS, DATA_ENDINGS, INDEX, LITDATA, SHARDS,
    TABLES_OF_ARROW, TABLES_OF_TEXT, advice_for, format_of, is_litdata,
    is_zarr, without_number)
from fuel.layouts.media import Entries, look_into
from fuel.utils.paths import looping_link
from fuel.utils.warn import warn_user

# Most levels of nested folders that are searched.
MOST_LEVELS = 8
# Most folders that an error shows.
SHOWN = 10


class FolderFiles:
    """The data files of a folder, which is listed once.

    Files in the folder itself are one split without a name. Otherwise each
    subfolder is a split, unless the names of the subfolders state values, as
    in ``healpix=7``. If the folder contains only one folder, that folder is
    searched instead, unless it is a wanted split.

    `folder`: the path of the folder.
    `wanted`: the names of the splits to read, if there are such splits.
    `entries`: the entries of folders that were listed before.
    """

    def __init__(self, folder: str, wanted: Sequence[str] = (),
                 entries: Entries | None = None) -> None:
        self.folder = folder
        self._wanted = wanted
        self._found = _search(folder, wanted, DATA_ENDINGS, entries)

    @property
    def has_data(self) -> bool:
        """Whether there are data files (bool)."""
        return bool(self._found[0])

    def are_tables(self) -> bool:
        """Return whether all files are Parquet or Arrow.

        If the folder and its subfolders have no files, the files at any depth
        below are examined.

        Raises: ValueError if the format of a file is not known.
        """
        splits, last, is_loop = self._found
        if not splits and self._wanted:
            # A wanted split may have its files further below.
            splits, last, is_loop = _search(self.folder, (), DATA_ENDINGS)
        every = [path for paths in splits.values() for path in paths]
        if not every and not is_loop:
            every = [path for below in _with_files(last)
                     for path in look_into(below)[0]]
        by_ending = {_ending(path): path for path in reversed(every)}
        return bool(every) and by_ending.keys() <= {*TABLES_OF_ARROW} and all(
            format_of(path) in ('arrow', 'parquet')
            for path in by_ending.values())

    def by_split(self) -> dict[str, list[str]]:
        """Return a dict from splits to the paths of their files.

        Tables of text, and shards, are returned only if there are no other
        data files.

        Raises: FileNotFoundError if there are no files.
        """
        folder = self.folder
        splits, last, is_loop = self._found
        if not splits:
            splits, last, is_loop = _search(
                folder, self._wanted, tuple(TABLES_OF_TEXT) if _has_tables(
                    folder) else SHARDS)
            _warn_of_compressed({os.path.dirname(path) for paths in (
                splits.values()) for path in paths})
        if splits:
            return splits
        if is_loop and not any(names for _, _, names in os.walk(folder)):
            raise looping_link(last, 'a folder that it lies in')
        deeper = list(itertools.islice(_with_files(last), SHOWN + 1))
        if deeper:
            raise FileNotFoundError(
                f'{folder!r} has no files of data, nor have its folders, but '
                f'folders further down have: load one of them, such as '
                f'{", ".join(map(repr, deeper[:SHOWN]))}'
                f'{", ..." * (len(deeper) > SHOWN)}; or a list of files')
        raise FileNotFoundError(
            f'{folder!r} has no files of data, nor have its folders; they '
            f'end with {", ".join((*DATA_ENDINGS, *SHARDS, *TABLES_OF_TEXT))}'
            f'{_what_it_has(folder)}')


def _warn_of_compressed(folders: Iterable[str]) -> None:
    """Warn if folders have compressed archives, which are not read."""
    found = [path for folder in folders
             for path in look_into(folder, COMPRESSED_TARS)[0]]
    if found:
        warn_user(f'{", ".join(map(repr, found[:SHOWN]))}'
                  f'{", ..." * (len(found) > SHOWN)}: a compressed archive '
                  f'is left out; decompress it, since samples are read at '
                  f'their places')


def _search(folder: str, wanted: Sequence[str], endings: tuple[str, ...],
            entries: Entries | None = None,
            ) -> tuple[dict[str, list[str]], str, bool]:
    """Return a dict from splits to their files with some extensions, the
    folder that was searched last, and whether that folder leads back to a
    folder above it."""
    seen = set()
    for _ in range(MOST_LEVELS):
        files, folders = look_into(folder, endings, entries)
        seen.add(os.path.realpath(folder))
        if files:
            return {'': files}, folder, False
        if len(folders) != 1 or os.path.basename(folders[0]) in wanted:
            break
        folder = folders[0]
        if os.path.realpath(folder) in seen:
            return {}, folder, True
    found = {os.path.basename(one): look_into(one, endings, entries)[0]
             for one in folders}
    splits = {name: paths for name, paths in found.items() if paths}
    if splits and all('=' in name for name in splits):
        splits = {'': [path for paths in splits.values() for path in paths]}
    return splits, folder, False


def as_pattern(files: Sequence[str]) -> str | list[str]:
    """Return files of one folder as a pattern, if no other file matches it."""
    folder, first = os.path.split(files[0])
    ending = os.path.splitext(first)[1]
    pattern = os.path.join(folder, f'*{ending}')
    found = [path for path in look_into(
                 folder or '.', (ending.lower(),))[0]
             if path.endswith(ending)]
    if len(files) == 1 or found != list(files) or any(
            sign in folder for sign in '*?['):
        return files[0] if len(files) == 1 else list(files)
    return pattern


def _with_files(folder: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the folders in a folder, at any depth, that have data files."""
    above = *above, os.path.realpath(folder)
    for below in look_into(folder)[1] if len(above) <= MOST_LEVELS else ():
        # A link to a folder above would never end.
        if os.access(below, os.R_OK | os.X_OK) and (
                os.path.realpath(below) not in above):
            if look_into(below)[0]:
                yield below
            yield from _with_files(below, above)


def _what_it_has(folder: str) -> str:
    """Return a text about the commonest other files in a folder, and how to
    read them."""
    stores = [path for path in look_into(folder)[1] if is_zarr(path)]
    if stores:
        return (f'. Its folder {stores[0]!r} is a Zarr store, and each store '
                f'is a data set: load it by its own path')
    paths = _files_below(folder)
    for path in paths:
        if os.path.basename(path) == INDEX and is_litdata(path):
            return f'. It has {path!r}: {LITDATA}'
    endings = Counter(map(_ending, paths))
    if not endings:
        return '; it is empty'
    (ending, _), = endings.most_common(1)
    first = next(path for path in sorted(paths, key=natural_key)
                 if path.lower().endswith(ending))
    return f'. It has {first!r}: {advice_for(ending, folder)}'


def _has_tables(folder: str) -> bool:
    """Return whether a folder has tables of text, and at least as many as
    files that another reader reads, such as pictures."""
    endings = Counter(map(_ending, _files_below(folder)))
    tables = sum(endings[ending] for ending in TABLES_OF_TEXT)
    return 0 < tables >= sum(
        endings[ending] for ending in {*ADVICE, *SHARDS})


def _files_below(folder: str) -> list[str]:
    """Return the files in a folder and in some folders below it."""
    return [os.path.join(where, name)
            for where, _, names in itertools.islice(os.walk(folder), SHOWN)
            for name in names if not name.startswith('.')]


def _ending(path: str) -> str:
    return os.path.splitext(without_number(path.lower()))[1]
