"""Open columns: the readers of a data set, and the rows of its splits."""
from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import h5py
import numpy
from numpy.typing import NDArray

from fuel.datasets.checks import refuse_unknown_sources
from fuel.datasets.columns.base import FileColumn
from fuel.datasets.columns.categorical import (
    Categorical, names_referred_to)
from fuel.datasets.columns.part_names import relative_names
from fuel.datasets.columns.parts import FileParts, read_whole
from fuel.datasets.row_orders import IndexArray, Order, length, simplify
from fuel.datasets.splits import (
    ExampleSplits, Listed, order_of_splits)
from fuel.storage import Reader
from fuel.storage.linked_files import LinkedFiles
from fuel.storage.nodes import find_arrays, text_of_name
from fuel.storage.part_index import Arrays
from fuel.storage.reader import part_numbers
from fuel.suggestions import unlike_first
from fuel.utils.hdf5_errors import naming_file


class Wanted(NamedTuple):
    """Arguments of a data set that choose the data in its files.

    `columns`: a dict from sources to all columns that may be opened.
    `used`: the sources that are opened immediately; at least one. A part that
        lacks one of them is left out, or is an error.
    `splits`, `which_sets`, `missing`: see
        :class:`~fuel.datasets.hdf5_dataset.HDF5Dataset`.
    """

    columns: Mapping[str, FileColumn]
    used: Sequence[str]
    splits: Mapping[str, Any] | str | None
    which_sets: Sequence[str] | None
    missing: str


class OpenColumns(dict[str, Reader]):
    """The readers of columns, each opened when it is first used.

    `order`: the rows of the splits that are used.
    `splits`: all splits, by name.
    """

    def __init__(self, parts: FileParts, wanted: Wanted) -> None:
        super().__init__()
        self.parts = parts
        self._wanted = wanted
        columns, used = wanted.columns, wanted.used
        if wanted.missing == 'skip':
            parts.skip_without([
                path for source in used for path in columns[source].paths()])
        parts.expected = list(dict.fromkeys([
            path for source in used for path in columns[source].indexed()]))
        self._counting = _counting_column(columns, used)
        first = self[self._counting]
        self.num_rows = len(first)
        for source in used:
            self._open(source)
        self.splits = _find_splits(parts, wanted.splits)
        self.order = self._find_order()

    def __missing__(self, source: str) -> Reader:
        return self._open(source)

    def _open(self, source: str) -> Reader:
        if source in self:
            return self[source]
        if source not in self._wanted.columns:
            refuse_unknown_sources([source], tuple(self._wanted.columns))
        column, parts = self._wanted.columns[source], self.parts
        with naming_file(parts.path_of(0), source, parts.files.paths):
            reader = column.open(parts, source)
        if column.counts_rows:
            self._check_bounds(source, column.bounds_of_parts(parts, reader))
        if column.divides_parts:
            self._check_divided(source, reader.part_bounds)
            parts.divisions = column.divisions(parts)
        # HDF5 may have read another version of the files meanwhile.
        parts.files.check()
        self[source] = reader
        return reader

    def _check_bounds(self, source: str, bounds: IndexArray) -> None:
        """Refuse a column that has, in a part, another number of rows than the
        counting column has in that part."""
        parts = self.parts
        if parts.bounds is None:
            parts.bounds = bounds
        if numpy.array_equal(parts.bounds, bounds):
            return
        counts, others = numpy.diff(parts.bounds), numpy.diff(bounds)
        part = int(numpy.flatnonzero(counts != others)[0])
        raise ValueError(
            f'{parts.describe(part)}: all columns must have the same number '
            f'of rows, but {self._counting!r} has {counts[part]} and '
            f'{source!r} has {others[part]}; leave one of them out, or cut '
            f'rows off with Rows(..., start=..., stop=...)')

    def _check_divided(self, source: str, bounds: IndexArray) -> None:
        """Refuse a column that divides parts in another way than the first
        such column."""
        parts = self.parts
        if parts.divided is None:
            # The first such column that is opened.
            parts.divided = bounds
        if not numpy.array_equal(parts.divided, bounds):
            raise ValueError(
                f'{source!r} must have as many rows for each index of its '
                f'first axes as {self._counting!r} has')

    def _find_order(self) -> Order:
        """Return the rows of the splits that are used; refuse splits without
        rows."""
        which_sets = self._wanted.which_sets
        order = self.order_of(which_sets)
        if not length(order):
            path = self.parts.path_of(0)
            reason = (
                f'{self._counting!r} has no rows' if not self.num_rows else
                f'no row of the splits {which_sets} is left: a row is left '
                f'out if its next row, which a column with start= reads, is '
                f'in no split')
            raise ValueError(f'{path!r}: {reason}, so there are no examples')
        return order

    def order_of(self, which_sets: Sequence[str] | None) -> Order:
        """Return the rows of some splits, one split after the other.

        `which_sets`: names of the splits; None for all rows.
        """
        return self._with_twins(order_of_splits(
            self.splits, which_sets, self.num_rows, self.parts))

    def _with_twins(self, order: Order) -> Order:
        """Return an order without rows that would read data of other splits.

        A column with ``start=`` reads later rows of its array. A row is left
        out if such a later row is in none of the splits.
        """
        bounds = self.parts.bounds
        assert bounds is not None
        if isinstance(order, slice) and length(order) == self.num_rows:
            return order
        firsts = [column.first_rows(self.parts)
                  for column in self._wanted.columns.values()
                  if column.counts_rows]
        # The smallest first row of each part.
        least = functools.reduce(numpy.minimum, firsts)
        shifts = [shift for shift in (first - least for first in firsts)
                  if numpy.any(shift)]
        if not shifts:
            return order
        has = numpy.zeros(self.num_rows, bool)
        has[order] = True
        rows = numpy.arange(self.num_rows)[order]
        numbers = part_numbers(bounds, rows)
        kept = numpy.ones(len(rows), bool)
        for shift in shifts:
            twins = rows + numpy.broadcast_to(shift, len(self.parts))[numbers]
            kept &= (twins >= bounds[numbers + 1]) | has[numpy.minimum(
                twins, self.num_rows - 1)]
        return order if kept.all() else simplify(rows[kept])

    def categories(self, sources: Iterable[str],
                   ) -> dict[str, tuple[Any, ...]]:
        """Return the category names of each of `sources` that has
        categories."""
        found = {}
        for source in sources:
            if isinstance(self._wanted.columns[source], Categorical):
                names = self._open(source).categories
                assert names is not None
                found[source] = names
        return found

    def axis_labels(self) -> dict[str, tuple[str, ...] | None] | None:
        """Return the labels of the axes of the sources that are used, from
        the first part; None if it has no labels."""
        found = {}
        for source in self._wanted.used:
            with naming_file(self.parts.path_of(0), source):
                found[source] = self._wanted.columns[source].labels(
                    self.parts)
        return found if any(found.values()) else None

    def summary(self) -> dict[str, object]:
        """Return the facts that a saved state must fit, except the columns."""
        parts, order = self.parts, self.order
        assert parts.bounds is not None
        names = '\n'.join(parts.names.names).encode('utf-8', 'surrogateescape')
        return {
            'files': relative_names(parts.files.paths),
            'parts': f'{len(parts)} of {_checksum(names, parts.bounds)}',
            'runs': _checksum(parts.find_runs()),
            'categories': {source: _checksum(repr(names).encode())
                           for source, names in self.categories(
                               self._wanted.used).items()},
            'splits': (f'rows {order.start} to {order.stop}' if isinstance(
                order, slice) else _checksum(order))}


