"""The index of MDS shards, version 2: which files there are, and what must be
in them."""
from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from fuel.datasets.splits import must_name_splits, refuse_unknown_splits
from fuel.exceptions import DamagedFileError
from fuel.remote.location import FixedPath, LocalPath
from fuel.remote.urls import file_name
from fuel.storage.decoded import DECOMPRESS, refuse_compression
from fuel.storage.file_bytes import Ends, raw_file_at

INDEX = 'index.json'
# A folder with more entries does not consist of splits.
MOST_ENTRIES = 1000
# The places of samples in a shard are of the type uint32.
MOST_BYTES = (1 << 32) - 1


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


class Content(NamedTuple):
    """The number of bytes of a file, or of its decoded content, and their
    hashes by names."""

    nbytes: int
    hashes: Mapping[str, str]

    def check_hashes(self, content: Any, where: str) -> None:
        """Raise DamagedFileError if bytes have other hashes; those that cannot
        be computed here are not checked."""
        for name, stated in self.hashes.items():
            make = _hash(name)
            if make is None:
                continue
            found = make(content).hexdigest()
            if found != stated:
                raise DamagedFileError(
                    f'{where}: its {name} is {found}, but the index states '
                    f'{stated!r:.130}: restore the file from its origin')


class ShardFile(NamedTuple):
    """A shard, as the index describes it.

    `path`: path of the file.
    `stored`: the bytes of the file.
    `content`: the same, or what they decode to.
    `compression`: name of the compression of the file; '' for none.
    `samples`: number of samples.
    `columns`: the columns of the samples.
    """

    path: str
    stored: Content
    content: Content
    compression: str
    samples: int
    columns: Columns

    @property
    def is_hashed(self) -> bool:
        """Whether some hashes can be computed here (bool)."""
        return any(map(_hash, (*self.stored.hashes, *self.content.hashes)))

    @property
    def head(self) -> int:
        """Bytes that state the number of the samples and their places."""
        return 4 * (self.samples + 2)

    def ends(self, head: bytes | NDArray[numpy.uint8]) -> Ends:
        """Return the start of each sample, and the end of the last one, from
        the head of the shard.

        Raises: DamagedFileError if samples cannot lie there.
        """
        numbers = numpy.frombuffer(head, '<u4')
        if len(head) < self.head or numbers[0] != self.samples:
            raise DamagedFileError(
                f'{self.path}: it states {numbers[:1].tolist()} samples, but '
                f'the index {self.samples}: it is another file than that of '
                f'the index, or is damaged')
        ends = numbers[1:].astype(numpy.int64)
        sizes, fixed = numpy.diff(ends), self.columns.fixed
        is_bad = (sizes < fixed if self.columns.head else sizes != fixed) | (
            ends[1:] > self.content.nbytes)
        if is_bad.any() or not self.head <= ends[0] <= self.content.nbytes:
            number = int(is_bad.argmax()) if self.samples else 0
            first, last = ends[
                [number, min(number + 1, self.samples)]].tolist()
            raise DamagedFileError(
                f'{self.path}, sample {number}: it cannot lie at the bytes '
                f'{first} to {last} of {self.content.nbytes}, with {fixed} '
                f'bytes at least for its columns: the file is damaged, or '
                f'that of another index; restore it from its origin')
        return ends

    def decoded(self, stored: bytes, checks: bool) -> NDArray[numpy.uint8]:
        """Return the content of the bytes of a compressed file.

        `checks`: whether to check the hashes.

        Raises: DamagedFileError if it is not what the index states.
        """
        if checks:
            self.stored.check_hashes(stored, self.path)
        try:
            content = numpy.frombuffer(DECOMPRESS[self.compression](
                stored, self.content.nbytes), numpy.uint8)
        except (ValueError, EOFError) as error:
            raise DamagedFileError(
                f'{self.path} cannot be decoded: {error}; restore it from its '
                f'origin') from error
        if len(content) != self.content.nbytes:
            raise DamagedFileError(
                f'{self.path}: its content does not have the '
                f'{self.content.nbytes} bytes that the index states')
        if checks:
            self.content.check_hashes(content, f'{self.path}, decoded')
        self.ends(content[:self.head])
        return content


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


