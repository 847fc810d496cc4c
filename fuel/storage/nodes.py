"""Find the arrays to which paths and virtual data sets in HDF5 files lead.

HDF5 itself follows links to any file of the machine. A file from an untrusted
origin could name a private file. So each link is checked first. If the origin
of rows of a virtual data set is missing, HDF5 returns fill values for them;
here this is an error.
"""
from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple, TypeAlias

import h5py

from fuel.storage.file_bytes import identity_of
from fuel.utils.h5py_file import H5PYFile

#: Opens the file to which a link leads. The arguments are the file that
#: contains the link, and the name in the link.
OpenLinked: TypeAlias = Callable[[H5PYFile, str], H5PYFile]
Node: TypeAlias = h5py.Dataset | h5py.Group

# Constructors of nodes by the type of the handle; other objects have no data.
# With `readonly`, h5py reads the shape of an array only once.
MAKE_NODE: dict[type, Callable[..., Node]] = {
    h5py.h5d.DatasetID: partial(h5py.Dataset, readonly=True),
    h5py.h5g.GroupID: h5py.Group}

# The most links that are followed, since links may lead in a circle.
MOST_LINKS = 64
# The most levels of virtual data sets that are opened.
MOST_LEVELS = 8


def find_node(root: h5py.Group, path: str,
              open_linked: OpenLinked) -> Node | None:
    """Return the node at a path, None if there is none.

    `root`: the group at which `path` begins if it does not start with a slash.

    Raises: ValueError if links lead in a circle; and the errors of
        `open_linked`.
    """
    found = open_hard_linked(root, path)
    if found is None:
        found = _find_by_links(root, path, open_linked)
    make = MAKE_NODE.get(type(found))
    return None if make is None else make(found)


def _find_by_links(root: h5py.Group, path: str, open_linked: OpenLinked,
                   ) -> h5py.h5g.GroupID | h5py.h5d.DatasetID | None:
    """Return the handle of the object at a path by following each link; None
    if there is no object."""
    found = root.file['/'].id if path.startswith('/') else root.id
    pending, followed = _names(path)[::-1], 0
    while pending:
        name = pending.pop()
        if not isinstance(found, h5py.h5g.GroupID):
            return None
        links, key = found.links, name.encode('utf-8', 'surrogateescape')
        kind = _kind_of_link(links, key)
        if kind is None:
            return None
        if kind == h5py.h5l.TYPE_HARD:
            found = h5py.h5o.open(found, key)
            continue
        node = h5py.Group(found)
        followed += 1
        if followed > MOST_LINKS:
            raise ValueError(
                f'{node.file.filename!r}: the link {name!r} of {node.name!r} '
                f'leads in a circle, or through more than {MOST_LINKS} links')
        value = links.get_val(key)
        if kind == h5py.h5l.TYPE_SOFT:
            target = text_of_name(value)
            if target.startswith('/'):
                found = node.file['/'].id
        elif kind == h5py.h5l.TYPE_EXTERNAL:
            target = text_of_name(value[1])
            found = open_linked(node.file, text_of_name(value[0]))['/'].id
        else:
            # A kind that a program defined for itself.
            return None
        pending += _names(target)[::-1]
    return found


def open_hard_linked(root: h5py.Group, path: str,
                     ) -> h5py.h5g.GroupID | h5py.h5d.DatasetID | None:
    """Open the object at a path if all links on the path are hard; otherwise
    return None.

    The groups on the path are not opened: opening each would take as long as
    opening an array.
    """
    group = root.file['/'].id if path.startswith('/') else root.id
    key, links = b'', group.links
    with suppress(KeyError, OSError, RuntimeError, ValueError):
        for name in path.split('/'):
            if name in ('', '.'):
                continue
            key += b'/' * bool(key) + name.encode('utf-8', 'surrogateescape')
            # The links before this one are hard, so HDF5 may follow them.
            if links.get_info(key).type != h5py.h5l.TYPE_HARD:
                return None
        return h5py.h5o.open(group, key or b'.')
    return None


def is_group(group: h5py.Group, name: str, open_linked: OpenLinked) -> bool:
    """Return whether a name in a group is the name of a group."""
    key = name.encode('utf-8', 'surrogateescape')
    if _kind_of_link(group.id.links, key) == h5py.h5l.TYPE_HARD:
        # The object is not opened, which saves time.
        return bool(h5py.h5o.get_info(group.id, key).type
                    == h5py.h5o.TYPE_GROUP)
    return isinstance(find_node(group, name, open_linked), h5py.Group)


def _kind_of_link(links: h5py.h5l.LinkProxy, key: bytes) -> int | None:
    """Return the kind of a link, None if there is none."""
    try:
        return int(links.get_info(key).type)
    except (KeyError, RuntimeError):
        # Checked only after an error, since most links exist.
        if links.exists(key):
            raise
        return None


