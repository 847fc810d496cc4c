"""Splits: find the rows of a split by its name, and make the error about an
unknown split.

Data sets pass the splits that their files or users define. The table of
splits in Fuel's own files is read in `fuel.datasets.hdf5.format`.
"""
from __future__ import annotations

import os
import re
from collections.abc import (
    Callable, Collection, Iterable, Mapping, Sequence)
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from numpy.typing import NDArray

from fuel.datasets.row_orders import IndexArray, Order, concatenate, simplify
from fuel.kernels import as_indices
from fuel.remote.urls import file_name
from fuel.storage.nodes import text_of_name
from fuel.storage.reader import rows_of_ranges
from fuel.suggestions import did_you_mean
from fuel.utils.checks import in_order

if TYPE_CHECKING:
    from fuel.datasets.columns.parts import FileParts

# The split of all rows, if no split is called so.
ALL = 'all'
# Usual names of splits: of folders, groups and lists of rows.
SPLITS = re.compile(
    '(train(ing)?|test(ing)?|val(id(ation)?)?|dev(el(opment)?)?|'
    'eval(uation)?|hold_?out)(s|set|[ab])?', re.I)
# One of several files, as Hugging Face names them:
# train-00000-of-00002.parquet.
_NUMBERED = re.compile(r'(?P<name>.+?)-\d{5}-of-\d{5}(-[0-9a-f]+)?')
# File that `save_to_disk` of Hugging Face writes next to the folders of
# splits.
_DICT = 'dataset_dict.json'


class ExampleSplits(dict[str, NDArray[numpy.intp]]):
    """The numbers of the examples of each split.

    `counted`: name of the examples if they are not the rows of a data set,
        such as windows; else ''.
    """

    counted = ''


class Listed(NamedTuple):
    """A split as one file lists it: names of parts, rows, or a mask."""

    file_number: int
    content: NDArray[Any]


def order_of_splits(splits: Mapping[str, Any] | None,
                    which_sets: Sequence[str] | None, num_rows: int,
                    parts: FileParts | None = None) -> Order:
    """Return the rows of some splits, one split after the other.

    `which_sets`: names of the splits; None for all rows.
    `parts`: the parts that have the rows; splits may name parts.
    """
    if splits is not None and not isinstance(splits, Mapping):
        raise ValueError(
            f'splits must be a dict from names to (start, stop) or to a list '
            f'or array of rows, got {splits!r:.80}; which_sets=, or split= '
            f'of fuel.load, names those to use')
    if which_sets is None:
        return slice(0, num_rows)
    if isinstance(which_sets, str):
        raise ValueError(
            'which_sets must be a tuple of split names, got the string '
            f'{which_sets!r}: write ({which_sets!r},)')
    if not isinstance(which_sets, Iterable):
        raise ValueError(f'which_sets must be a tuple of split names, got '
                         f'{which_sets!r:.80}')
    in_order('which_sets', which_sets)
    splits = {} if splits is None else splits
    _check_counted(splits, num_rows)
    for name in which_sets:
        if name not in splits:
            raise _no_split_of(parts, name, splits, num_rows)
    if not which_sets:
        raise ValueError('which_sets must name at least one split, got ()')
    return concatenate([
        _order(name, splits[name] if parts is None else rows_of_split(
            parts, name, splits[name]), num_rows) for name in which_sets])


def refuse_unknown_splits(names: Iterable[object], known: Collection[str],
                          where: str) -> None:
    """Raise ValueError for the first name that is not that of a split.

    `known`, `where`: see :func:`no_split`.
    """
    for name in names:
        if name not in known:
            raise no_split(name, known, where)


