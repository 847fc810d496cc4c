"""The parts of a data set in HDF5 files, and the arrays in them."""
from __future__ import annotations

import hashlib
from collections.abc import Sequence
from posixpath import join
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.datasets.columns.part_names import SHOWN, PartNames
from fuel.datasets.columns.readers import with_text
from fuel.datasets.row_orders import IndexArray
from fuel.datasets.run_bounds import RunsGiven, find_bounds
from fuel.exceptions import DamagedFileError
from fuel.storage import Reader, choose_reader, open_parts
from fuel.storage.attributes import read_attribute
from fuel.storage.linked_files import FEWEST_KEPT, LinkedFiles
from fuel.storage.nodes import Node, find_arrays, open_hard_linked
from fuel.storage.part_index import (
    Arrays, IndexBuilder, PartIndex, index_arrays, restored_index)
from fuel.storage.ragged import read_text_value
from fuel.suggestions import did_you_mean
from fuel.utils.hdf5_errors import naming_file
from fuel.utils.progress import progress

# Most parts of a data set whose arrays stay open: each array takes kilobytes.
# With more parts, no array stays open.
MOST_OPEN = 1000


class _Arrays(Sequence[h5py.Dataset]):
    """The arrays of a path, one in each part."""

    def __init__(self, parts: FileParts, path: str) -> None:
        self._parts, self._path = parts, path

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < len(self._parts):
            raise IndexError(number)
        return self._parts.array(number, self._path)


