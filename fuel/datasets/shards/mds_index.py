"""The index of MDS shards, version 2: which files there are, and their
columns."""
from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from fuel.datasets.splits import must_name_splits, no_split
from fuel.remote.location import LocalPath, RemotePath, located
from fuel.remote.urls import file_name
from fuel.storage.decoded import refuse_compression
from fuel.storage.file_bytes import raw_file_at

INDEX = 'index.json'
# A folder with more entries does not consist of splits.
MOST_ENTRIES = 1000


class Columns(NamedTuple):
    """The columns of samples.

    `sizes`: number of bytes of the values of each column; None if it varies.
    """

    names: tuple[str, ...]
    encodings: tuple[str, ...]
    sizes: tuple[int | None, ...]

    @property
    def head(self) -> int:
        """Bytes of the sizes at the beginning of a sample."""
        return 4 * self.sizes.count(None)

    @property
    def fixed(self) -> int:
        """Bytes of the sizes and of the values of fixed size."""
        return self.head + sum(size or 0 for size in self.sizes)


class ShardFile(NamedTuple):
    """A shard: its file, and its content.

    `path`: path of the file.
    `nbytes`, `hashes`: number of bytes of the file, and their hashes by names.
    `content_nbytes`, `content_hashes`: the same of the content.
    `compression`: name of the compression of the file; '' for none.
    `samples`: number of samples.
    """

    path: str
    nbytes: int
    hashes: Mapping[str, str]
    content_nbytes: int
    content_hashes: Mapping[str, str]
    compression: str
    samples: int


def index_path(path: str, split: str | None) -> str:
    """Return the path of an index, given that of its folder, or its own.

    Raises: ValueError or FileNotFoundError if there is no index.
    """
    if isinstance(path, RemotePath):
        is_index = file_name(path).endswith('.json')
        name = INDEX if split is None else f'{split}/{INDEX}'
        if not is_index:
            return path.joined(name)
        return path if split is None else path.beside(name)
    place = located(path)
    if not os.path.isdir(place):
        if split is None:
            return path
        path, place = os.path.dirname(path), os.path.dirname(place)
    known = splits_in(place)
    if split is not None and split not in known:
        raise no_split(split, known, repr(str(path)))
    if split is None and known and not os.path.exists(
            os.path.join(place, INDEX)):
        raise must_name_splits(repr(str(path)), known, 'split={}')
    return _below(path, place, os.path.join(split or '', INDEX))


def splits_in(folder: str) -> list[str]:
    """Return the names of the folders in a folder that have an index; [] if
    there are too many files for a folder of splits."""
    with os.scandir(folder) as entries:
        found = list(itertools.islice(entries, MOST_ENTRIES))
    if len(found) == MOST_ENTRIES:
        return []
    return sorted(one.name for one in found if (
        one.is_symlink() or one.is_dir()) and os.path.isfile(
            os.path.join(one.path, INDEX)))


def _below(path: str, place: str, name: str) -> LocalPath:
    """Return the path of a file in a folder.

    `path`, `place`: the folder as it was given, and its absolute path.
    """
    return LocalPath(os.path.join(path, name),
                     os.path.abspath(os.path.join(place, name)))


def read_index(path: str) -> tuple[list[ShardFile], Columns | None]:
    """Return the shards of an index, and their columns; None if there are no
    shards.

    Raises: ValueError if it is not an index of MDS, or if its shards are not
        read here, or do not have the same columns.
    """
    file = raw_file_at(path)
    try:
        index = json.loads(file.read(0, file.size))
    except (ValueError, RecursionError) as error:
        raise ValueError(f'{path}: it is not JSON: {error}') from error
    if isinstance(index, dict) and 'chunks' in index:
        raise ValueError(f'{path} is an index of LitData, which is not read')
    if not isinstance(index, dict) or index.get('version') != 2:
        raise ValueError(f'{path}: an index of MDS states "version": 2 and '
                         f'"shards", got {index!s:.80}')
    shards: list[ShardFile] = []
    columns: Columns | None = None
    for number, facts in enumerate(_get(index, 'shards', list, str(path))):
        where = f'{path}, shard {number}'
        shards.append(_shard(facts, path, where))
        found = _columns(facts, where)
        columns = found if columns is None else columns
        if found != columns:
            raise ValueError(f'{where} has other columns than shard 0: '
                             f'{found}, and {columns}')
    return shards, columns


