"""Folders of MDS shards, whose splits are folders."""
from __future__ import annotations

import os
from collections.abc import Sequence

from fuel.datasets.splits import (
    ALL, must_name_splits, names_of, refuse_unknown_splits)
from fuel.layouts.formats import INDEX, has_object, is_mds
from fuel.remote.location import RemotePath
from fuel.remote.urls import file_name


def find_indexes(folder: str) -> dict[str, str]:
    """Return a dict from splits to their indexes of MDS shards; '' is the
    folder itself."""
    from fuel.datasets.shards.mds_index import indexes_in
    return {name: path for name, path in indexes_in(folder).items()
            if is_mds(path)}


def indexes_at_url(paths: Sequence[str], split: str | Sequence[str] | None,
                   ) -> list[str]:
    """Return the indexes of splits that are folders of a folder at a URL; an
    empty list if one is not there. Each is asked for by its name."""
    names = names_of(split)
    path, = paths if len(paths) == 1 else ('',)
    if not isinstance(path, RemotePath) or os.path.splitext(
            file_name(path))[1] or not all(names):
        return []
    found = [path.joined(f'{name}/{INDEX}') for name in names]
    return [*found] if all(map(has_object, found)) else []


def choose_indexes(folder: str, indexes: dict[str, str],
                   split: str | Sequence[str] | None, how: str,
                   ) -> tuple[list[str], str | Sequence[str] | None]:
    """Return the indexes of splits, and the splits that remain to be chosen
    from the rows.

    `how`: the argument that names a split, for errors.
    """
    by_split = {name: path for name, path in indexes.items() if name}
    names = names_of(split) or (ALL,)
    if '' in indexes and not set(names) <= by_split.keys():
        return [indexes['']], split
    if split is None and len(by_split) > 1:
        raise must_name_splits(repr(folder), by_split, how)
    if names == (ALL,) and ALL not in by_split:
        names = tuple(by_split)
    refuse_unknown_splits(names, by_split, repr(folder))
    return [by_split[name] for name in names], None