def index_path(path: FixedPath, split: str | None) -> FixedPath:
    """Return the path of an index, given that of its folder, or its own.

    Raises: ValueError if a local folder does not have the split, or if one of
        its splits must be named.
    """
    is_folder = (os.path.isdir(path.locate()) if isinstance(path, LocalPath)
                 else not file_name(path).endswith('.json'))
    if split is None and not is_folder:
        return path
    name = INDEX if split is None else f'{split}/{INDEX}'
    if isinstance(path, LocalPath):
        folder, place = (one if is_folder else os.path.dirname(one)
                         for one in (str(path), path.locate()))
        _check_split(repr(folder), indexes_in(place), split)
    return path.joined(name) if is_folder else path.beside(name)


def _check_split(folder: str, indexes: Mapping[str, str],
                 split: str | None) -> None:
    """Raise ValueError if a folder does not have a split, or if one of its
    splits must be named."""
    known = [name for name in indexes if name]
    if split is not None:
        refuse_unknown_splits([split], known, folder)
    if split is None and known and '' not in indexes:
        raise must_name_splits(folder, known, 'split={}')


def indexes_in(folder: str) -> dict[str, str]:
    """Return a dict from splits to the indexes in their folders; '' is the
    folder itself. A folder with many entries has no splits."""
    with os.scandir(folder) as entries:
        first = list(itertools.islice(entries, MOST_ENTRIES))
    names = sorted(one.name for one in first if not one.is_file(
        follow_symlinks=False)) if len(first) < MOST_ENTRIES else []
    found = {name: os.path.join(folder, name, INDEX) for name in ('', *names)}
    return {name: path for name, path in found.items()
            if os.path.isfile(path)}


def read_index(path: FixedPath) -> list[ShardFile]:
    """Return the shards of an index.

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
    for number, facts in enumerate(_get(index, 'shards', list, str(path))):
        where = f'{path}, shard {number}'
        shards.append(_shard(facts, path, where))
        first, last = shards[0].columns, shards[-1].columns
        if first != last:
            raise ValueError(f'{where} has other columns than shard 0: '
                             f'{last}, and {first}')
    return shards


def _get(facts: Any, name: str, kind: type, where: str) -> Any:
    """Return a value of an object of JSON; refuse one of another type."""
    value: Any = facts.get(name) if isinstance(facts, dict) else None
    is_of_kind = type(value) is kind
    if not is_of_kind or (kind is int and value < 0):
        raise ValueError(
            f'{where}: {name!r} must be a {kind.__name__}'
            f'{" of at least 0" * (kind is int)}, got {value!s:.80}')
    return value


def _shard(facts: Any, path: FixedPath, where: str) -> ShardFile:
    if _get(facts, 'format', str, where) != 'mds' or facts.get(
            'version') != 2:
        raise ValueError(
            f'{where}: only the format mds, version 2, is read, got '
            f'{facts["format"]!r}, version {facts.get("version")!r}')
    raw = _get(facts, 'raw_data', dict, where)
    place, stored, compression = _place(raw, path, where), raw, ''
    # Of a local shard, the file may be there that is not compressed.
    if facts.get('zip_data') is not None and not (
            isinstance(place, LocalPath) and os.path.isfile(place.locate())):
        stored = _get(facts, 'zip_data', dict, where)
        place = _place(stored, path, where)
        compression = str(facts.get('compression')).partition(':')[0]
        refuse_compression(compression, where)
    shard = ShardFile(
        place, _content(stored, where), _content(raw, where), compression,
        _get(facts, 'samples', int, where), _columns(facts, where))
    if shard.content.nbytes > MOST_BYTES:
        raise ValueError(f'{where}: a shard has at most {MOST_BYTES} bytes, '
                         f'and "raw_data" states {shard.content.nbytes}')
    if shard.head > shard.content.nbytes:
        raise ValueError(f'{where}: {shard.samples} samples do not fit into '
                         f'{shard.content.nbytes} bytes')
    return shard


def _content(facts: Any, where: str) -> Content:
    return Content(_get(facts, 'bytes', int, where),
                   _get(facts, 'hashes', dict, where))


def _place(facts: Any, path: FixedPath, where: str) -> FixedPath:
    """Return the path of a file of a shard, which must be in the folder of the
    index."""
    name = _get(facts, 'basename', str, where)
    parts = name.replace('\\', '/').split('/')
    if not name or '..' in parts or not parts[0] or ':' in parts[0] or (
            '\0' in name):
        raise ValueError(f'{where}: a file must be in the folder of the '
                         f'index, or in a folder there, got {name!r}')
    return path.beside(name)


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