class FileParts:
    """The parts of a data set. The rows of a part follow those of the part
    before.

    `files`: see :class:`LinkedFiles`.
    `names`: see :class:`PartNames`.
    `bounds`: shape (parts + 1,), the first row of each part and the number of
        rows; None until a column that counts rows is opened.
    `divided`: the bounds of the divisions into which a column divides the
        parts; None if no column divides them.
    `divisions`: the number of divisions of each part; shape (parts,).
    `cache_bytes`: see :func:`~fuel.storage.choose_reader`.
    `expected`: paths of arrays that will be looked up in each part; the first
        axis of each array counts rows.
    """

    bounds: IndexArray | None = None
    divided: IndexArray | None = None
    divisions: IndexArray | int = 1

    def __init__(self, files: LinkedFiles, names: PartNames,
                 runs: RunsGiven | None, cache_bytes: int | None) -> None:
        self.files, self.names = files, names
        self.expected: list[str] = []
        # Indices that were built along with another one and are not used yet.
        self._built: dict[str, IndexBuilder] = {}
        self.cache_bytes = cache_bytes
        self._runs_given = runs
        self._runs: IndexArray | None = None
        # The group above the part that was asked for last.
        self._above: dict[tuple[int, str], Any] = {}
        self._nodes: dict[tuple[int, str], Node | None] = {}

    def __len__(self) -> int:
        return len(self.names.names)

    def group(self, number: int) -> h5py.Group:
        """Return the group of a part."""
        return self.files.find(
            self.names.file_numbers[number], self.names.names[number])

    def path_of(self, number: int) -> str:
        """Return the path of the file that a part is in."""
        return self.files.paths[self.names.file_numbers[number]]

    def rows_of_files(self) -> list[int]:
        """Return the number of rows of each file."""
        assert self.bounds is not None
        rows = numpy.zeros(len(self.files.paths), numpy.intp)
        numpy.add.at(rows, self.names.file_numbers, numpy.diff(self.bounds))
        found: list[int] = rows.tolist()
        return found

    def describe(self, number: int) -> str:
        """Return the name of a part for errors."""
        name = self.names.names[number]
        path = self.path_of(number)
        return f'{path}, group {name!r}' if name else path

    def check(self, number: int) -> None:
        """Raise DamagedFileError if the file of a part has changed."""
        self.files.files[self.names.file_numbers[number]].check()

    def find_runs(self) -> IndexArray:
        """Return the bounds of the runs of all rows."""
        if self._runs is None:
            self._runs, self._parts_of_runs = self._find_runs()
        return self._runs

    def parts_of_runs(self) -> IndexArray:
        """Return the part that each run begins in; runs may have no rows."""
        self.find_runs()
        return self._parts_of_runs

    def _find_runs(self) -> tuple[IndexArray, IndexArray]:
        bounds, given = self.bounds, self._runs_given
        assert bounds is not None
        if given is None and self.divided is None:
            return bounds, numpy.arange(len(self))
        if given is None and self.divided is not None:
            # Not found by their first rows, since a run may have no rows.
            return self.divided, numpy.repeat(
                numpy.arange(len(self)), self.divisions)
        if given == 'all':
            first = numpy.searchsorted(bounds, bounds[:1], 'right') - 1
            return bounds[[0, -1]], first.clip(0, len(self) - 1)
        found = [self._find_runs_in(number, count) for number, count in
                 enumerate(numpy.diff(bounds).tolist())]
        runs = numpy.concatenate([
            *[one[:-1] + start for one, start in zip(
                found, bounds[:-1], strict=True)], bounds[-1:]])
        return runs, numpy.repeat(numpy.arange(len(self)), [
            len(one) - 1 for one in found])

    def _find_runs_in(self, number: int, count: int) -> IndexArray:
        """Return the bounds of the runs of a part, regardless of the other
        parts."""
        return find_bounds(
            self._runs_given, [count], lambda _, name: self.read(number, name),
            lambda _: self.describe(number))

    def find(self, number: int, path: str) -> Node | None:
        """Return the node at a path in a part."""
        key = number, path
        if key in self._nodes:
            return self._nodes[key]
        node = self._open(number, path)
        if len(self) <= MOST_OPEN:
            self._nodes[key] = node
        return node

    def _open(self, number: int, path: str) -> Node | None:
        file, group, part = self.place_of(number)
        return self.files.find(file, join(part, path), group)

    def place_of(self, number: int) -> tuple[int, Any, str]:
        """Return the file of a part, the group above it, and its name in
        that group."""
        file = self.names.file_numbers[number]
        above, _, last = self.names.names[number].rpartition('/')
        group = self._above.get((file, above))
        if group is None:
            # All parts, or many of them, have the same group.
            group = self.files.find(file, above)
            self._above = {(file, above): group}
        return file, group, last

    def node(self, number: int, path: str) -> Node:
        """Return the array or group of a path in a part."""
        node = self.find(number, path)
        if node is None:
            raise self._missing(path, number)
        return node

    def arrays(self, path: str) -> Sequence[h5py.Dataset]:
        """Return the arrays of a path, one in each part; each is opened when
        it is accessed."""
        return _Arrays(self, path)

    def array(self, number: int, path: str) -> h5py.Dataset:
        """Return the array of a path in a part."""
        node = self.node(number, path)
        if not isinstance(node, h5py.Dataset):
            raise ValueError(
                f'{self.describe(number)}: {path!r} is a group, and has no '
                f'rows{_hint_for(path, node)}')
        if not node.shape:
            raise ValueError(
                f'{self.describe(number)}: {path!r} is a single value, and '
                f'has no rows; Constant({path!r}) repeats it')
        return node

    def index(self, path: str, axes: int) -> PartIndex:
        """Return the index of the arrays of a path."""
        made: list[PartIndex | None] = []
        arrays, files = self.arrays(path), self.files.own_bytes()

        def make() -> Arrays:
            index = PartIndex(arrays, axes, self._build_index(path, axes))
            made.append(index)
            return index_arrays(index, files)

        def restore(kept: Arrays) -> bool:
            made.append(restored_index(kept, files, arrays))
            return made[-1] is not None

        if len(self) < FEWEST_KEPT:
            make()
        else:
            self.files.kept(f'index {path!r} {self.digest()}', make, restore)
        if path in self.expected:
            self.expected.remove(path)
        index = made[-1]
        assert index is not None
        return index

    def digest(self) -> str:
        """Return a checksum of the names of the parts."""
        return hashlib.sha256('\n'.join(self.names.names).encode(
            'utf-8', 'surrogateescape')).hexdigest()

    def _build_index(self, path: str, axes: int) -> IndexBuilder:
        """Build the index of the arrays of a path from HDF5.

        The indices of the expected paths are built in the same pass, since
        HDF5's cache drops the first parts before the last is reached.
        """
        if path in self._built:
            return self._built.pop(path)
        others = {other: IndexBuilder(1) for other in self.expected
                  if other != path}
        builder = IndexBuilder(axes)
        with progress('Asking HDF5 for the arrays of each part', len(self),
                      delay=True) as bar:
            for number in range(len(self)):
                file, group, part = self.place_of(number)
                self._add(builder, number, path, file, group, part)
                for other in list(others):
                    try:
                        self._add(others[other], number, other, file, group,
                                  part)
                    except (LookupError, OSError, RuntimeError, ValueError):
                        # The error is raised when this array is opened.
                        del others[other]
                bar.advance(1)
        self._built.update(others)
        return builder

    def _add(self, builder: IndexBuilder, number: int, path: str, file: int,
             group: Any, part: str) -> None:
        """Add the array of a path in a part to an index.

        `file`, `group`, `part`: the result of `place_of`.
        """
        found = open_hard_linked(group, join(part, path)) if number else None
        if not isinstance(found, h5py.h5d.DatasetID):
            # Links may lead to another file.
            found = self.array(number, path).id
            group = None
        elif found.get_offset() is None:
            # A contiguous array in this file needs no check. It takes as long
            # to make an object of h5py as to open the array.
            self.files.check_array(file, h5py.Dataset(found))
        try:
            builder.add(found, group)
        except ValueError:
            # Its error says more about an array without rows.
            self.array(number, path)
            raise

    def open(self, path: str, name: str, *, axes: int = 1,
             field: str | Sequence[str] | None = None,
             start: int | None = None, stop: int | None = None) -> Reader:
        """Return a reader of the rows of the arrays of a path.

        Text of variable length is read as ``str``. See
        :func:`~fuel.storage.open_parts` for the arguments.
        """
        return with_text(open_parts(
            self.index(path, axes), name, field=field, axes=axes, start=start,
            stop=stop, cache_bytes=self.cache_bytes), self.array(0, path))

    def read(self, number: int, path: str) -> NDArray[Any]:
        """Return a whole array, or a single value, of a part."""
        node = self.node(number, path)
        if not isinstance(node, h5py.Dataset):
            raise ValueError(
                f'{self.describe(number)}: {path!r} is a group, and no '
                f'array{_hint_for(path, node)}')
        with naming_file(self.path_of(number), path):
            return read_whole(node)

    def attributes(self, name: str, runs: IndexArray) -> list[Any]:
        """Return, for each of some runs, an attribute of its part."""
        assert self.bounds is not None
        bounds, found = self.find_runs(), dict[int, Any]()
        numbers = self.parts_of_runs()[runs]
        wide = bounds[runs + 1] > self.bounds[numbers + 1]
        if wide.any():
            run = int(runs[wide][0])
            raise ValueError(
                f'the run of rows {bounds[run]} to {bounds[run + 1]} goes '
                f'through several parts, each with attributes of its own')
        for number in numbers.tolist():
            if number not in found:
                found[number] = self._attribute(number, name)
        return [found[number] for number in numbers.tolist()]

    def _attribute(self, number: int, name: str) -> Any:
        group = self.group(number)
        with naming_file(self.path_of(number)):
            value = read_attribute(group, name)
            if value is None:
                have = ', '.join(map(repr, group.attrs)) or 'none'
                raise ValueError(
                    f'{self.describe(number)} has no attribute {name!r}; it '
                    f'has {have}')
        return value

    def _missing(self, path: str, number: int) -> ValueError:
        group = self.group(number)
        have = [name for name, _ in find_arrays(
            group, self.files.open_linked)]
        shown = ', '.join(map(repr, have[:SHOWN])) or 'none'
        more = ', ...' if len(have) > SHOWN else ''
        remedy = ("; missing='skip' leaves out such parts"
                  if len(self) > 1 else '')
        hint = self.field_hint(number, path) or self._below_hint(
            path, have) or did_you_mean(path, have, ' ({})')
        which = (f', which {self.describe(0)} has' if number
                 and self.find(0, path) is not None else '')
        return ValueError(
            f'{self.describe(number)} has no array {path!r}{which}{hint}; '
            f'it has '
            f'{shown}{more}{remedy}')

    def _below_hint(self, path: str, have: Sequence[str]) -> str:
        """Return the correct path, as a hint, if a path begins with a part's
        name."""
        below = next((path.removeprefix(f'{name}/')
                      for name in self.names.names
                      if name and path.startswith(f'{name}/')), '')
        return (f' (paths begin in each part: write {below!r}; of the sources '
                f'of a layout, sources=({below!r},) chooses)'
                ) if below in have else ''

    def field_hint(self, number: int, path: str) -> str:
        """Return a hint to read a field, if a path ends with the name of a
        field."""
        above, _, field = path.rpartition('/')
        array = self.find(number, above) if above else None
        fields = array.dtype.names or () if isinstance(
            array, h5py.Dataset) else ()
        return (f' (did you mean Rows({above!r}, field={field!r}), a field '
                f'of an array?)') if field in fields else ''

    def skip_without(self, paths: Sequence[str]) -> None:
        """Leave out each part that lacks any of `paths`."""
        def find() -> Arrays:
            return {'lacks': numpy.array([
                any(self.find(number, path) is None for path in paths)
                for number in range(len(self))])}

        def is_mask(kept: Arrays) -> bool:
            mask = kept.get('lacks', numpy.empty(0))
            return mask.dtype == bool and mask.shape == (len(self),)

        lacks = self.files.kept(
            f'lacking {self.names.key} {sorted(paths)}', find,
            is_mask)['lacks']
        if lacks.all():
            raise ValueError(
                f'none of the {len(self)} parts has all of '
                f'{", ".join(map(repr, paths))}; the first is '
                f'{self.describe(0)}')
        if lacks.any():
            self._nodes.clear()
            self.names.leave_out(lacks)