def _get(facts: Any, name: str, kind: type, where: str) -> Any:
    """Return a value of an object of JSON; refuse one of another type."""
    value: Any = facts.get(name) if isinstance(facts, dict) else None
    is_of_kind = type(value) is kind
    if not is_of_kind or (kind is int and value < 0):
        raise ValueError(
            f'{where}: {name!r} must be a {kind.__name__}'
            f'{" of at least 0" * (kind is int)}, got {value!s:.80}')
    return value


def _shard(facts: Any, path: str, where: str) -> ShardFile:
    if _get(facts, 'format', str, where) != 'mds' or facts.get(
            'version') != 2:
        raise ValueError(
            f'{where}: only the format mds, version 2, is read, got '
            f'{facts["format"]!r}, version {facts.get("version")!r}')
    content = _get(facts, 'raw_data', dict, where)
    packed = facts.get('zip_data')
    place = _place(content, path, where)
    compression = ''
    if packed is not None and (
            isinstance(place, RemotePath) or not os.path.isfile(
                located(place))):
        place = _place(packed, path, where)
        compression = str(facts.get('compression')).partition(':')[0]
        refuse_compression(compression, where)
    stored = packed if compression else content
    samples, nbytes = _get(facts, 'samples', int, where), _get(
        content, 'bytes', int, where)
    if 4 * (samples + 2) > nbytes:
        raise ValueError(f'{where}: {samples} samples do not fit into '
                         f'{nbytes} bytes')
    return ShardFile(
        place, _get(stored, 'bytes', int, where),
        _get(stored, 'hashes', dict, where), nbytes,
        _get(content, 'hashes', dict, where), compression, samples)


def _place(facts: Any, path: str, where: str) -> str:
    """Return the path of a file of a shard, which must be in the folder of the
    index."""
    name = _get(facts, 'basename', str, where)
    parts = name.replace('\\', '/').split('/')
    if not name or '..' in parts or not parts[0] or ':' in parts[0] or (
            '\0' in name):
        raise ValueError(f'{where}: a file must be in the folder of the '
                         f'index, or in a folder there, got {name!r}')
    if isinstance(path, RemotePath):
        return path.beside(name)
    return _below(os.path.dirname(path), os.path.dirname(located(path)), name)


def _columns(facts: Any, where: str) -> Columns:
    names, encodings, sizes = [
        tuple(_get(facts, f'column_{name}', list, where))
        for name in ('names', 'encodings', 'sizes')]
    if not len(names) == len(encodings) == len(sizes) or not all(
            isinstance(one, str) for one in (*names, *encodings)) or not all(
            size is None or (type(size) is int and size >= 0)
            for size in sizes) or len(set(names)) < len(names):
        raise ValueError(
            f'{where}: there must be one name, encoding and size for each '
            f'column, got {names}, {encodings}, {sizes}')
    return Columns(names, encodings, sizes)


def check_hashes(content: Any, hashes: Mapping[str, str], where: str) -> None:
    """Raise ValueError if bytes do not have the hashes that an index states;
    those that cannot be computed here are not checked."""
    for name, stated in hashes.items():
        found = _hash(name)
        if found is not None:
            hashed = found(content).hexdigest()
            if hashed != stated:
                raise ValueError(
                    f'{where}: its {name} is {hashed}, but the index states '
                    f'{stated!r:.130}')


def _hash(name: str) -> Callable[[Any], Any] | None:
    """Return a function that hashes bytes; None if there is none."""
    # Those called shake have no length of their own.
    if name in hashlib.algorithms_available and not name.startswith('shake'):
        return lambda content: hashlib.new(
            name, content, usedforsecurity=False)
    if not name.startswith('xxh'):
        return None
    try:
        found: Callable[[Any], Any] | None = getattr(
            import_module('xxhash'), name, None)
    except ImportError:
        return None
    return found


def are_hashed(shards: Sequence[ShardFile]) -> bool:
    """Return whether the index states hashes that can be checked."""
    return any(_hash(name) is not None for shard in shards
               for name in (*shard.hashes, *shard.content_hashes))
