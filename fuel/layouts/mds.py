"""Folders of MDS shards, whose splits are folders."""
from __future__ import annotations

from collections.abc import Sequence

from fuel.datasets.splits import must_name_splits, refuse_unknown_splits
from fuel.layouts.formats import is_mds

ALL = 'all'


def find_indexes(folder: str) -> dict[str, str]:
    """Return a dict from splits to their indexes of MDS shards; '' is the
    folder itself."""
    from fuel.datasets.shards.mds_index import indexes_in
    return {name: path for name, path in indexes_in(folder).items()
            if is_mds(path)}


def choose_indexes(folder: str, indexes: dict[str, str],
                   split: str | Sequence[str] | None, how: str,
                   ) -> tuple[list[str], str | Sequence[str] | None]:
    """Return the indexes of splits, and the splits that remain to be chosen
    from the rows.

    `how`: the argument that names a split, for errors.
    """
    by_split = {name: path for name, path in indexes.items() if name}
    names = [split or ALL] if isinstance(split, str | None) else list(split)
    if '' in indexes and not set(names) <= by_split.keys():
        return [indexes['']], split
    if split is None and len(by_split) > 1:
        raise must_name_splits(repr(folder), by_split, how)
    if names == [ALL] and ALL not in by_split:
        names = list(by_split)
    refuse_unknown_splits(names, by_split, repr(folder))
    return [by_split[name] for name in names], None
