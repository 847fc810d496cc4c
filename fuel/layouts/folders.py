"""The files of a folder, whose subfolders may be splits."""
from __future__ import annotations

import errno
import itertools
import os
from collections import Counter
from collections.abc import Iterator, Sequence

from fuel.datasets.columns.part_names import natural_key
from fuel.layouts.formats import DATA_ENDINGS, advice_for, is_zarr
from fuel.utils.other_libraries import is_hugging_face_cache
from fuel.utils.paths import looping_link

# Of one folder within another, at most so many are gone through.
MOST_LEVELS = 8
# How many folders an error shows.
SHOWN = 10


def files_by_split(folder: str, wanted: Sequence[str] = (),
                   ) -> dict[str, list[str]]:
    """Return the paths of the data files of a folder, by split.

    They are in the folder itself, which makes one split without a name; or
    in its subfolders, which are splits, unless their names say the value of
    something, as in ``healpix=7``. A folder of one folder is looked into,
    unless that is a split which is wanted.

    Raises: FileNotFoundError if there are none.
    """
    origin, seen, loop = folder, set(), ''
    for _ in range(MOST_LEVELS):
        files, folders = _look_into(folder)
        seen.add(os.path.realpath(folder))
        if files:
            return {'': files}
        if len(folders) != 1 or os.path.basename(folders[0]) in wanted:
            break
        folder = folders[0]
        if os.path.realpath(folder) in seen:
            folders, loop = [], folder
            break
    found = {os.path.basename(one): _look_into(one)[0] for one in folders}
    splits = {name: paths for name, paths in found.items() if paths}
    if not splits:
        if loop and not any(names for _, _, names in os.walk(origin)):
            raise looping_link(loop, 'a folder that it lies in')
        deeper = list(itertools.islice(_with_files(folder), SHOWN + 1))
        if deeper:
            raise FileNotFoundError(
                f'{origin!r} has no files of data, nor have its folders, but '
                f'folders further down have: load one of them, such as '
                f'{", ".join(map(repr, deeper[:SHOWN]))}'
                f'{", ..." * (len(deeper) > SHOWN)}; or a list of files')
        raise FileNotFoundError(
            f'{origin!r} has no files of data, nor have its folders; they '
            f'end with {", ".join(DATA_ENDINGS)}{_what_it_has(origin)}')
    if all('=' in name for name in splits):
        return {'': [path for paths in splits.values() for path in paths]}
    return splits


def as_pattern(files: Sequence[str]) -> str | list[str]:
    """Return files of one folder as a pattern, if it fits no others."""
    folder, first = os.path.split(files[0])
    ending = os.path.splitext(first)[1]
    pattern = os.path.join(folder, f'*{ending}')
    found = [path for path in _look_into(folder or '.')[0]
             if path.endswith(ending)]
    if len(files) == 1 or found != list(files) or any(
            sign in folder for sign in '*?['):
        return files[0] if len(files) == 1 else list(files)
    return pattern


def _with_files(folder: str, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the folders in one, at any depth, that have files of data."""
    above = *above, os.path.realpath(folder)
    for below in _look_into(folder)[1] if len(above) <= MOST_LEVELS else ():
        # A link to a folder above leads round in a circle.
        if os.access(below, os.R_OK | os.X_OK) and (
                os.path.realpath(below) not in above):
            if _look_into(below)[0]:
                yield below
            yield from _with_files(below, above)


def _what_it_has(folder: str) -> str:
    """Return the commonest other files of a folder, and what reads them."""
    stores = [path for path in _look_into(folder)[1] if is_zarr(path)]
    if stores:
        return (f'. Its folder {stores[0]!r} is a Zarr store, and each store '
                f'is a data set: load it by its own path')
    paths = [os.path.join(where, name)
             for where, _, names in itertools.islice(os.walk(folder), SHOWN)
             for name in names if not name.startswith('.')]
    endings = Counter(os.path.splitext(path)[1].lower() for path in paths)
    if not endings:
        return '; it is empty'
    (ending, _), = endings.most_common(1)
    first = next(path for path in sorted(paths, key=natural_key)
                 if path.lower().endswith(ending))
    return f'. It has {first!r}: {advice_for(ending, folder)}'


def _look_into(folder: str) -> tuple[list[str], list[str]]:
    """Return the paths of files of data and of folders in a folder, in
    natural order."""
    files, folders = [], []
    with os.scandir(folder) as entries:
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
            elif entry.name.lower().endswith(DATA_ENDINGS):
                files.append(entry.path)
    return sorted(files, key=natural_key), sorted(folders, key=natural_key)
