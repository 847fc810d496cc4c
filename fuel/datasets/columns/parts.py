"""The parts of a data set in HDF5 files: files, or groups of files."""
from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import h5py
import numpy
from numpy.typing import NDArray

from fuel.datasets.hdf5.open_files import OpenFile, open_files
from fuel.datasets.row_orders import IndexArray
from fuel.datasets.run_bounds import RunsGiven, find_bounds
from fuel.remote.location import RemotePath
from fuel.storage.attributes import read_attribute
from fuel.storage.file_bytes import FileBytes
from fuel.storage import choose_reader
from fuel.storage.ragged import read_text_value
from fuel.storage.nodes import (
    Node, find_arrays, find_node, is_group, linked_path, other_files)
from fuel.suggestions import did_you_mean
from fuel.utils.hdf5_errors import naming_file

# Of so many parts what was opened stays open: each array takes kilobytes.
MOST_OPEN = 1000
# Of many names, how many an error shows.
SHOWN = 10
MAGIC = re.compile(r'[*?[]')


class _Arrays(Sequence[h5py.Dataset]):
    """The arrays of a path, one in each part."""

    def __init__(self, parts: FileParts, path: str) -> None:
        self._parts, self._path = parts, path

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, number: Any) -> Any:
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self._parts.array(number, self._path)


