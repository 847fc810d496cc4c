"""Splits of data sets in parts: by rows, by names of parts, out of files."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import h5py
import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.categorical import names_referred_to
from fuel.datasets.columns.part_names import SHOWN
from fuel.datasets.columns.parts import FileParts, read_whole
from fuel.datasets.given_splits import ExampleSplits
from fuel.datasets.row_orders import IndexArray
from fuel.storage.nodes import find_arrays
from fuel.storage.reader import rows_of_ranges
from fuel.suggestions import did_you_mean
from fuel.utils.hdf5_errors import naming_file

_NUMBER = re.compile('[0-9]+')


class Listed(NamedTuple):
    """What a file says of a split: names of parts, rows, or a mask."""

    file_number: int
    content: NDArray[Any]


def find_splits(parts: FileParts, splits: Mapping[str, Any] | str | None,
                ) -> dict[str, Any]:
    """Return the splits by name.

    `splits`: a mapping, or the path of a group of lists in the files.
    """
    if splits is None:
        return {}
    if isinstance(splits, Mapping):
        return splits if isinstance(splits, ExampleSplits) else dict(splits)
    if not isinstance(splits, str):
        raise ValueError(
            'splits must be a dict from names to (start, stop), rows or '
            'names of parts, or the path of a group of such lists in the '
            f'file, got {splits!r:.80}')
    found: dict[str, list[Listed]] = {}
    for number, path in enumerate(parts.files.paths):
        with naming_file(path):
            arrays = {name: read_whole(array) for name, array
                      in _arrays_of(parts, number, splits).items()}
            if not any(array.dtype.kind in 'SObiu'
                       for array in arrays.values()):
                raise ValueError(
                    f'{path!r}: the group {splits!r} has no list of rows or '
                    f'parts, but '
                    f'{", ".join(map(repr, arrays)) or "no arrays"}')
            if {'codes', 'categories'} == {*arrays}:
                arrays = _by_category(arrays)
            for name, content in arrays.items():
                found.setdefault(name, []).append(Listed(number, content))
    return dict(found)


def _arrays_of(parts: FileParts, number: int,
               path: str) -> dict[str, h5py.Dataset]:
    """Return the arrays of a group by name, or of a column of categories."""
    found = parts.files.find(number, path)
    if isinstance(found, h5py.Group):
        return dict(find_arrays(found, parts.files.open_linked))
    names = names_referred_to(found) if isinstance(
        found, h5py.Dataset) else None
    if not isinstance(names, h5py.Dataset):
        raise ValueError(
            f'{parts.files.paths[number]!r} has no group {path!r} of lists of '
            f'rows or parts for each split, nor such a column of categories')
    return {'codes': found, 'categories': names}


def _by_category(arrays: Mapping[str, NDArray[Any]],
                 ) -> dict[str, NDArray[Any]]:
    """Return a mask for each category that rows have, by its name."""
    codes = arrays['codes']
    return {_text(name): codes == code for code, name in enumerate(
        arrays['categories'].tolist())}


def rows_of_split(parts: FileParts, name: str, split: Any) -> Any:
    """Return the rows of a split: a range, or a list in its order."""
    if isinstance(split, list) and split and isinstance(split[0], Listed):
        return numpy.concatenate([
            _rows_listed(parts, name, listed) for listed in split])
    if isinstance(split, (list, tuple, numpy.ndarray)) and len(split) and (
            all(isinstance(part, (str, bytes)) for part in split)):
        return _rows_of_parts(
            parts, _numbers(parts, f'split {name!r}', map(_text, split)))
    if isinstance(split, (str, bytes)):
        raise ValueError(
            f'split {name!r} must be rows or a list of names of parts, got '
            f'{split!r}: write [{split!r}]')
    return split


def _rows_listed(parts: FileParts, split: str, listed: Listed) -> IndexArray:
    """Return the rows of a split in one file."""
    number, content = listed
    where = f'split {split!r} of {parts.files.paths[number]!r}'
    # Parts come in the order of their files.
    inside = range(*numpy.searchsorted(
        parts.names.file_numbers, [number, number + 1]).tolist())
    if content.dtype.kind in 'SO':
        numbers = _numbers(parts, where, map(_text, content.ravel().tolist()))
        # In the order of the parts, which files do not keep; a list may name
        # those of other files too.
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


def _numbers(parts: FileParts, where: str, names: Any) -> list[int]:
    """Return the parts that names stand for."""
    numbers: list[int] = []
    for name in names:
        found = parts.names.find(name)
        if found is None:
            known = parts.names.known()
            shown = ', '.join(map(repr, known[:SHOWN]))
            if len(known) > SHOWN:
                shown += f', ... {known[-1]!r}'
            # The number of another part was not meant.
            others = [other for other in known if _NUMBER.sub('', other)
                      != _NUMBER.sub('', name)]
            raise ValueError(
                f'{where}: there is no part {name!r}'
                f'{did_you_mean(name, others, " ({})")}; the parts are '
                f'called {shown}')
        numbers += found
    return numbers


def _rows_of_parts(parts: FileParts, numbers: Sequence[int]) -> IndexArray:
    assert parts.bounds is not None
    places = numpy.array(numbers, numpy.intp)
    starts = parts.bounds[places]
    return rows_of_ranges(starts, parts.bounds[places + 1] - starts)


def _text(name: str | bytes) -> str:
    return (name.decode('utf-8', 'surrogateescape')
            if isinstance(name, bytes) else str(name))
