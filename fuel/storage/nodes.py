"""Find the arrays that paths and virtual data sets in HDF5 files lead to.

HDF5 follows links itself, to any file of the machine; a file from elsewhere
could name one that was not meant. Here each link is looked at first. HDF5 also
gives fill values for the rows of virtual data sets that lie nowhere.
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

#: Opens the file that a link names: takes the file with the link, and the
#: name in it.
OpenLinked: TypeAlias = Callable[[H5PYFile, str], H5PYFile]
Node: TypeAlias = h5py.Dataset | h5py.Group

# By the type of the handle; others have no data. Of an array that is not
# written, the shape is asked for once.
MAKE_NODE: dict[type, Callable[..., Node]] = {
    h5py.h5d.DatasetID: partial(h5py.Dataset, readonly=True),
    h5py.h5g.GroupID: h5py.Group}

# Links may lead to each other in a circle.
MOST_LINKS = 64
# So may virtual data sets that lie in each other.
MOST_LEVELS = 8


def find_node(root: h5py.Group, path: str,
              open_linked: OpenLinked) -> Node | None:
    """Return the node at a path, None if nothing is there.

    `root`: the group at which a path without a slash begins.

    Raises: ValueError where links lead to each other in a circle, and what
        `open_linked` raises.
    """
    found = open_hard_linked(root, path)
    if found is None:
        found = _find_by_links(root, path, open_linked)
    make = MAKE_NODE.get(type(found))
    return None if make is None else make(found)


def _find_by_links(root: h5py.Group, path: str, open_linked: OpenLinked,
                   ) -> h5py.h5g.GroupID | h5py.h5d.DatasetID | None:
    """Return the handle of the object at a path, by one link after the other;
    None if nothing is there."""
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
    """Open the object of a path whose links are all hard; else return None.

    The groups on the way are not opened: each takes as long as an array.
    """
    group = root.file['/'].id if path.startswith('/') else root.id
    key, links = b'', group.links
    with suppress(KeyError, OSError, RuntimeError, ValueError):
        for name in path.split('/'):
            if name in ('', '.'):
                continue
            key += b'/' * bool(key) + name.encode('utf-8', 'surrogateescape')
            # Of those before it is known that HDF5 may follow them.
            if links.get_info(key).type != h5py.h5l.TYPE_HARD:
                return None
        return h5py.h5o.open(group, key or b'.')
    return None


def is_group(group: h5py.Group, name: str, open_linked: OpenLinked) -> bool:
    """Return whether a name in a group is that of another group."""
    key = name.encode('utf-8', 'surrogateescape')
    if _kind_of_link(group.id.links, key) == h5py.h5l.TYPE_HARD:
        # Without opening it.
        return bool(h5py.h5o.get_info(group.id, key).type
                    == h5py.h5o.TYPE_GROUP)
    return isinstance(find_node(group, name, open_linked), h5py.Group)


def _kind_of_link(links: h5py.h5l.LinkProxy, key: bytes) -> int | None:
    """Return the kind of a link, None if there is none."""
    try:
        return int(links.get_info(key).type)
    except (KeyError, RuntimeError):
        # Asked only then, since most are there.
        if links.exists(key):
            raise
        return None


def find_arrays(group: h5py.Group, open_linked: OpenLinked,
                ) -> Iterator[tuple[str, h5py.Dataset]]:
    """Yield the arrays below a group that have rows, by their paths in it."""
    for path, node in walk(group, open_linked):
        if isinstance(node, h5py.Dataset) and has_rows(node):
            yield path, node


def walk(group: h5py.Group, open_linked: OpenLinked,
         most_names: int | None = None,
         ) -> Iterator[tuple[str, Node | None]]:
    """Yield the objects below a group, by path in it: None for a broken link.

    Each group is looked through once, also if several links lead to it.

    `most_names`: most names of one group to read. Default: all.
    """
    seen: set[tuple[int, int]] = set()
    # No recursion, since groups may be nested deeper than Python's stack.
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
            # As `find_node` does, which takes long for thousands of names.
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
    """Return the names in a group, as text; h5py gives those that are not
    UTF-8 as bytes."""
    names = list(group)
    return list(map(text_of_name, names)) if bytes in map(
        type, names) else names


def first_names(group: h5py.Group, most: int) -> list[str]:
    """Return the first names in a group, in the order in which they lie in
    the file, so that those of a large group need not be sorted."""
    found: list[bytes] = []

    def note(name: bytes) -> bool | None:
        found.append(name)
        return len(found) >= most or None

    group.id.links.iterate(
        found.append if group.id.get_num_objs() <= most else note,
        order=h5py.h5.ITER_NATIVE)
    return [name.decode('utf-8', 'surrogateescape') for name in found]


def has_rows(array: h5py.Dataset) -> bool:
    """Return whether an array has examples: it is not a scalar, nor of
    references, which lead to other arrays."""
    return bool(array.shape) and h5py.check_ref_dtype(array.dtype) is None


def external_files(dataset: h5py.Dataset) -> list[str]:
    """Return the paths of the files that have the raw data of an array."""
    properties = dataset.id.get_create_plist()
    # HDF5 looks for them in the working directory.
    return [os.path.abspath(text_of_name(properties.get_external(number)[0]))
            for number in range(properties.get_external_count())]


def linked_path(folder: str, path: str, name: str, anywhere: bool) -> str:
    """Return the path of a file that another one names.

    `folder`: the folder of such files, unless they may be `anywhere`.
    `path`: of the file that names it, from whose folder on it is named.
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
    """Return a name as text, also one that is not UTF-8."""
    return (name.decode('utf-8', 'surrogateescape')
            if isinstance(name, bytes) else str(name))


class RowMap(NamedTuple):
    """Rows of a virtual data set that are rows of another one.

    `start`: the first of them in the virtual data set.
    `rows`: their number.
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

    `skip`, `rows`: number of its rows before these, and of these.
    """

    dataset: h5py.Dataset
    skip: int
    rows: int


def row_maps(dataset: h5py.Dataset) -> list[RowMap] | None:
    """Return the origins of a virtual data set's rows, in order; None if they
    are not whole rows, or some have no origin."""
    maps = []
    for found in dataset.virtual_sources():
        here, there = [_selected_rows(space) for space in (
            found.vspace, found.src_space)]
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


def _selected_rows(space: h5py.h5s.SpaceID) -> tuple[int, int] | None:
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


#: Data sets by file and path, each with what its rows consist of.
_Opened: TypeAlias = dict[
    tuple[str, str], tuple[h5py.Dataset, 'list[StoredRows] | None']]


def open_sources(dataset: h5py.Dataset, maps: list[RowMap],
                 opened: _Opened | None = None,
                 level: int = 0) -> list[StoredRows] | None:
    """Open the data sets that the rows of a virtual one lie in, each once.

    `maps`: see `row_maps`.
    `opened`: the data sets opened before, on the way to this one.
    `level`: number of data sets on the way to this one.

    Returns: None if they are stored in another type or shape, which HDF5
        converts.

    Raises: FileNotFoundError if a file is missing, ValueError if one has no
        such rows: HDF5 would give fill values.
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
    """Return a data set that a virtual one leads to, and the pieces of its
    rows."""
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
    """Return the error that a data set lacks rows."""
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