class FileParts:
    """The parts of a data set, whose rows follow each other.

    `files`: held open.
    `paths`: of the files, as they were given.
    `names`: of each part, its path in its file; '' for a whole file.
    `file_numbers`: of each part, the number of its file.
    `bounds`: shape (parts + 1,), the first row of each and the number of
        rows; None until a column has said it.
    `divided`: the same of what a column divides the parts into; None if none
        does.
    `cache_bytes`: see :func:`~fuel.storage.choose_reader`.
    """

    bounds: IndexArray | None = None
    divided: IndexArray | None = None

    def __init__(self, files: Sequence[OpenFile], paths: Sequence[str],
                 pattern: str | None, runs: RunsGiven | None, anywhere: bool,
                 cache_bytes: int | None, may_lack: bool) -> None:
        self.files = files
        self.paths = paths
        self.cache_bytes = cache_bytes
        self._may_lack = may_lack
        self._runs_given = runs
        self._runs: IndexArray | None = None
        self._pattern = pattern
        self._anywhere = anywhere
        # Files that links lead to.
        self._linked: dict[str, OpenFile] = {}
        # The group above the parts that were asked for last.
        self._above: dict[tuple[int, str], Any] = {}
        self._nodes: dict[tuple[int, str], Node | None] = {}
        found = [(number, name) for number, opened in enumerate(files)
                 for name in self._names_in(opened.file, paths[number])]
        self.file_numbers = [number for number, _ in found]
        self.names = [name for _, name in found]
        self._numbers: dict[str, list[int]] | None = None
        if not found:
            raise ValueError(
                f'no file has a group {pattern!r}; the first is {paths[0]!r}')

    def __len__(self) -> int:
        return len(self.names)

    def _names_in(self, file: h5py.File, path: str) -> list[str]:
        """Return the names of the parts in a file, in natural order."""
        if self._pattern is None:
            return ['']
        with naming_file(path):
            root = file['/']
            found = sorted(self._search(root, self._pattern.split('/')),
                           key=natural_key)
            if not found and not self._may_lack:
                have = ', '.join(map(repr, sorted(root)[:SHOWN])) or 'nothing'
                raise ValueError(
                    f'{path!r} has no group {self._pattern!r}; it has '
                    f'{have}')
        return found

    def _search(self, group: h5py.Group, patterns: Sequence[str],
                prefix: str = '') -> Iterator[str]:
        """Yield the names of groups that fit a pattern for each level."""
        first, *rest = patterns
        names = (fnmatch.filter(group, first) if MAGIC.search(first)
                 else [first])
        for name in names:
            if not rest:
                if is_group(group, name, self.open_linked):
                    yield f'{prefix}{name}'
                continue
            node = find_node(group, name, self.open_linked)
            if isinstance(node, h5py.Group):
                yield from self._search(node, rest, f'{prefix}{name}/')

    @property
    def numbers(self) -> Mapping[str, Sequence[int]]:
        """The parts by what they may be called, also those left out: by the
        path in the file, the same without what all of them begin with, and
        the last name; of whole files, by the path and the last name."""
        if self._numbers is None:
            begin = MAGIC.split(self._pattern or '', maxsplit=1)[0]
            fixed = begin.rfind('/') + 1
            found: dict[str, list[int]] = {}
            for number, name in enumerate(self.names):
                path = name or self.path_of(number)
                for called in dict.fromkeys((
                        os.path.basename(path), path[fixed:], path)):
                    found.setdefault(called, []).append(number)
            self._numbers = found
        return self._numbers

    def group(self, number: int) -> h5py.Group:
        """Return the group of a part."""
        root = self.files[self.file_numbers[number]].file['/']
        return find_node(root, self.names[number], self.open_linked)

    def path_of(self, number: int) -> str:
        """Return the path of the file that a part is in."""
        return self.paths[self.file_numbers[number]]

    def describe(self, number: int) -> str:
        """Return what a part is called in errors."""
        name = self.names[number]
        return self.path_of(number) + (f', group {name!r}' if name else '')

    def open_linked(self, file: h5py.File, name: str) -> h5py.File:
        """Return the file that a link in another one names."""
        target = self._other_path(file, name)
        if target not in self._linked:
            self._linked[target] = open_files.get(target)
        return self._linked[target].file

    def _other_path(self, file: h5py.File, name: str) -> str:
        """Return the path of a file that another one names."""
        path = os.fsdecode(file.filename)
        if isinstance(self.paths[0], RemotePath):
            raise ValueError(
                f'{path!r} leads to another file, {name!r}, which is not '
                f'followed from a remote file')
        origin = next((given for given, opened in zip(
            self.paths, self.files, strict=True) if opened.file == file), path)
        return linked_path(os.path.dirname(os.path.abspath(origin)), origin,
                           name, self._anywhere)

    def raw_files(self) -> Sequence[FileBytes]:
        """Return the bytes of the files that are read beside HDF5."""
        return [opened.raw for opened in (
            *self.files, *self._linked.values()) if opened.raw is not None]

    def check(self) -> None:
        """Raise DamagedFileError if a file is not what it was."""
        for opened in (*self.files, *self._linked.values()):
            opened.check()

    def find_runs(self) -> IndexArray:
        """Return the bounds of the runs of all rows."""
        if self._runs is None:
            self._runs, self._parts_of_runs = self._find_runs()
        return self._runs

    def parts_of_runs(self) -> IndexArray:
        """Return the part that each run begins in, also one without rows."""
        self.find_runs()
        return self._parts_of_runs

    def _find_runs(self) -> tuple[IndexArray, IndexArray]:
        bounds, given = self.bounds, self._runs_given
        assert bounds is not None
        if given is None and self.divided is None:
            return bounds, numpy.arange(len(self))
        if given is None or given == 'all':
            runs = (self.divided if given is None
                    and self.divided is not None else bounds[[0, -1]])
            starts = numpy.searchsorted(bounds, runs[:-1], 'right') - 1
            return runs, starts.clip(0, len(self) - 1)
        found = [self._find_runs_in(number, count) for number, count in
                 enumerate(numpy.diff(bounds).tolist())]
        runs = numpy.concatenate([
            *[one[:-1] + start for one, start in zip(
                found, bounds[:-1], strict=True)], bounds[-1:]])
        return runs, numpy.repeat(numpy.arange(len(self)), [
            len(one) - 1 for one in found])

    def _find_runs_in(self, number: int, count: int) -> IndexArray:
        """Return the bounds of the runs of a part, of which alone is
        asked."""
        return find_bounds(
            self._runs_given, [count], lambda _, name: self.read(number, name),
            lambda _: self.describe(number))

    def find(self, number: int, path: str) -> Node | None:
        """Return what a path leads to in a part."""
        key = number, path
        if key in self._nodes:
            return self._nodes[key]
        node = self._open(number, path)
        if len(self) <= MOST_OPEN:
            self._nodes[key] = node
        return node

    def _open(self, number: int, path: str) -> Node | None:
        file_number = self.file_numbers[number]
        above, _, last = self.names[number].rpartition('/')
        if not path.startswith('/'):
            path = f'{last}/{path}'
        with naming_file(self.path_of(number)):
            group = self._above.get((file_number, above))
            if group is None:
                # The same of all parts, or of many.
                group = find_node(self.files[file_number].file, above,
                                  self.open_linked)
                self._above = {(file_number, above): group}
            node = find_node(group, path, self.open_linked)
            if isinstance(node, h5py.Dataset):
                for name in other_files(node):
                    # HDF5 gives fill values for what is missing.
                    self._other_path(node.file, name)
        return node

    def node(self, number: int, path: str) -> Node:
        """Return the array or group of a path in a part."""
        node = self.find(number, path)
        if node is None:
            raise self._missing(path, number)
        return node

    def arrays(self, path: str) -> Sequence[h5py.Dataset]:
        """Return the arrays of a path, one in each part, each opened when it
        is asked for."""
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
        """Return an attribute of the part that each of some runs lies in."""
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
        have = [name for name, _ in find_arrays(group, self.open_linked)]
        shown = ', '.join(map(repr, have[:SHOWN])) or 'none'
        more = ', ...' if len(have) > SHOWN else ''
        remedy = ("; missing='skip' leaves out such parts"
                  if len(self) > 1 else '')
        hint = did_you_mean(path, have, ' ({})')
        return ValueError(
            f'{self.describe(number)} has no array {path!r}{hint}; it has '
            f'{shown}{more}{remedy}')

    def skip_without(self, paths: Sequence[str]) -> None:
        """Leave out the parts that lack one of some paths."""
        has_all = numpy.array([
            all(self.find(number, path) is not None for path in paths)
            for number in range(len(self))])
        if has_all.all():
            return
        if not has_all.any():
            raise ValueError(
                f'none of the {len(self)} parts has all of '
                f'{", ".join(map(repr, paths))}; the first is '
                f'{self.describe(0)}')
        kept = numpy.flatnonzero(has_all).tolist()
        places = {number: place for place, number in enumerate(kept)}
        called = self.numbers
        self.file_numbers = [self.file_numbers[number] for number in kept]
        self.names = [self.names[number] for number in kept]
        self._nodes.clear()
        self._numbers = {
            name: [places[number] for number in numbers if number in places]
            for name, numbers in called.items()}


