"""Virtual data sets, whose rows lie in other data sets."""
from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import h5py

from fuel.storage.nodes import MOST_LINKS, external_files, find_node
from fuel.storage.file_bytes import identity_of
from fuel.utils.h5py_file import H5PYFile

# Of virtual data sets that lie in each other: one may lead in a circle.
MOST_LEVELS = 8


class RowMap(NamedTuple):
    """Rows of a virtual data set that are rows of another one.

    `start`: the first of them in the virtual data set.
    `rows`: how many there are.
    `file`, `path`: of the other data set.
    `skip`: its rows before them.
    """

    start: int
    rows: int
    file: str
    path: str
    skip: int


class StoredRows(NamedTuple):
    """Rows of a data set that is not virtual.

    `skip`, `rows`: how many of its rows come before, and how many these are.
    """

    dataset: h5py.Dataset
    skip: int
    rows: int


def row_maps(dataset: h5py.Dataset) -> list[RowMap] | None:
    """Return where the rows of a virtual data set lie, in their order; None
    if they are no whole rows, or some lie nowhere."""
    maps = []
    for found in dataset.virtual_sources():
        here, there = _rows(found.vspace), _rows(found.src_space)
        if found.src_space.get_select_type() == h5py.h5s.SEL_ALL and here:
            # HDF5 may not say how many they are.
            there = 0, here[1]
        if (here is None or there is None or here[1] != there[1]
                or '%' in found.file_name + found.dset_name):
            return None
        maps.append(RowMap(here[0], here[1], found.file_name,
                           found.dset_name, there[0]))
    maps.sort()
    end = 0
    for one in maps:
        if one.start != end:
            return None
        end += one.rows
    return maps if maps and end == len(dataset) else None


def _rows(space: h5py.h5s.SpaceID) -> tuple[int, int] | None:
    """Return the first one and the number of the rows that are selected;
    None if they are not whole, or do not follow each other."""
    shape = space.get_simple_extent_dims()
    kind = space.get_select_type()
    if kind == h5py.h5s.SEL_ALL and shape:
        return 0, shape[0]
    if kind != h5py.h5s.SEL_HYPERSLABS or not space.is_regular_hyperslab():
        return None
    selected = list(zip(*space.get_regular_hyperslab(), shape, strict=True))
    for start, stride, count, block, length in selected[1:]:
        if start or count * block != length or (
                count > 1 and stride != block):
            return None
    start, stride, count, block, length = selected[0]
    # Of a number without limits there are more than rows.
    if (count > 1 and stride != block) or start + count * block > length:
        return None
    return start, count * block


def open_sources(dataset: h5py.Dataset,
                 maps: list[RowMap]) -> list[StoredRows] | None:
    """Open the data sets that the rows of a virtual one lie in.

    `maps`: see `row_maps`.

    Returns: None if they are stored in another type or shape, which HDF5
        converts.

    Raises: FileNotFoundError if a file is missing, ValueError if one has no
        such rows: HDF5 would give fill values.
    """
    return _open_all(dataset, maps, {}, 0)


#: Data sets by file and path, each with what its rows consist of.
_Opened: TypeAlias = dict[
    tuple[str, str], tuple[h5py.Dataset, 'list[StoredRows] | None']]


def _open_all(dataset: h5py.Dataset, maps: list[RowMap], opened: _Opened,
              level: int) -> list[StoredRows] | None:
    """See `open_sources`; of many mappings to one data set, it is opened
    once."""
    sources: list[StoredRows] = []
    here = os.fsdecode(dataset.file.filename)
    for one in maps:
        target = here if one.file == '.' else path_of(dataset.file, one.file)
        key = os.path.realpath(target), one.path
        if key not in opened:
            opened[key] = _open_one(dataset, target, one, opened, level)
        found, pieces = opened[key]
        if one.skip + one.rows > found.shape[0]:
            raise _no_rows(dataset, target, one)
        if pieces is None or (found.dtype != dataset.dtype
                              or found.shape[1:] != dataset.shape[1:]):
            return None
        sources += _cut(pieces, one.skip, one.skip + one.rows)
    return sources


def _open_one(dataset: h5py.Dataset, target: str, one: RowMap,
              opened: _Opened, level: int,
              ) -> tuple[h5py.Dataset, list[StoredRows] | None]:
    """Return a data set that a virtual one leads to, and what its rows
    consist of."""
    file = dataset.file if one.file == '.' else H5PYFile(target, 'r')
    found = file.get(one.path)
    if not isinstance(found, h5py.Dataset) or not found.shape:
        raise _no_rows(dataset, target, one)
    if not found.is_virtual:
        return found, [StoredRows(found, 0, found.shape[0])]
    inner = row_maps(found)
    if inner is None or level == MOST_LEVELS:
        return found, None
    return found, _open_all(found, inner, opened, level + 1)


