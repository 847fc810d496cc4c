"""The files of a data set, and the names of its parts, which are files or
groups in files."""
from __future__ import annotations

import fnmatch
import functools
import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import h5py
import numpy
from numpy.typing import NDArray

from fuel.remote.location import LocalPath, RemotePath, as_path, located
from fuel.remote.urls import StorageOptions
from fuel.storage.linked_files import LinkedFiles
from fuel.storage.nodes import (
    find_node, group_names, is_group, text_of_name)
from fuel.storage.part_index import Arrays
from fuel.suggestions import did_you_mean
from fuel.utils.braces import expand_braces
from fuel.utils.hdf5_errors import naming_file
from fuel.utils.missing_files import no_match
from fuel.utils.other_libraries import checked_path, short_repr

# Most names that an error shows.
SHOWN = 10
MAGIC = re.compile(r'[*?[]')
_NUMBER = re.compile('[0-9]+')

#: A path, URL or pattern of paths, or several of them.
Files: TypeAlias = 'str | os.PathLike[str] | Sequence[str | os.PathLike[str]]'


def as_files(files: Files, storage_options: StorageOptions | None,
              ) -> str | list[str]:
    """Return files as they were given, but with braces expanded; the ``repr``
    shows no credentials."""
    if isinstance(files, (str, os.PathLike)):
        path = os.fsdecode(files)
        if '{' not in path:
            return as_path(path, storage_options)
        listed: Sequence[str | os.PathLike[str]] = [path]
    else:
        listed = files
    found = [as_path(path, storage_options)
             for file in listed for path in without_braces(os.fsdecode(file))]
    if not found:
        raise ValueError('at least one file is needed, got none')
    return found if listed is files or len(found) > 1 else found[0]


def without_braces(path: str) -> list[str]:
    """Return the paths that a path with braces stands for."""
    return [path] if '{' not in path or os.path.exists(
        path) else expand_braces(path)


def is_pattern(path: str) -> bool:
    """Return whether a path stands for others, by signs or by braces."""
    return bool(MAGIC.search(path)) or (
        '{' in path and without_braces(path) != [path])


def expand(files: str | Sequence[str]) -> list[str]:
    """Return the paths of files; those of a pattern in natural order."""
    if not isinstance(files, str):
        return [path for file in files for path in expand(file)]
    if isinstance(files, RemotePath) and '*' in files.reveal()[0]:
        raise ValueError(
            f'patterns are for local files, got {files!r}: list the URLs, or '
            f'write braces, such as {{000..012}}')
    if isinstance(files, RemotePath) or not MAGIC.search(files) or (
            os.path.exists(files)):
        return [files]
    found = sorted(glob.glob(files, recursive=True), key=natural_key)
    if not found:
        raise no_match(files)
    # DALI's index of an archive is not data.
    indexes = {f'{path[:-4]}.idx' for path in found if path.endswith('.tar')}
    return [path for path in found if path not in indexes]


def fixed_files(reader: str, files: Any,
                storage_options: StorageOptions | None) -> str | list[str]:
    """Return the path of a file, or a list of paths of several files.

    The paths stay valid if the working directory changes. Anything but paths
    is refused.

    `reader`: name of the data set, for errors.
    `files`: a path, URL or pattern, or a list of them.
    """
    listed = files if isinstance(files, (list, tuple)) else []
    others = [file for file in listed
              if not isinstance(file, (str, bytes, os.PathLike))]
    if len(others) == len(listed):
        files = checked_path(reader, files)
    elif others:
        raise TypeError(
            f'{reader} reads files, by their paths or URLs, got '
            f'{short_repr(others[0])} in the list of them')
    found: list[str] = [
        path if isinstance(path, RemotePath) else LocalPath(path)
        for path in expand(as_files(files, storage_options))]
    return found[0] if len(found) == 1 else found


def written_files(files: Any, storage_options: StorageOptions | None,
                  ) -> str | list[str]:
    """Return files for the text of a call: patterns as they were passed, and
    braces in place of paths that are numbered one after the other.

    The result has no credentials.
    """
    listed = files if isinstance(files, (list, tuple)) else [files]
    paths = [str(as_path(os.fsdecode(one), storage_options))
             for one in listed]
    shown: list[str] = []
    first = 0
    while first < len(paths):
        numbered = _numbered(paths, first)
        braces = f'{{{numbered[0][1]}..{numbered[-1][1]}}}'.join(
            numbered[0][::2])
        alike = paths[first:first + len(numbered)]
        shown += [braces] if len(alike) > 1 and '{' not in alike[0] and (
            expand_braces(braces) == alike) else alike
        first += len(alike)
    return shown[0] if len(shown) == 1 else shown