def names_of(split: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names in an argument `split`; () if it is None."""
    return (split,) if isinstance(split, str) else tuple(split or ())


def no_split(name: object, known: Iterable[str], where: str = '',
             example: object = None) -> ValueError:
    """Return the error that no split has a given name.

    `known`: the splits that there are.
    `where`: the owner of the splits, for the error.
    `example`: an example of the rows of a split, for the error; None if the
        user cannot define splits.
    """
    known = tuple(known)
    text = f'{where}: ' * bool(where) + f'there is no split {name!r}'
    if known:
        hint = did_you_mean(name, known, ' ({})')
        return ValueError(f'{text}{hint}; the splits are {known}')
    if example is None:
        return ValueError(f'{text}: the data have no splits')
    return ValueError(
        f'{text}: neither the data nor the argument splits= defines any '
        f'split. Pass the rows of the split, as in '
        f'splits={{{name!r}: {example!r}}}, or draw rows at random, as in '
        f'splits=random_split(dataset, {{{name!r}: .8, ...}}), where dataset '
        f'has all rows')


def _no_split_of(parts: FileParts | None, name: object,
                 splits: Iterable[str], num_rows: int) -> ValueError:
    """Return the error that no split of some rows has a given name."""
    some = 0, max(1, num_rows * 4 // 5)
    if parts is None:
        return no_split(name, splits, example=some)
    where = first_of(parts.files.paths)
    # The name of a file or group often contains the name of its split.
    called = [part for part in parts.names.known() if str(name) in part]
    return no_split(name, splits, where, called[:1] or some)


def first_of(paths: Sequence[str]) -> str:
    """Return a text about files for an error: the first, and how many
    more."""
    return f'{paths[0]!r}' + f' and {len(paths) - 1} more' * (len(paths) > 1)


def _order(name: str, rows: Any, num_rows: int) -> Order:
    """Return the rows that a range or a list stands for."""
    if isinstance(rows, (tuple, slice)):
        found = _range(rows, num_rows)
        if found is None:
            raise ValueError(
                f'split {name!r} must be rows within the {num_rows} of the '
                f'file, the first and where it ends, got {rows!r}')
        return found
    if not isinstance(rows, Iterable):
        raise ValueError(
            f'split {name!r} must be (start, stop), or a list or array of '
            f'rows, got {rows!r:.80}')
    try:
        indices = as_indices(
            rows if isinstance(rows, numpy.ndarray) else list(rows), num_rows)
    except ValueError as error:
        raise ValueError(f'split {name!r}: {error}') from error
    if not len(indices):
        raise ValueError(f'split {name!r} is empty')
    return simplify(indices)


def _range(given: tuple[Any, ...] | slice, num_rows: int) -> slice | None:
    """Return the rows of a range; None if they are not within `num_rows`."""
    if isinstance(given, tuple):
        if len(given) != 2:
            # slice(*(3,)) would mean the rows 0 to 2.
            return None
        given = slice(*given)
    try:
        start, stop, step = given.indices(num_rows)
    except (TypeError, ValueError):
        # The bounds are not integers.
        return None
    wanted = num_rows if given.stop is None else given.stop
    if start >= stop or step != 1 or wanted > num_rows or wanted < 0:
        return None
    return slice(start, stop)


def _check_counted(splits: Mapping[str, Any], num_rows: int) -> None:
    """Refuse splits that do not list rows of the data set.

    `num_rows`: number of rows.

    Raises: ValueError if splits number other examples, such as windows, or if
        they are lists of two numbers that seem to be ranges: in JSON, tuples
        become lists.
    """
    if isinstance(splits, ExampleSplits) and splits.counted:
        raise ValueError(
            f'splits must list the numbers of rows, but these list the '
            f'numbers of {splits.counted}: split the data set that has all '
            f"rows, as in random_split(dataset, ..., groups='runs'), or pass "
            f'the numbers to a scheme, as in '
            f'ShuffledScheme(splits[{next(iter(splits), "")!r}], ...)')
    ranges = sorted(rows for rows in splits.values() if _may_be_range(rows))
    if len(ranges) < len(splits) or not ranges:
        return
    count = sum(stop - start for start, stop in ranges)
    if 2 * count > num_rows and all(
            first[1] <= second[0] for first, second in pairwise(ranges)):
        name = next(iter(splits))
        raise ValueError(
            f'splits are lists of two rows, {dict(splits)}, and seem to be '
            f'meant as ranges: write {name!r}: {tuple(splits[name])}, a '
            f'tuple, for the rows {splits[name][0]} to before '
            f'{splits[name][1]}, or numpy.array({splits[name]}) for these '
            f'two rows')


def _may_be_range(rows: object) -> bool:
    """Return whether rows are a list of two integers, and the second exceeds
    the first by more than 1."""
    return isinstance(rows, list) and len(rows) == 2 and all(
        isinstance(row, int) and not isinstance(row, bool)
        for row in rows) and rows[0] + 1 < rows[1]


def rows_of_split(parts: FileParts, name: str, split: Any) -> Any:
    """Return the rows of a split: a range, or a list in the split's order."""
    if isinstance(split, list) and split and isinstance(split[0], Listed):
        return numpy.concatenate([
            _rows_listed(parts, name, listed) for listed in split])
    if isinstance(split, (list, tuple, numpy.ndarray)) and len(split) and (
            all(isinstance(part, (str, bytes)) for part in split)):
        return _rows_of_parts(
            parts, parts.names.find_all(
                f'split {name!r}', map(text_of_name, split)))
    if isinstance(split, (str, bytes)):
        raise ValueError(
            f'split {name!r} must be rows or a list of names of parts, got '
            f'{split!r}: write [{split!r}]')
    return split


def _rows_listed(parts: FileParts, split: str, listed: Listed) -> IndexArray:
    """Return the rows that one file lists for a split."""
    number, content = listed
    where = f'split {split!r} of {parts.files.paths[number]!r}'
    # Parts come in the order of their files.
    inside = range(*numpy.searchsorted(
        parts.names.file_numbers, [number, number + 1]).tolist())
    if content.dtype.kind in 'SO':
        numbers = parts.names.find_all(
            where, map(text_of_name, content.ravel().tolist()))
        # In the order of the parts, since files do not keep the order of the
        # names. A list may name parts of other files too.
        return _rows_of_parts(parts, sorted({*inside}.intersection(numbers)))
    assert parts.bounds is not None
    first, stop = (int(parts.bounds[place])
                   for place in (inside.start, inside.stop))
    if content.dtype.kind == 'b' and content.shape == (stop - first,):
        return first + numpy.flatnonzero(content)
    if content.ndim != 1 or content.dtype.kind not in 'iu':
        raise ValueError(
            f'{where} must be a list of rows, a mask of the {stop - first} '
            f'rows or a list of names of parts, got {content.dtype} of shape '
            f'{content.shape}')
    wrong = content[(content < 0) | (content >= stop - first)]
    if len(wrong):
        raise ValueError(f'{where} has the row {wrong[0]}, and the rows are '
                         f'0 to {stop - first - 1}')
    return first + content.astype(numpy.intp)


def _rows_of_parts(parts: FileParts, numbers: Sequence[int]) -> IndexArray:
    """Return the rows of parts, one part after the other."""
    assert parts.bounds is not None
    places = numpy.array(numbers, numpy.intp)
    starts = parts.bounds[places]
    return rows_of_ranges(starts, parts.bounds[places + 1] - starts)


def files_by_name(paths: Sequence[str], root: str,
                  ) -> dict[str, list[str]]:
    """Return the files of each split, in the order of the files.

    A file belongs to a split if Hugging Face saved its folder as a split, if a
    folder between the root and the file has the usual name of a split, or else
    if the file's own name begins with such a name. If a file belongs to no
    split, an empty dict is returned.

    `root`: a folder, or a URL, that contains all files.
    """
    found: dict[str, list[str]] = {}
    for path in paths:
        split = _split_of(os.path.relpath(path, root or '.'), path)
        if split is None:
            return {}
        found.setdefault(split, []).append(path)
    return found


def shards_by_name(paths: Sequence[str], wanted: Collection[str],
                   ) -> dict[str, list[str]]:
    """Return the shards of each split, in the order of the files.

    A shard belongs to a split if one word of the file's name is the usual name
    of a split, as in pets-train-000.tar. An empty dict is returned if no name
    has such a word, or if all names have the same words.

    `wanted`: the splits to read.

    Raises: ValueError if the words do not say to which split a shard belongs.
    """
    words = [list(dict.fromkeys(
        word for word in re.split('[-_.]', file_name(path))
        if SPLITS.fullmatch(word))) for path in paths]
    found: dict[str, list[str]] = {}
    for path, named in zip(paths, words, strict=True):
        for word in named:
            found.setdefault(word, []).append(path)
    unclear = [path for path, named in zip(paths, words, strict=True)
               if len(named) != 1]
    if not unclear:
        return found
    if all(named == words[0] for named in words) or (
            len(found) < 2 and not found.keys() & {*wanted}):
        return {}
    word = next(iter(found))
    folder, first = os.path.split(found[word][0])
    # A number may follow: .tfrecord-00000-of-00002.
    ending, number, _ = os.path.splitext(first)[1].partition('-')
    pattern = os.path.join(folder, f'*{word}*{ending}{"*" * bool(number)}')
    raise ValueError(
        f'names of shards have the splits {", ".join(map(repr, found))}, but '
        f'{unclear[0]!r} does not have one of them: pass a pattern, such as '
        f"{pattern!r}, or a list of files, or split='all' for all rows")


def files_by_folder(paths: Sequence[str], root: str,
                    wanted: Collection[str]) -> dict[str, list[str]]:
    """Return a dict from the subfolders of a folder to their files, in the
    order of the files.

    The search descends through folders that contain only one folder, to the
    first folder that contains several folders or a wanted folder. An empty
    dict is returned if that folder contains files too, or if the names of the
    folders state values, as in ``healpix=7``.

    `root`: a folder that contains all files.
    `wanted`: names of folders at which the search ends.
    """
    folders = [os.path.relpath(path, root).split(os.sep)[:-1]
               for path in paths]
    depth = branch(folders, 0, lambda name: name in wanted)
    found: dict[str, list[str]] = {}
    for path, names in zip(paths, folders, strict=True):
        found.setdefault(name_at(names, depth), []).append(path)
    return {} if '' in found or all('=' in name for name in found) else found


def branch(paths: Collection[Sequence[str]], depth: int,
           ends: Callable[[str], object]) -> int:
    """Return the first depth, from `depth` on, at which paths differ or end,
    or at which all of them have a name for which `ends` is true."""
    while True:
        found = {name_at(path, depth) for path in paths}
        if len(found) != 1 or '' in found or any(map(ends, found)):
            return depth
        depth += 1


def name_at(path: Sequence[str], depth: int) -> str:
    """Return the name at a depth of a path; '' if the path ends above."""
    return path[depth] if len(path) > depth else ''


def _split_of(below: str, path: str) -> str | None:
    """Return the split that the path of a file names; None if there is
    none."""
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
    """Return the error that one or more of several splits must be named.

    `how`: the argument that names a split, with ``{}`` for the name.
    """
    first = 'train' if 'train' in splits else next(iter(splits))
    return ValueError(
        f'{what} has the splits {", ".join(map(repr, splits))}: name one or '
        f'more, such as {how.format(repr(first))}')
