"""Recognise arrays of one length, at any depth, whose splits may be groups."""
from __future__ import annotations

import re
from collections.abc import Sequence

from fuel.datasets.columns.rows import Rows
from fuel.datasets.splits import SPLITS
from fuel.layouts.call import Call
from fuel.layouts.rows import note_of
from fuel.layouts.seen import Array, Seen, SeenFile

# A file of more lengths is no list of candidates.
MOST_LENGTHS = 5
# Arrays of a split, such as x_train or test-images.
_NAMED = re.compile(
    f'(?P<above>(.*/)?)((?P<split>{SPLITS.pattern})[_.-](?P<name>[^/]+)|'
    f'(?P<name_before>[^/]+)[_.-](?P<split_after>{SPLITS.pattern}))', re.I)
LISTS = re.compile('(splits?|masks?|indices|folds?|partitions?)', re.I)


def recognise_plain(seen: Seen) -> Sequence[Call] | None:
    """Recognise arrays of one length; of several, a call for each."""
    file = seen.files[0]
    arrays = file.arrays()
    if _has_weights(file, arrays):
        raise ValueError(
            f'{file.path!r} holds the weights of a Keras model, and is no '
            f'data set')
    if file.has_more():
        return None
    by_group = _groups_as_splits(file, arrays)
    if by_group is not None:
        return [by_group]
    listed = _lists_of_rows(file)
    others = [array for array in arrays
              if listed is None or not array.path.startswith(f'{listed}/')]
    if listed is None:
        by_name = _names_as_splits(others)
        if by_name:
            return by_name
    lengths = {array.shape[0] for array in others}
    if len(lengths) > MOST_LENGTHS:
        return None
    return [Call(
        {array.path: Rows(array.path) for array in others
         if array.shape[0] == length}, splits=listed,
        notes=note_of([array for array in others
                       if array.shape[0] != length],
                      f'they do not have {length} rows'))
        for length in sorted(lengths, reverse=True)] or None


def _groups_as_splits(file: SeenFile, arrays: Sequence[Array],
                      ) -> Call | None:
    """Return the call for a file whose groups, called as splits are, have
    the same arrays, each of one length; None for another one."""
    groups: dict[str, dict[str, Array]] = {}
    for array in arrays:
        name, _, path = array.path.partition('/')
        groups.setdefault(name, {})[path] = array
    # An array in no group has no path below one.
    if not groups or any('' in below for below in groups.values()) or not all(
            SPLITS.fullmatch(name) for name in groups):
        return None
    first, *others = groups.values()
    if any(below.keys() != first.keys() for below in others) or any(
            len({array.shape[0] for array in below.values()}) > 1
            for below in groups.values()):
        return None
    has_others = any(file.is_group(name) for name in file.names()
                     if name not in groups)
    return Call({path: Rows(path) for path in first}, parts='*',
                splits={name: [name] for name in groups},
                missing='skip' if has_others else None)


def _names_as_splits(arrays: Sequence[Array]) -> list[Call]:
    """Return a call for each split of arrays that all are called by one, such
    as ``x_train``; none of others. Where all have one length, the last call is
    of all of them, whose rows may belong together."""
    splits: dict[str, dict[str, Array]] = {}
    for array in arrays:
        found = _NAMED.fullmatch(array.path)
        if found is None:
            return []
        split = found['split'] or found['split_after']
        splits.setdefault(split.lower(), {})[
            found['above'] + (found['name'] or found['name_before'])] = array
    if len(splits) < 2 or len(arrays) > sum(map(len, splits.values())) or any(
            len({array.shape[0] for array in named.values()}) > 1
            for named in splits.values()):
        return []
    calls = [Call({name: Rows(array.path) for name, array in named.items()},
                  split=split)
             for split, named in sorted(
                 splits.items(), reverse=True, key=lambda
                 each: next(iter(each[1].values())).shape[0])]
    if len({array.shape[0] for array in arrays}) == 1:
        calls.append(Call({array.path: Rows(array.path) for array in arrays}))
    return calls


def _lists_of_rows(file: SeenFile) -> str | None:
    """Return the path of a group of a list of rows for each split, None
    without one."""
    for name in file.names():
        below = file.arrays(name) if LISTS.fullmatch(name) else []
        if below and all(SPLITS.fullmatch(array.path) and len(
                array.shape) == 1 and array.dtype.kind in 'iub'
                for array in below):
            return name
    return None


def _has_weights(file: SeenFile, arrays: Sequence[Array]) -> bool:
    """Return whether a file is of a Keras model, of any version."""
    if file.attribute('keras_version') is not None:
        return True
    # Since version 3 each layer has its weights in a group of this name.
    return file.is_group('model_weights') or (bool(arrays) and all(
        f'/{array.path}'.split('/')[-2] == 'vars' for array in arrays))
