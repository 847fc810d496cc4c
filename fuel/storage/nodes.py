"""What paths in HDF5 files lead to, also by links to other files.

HDF5 follows links itself, to any file of the machine; a file from elsewhere
could name one that was not meant. Here each link is looked at first.
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TypeAlias

import h5py

#: Opens the file that a link names: takes the file with the link, and the
#: name in it.
OpenLinked: TypeAlias = Callable[[h5py.File, str], h5py.File]
Node: TypeAlias = h5py.Dataset | h5py.Group

# Links may lead to each other in a circle.
MOST_LINKS = 64


def find_node(root: h5py.Group, path: str,
              open_linked: OpenLinked) -> Node | None:
    """Return what a path leads to, None if nothing is there.

    `root`: where the path begins, unless it begins with a slash.

    Raises: ValueError where links lead to each other in a circle, and what
        `open_linked` raises.
    """
    node: Node | None = root
    pending = _names(path)[::-1]
    if path.startswith('/'):
        node = root.file['/']
    followed = 0
    while pending:
        name = pending.pop()
        if not isinstance(node, h5py.Group):
            return None
        links, key = node.id.links, name.encode('utf-8', 'surrogateescape')
        kind = _kind_of_link(links, key)
        if kind is None:
            return None
        if kind == h5py.h5l.TYPE_HARD:
            node = _open(node, key)
            continue
        followed += 1
        if followed > MOST_LINKS:
            raise ValueError(
                f'{node.file.filename!r}: the link {name!r} of {node.name!r} '
                f'leads in a circle, or through more than {MOST_LINKS} links')
        value = links.get_val(key)
        if kind == h5py.h5l.TYPE_SOFT:
            target = _text(value)
            if target.startswith('/'):
                node = node.file['/']
        elif kind == h5py.h5l.TYPE_EXTERNAL:
            target = _text(value[1])
            node = open_linked(node.file, _text(value[0]))['/']
        else:
            # A kind that a program defined for itself.
            return None
        pending += _names(target)[::-1]
    return node


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


def _open(group: h5py.Group, key: bytes) -> Node | None:
    """Return what a hard link leads to; None for what has no data."""
    found = h5py.h5o.open(group.id, key)
    if isinstance(found, h5py.h5d.DatasetID):
        return h5py.Dataset(found)
    return h5py.Group(found) if isinstance(found, h5py.h5g.GroupID) else None


def find_arrays(group: h5py.Group, open_linked: OpenLinked,
                ) -> Iterator[tuple[str, h5py.Dataset]]:
    """Yield the arrays below a group that have rows, by their paths in it.

    Each group is looked through once, also if several links lead to it. What
    a broken link names is left out.
    """
    return _search(group, '', set(), open_linked)


def _search(group: h5py.Group, prefix: str, seen: set[tuple[int, int]],
            open_linked: OpenLinked) -> Iterator[tuple[str, h5py.Dataset]]:
    """Yield the arrays below a group, but for those of groups in `seen`."""
    info = h5py.h5o.get_info(group.id)
    if (info.fileno, info.addr) in seen:
        return
    seen.add((info.fileno, info.addr))
    for name in group:
        try:
            node = find_node(group, name, open_linked)
        except FileNotFoundError:
            continue
        if isinstance(node, h5py.Group):
            yield from _search(node, f'{prefix}{name}/', seen, open_linked)
        elif isinstance(node, h5py.Dataset) and _has_rows(node):
            yield f'{prefix}{name}', node


def _has_rows(dataset: h5py.Dataset) -> bool:
    """Return whether an array has examples: it is no scalar and no array of
    references, which lead to other arrays."""
    return bool(dataset.shape) and not (
        h5py.check_ref_dtype(dataset.dtype))


def other_files(dataset: h5py.Dataset) -> list[str]:
    """Return the names of the files in which the rows of an array lie, but
    for its own."""
    properties = dataset.id.get_create_plist()
    if properties.get_layout() == h5py.h5d.VIRTUAL:
        names = [source.file_name for source in dataset.virtual_sources()]
        return [name for name in dict.fromkeys(names) if name != '.']
    # Raw data, which HDF5 looks for in the working directory.
    return [os.path.abspath(_text(properties.get_external(number)[0]))
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


def _text(name: bytes) -> str:
    return name.decode('utf-8', 'surrogateescape')