def find_arrays(group: h5py.Group, open_linked: OpenLinked,
                ) -> Iterator[tuple[str, h5py.Dataset]]:
    """Yield the path and the array, for each array with rows below a group.

    The paths begin at the group.
    """
    for path, node in walk(group, open_linked):
        if isinstance(node, h5py.Dataset) and has_rows(node):
            yield path, node


def walk(group: h5py.Group, open_linked: OpenLinked,
         most_names: int | None = None,
         ) -> Iterator[tuple[str, Node | None]]:
    """Yield the paths and objects below a group.

    The object is None for a broken link, and for an object that is neither a
    group nor an array.

    A group to which several links lead is visited only once.

    `most_names`: the largest number of names to read in one group. Default:
        all.
    """
    seen: set[tuple[int, int]] = set()
    # No recursion, since groups may be nested deeper than Python's stack
    # allows.
    pending: list[tuple[h5py.Group, str, str]] = []
    node: Node | None = group
    path = ''
    while True:
        if isinstance(node, h5py.Group):
            info = h5py.h5o.get_info(node.id)
            if (info.fileno, info.addr) not in seen:
                seen.add((info.fileno, info.addr))
                names = (group_names(node) if most_names is None
                         else first_names(node, most_names))
                pending += zip(
                    itertools.repeat(node),
                    itertools.repeat(path and f'{path}/'), reversed(names))
        if not pending:
            return
        parent, prefix, name = pending.pop()
        try:
            # The same steps as in `find_node`: for thousands of names, calls
            # of this function would take long.
            found = open_hard_linked(parent, name)
            if found is None:
                found = _find_by_links(parent, name, open_linked)
            make = MAKE_NODE.get(type(found))
            node = None if make is None else make(found)
        except FileNotFoundError:
            node = None
        path = f'{prefix}{name}'
        yield path, node


def group_names(group: h5py.Group) -> list[str]:
    """Return the names in a group as text.

    h5py returns names that are not UTF-8 as bytes.
    """
    names = list(group)
    return list(map(text_of_name, names)) if bytes in map(
        type, names) else names


def first_names(group: h5py.Group, most: int) -> list[str]:
    """Return the first names in a group, in the order of the file.

    So the names of a large group need not be sorted.
    """
    found: list[bytes] = []

    def note(name: bytes) -> bool | None:
        found.append(name)
        return len(found) >= most or None

    group.id.links.iterate(
        found.append if group.id.get_num_objs() <= most else note,
        order=h5py.h5.ITER_NATIVE)
    return [name.decode('utf-8', 'surrogateescape') for name in found]


def has_rows(array: h5py.Dataset) -> bool:
    """Return whether an array has examples: it is neither a scalar nor an
    array of references."""
    return bool(array.shape) and h5py.check_ref_dtype(array.dtype) is None


def external_files(dataset: h5py.Dataset) -> list[str]:
    """Return the paths of the external files with the raw data of an array."""
    properties = dataset.id.get_create_plist()
    # HDF5 searches for these files in the working directory.
    return [os.path.abspath(text_of_name(properties.get_external(number)[0]))
            for number in range(properties.get_external_count())]


def linked_path(folder: str, path: str, name: str, anywhere: bool) -> str:
    """Return the path of a file that another file names.

    Raises: ValueError if the file is outside of `folder`, FileNotFoundError if
        it does not exist.

    `folder`: the folder that must contain the file, unless `anywhere` is true.
    `path`: path of the file that contains the name; the name is relative to
        the folder of this file.
    """
    target = os.path.realpath(os.path.join(os.path.dirname(path), name))
    base = os.path.realpath(folder)
    if not anywhere and os.path.commonpath(
            [base, os.path.abspath(target)]) != base:
        raise ValueError(
            f'{path!r} names another file, {name!r}, which lies outside of '
            f'the folder {base!r}: this may be a trap in a file from '
            f"elsewhere; if it is meant, say follow='anywhere'")
    if not os.path.exists(target):
        raise FileNotFoundError(
            f'{path!r} names another file, {name!r}, and there is no file '
            f'{target!r}')
    return target


def _names(path: str) -> list[str]:
    return [name for name in path.split('/') if name not in ('', '.')]


def text_of_name(name: str | bytes) -> str:
    """Return a name as text, even if it is not UTF-8."""
    return (name.decode('utf-8', 'surrogateescape')
            if isinstance(name, bytes) else str(name))


class RowMap(NamedTuple):
    """Consecutive rows of a virtual data set that are rows of another data
    set.

    `start`: number of the first row in the virtual data set.
    `rows`: number of rows.
    `file`, `path`: file of the other data set, and its path in the file.
    `skip`: number of rows of the other data set before these rows.
    """

    start: int
    rows: int
    file: str
    path: str
    skip: int


class StoredRows(NamedTuple):
    """Consecutive rows of a data set that is not virtual.

    `skip`: number of rows of the data set before these rows.
    `rows`: number of these rows.
    """

    dataset: h5py.Dataset
    skip: int
    rows: int