def read_whole(array: h5py.Dataset) -> NDArray[Any]:
    """Return all of an array, or a single value as an array of no axes."""
    if array.dtype.kind != 'O':
        return numpy.asarray(array[()])
    if array.shape:
        # Not by HDF5, which ends the process where text is damaged.
        rows: NDArray[Any] = choose_reader(array).read(slice(None))
        return rows
    if h5py.check_string_dtype(array.dtype) is None:
        raise ValueError(f'{array.name!r} is no number and no text, but '
                         f'{array.dtype}')
    value = numpy.empty((), object)
    value[()] = read_text_value(array)
    return value


def natural_key(text: str) -> list[tuple[int, str]]:
    """Return what sorts names with numbers as people do: a_2 before a_10."""
    return [(int(part), '') if part.isdigit() else (-1, part)
            for part in re.split(r'([0-9]+)', text)]


def _hint_for(path: str, group: h5py.Group) -> str:
    """Return which column reads a group, if that is known."""
    names = set(group)
    if {'data', 'indices', 'indptr'} <= names:
        return f': CSR({path!r}) reads it'
    if {'codes', 'categories'} <= names:
        return f': Categorical({path!r}) reads it'
    return '' if not names else (
        '; it has ' + ', '.join(repr(f'{path}/{name}')
                                for name in sorted(names)[:SHOWN]))
