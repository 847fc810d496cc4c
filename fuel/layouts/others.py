"""Recognise other files: variables of MATLAB since version 7.3, sequences of
RETURNN, tokens of ``fuel-convert tokens``; and arrays of one length, at any
depth, whose splits may be groups."""
from __future__ import annotations

import re
from collections.abc import Sequence

from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.ragged import Ragged
from fuel.datasets.columns.rows import Rows
from fuel.datasets.splits import SPLITS
from fuel.layouts.call import Call, calls_by_length, note_of
from fuel.layouts.seen import Array, Seen, SeenFile

def recognise_matlab(seen: Seen) -> Sequence[Call] | None:
    """Recognise arrays with MATLAB's attributes.

    Examples are counted by the axis, first or last, that has one length in all
    arrays. If both axes have one length, there is a call for each axis. If
    neither axis has one length, there is a call for each length of the last
    axis.
    """
    file = seen.files[0]
    found = _variables(file)
    if not found or any('MATLAB_class' not in file.attribute_names(array.path)
                        for array in found):
        return None
    arrays = [array for array in found if _has_examples(file, array)]
    left_out = note_of([array for array in found if array not in arrays],
                       'they are text, single values or no numbers')
    calls = [Call({array.path: Rows(array.path, axis=axis)
                   for array in arrays}, notes=left_out)
             for axis in (0, -1)
             if len({array.shape[axis] for array in arrays}) == 1]
    if not calls:
        by_length: dict[int, dict[str, FileColumn]] = {}
        for array in arrays:
            by_length.setdefault(array.shape[-1], {})[array.path] = Rows(
                array.path, axis=-1)
        return calls_by_length(by_length)
    # The only axis of an array is both its first and its last.
    return (calls[:1] if all(len(array.shape) == 1 for array in arrays)
            else calls) or None


def _variables(file: SeenFile) -> list[Array]:
    """Return the arrays of variables; no arrays if one is not of MATLAB.

    Arrays that cells and objects refer to are left out: they may be many.
    """
    found: list[Array] = []
    for name in file.names():
        array = file.array(name)
        if name.startswith('#'):
            continue
        if 'MATLAB_class' not in file.attribute_names(name):
            return []
        if array is None:
            found += [field._replace(path=f'{name}/{field.path}')
                      for field in file.arrays(name)]
        elif 0 not in array.shape:
            found.append(array)
    return [array for array in found if 'MATLAB_sparse' not in (
        file.attribute_names(array.path.rpartition('/')[0] or '/'))]


def _has_examples(file: SeenFile, array: Array) -> bool:
    """Return whether an array has more than one number."""
    # An empty array stores its shape, an object a reference.
    return (file.text('MATLAB_class', array.path)
            not in ('cell', 'char', 'struct')
            and not file.attribute_names(array.path) & {
                'MATLAB_empty', 'MATLAB_object_decode'}
            and any(length > 1 for length in array.shape))


def recognise_returnn(seen: Seen) -> Call | None:
    """Recognise RETURNN by the array of the lengths of the sequences, and the
    number of the sequences."""
    file = seen.files[0]
    lengths = file.array('seqLengths')
    if lengths is None or file.attribute('numSeqs') is None:
        return None
    for one in seen.files:
        one.check_length('numSeqs', '/', 'seqLengths')
    values = ['inputs'] if file.array('inputs') is not None else []
    values += [f'targets/data/{key}'
               for key in sorted(file.names('targets/data'))]
    # In old files all data of a sequence have one length.
    columns: dict[str, FileColumn] = {
        path: Ragged(path, lengths='seqLengths' if len(lengths.shape) == 1
                     else ('seqLengths', number))
        for number, path in enumerate(values)}
    if file.length('seqTags') is not None:
        columns['seqTags'] = Rows('seqTags')
    return Call(columns)


def recognise_tokens(seen: Seen) -> Call | None:
    """Recognise tokens: a group for each split, with documents as runs."""
    file = seen.files[0]
    if file.attribute('fuel_tokens') is None:
        return None
    names = [name for name in file.names('/') if file.is_group(name)]
    return Call({'tokens': Rows('tokens')}, parts='*',
                runs={'lengths': 'document_lengths'},
                splits={name: [name] for name in names})


# Most lengths for which calls are offered.
MOST_LENGTHS = 5
# Names of arrays with the name of a split, such as x_train or test-images.
_NAMED = re.compile(
    f'(?P<above>(.*/)?)((?P<split>{SPLITS.pattern})[_.-](?P<name>[^/]+)|'
    f'(?P<name_before>[^/]+)[_.-](?P<split_after>{SPLITS.pattern}))', re.I)
LISTS = re.compile('(splits?|masks?|indices|folds?|partitions?)', re.I)


def recognise_plain(seen: Seen) -> Sequence[Call] | None:
    """Recognise arrays of one length; for several lengths, return a call for
    each."""
    file = seen.files[0]
    arrays = file.arrays()
    if _has_weights(file, arrays):
        raise ValueError(
            f'{file.path!r} holds the weights of a Keras model, and is not '
            f'a data set')
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
    """Return the call for a file whose groups are splits, or None.

    The groups must be named as splits and have the same arrays, and the arrays
    of a group must have one length.
    """
    groups: dict[str, dict[str, Array]] = {}
    for array in arrays:
        name, _, path = array.path.partition('/')
        groups.setdefault(name, {})[path] = array
    # An array outside of groups has no path below a group.
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
    """Return a call for each split, if all arrays have the name of a split in
    their names, such as ``x_train``; else no calls.

    If all arrays have one length, a last call has all arrays, since their rows
    may be pairs.
    """
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
    """Return the path of a group that has a list of rows for each split, or
    None."""
    for name in file.names():
        below = file.arrays(name) if LISTS.fullmatch(name) else []
        if below and all(SPLITS.fullmatch(array.path) and len(
                array.shape) == 1 and array.dtype.kind in 'iub'
                for array in below):
            return name
    return None


def _has_weights(file: SeenFile, arrays: Sequence[Array]) -> bool:
    """Return whether a file holds a Keras model, of any version."""
    if file.attribute('keras_version') is not None:
        return True
    # Since version 3 each layer has its weights in a group of this name.
    return file.is_group('model_weights') or (bool(arrays) and all(
        f'/{array.path}'.split('/')[-2] == 'vars' for array in arrays))