def row_maps(dataset: h5py.Dataset) -> list[RowMap] | None:
    """Return the origins of the rows of a virtual data set, in order.

    Returns: None if the origins are not whole rows, or if some rows have no
        origin.
    """
    maps = []
    for found in dataset.virtual_sources():
        here, there = [_selected_rows(space) for space in (
            found.vspace, found.src_space)]
        if found.src_space.get_select_type() == h5py.h5s.SEL_ALL and here:
            # HDF5 may not know the number of rows.
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


def _selected_rows(space: h5py.h5s.SpaceID) -> tuple[int, int] | None:
    """Return the first row and the number of rows of a selection; None if it
    is not made of whole, consecutive rows."""
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
    # An unlimited selection has more rows than there are.
    if (count > 1 and stride != block) or start + count * block > length:
        return None
    return start, count * block


#: Mapping from file and path to a data set and its stored rows.
_Opened: TypeAlias = dict[
    tuple[str, str], tuple[h5py.Dataset, 'list[StoredRows] | None']]


def open_sources(dataset: h5py.Dataset, maps: list[RowMap],
                 opened: _Opened | None = None,
                 level: int = 0) -> list[StoredRows] | None:
    """Open each data set that contains rows of a virtual data set, only once.

    `maps`: see `row_maps`.
    `opened`: the data sets that were opened before.
    `level`: number of virtual data sets that lead to this one.

    Returns: the stored rows; None if a data set has another type or shape,
        which HDF5 must convert, or if HDF5 must read a data set for another
        reason.

    Raises: FileNotFoundError if a file is missing, ValueError if rows are
        missing in it. HDF5 would return fill values instead.
    """
    opened = {} if opened is None else opened
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
    """Return a data set to which a virtual data set leads, and its stored
    rows; None for these if HDF5 must read them."""
    file = dataset.file if one.file == '.' else H5PYFile(target, 'r')
    found = file.get(one.path)
    if not isinstance(found, h5py.Dataset) or not found.shape:
        raise _no_rows(dataset, target, one)
    if not found.is_virtual:
        return found, [StoredRows(found, 0, found.shape[0])]
    inner = row_maps(found)
    if inner is None or level == MOST_LEVELS:
        return found, None
    return found, open_sources(found, inner, opened, level + 1)


def _no_rows(dataset: h5py.Dataset, target: str, one: RowMap) -> ValueError:
    """Return the error that the origin of rows does not have them."""
    return ValueError(
        f'{os.fsdecode(dataset.file.filename)!r}: rows of {dataset.name!r} '
        f'should be rows {one.skip} to {one.skip + one.rows - 1} of '
        f'{one.path!r} in {target!r}, which has no such rows')


def _cut(sources: list[StoredRows], start: int, stop: int) -> list[StoredRows]:
    """Return rows from `start` to ``stop - 1`` of concatenated stored rows."""
    found, first = [], 0
    for one in sources:
        low, high = max(start, first), min(stop, first + one.rows)
        if low < high:
            found.append(StoredRows(
                one.dataset, one.skip + low - first, high - low))
        first += one.rows
    return found


def path_of(file: h5py.File, name: str) -> str:
    """Return the path of a file, from the name that a virtual data set in
    another file has for it."""
    path = os.fsdecode(file.filename)
    target = os.path.join(os.path.dirname(path), name)
    if not os.path.exists(target):
        raise FileNotFoundError(
            f'{path!r}: rows of it lie in another file, {name!r}, and there '
            f'is no file {target!r}')
    return target


#: Returns the path of a file that another file names, or raises an error.
PathOf: TypeAlias = Callable[[H5PYFile, str], str]


def check_virtual(dataset: h5py.Dataset,
                  path: PathOf = path_of) -> dict[str, tuple[int, ...]]:
    """Raise an error if HDF5 should not read a data set.

    All data sets and files to which a virtual data set leads are checked.

    Returns: a mapping from the path to the state of each file to which the
        data set leads.

    Raises: FileNotFoundError if a file is missing, ValueError if a data set is
        missing: HDF5 would return fill values. Also ValueError if virtual data
        sets lead in a circle: HDF5 follows them until the process ends.
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
    """Check the data sets to which a data set leads, except those in
    `seen`."""
    if dataset.id.get_offset() is not None or (
            dataset.id.get_create_plist().get_layout() == h5py.h5d.CHUNKED):
        # The rows are in its own file. The offset is the fastest check.
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
    """Yield the file and path of each data set that a virtual data set
    names."""
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
                # The numbering may end anywhere.
                break
            yield pair
            last = pair


def _numbered(name: str, number: int) -> str:
    """Return a name in which a number replaces ``%b``."""
    return '%'.join(part.replace('%b', str(number))
                    for part in name.split('%%'))


def _is_there(file: h5py.File, name: str, inside: str,
              path: PathOf) -> bool:
    try:
        target = file if name == '.' else H5PYFile(path(file, name), 'r')
    except FileNotFoundError:
        return False
    return inside in target
