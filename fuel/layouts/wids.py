"""Indexes of wids, which list tar archives and state their lengths."""
from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from fuel.datasets.shards.base import ShardDataset
from fuel.remote.location import RemotePath, as_path
from fuel.remote.urls import SERVERS, is_url, protocol_of, shown
from fuel.storage.file_bytes import raw_file_at


def shards_of_wids(path: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the path of each tar archive that an index of wids lists, with
    what the index states about it."""
    file = raw_file_at(path)
    try:
        shards = json.loads(file.read(0, file.size))['shardlist']
        names = [each['url'] for each in shards]
        if not names or not all(isinstance(name, str) for name in names):
            raise ValueError(names)
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(
            f'{str(path)!r} must be an index of wids, with a "url" for each '
            f'shard in its "shardlist": {error!r:.200}') from error
    return [(_located(path, name), shard)
            for name, shard in zip(names, shards, strict=True)]


def _located(path: str, name: str) -> str:
    """Return the path of an archive that an index lists by a name.

    Raises: ValueError if an index on a server lists a file that may lie on
        this computer.
    """
    if not is_url(name):
        return path.beside(name) if isinstance(path, RemotePath) else (
            os.path.join(os.path.dirname(path), name))
    if isinstance(path, RemotePath) and ('::' in name or protocol_of(
            name) not in {protocol_of(path), *SERVERS}):
        raise ValueError(
            f'{str(path)!r} lists {shown(name)!r}: an index on a server may '
            f'list archives beside it, or on servers, by URLs that begin with '
            f'one of {sorted(SERVERS)}: copy the index, and load the copy')
    # Credentials are only for the server of the index.
    return as_path(name, None)


def check_shards(dataset: ShardDataset,
                 stated: Sequence[Mapping[str, Any]]) -> None:
    """Raise ValueError if an archive has another size, or another number of
    samples, than an index of wids states; what it does not state may be
    any."""
    files: Sequence[Any] = next(iter(dataset.readers.values())).files
    counts = numpy.diff(dataset.table.bounds).tolist()
    for file, count, shard in zip(files, counts, stated, strict=True):
        for key, what, found in (('filesize', 'bytes', file.size),
                                 ('nsamples', 'samples', count)):
            if shard.get(key) not in (None, found):
                raise ValueError(
                    f'{file.path} must have {shard[key]!r} {what} by the '
                    f'index of wids, and has {found}: it is not the archive '
                    f'that was indexed; make the index again with '
                    f'widsindex, or load the archive by its own path')
