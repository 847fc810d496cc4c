"""Files that belong to a split, as names of theirs or of folders say."""
from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence

# What folders, groups and lists of rows are called that are splits.
SPLITS = re.compile(
    '(train(ing)?|test(ing)?|val(id(ation)?)?|dev(el(opment)?)?|'
    'eval(uation)?|hold_?out)(s|set|[ab])?', re.I)
# A file of several, as Hugging Face names them: train-00000-of-00002.parquet.
_NUMBERED = re.compile(r'(?P<name>.+?)-\d{5}-of-\d{5}(-[0-9a-f]+)?')
# What `save_to_disk` of Hugging Face writes beside the folders of splits.
_DICT = 'dataset_dict.json'


def files_by_name(paths: Sequence[str], root: str,
                  ) -> dict[str, list[str]]:
    """Return the files of each split, in the order of the files.

    A file is of a split if a folder below the root is called as splits are,
    if Hugging Face says so of its folder, or else if its own name begins as
    splits are called. Where this is not true of all files, there are none.

    `root`: a folder above all files.
    """
    found: dict[str, list[str]] = {}
    for path in paths:
        split = _split_of(os.path.relpath(path, root or '.'), path)
        if split is None:
            return {}
        found.setdefault(split, []).append(path)
    return found


def _split_of(below: str, path: str) -> str | None:
    """Return the split of a file, None if nothing tells it."""
    folder = os.path.dirname(path)
    if os.path.isfile(os.path.join(os.path.dirname(folder), _DICT)):
        return os.path.basename(folder)
    *folders, name = below.split(os.sep)
    for one in folders:
        if SPLITS.fullmatch(one):
            return one
    stem, _ = os.path.splitext(name)
    numbered = _NUMBERED.fullmatch(stem)
    first = re.split('[-_.]', stem)[0]
    if not SPLITS.fullmatch(first):
        return None
    return first if numbered is None else numbered['name']


def must_name_splits(what: str, splits: Collection[str],
                     how: str) -> ValueError:
    """Return the error that splits must be named, of which there are several.

    `how`: the argument that names one, with ``{}`` in its place.
    """
    first = 'train' if 'train' in splits else next(iter(splits))
    return ValueError(
        f'{what} has the splits {", ".join(map(repr, splits))}: name one or '
        f'more, such as {how.format(repr(first))}')