def _counting_column(columns: Mapping[str, FileColumn],
                     used: Sequence[str]) -> str:
    """Return the source whose column determines the rows of parts.

    Sources that divide parts come first, then sources in use. So the result
    may be a source that is not in use.
    """
    counting = [source for source in (*used, *columns)
                if columns[source].counts_rows]
    if not counting:
        raise ValueError(
            f'the columns {list(columns.values())} have one value for each '
            f'part or run, and none of them counts rows: name one that does, '
            f'and choose the others with sources=')
    return min(counting,
               key=lambda source: not columns[source].divides_parts)


def refuse_other_arrays(files: LinkedFiles, besides: Sequence[str]) -> None:
    """Refuse a file with an array of rows that the first file lacks.

    `besides`: paths that are left out, together with the arrays below them.
    """
    hidden = tuple([f'{path.strip("/")}/' for path in besides])

    def check() -> Arrays:
        known: set[str] = set()
        for number, path in enumerate(files.paths):
            with naming_file(path):
                found = {below: array.size for below, array in find_arrays(
                    files.files[number].file['/'], files.open_linked)
                    if not f'{below}/'.startswith(hidden)}
            if not number:
                known = {*found}
            if any(found[below] for below in found.keys() - known):
                raise unlike_first(
                    repr(path), repr(files.paths[0]), 'array',
                    [below for below, size in found.items()
                     if size or below in known],
                    sorted(known), 'columns=[{!r}]')
        return {'alike': numpy.ones(len(files.paths), bool)}

    if len(files.paths) > 1:
        files.kept(f'alike but for {sorted(besides)}', check, lambda kept: (
            'alike' in kept))


def _checksum(*contents: bytes | IndexArray) -> str:
    checksum = 0
    for content in contents:
        checksum = zlib.crc32(
            content if isinstance(content, bytes)
            else numpy.ascontiguousarray(content).view(numpy.uint8).data,
            checksum)
    return f'{checksum:08x}'


def _find_splits(parts: FileParts, splits: Mapping[str, Any] | str | None,
                ) -> dict[str, Any]:
    """Return a dict from the names of the splits to their contents.

    `splits`: a mapping; or the path of a group of lists in the files, or of a
        column of categories.
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
    """Return a dict from names to the arrays of a group of splits, or of a
    column of categories."""
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
    """Return a dict from the name of each category to a mask of its rows."""
    codes = arrays['codes']
    return {text_of_name(name): codes == code for code, name in enumerate(
        arrays['categories'].tolist())}
