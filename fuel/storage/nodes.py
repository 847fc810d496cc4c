"""What paths in HDF5 files lead to, also by links to other files.

HDF5 follows links itself, to any file of the machine; a file from elsewhere
could name one that was not meant. Here each link is looked at first.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import repeat
from typing import TypeAlias

import h5py

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


def find_node(root: h5py.Group, path: str,
              open_linked: OpenLinked) -> Node | None:
    """Return what a path leads to, None if nothing is there.

    `root`: where the path begins, unless it begins with a slash.

    Raises: ValueError where links lead to each other in a circle, and what
        `open_linked` raises.
    """
    found = find_at_once(root, path) or _find_by_links(
        root, path, open_linked)
    make = MAKE_NODE.get(type(found))
    return None if make is None else make(found)


def _find_by_links(root: h5py.Group, path: str, open_linked: OpenLinked,
                   ) -> h5py.h5g.GroupID | h5py.h5d.DatasetID | None:
    """Return the handle of what a path leads to, by one link after the
    other; None if nothing is there."""
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


def find_at_once(root: h5py.Group, path: str,
                 ) -> h5py.h5g.GroupID | h5py.h5d.DatasetID | None:
    """Return the handle of what a path leads to, without opening the groups
    on the way, each of which takes as long as an array; None unless all
    links are hard ones."""
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
    """Yield what is below a group, by its path in it: None where a link is
    broken.

    Each group is looked through once, also if several links lead to it.

    `most_names`: how many names of one group are looked at. Default: all.
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
                names = list(node) if most_names is None else first_names(
                    node, most_names)
                pending += zip(repeat(node), repeat(path and f'{path}/'),
                               reversed(names))
        if not pending:
            return
        parent, prefix, name = pending.pop()
        try:
            # As `find_node` does, which takes long for thousands of names.
            found = find_at_once(parent, name) or _find_by_links(
                parent, name, open_linked)
            make = MAKE_NODE.get(type(found))
            node = None if make is None else make(found)
        except FileNotFoundError:
            node = None
        path = f'{prefix}{name}'
        yield path, node


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

    `folder`: where such files have to be, unless they may be `anywhere`.
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