def _numbered(paths: Sequence[str], start: int) -> list[tuple[str, str, str]]:
    """Return the paths from a place on that differ in one number, which grows
    by one: the text before the number, the number, and the text after it."""
    one, other = [re.split('([0-9]+)', path) for path in (
        paths[start], paths[min(start + 1, len(paths) - 1)])]
    place = next((place for place, (mine, theirs) in enumerate(zip(
        one, other, strict=False)) if mine != theirs), 0)
    before, number, after = (
        ''.join(one[:place]), one[place], ''.join(one[place + 1:]))
    found = [(before, number, after)]
    if place % 2:
        # No slice, since there may be as many calls as paths.
        for following in range(start + 1, len(paths)):
            number = f'{int(number) + 1:0{len(number)}}'
            if paths[following] != f'{before}{number}{after}':
                break
            found.append((before, number, after))
    return found


def as_list(paths: str | Sequence[str]) -> Sequence[str]:
    """Return paths as a list; a single path becomes a list of one path."""
    return [paths] if isinstance(paths, str) else paths


def relative_names(paths: Sequence[str]) -> tuple[str, ...]:
    """Return the paths of files relative to their common folder."""
    names = [os.path.abspath(path).replace(os.sep, '/').split('/')
             for path in paths]
    depth = 0
    while all(len(name) > depth + 1 and name[depth] == names[0][depth]
              for name in names):
        depth += 1
    return tuple(['/'.join(name[depth:]) for name in names])