def _no_rows(dataset: h5py.Dataset, target: str, one: RowMap) -> ValueError:
    """Return the error that a data set has not the rows it should have."""
    return ValueError(
        f'{os.fsdecode(dataset.file.filename)!r}: rows of {dataset.name!r} '
        f'should be rows {one.skip} to {one.skip + one.rows - 1} of '
        f'{one.path!r} in {target!r}, which has no such rows')


def _cut(sources: list[StoredRows], start: int, stop: int) -> list[StoredRows]:
    """Return some of the rows of several data sets."""
    found, first = [], 0
    for one in sources:
        low, high = max(start, first), min(stop, first + one.rows)
        if low < high:
            found.append(StoredRows(
                one.dataset, one.skip + low - first, high - low))
        first += one.rows
    return found


def path_of(file: h5py.File, name: str) -> str:
    """Return the path of a file that a virtual data set of another names."""
    path = os.fsdecode(file.filename)
    target = os.path.join(os.path.dirname(path), name)
    if not os.path.exists(target):
        raise FileNotFoundError(
            f'{path!r}: rows of it lie in another file, {name!r}, and there '
            f'is no file {target!r}')
    return target


#: Returns the path of a file that another one names, or raises an error.
PathOf: TypeAlias = Callable[[H5PYFile, str], str]


def check_virtual(dataset: h5py.Dataset,
                  path: PathOf = path_of) -> dict[str, tuple[int, ...]]:
    """Raise an error where HDF5 should not read a data set.

    All data sets that it leads to are looked at, and all files.

    Returns: the states of the files that it leads to, by their paths.

    Raises: FileNotFoundError if a file is missing, ValueError if a data set
        is: HDF5 would give fill values. ValueError where virtual data sets
        lead in a circle: HDF5 follows them until the process ends.
    """
    states: dict[str, tuple[int, ...]] = {}

    def noted(file: h5py.File, name: str) -> str:
        target = path(file, name)
        states[target] = identity_of(os.stat(target))
        return target

    _check_below(dataset, noted, [], set())
    return states


def _check_below(dataset: h5py.Dataset, path: PathOf,
                 above: list[tuple[str, str]],
                 seen: set[tuple[str, str]]) -> None:
    """Check the data sets that one leads to, but for those in `seen`."""
    if dataset.id.get_offset() is not None or (
            dataset.id.get_create_plist().get_layout() == h5py.h5d.CHUNKED):
        # In its own file. The place is asked for first: it takes least.
        return
    file = dataset.file
    for name in external_files(dataset):
        path(file, name)
    if not dataset.is_virtual:
        return
    key = os.path.realpath(os.fsdecode(file.filename)), str(dataset.name)
    if key in above or len(above) == MOST_LINKS:
        raise ValueError(
            f'{os.fsdecode(file.filename)!r}: the virtual data set '
            f'{dataset.name!r} leads in a circle, or through more than '
            f'{MOST_LINKS} others')
    if key in seen:
        return
    seen.add(key)

    def open_linked(other: h5py.File, name: str) -> h5py.File:
        return H5PYFile(path(other, name), 'r')

    for name, inside in _named(dataset, path):
        other = file if name == '.' else open_linked(file, name)
        found = find_node(other['/'], inside, open_linked)
        if not isinstance(found, h5py.Dataset):
            raise ValueError(
                f'{os.fsdecode(file.filename)!r}: rows of {dataset.name!r} '
                f'should lie in {inside!r} of '
                f'{os.fsdecode(other.filename)!r}, which has no such data '
                f'set')
        _check_below(found, path, [*above, key], seen)


def _named(dataset: h5py.Dataset, path: PathOf) -> Iterator[tuple[str, str]]:
    """Yield file and path of each data set that a virtual one names."""
    properties = dataset.id.get_create_plist()
    for name, inside in dict.fromkeys(
            (properties.get_virtual_filename(number),
             properties.get_virtual_dsetname(number))
            for number in range(properties.get_virtual_count())):
        if '%' not in name + inside:
            yield name, inside
            continue
        last = None
        for number in itertools.count():
            pair = _numbered(name, number), _numbered(inside, number)
            if pair == last or not _is_there(dataset.file, *pair, path):
                # They may end anywhere.
                break
            yield pair
            last = pair


def _numbered(name: str, number: int) -> str:
    """Return a name with a number in the place of ``%b``."""
    return '%'.join(part.replace('%b', str(number))
                    for part in name.split('%%'))


def _is_there(file: h5py.File, name: str, inside: str,
              path: PathOf) -> bool:
    try:
        target = file if name == '.' else H5PYFile(path(file, name), 'r')
    except FileNotFoundError:
        return False
    return inside in target