def read_whole(array: h5py.Dataset) -> NDArray[Any]:
    """Return a whole array; a single value as an array without axes."""
    if array.dtype.kind != 'O':
        return numpy.asarray(array[()])
    if array.shape:
        # Not read by HDF5, which ends the process if text is damaged.
        rows: NDArray[Any] = choose_reader(array).read(slice(None))
        return rows
    if h5py.check_string_dtype(array.dtype) is None:
        raise ValueError(f'{array.name!r} is neither a number nor text, but '
                         f'{array.dtype}')
    value = numpy.empty((), object)
    value[()] = read_text_value(array)
    return value


def _hint_for(path: str, group: h5py.Group) -> str:
    """Return a hint to the column that reads a group, or to its names."""
    names = set(group)
    if {'data', 'indices', 'indptr'} <= names:
        return f': CSR({path!r}) reads it'
    if {'codes', 'categories'} <= names:
        return f': Categorical({path!r}) reads it'
    return '' if not names else (
        '; it has ' + ', '.join(repr(f'{path}/{name}')
                                for name in sorted(names)[:SHOWN]))


# Stands for an attribute that is missing or not an integer.
UNSTATED = numpy.iinfo(numpy.int64).min


def check_stated(parts: FileParts, name: str, array: str) -> None:
    """Refuse a part whose attribute states another number of rows than it has.

    An attribute that is not an integer is ignored.

    `parts`: the parts; their rows must have been counted.
    `name`: name of the attribute.
    `array`: path of an array with one element for each row, for the error.
    """
    def read_stated() -> Arrays:
        return {'stated': numpy.array([
            _stated(parts, number, name) for number in range(len(parts))])}

    def are_stated(kept: Arrays) -> bool:
        stated = kept.get('stated', numpy.empty(0))
        return stated.dtype == numpy.int64 and (
            stated.shape == (len(parts),))

    assert parts.bounds is not None
    stated = parts.files.kept(
        f'stated {name!r} {parts.digest()}', read_stated, are_stated)['stated']
    lengths = numpy.diff(parts.bounds)
    wrong = (stated != UNSTATED) & (stated != lengths)
    for number in numpy.flatnonzero(wrong)[:1].tolist():
        part = parts.names.names[number]
        raise contradicted_length(
            parts.path_of(number), name, part, int(stated[number]),
            f'{part}/{array}', int(lengths[number]))


def _stated(parts: FileParts, number: int, name: str) -> int:
    """Return an integer attribute of a part; `UNSTATED` if there is none."""
    value = numpy.array(UNSTATED)
    with naming_file(parts.path_of(number)):
        _, above, path = parts.place_of(number)
        # A group object of h5py would take ten times as long.
        part = open_hard_linked(above, path) or parts.group(number).id
        key = name.encode()
        if h5py.h5a.exists(part, key):
            attribute = h5py.h5a.open(part, key)
            kind = attribute.get_type().get_class()
            if kind == h5py.h5t.INTEGER and (
                    attribute.get_space().get_simple_extent_npoints() == 1):
                attribute.read(value.reshape(attribute.shape))
    return int(value)


def contradicted_length(path: str, name: str, node: str, stated: int,
                        array: str, length: int) -> DamagedFileError:
    """Return the error that an attribute states another number of rows than
    the array has."""
    return DamagedFileError(
        f'{path!r}: {name!r} of {node!r} states {stated} rows, and {array!r} '
        f'has {length}; the file is damaged, or was partly updated: restore '
        f'it from its origin')