def files_in_order(paths: str | Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the argument of a saved state with the names of several files in
    order.

    For one file the result is empty: the file may be renamed before the state
    is restored.
    """
    paths = as_list(paths)
    return {} if len(paths) < 2 else {
        'files': relative_names(list(map(located, paths)))}


def shown_paths(paths: Sequence[str]) -> list[str]:
    """Return paths for people to read; of many, the first and the last."""
    return list(map(str, paths)) if len(paths) < 3 else [
        f'{paths[0]} to {paths[-1]}, {len(paths)} files']


class PartNames:
    """The names of the parts of a data set; parts may be left out.

    `names`: for each part, its path in its file; '' for a whole file.
    `file_numbers`: for each part, the number of its file.
    """

    def __init__(self, files: LinkedFiles, pattern: str | None,
                 may_lack: bool) -> None:
        self._files = files
        self._pattern = pattern
        self._may_lack = may_lack
        # All parts, including those that are left out.
        self._all = self._list() if pattern is None else files.kept(
            f'parts {self.key}', self._list, self._are_parts)
        self.leave_out(numpy.zeros(len(self._all['file']), bool))

    def leave_out(self, is_out: NDArray[numpy.bool_]) -> None:
        """Leave out some parts.

        `is_out`: for each part, whether it is left out.
        """
        self._is_out = is_out
        self.file_numbers: list[int] = self._all['file'][~is_out].tolist()
        self.names = [text_of_name(name)
                      for name in self._all['name'][~is_out].tolist()]
        # For each kind of name, a dict from names to numbers of parts; the
        # number is -1 if a part is left out.
        self._numbers: list[dict[str, list[int]]] = [{}, {}, {}]

    @property
    def key(self) -> str:
        """Key under which the list of the parts is cached (str)."""
        return f'{self._pattern!r} {self._may_lack}'

    def _list(self) -> Arrays:
        """Return the file number and the name of each part, as found with
        HDF5."""
        found = [(number, name.encode('utf-8', 'surrogateescape'))
                 for number, path in enumerate(self._files.paths)
                 for name in self._names_in(number, path)]
        if not found:
            raise ValueError(
                f'no file has a group {self._pattern!r}; the first is '
                f'{self._files.paths[0]!r}')
        numbers, names = zip(*found, strict=True)
        return {'file': numpy.array(numbers), 'name': numpy.array(names)}

    def _are_parts(self, arrays: Arrays) -> bool:
        """Return whether a cached list may be the list of the parts: whether
        its first and its last part exist."""
        if arrays.keys() != {'file', 'name'}:
            return False
        files, names = arrays['file'], arrays['name']
        if (files.ndim != 1 or files.shape != names.shape or not len(files)
                or files.dtype != int or names.dtype.kind != 'S'
                or not 0 <= files.min() <= files.max()
                < len(self._files.paths)):
            return False
        return all(
            fnmatch.fnmatchcase(text_of_name(names[place]), str(self._pattern))
            and isinstance(self._files.find(
                int(files[place]), text_of_name(names[place])), h5py.Group)
            for place in (0, -1))

    def _names_in(self, number: int, path: str) -> list[str]:
        """Return the names of the parts in a file, in natural order."""
        if self._pattern is None:
            return ['']
        with naming_file(path):
            root = self._files.files[number].file['/']
            found = sorted(self._search(root, self._pattern.split('/')),
                           key=natural_key)
            if not found and not self._may_lack:
                have = ', '.join(map(repr, sorted(group_names(root))[:SHOWN]))
                raise ValueError(
                    f'{path!r} has no group {self._pattern!r}; it has '
                    f'{have or "nothing"}')
        return found

    def _search(self, group: h5py.Group, patterns: Sequence[str],
                prefix: str = '') -> Iterator[str]:
        """Yield the paths of groups that match a pattern for each level."""
        open_linked = self._files.open_linked
        first, *rest = patterns
        names = [first] if not MAGIC.search(first) else fnmatch.filter(
            group_names(group), first)
        for name in names:
            if not rest:
                if is_group(group, name, open_linked):
                    yield f'{prefix}{name}'
                continue
            node = find_node(group, name, open_linked)
            if isinstance(node, h5py.Group):
                yield from self._search(node, rest, f'{prefix}{name}/')

    def find(self, name: str) -> Sequence[int] | None:
        """Return the numbers of the parts with a name; None if no part has it.

        Parts that are left out are not returned. A part has three names: the
        last name of its path, the path without the prefix that all parts
        share, and the whole path in the file. If a part is a whole file, its
        three names are made from the path of the file in the same way.
        """
        for kind in range(3):
            found = self._by(kind).get(name)
            if found is not None:
                return [number for number in found if number >= 0]
        return None

    def known(self) -> list[str]:
        """Return the shortest name of each part."""
        return list(self._by(0))

    def _by(self, kind: int) -> dict[str, list[int]]:
        """Return a dict from the names of one kind to the numbers of the
        parts."""
        known = self._numbers[kind]
        if not known:
            begin = MAGIC.split(self._pattern or '', maxsplit=1)[0]
            fixed = begin.rfind('/') + 1
            numbers = numpy.where(
                self._is_out, -1, numpy.cumsum(~self._is_out) - 1)
            names = self.names if not self._is_out.any() else list(map(
                text_of_name, self._all['name'].tolist()))
            for name, file, number in zip(
                    names, self._all['file'].tolist(), numbers.tolist(),
                    strict=True):
                path = name or self._files.paths[file]
                called = (path[fixed:] if kind == 1 else path if kind == 2
                          else name[name.rfind('/') + 1:]
                          or os.path.basename(path))
                known.setdefault(called, []).append(number)
        return known

    def find_all(self, where: str, names: Iterable[str]) -> list[int]:
        """Return the numbers of the parts that have some names.

        `where`: the file or argument that lists the names, for an error.
        """
        numbers: list[int] = []
        for name in names:
            found = self.find(name)
            if found is None:
                known = self.known()
                shown = ', '.join(map(repr, known[:SHOWN]))
                if len(known) > SHOWN:
                    shown += f', ... {known[-1]!r}'
                # Do not suggest a name that differs in its number alone.
                others = [other for other in known if _NUMBER.sub('', other)
                          != _NUMBER.sub('', name)]
                raise ValueError(
                    f'{where}: there is no part {name!r}'
                    f'{did_you_mean(name, others, " ({})")}; the parts are '
                    f'called {shown}')
            numbers += found
        return numbers


# Cached, since all parts contain the same names, which are sorted for each
# layout that is tried.
@functools.lru_cache(1 << 10)
def natural_key(text: str) -> tuple[tuple[int, str], ...]:
    """Return a sort key that orders numbers in names by value: a_2 before
    a_10."""
    # Numbers are compared by length first, since some are too long for `int`.
    return tuple([
        (-1, part) if place % 2 == 0
        else (len(part.lstrip('0')), part.lstrip('0'))
        for place, part in enumerate(re.split(r'([0-9]+)', text))])
