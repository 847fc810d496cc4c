"""The errors that there is no file at a path, with the nearest name there."""
from __future__ import annotations

import glob
import itertools
import os
import re
from contextlib import suppress

from fuel.suggestions import nearest

# Most names in a folder that are compared with that of a missing file.
MOST_NAMES = 10_000
_NUMBER = re.compile('[0-9]+')
# A range in braces as people write it elsewhere.
_OTHER_RANGE = re.compile(r'\{(\w+)(?:-|:|\.\.\.)(\w+)\}')


def no_file(path: str, given: str | None = None) -> FileNotFoundError:
    """Return the error that there is no local file or folder at a path.

    `given`: the path as it was given, with ``~`` or braces.
    """
    _, ending = os.path.splitext(path)
    what = 'folder' if path.endswith(os.sep) else (
        'file' if ending else 'file or folder')
    of = '' if given in (None, path) else f', which {given!r} names'
    hint = _of_braces(path) or near(path)
    return FileNotFoundError(
        f'there is no {what} {path!r}{of}{": " * bool(hint)}{hint}')


def no_match(pattern: str) -> FileNotFoundError:
    """Return the error that no file matches a pattern."""
    hint = near(pattern)
    return FileNotFoundError(
        f'there is no file like {pattern!r} (looked in {os.getcwd()!r})'
        f'{": " * bool(hint)}{hint}')


def near(path: str, only_folders: bool = False) -> str:
    """Return a text that names the first missing folder above a missing file,
    and what has a name like it; '' if nothing has.

    `only_folders`: whether to compare the names of folders alone.
    """
    missing = whole = path.rstrip(os.sep) or path
    while (folder := os.path.dirname(missing)) and not os.path.isdir(folder):
        missing = folder
    is_above = missing != whole
    if is_above and any(map(os.path.isdir, glob.iglob(
            missing, recursive=True))):
        # The folders of a pattern are there, and only its files are not.
        return ''
    if is_above and os.path.exists(missing):
        return f'{missing!r} is a file and not a folder'
    found = _nearest_in(folder or '.', os.path.basename(missing),
                        only_folders or is_above)
    like = 'like ' * glob.has_magic(missing)
    texts = [f'there is no folder {like}{missing!r}'] * is_above
    if found is not None:
        suggested = os.path.join(folder, found)
        kind = 'the folder ' * os.path.isdir(suggested)
        texts.append(f'did you mean {kind}{suggested!r}?')
    return ', '.join(texts)


def _nearest_in(folder: str, name: str, only_folders: bool) -> str | None:
    """Return the name in a folder that is nearest to another name; None if
    none is near, or if the folder cannot be read."""
    names: list[str] = []
    with suppress(OSError, ValueError), os.scandir(folder) as entries:
        names = sorted(
            entry.name for entry in itertools.islice(entries, MOST_NAMES)
            if not entry.name.startswith('.')
            and (entry.is_dir() or not only_folders))
    # Do not suggest a name that differs in its number alone.
    names = [one for one in names
             if _NUMBER.sub('', one) != _NUMBER.sub('', name)]
    # An ending was left out: an index and its file are called by their stem.
    longer = [one for one in names if one.startswith(f'{name}.')]
    stems = [one.removesuffix('.idx') for one in names
             if one.endswith('.idx')]
    # Endings are alike by themselves.
    stem, ending = os.path.splitext(name)
    others = {one.removesuffix(ending): one for one in names
              if one.endswith(ending)} if ending else {}
    return longer[0] if longer else others.get(
        str(nearest(stem, others))) or nearest(
            name, {*names, *stems}.difference(others.values()))


def _of_braces(path: str) -> str:
    """Return advice on braces that stayed as they are; '' if there are
    none."""
    if '{' not in path and '}' not in path:
        return ''
    how = ('braces stand for several paths if they have a range, '
           '{000..012}, or a list, {train,val}')
    if path.count('{') != path.count('}'):
        return f'a brace in it has no partner; {how}'
    meant = _OTHER_RANGE.sub(r'{\1..\2}', path)
    return (f'{how}, and these do not' if meant == path else
            f'did you mean {meant!r}? For {how}')
