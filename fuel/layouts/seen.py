"""Metadata of HDF5 files, read when a recogniser needs them."""
from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import h5py
import numpy

from fuel.datasets.columns.part_names import natural_key
from fuel.datasets.columns.parts import contradicted_length, read_whole
from fuel.exceptions import DamagedFileError
from fuel.storage.attributes import read_attribute
from fuel.storage.linked_files import LinkedFiles
from fuel.storage.nodes import Node, first_names, has_rows, is_group, walk

# Most names in a group that are examined, and most nodes below it at any
# depth; of more, the first ones in HDF5's order.
MOST_NAMES = 1000


class Array(NamedTuple):
    """An array that has rows.

    `path`: path in the file, or below the group that was passed.
    """

    path: str
    shape: tuple[int, ...]
    dtype: numpy.dtype[Any]


class SeenFile:
    """Metadata of a file: its groups, arrays and attributes.

    Links are followed as :class:`~fuel.datasets.HDF5Dataset` follows them. A
    broken link counts as missing.
    """

    def __init__(self, files: LinkedFiles, number: int) -> None:
        self._files, self._number = files, number
        self._found: dict[str, Node | None] = {}
        self._names: dict[str, list[str]] = {}
        self._arrays: dict[str, list[Array]] = {}
        self._cut: set[str] = set()

    @property
    def path(self) -> str:
        """The path or URL of the file (str)."""
        return self._files.paths[self._number]

    def node(self, path: str = '/') -> Node | None:
        """Return the group or array of a path; None if the path is missing."""
        if path not in self._found:
            try:
                self._found[path] = self._files.find(self._number, path)
            except FileNotFoundError:
                self._found[path] = None
        return self._found[path]

    def names(self, path: str = '/') -> list[str]:
        """Return the first names in a group; [] if it is not a group."""
        if path not in self._names:
            self._names[path] = self._find_names(path)
        return self._names[path]

    def _find_names(self, path: str) -> list[str]:
        group = self.node(path)
        if not isinstance(group, h5py.Group):
            return []
        return sorted(first_names(group, MOST_NAMES), key=natural_key)

    def matching(self, path: str, pattern: str) -> list[str]:
        """Return those of the first names in a group that match a pattern of
        parts."""
        return fnmatch.filter(self.names(path), pattern)

    def groups(self, path: str, pattern: str) -> list[str]:
        """Return the paths of the groups in a group, if all names in it match
        a pattern; an empty list otherwise."""
        prefix = '' if path == '/' else f'{path}/'
        names = self.names(path)
        if not all(re.fullmatch(pattern, name) for name in names):
            return []
        return [f'{prefix}{name}' for name in names
                if self._has_group(path, name)]

    def outer_groups(self, path: str, pattern: str) -> list[str]:
        """Return the first and the last path of :meth:`groups`."""
        found = self.groups(path, pattern)
        return [found[0], found[-1]] if found else []

    def _has_group(self, path: str, name: str) -> bool:
        """Return whether a name in a group names a group.

        The named group is not opened, since there may be a thousand.
        """
        group = self.node(path)
        assert isinstance(group, h5py.Group)
        try:
            return is_group(group, name, self._files.open_linked)
        except FileNotFoundError:
            return False

    def is_group(self, path: str) -> bool:
        """Return whether a path is of a group."""
        return isinstance(self.node(path), h5py.Group)

    def array(self, path: str) -> Array | None:
        """Return the array of a path; None if the path is not of an array with
        rows."""
        node = self.node(path)
        if not isinstance(node, h5py.Dataset) or not node.shape:
            return None
        return Array(path, node.shape, node.dtype)

    def length(self, path: str) -> int | None:
        """Return the number of rows of an array; None if the path is not of an
        array with rows."""
        found = self.array(path)
        return None if found is None else found.shape[0]

    def row_shape(self, path: str) -> tuple[int, ...] | None:
        """Return the shape of a row of an array; None if the path is not of an
        array with rows."""
        found = self.array(path)
        return None if found is None else found.shape[1:]

    def may_grow(self, path: str) -> bool:
        """Return whether the number of rows of an array is unlimited."""
        node = self.node(path)
        return isinstance(node, h5py.Dataset) and node.maxshape[0] is None

    def arrays(self, below: str = '/') -> list[Array]:
        """Return the arrays with rows below a group, in natural order.

        Their paths are below the group. For a large group, only the first
        arrays are returned.
        """
        if below not in self._arrays:
            self._arrays[below] = self._find_arrays(below)
        return self._arrays[below]

    def _find_arrays(self, below: str) -> list[Array]:
        group = self.node(below)
        if not isinstance(group, h5py.Group):
            return []
        # One more node than is examined.
        nodes = walk(group, self._files.open_linked, MOST_NAMES + 1)
        prefix = '' if below == '/' else f'{below}/'
        found: dict[str, Array] = {}
        for path, node in itertools.islice(nodes, MOST_NAMES):
            if isinstance(node, h5py.Dataset) and node.size and (
                    has_rows(node)):
                found[path] = Array(path, node.shape, node.dtype)
                if node.id.get_offset() is not None or node.chunks:
                    # An array whose data are in this file needs no check. It
                    # is kept, since recognisers ask for its attributes.
                    self._found.setdefault(f'{prefix}{path}', node)
        if next(nodes, None) is not None:
            self._cut.add(below)
        return [found[path] for path in sorted(found, key=natural_key)]

    def empty_arrays(self) -> list[Array]:
        """Return the arrays of the root that have an axis of length 0."""
        return [array for array in map(self.array, self.names())
                if array is not None and 0 in array.shape]

    def arrays_with(self, name: str) -> list[Array]:
        """Return the arrays of the file that have an attribute with a given
        name."""
        key, known = name.encode(), self._found
        return [array for array in self.arrays()
                if (node := known[array.path] if array.path in known
                    else self.node(array.path)) is not None
                and h5py.h5a.exists(node.id, key)]

    def has_more(self, below: str = '/') -> bool:
        """Return whether there are more nodes below a group than
        :meth:`arrays` has examined."""
        self.arrays(below)
        return below in self._cut

    def read(self, path: str) -> Any:
        """Return a whole array, or a single value; text is bytes."""
        node = self.node(path)
        if not isinstance(node, h5py.Dataset):
            raise DamagedFileError(f'{self.path!r} has no array {path!r}')
        return read_whole(node)

    def attribute_names(self, path: str = '/') -> set[str]:
        """Return the names of the attributes of a group or array."""
        node = self.node(path)
        return set() if node is None else {*node.attrs}

    def attribute(self, name: str, path: str = '/') -> Any:
        """Return an attribute of a group or array: a number, an array, text
        or references; None if it is missing or has another type."""
        node = self.node(path)
        if node is None:
            return None
        try:
            value = read_attribute(node, name)
        except (ValueError, TypeError):
            return None
        return value.decode('utf-8', 'replace') if isinstance(
            value, bytes) else value

    def text(self, name: str, path: str = '/') -> str | None:
        """Return an attribute that is text; None if it is not."""
        value = self.attribute(name, path)
        return value if isinstance(value, str) else None

    def integer(self, name: str, path: str = '/') -> int | None:
        """Return an attribute that is an integer or boolean; None if it is
        not."""
        value = numpy.asarray(self.attribute(name, path))
        return int(value.item()) if (
            value.dtype.kind in 'iub' and value.size == 1) else None

    def check_length(self, name: str, path: str, array: str) -> None:
        """Refuse an attribute that states another number of rows than an array
        has; a missing attribute or array is ignored."""
        stated, length = self.integer(name, path), self.length(array)
        if stated is not None and length is not None and stated != length:
            raise contradicted_length(
                self.path, name, path, stated, array, length)

    def texts(self, name: str, path: str = '/') -> list[str]:
        """Return an attribute that is a list of text; an empty list if it is
        not."""
        value = self.attribute(name, path)
        if isinstance(value, str):
            return [value]
        if not isinstance(value, numpy.ndarray):
            return []
        return [text.decode('utf-8', 'replace') if isinstance(text, bytes)
                else text for text in value.ravel().tolist()
                if isinstance(text, (bytes, str))]

    def scales(self, path: str) -> list[str | None]:
        """Return the path of the scale of each axis of an array; None for an
        axis without a scale."""
        node = self.node(path)
        if not isinstance(node, h5py.Dataset):
            return []
        found: list[str | None] = [None] * len(node.shape)
        # Checked first: most arrays have no scales, and recognisers ask for
        # the scales of each.
        if not h5py.h5a.exists(node.id, b'DIMENSION_LIST'):
            return found
        listed = self.attribute('DIMENSION_LIST', path)
        if numpy.shape(listed) != (len(found),):
            return found
        for axis, references in enumerate(listed):
            for reference in numpy.ravel(references)[:1]:
                if isinstance(reference, h5py.Reference) and reference:
                    found[axis] = str(node.file[reference].name)
        return found


class Seen:
    """The files of a data set that is to be opened.

    `given`: the files as the user passed them, such as a path or a list.
    `files`: the metadata of each file.
    `linked`: the open files.
    """

    def __init__(self, given: str | Sequence[str],
                 files: LinkedFiles) -> None:
        self.given, self.linked = given, files
        self.files = [SeenFile(files, number)
                      for number in range(len(files.paths))]
