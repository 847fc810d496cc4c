"""Virtual data sets, whose rows lie in other data sets."""
from __future__ import annotations

import os
from typing import Any, NamedTuple

import h5py

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


def open_sources(dataset: h5py.Dataset, maps: list[RowMap],
                 level: int = 0) -> list[StoredRows] | None:
    """Open the data sets that the rows of a virtual one lie in.

    `maps`: see `row_maps`.

    Returns: None if they are stored in another type or shape, which HDF5
        converts.

    Raises: FileNotFoundError if a file is missing, ValueError if one has no
        such rows: HDF5 would give fill values.
    """
    sources: list[StoredRows] = []
    for one in maps:
        file = dataset.file
        if one.file != '.':
            file = h5py.File(path_of(dataset, one.file), 'r')
        found = file.get(one.path)
        if not isinstance(found, h5py.Dataset) or not found.shape or (
                one.skip + one.rows > found.shape[0]):
            raise ValueError(
                f'{os.fsdecode(dataset.file.filename)!r}: rows of '
                f'{dataset.name!r} should be rows {one.skip} to '
                f'{one.skip + one.rows - 1} of {one.path!r} in '
                f'{os.fsdecode(file.filename)!r}, which has no such rows')
        if (found.dtype != dataset.dtype
                or found.shape[1:] != dataset.shape[1:]):
            return None
        if not found.is_virtual:
            sources.append(StoredRows(found, one.skip, one.rows))
            continue
        inner = row_maps(found)
        below = None if inner is None or level == MOST_LEVELS else (
            open_sources(found, inner, level + 1))
        if below is None:
            return None
        sources += _cut(below, one.skip, one.skip + one.rows)
    return sources


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


def path_of(dataset: h5py.Dataset, name: str) -> str:
    """Return the path of a file that a virtual data set names."""
    path = os.fsdecode(dataset.file.filename)
    target = os.path.join(os.path.dirname(path), name)
    if not os.path.exists(target):
        raise FileNotFoundError(
            f'{path!r}: rows of {dataset.name!r} lie in another file, '
            f'{name!r}, and there is no file {target!r}')
    return target


def check_files(dataset: h5py.Dataset) -> None:
    """Raise FileNotFoundError if a file of a virtual data set is missing;
    HDF5 would give fill values."""
    names: Any = {source.file_name for source in dataset.virtual_sources()}
    for name in sorted(names):
        # Those with a number in them may end anywhere.
        if name != '.' and '%' not in name:
            path_of(dataset, name)
