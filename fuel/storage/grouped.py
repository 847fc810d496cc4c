"""Readers of rows in groups, which other libraries decode as a whole.

Groups are the row groups of Parquet, the chunks of Zarr and the record batches
of Arrow.
"""
from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.exceptions import DamagedFileError
from fuel.kernels.batches import Part
from fuel.storage.chunk_cache import ChunkCache, Decoded, cache_of
from fuel.storage.chunks import ChunkReader, Piece
from fuel.storage.file_bytes import JoinedFile, Versioned
from fuel.storage.mapped import (
    ArrayReader, IndexArray, copies_as_bytes, parts_of_lengths)
from fuel.storage.reader import (
    PartsReader, Reader, StoredPieces, own_objects, part_numbers)
from fuel.utils.forks import Step, each_at_fork

#: Returns the rows of a group, by its number.
ReadGroup: TypeAlias = Callable[[int], NDArray[Any]]


class NoFile:
    """Placeholder for a file, for data that are in memory: the state of such
    data is unknown."""

    is_remote = False
    _numbers = itertools.count()

    def __init__(self, path: str) -> None:
        self.path = path
        self.identity: tuple[int, ...] = next(self._numbers),

    def check(self) -> None:
        """Do nothing: changing data in memory changes the examples."""

    def is_current(self) -> bool:
        """Return True."""
        return True


class Groups(NamedTuple):
    """The groups of a source.

    `path`, `name`, `shape`, `dtype`: see :class:`Reader`.
    `lengths`: number of rows of each group.
    `read`: decodes a group from the file in the state in which it was opened.
        The array may be read-only, and may be a view. Several threads call
        this function.
    `file`: the file that is checked for changes.
    `file_of_group`: for each group, the number of its file in the joined
        `file`; None if `file` is a single file.
    `column`: the identity of the source in the file.
    `check`: raises an error if the file of a group has changed; None if this
        is only checked when a group is decoded.
    """

    path: str
    name: str
    shape: tuple[int, ...]
    dtype: numpy.dtype[Any]
    lengths: Sequence[int]
    read: ReadGroup
    file: Versioned
    file_of_group: Sequence[int] | None
    column: Hashable
    check: Callable[[int], None] | None = None

    @property
    def files(self) -> Sequence[Versioned]:
        """The files; () for data in memory (sequence of Versioned)."""
        return (() if isinstance(self.file, NoFile) else self.file.files
                if isinstance(self.file, JoinedFile) else (self.file,))

    def lengths_of_files(self) -> list[int] | None:
        """Return the number of rows of each file; None if there are no
        files."""
        if not self.files:
            return None
        lengths = [0] * len(self.files)
        for group, length in enumerate(self.lengths):
            lengths[self.file_of_group[group] if self.file_of_group else 0
                    ] += length
        return lengths

    @property
    def key(self) -> Hashable:
        """The key under which groups are cached."""
        return self.file.identity, self.column

    def decode(self, group: int) -> NDArray[Any]:
        """Return the rows of a group; raise DamagedFileError if they have
        another shape than expected."""
        rows = self.read(group)
        expected = self.lengths[group], *self.shape[1:]
        if rows.shape != expected:
            raise DamagedFileError(
                f'{self.path}, source {self.name!r}: group {group} has the '
                f'shape {rows.shape} in the place of {expected}; the file is '
                'damaged: restore it from its origin')
        return rows.astype(self.dtype, copy=False)


def open_groups(groups: Groups, budget: int | None) -> Reader:
    """Return a reader of the rows of groups.

    `budget`: bytes of decoded groups, for all sources of these files together;
        None for the budget that all files share.
    """
    if not groups.lengths:
        return ArrayReader(groups.path, groups.name, numpy.empty(
            groups.shape, groups.dtype), groups.files)
    if len(groups.lengths) == 1:
        return WholeReader(groups)
    cache = cache_of(groups.file.identity, budget)
    if copies_as_bytes(groups.dtype, groups.shape[1:]):
        return GroupReader(groups, cache)
    objects = ObjectGroups(groups, cache)
    return PartsReader(groups.path, groups.name, groups.shape[1:],
                       groups.dtype, objects, objects.bounds, groups.files)


class WholeReader(Reader):
    """Reader of the rows of a single group.

    The group is decoded at the first read, and stays in memory.
    """

    def __init__(self, groups: Groups) -> None:
        super().__init__(groups.path, groups.name, groups.shape, groups.dtype)
        self.files = groups.files
        self._groups = groups
        self._decoded: ArrayReader | None = None
        self.unlock()
        _whole_readers.add(self)

    def unlock(self) -> None:
        """Make a new lock, for a forked child."""
        self._lock = threading.Lock()

    def _rows(self) -> ArrayReader:
        with self._lock:
            if self._decoded is None:
                self._decoded = ArrayReader(
                    self.path, self.name, self._groups.decode(0), self.files,
                    self._groups.lengths_of_files())
            return self._decoded

    def direct(self) -> Part | None:
        """See :meth:`Reader.direct`."""
        return self._rows().direct()

    def pieces(self, rows: IndexArray) -> StoredPieces:
        """See :meth:`Reader.pieces`."""
        return StoredPieces(numpy.zeros(len(rows), numpy.intp), True, True,
                            self.row_nbytes)

    def _read_list(self, rows: IndexArray) -> NDArray[Any]:
        batch: NDArray[Any] = self._rows().read(rows)
        if self._groups.check is not None:
            self._groups.check(0)
        return batch


_whole_readers = each_at_fork(Step.OWNERSHIP, in_child=WholeReader.unlock)


class DecodedGroups:
    """The decoded groups of one source.

    `nbytes`: shape (groups,), dtype int64; number of bytes of each decoded
        group. For objects, without the data to which they refer.
    `store`: the cached groups.
    """

    def __init__(self, groups: Groups, cache: ChunkCache,
                 nbytes: NDArray[numpy.int64]) -> None:
        self._groups = groups
        self.store = cache.store(groups.key, nbytes, has_buffers=False)
        # The group that was read last, in case nothing can be cached.
        self._newest: tuple[int, Decoded] | None = None

    def get(self, group: int) -> Decoded:
        """Return the rows of a group."""
        newest = self._newest
        if newest is None or newest[0] != group:
            newest = self._newest = group, self.store.get(group, self.decode)
        return newest[1]

    def get_recent(self, group: int) -> Decoded:
        """Return the rows of a group, which is then the last one to be
        evicted."""
        if self._newest is None or self._newest[0] != group:
            # The clock is advanced only at the first read of a group. The
            # newest group is held in any case, but groups that were decoded
            # ahead are protected from eviction only by their time.
            self.store.slots.last_used[group] = self.store.cache.clock.tick()
        return self.get(group)

    def decode(self, numbers: Sequence[int], outs: list[Any]) -> None:
        """Put the decoded arrays of groups into a list.

        The arrays are copied only if necessary: copies of all of them would
        increase the time by half.
        """
        for place, group in enumerate(numbers):
            rows = self._groups.decode(group)
            # Another library's memory may be a mapped file, which can be cut.
            outs[place] = (numpy.array(rows, order='C')
                           if isinstance(self._groups.file, NoFile)
                           else numpy.ascontiguousarray(rows))


class GroupReader(ChunkReader):
    """Reader of rows of groups of plain values; each group is a chunk."""

    def __init__(self, groups: Groups, cache: ChunkCache) -> None:
        parts = parts_of_lengths(
            groups.shape[1:], groups.dtype, groups.lengths,
            groups.file_of_group, max(1, len(groups.files)))
        self._decoded = DecodedGroups(groups, cache, parts.nbytes)
        super().__init__(groups.file, groups.name, parts, self._decoded.store)
        self.path, self.files = groups.path, groups.files
        # If the file is remote, the function that decodes a group also fetches
        # the group.
        self._remote = None

    def decode(self, chunks: Sequence[int], outs: list[Any]) -> None:
        """See :meth:`ChunkReader.decode`."""
        self._decoded.decode(chunks, outs)

    def _fetch(self, chunk: int, pieces: list[Piece],
               batch: NDArray[Any]) -> None:
        """Decode a group that a batch lacks and copy its rows."""
        self._rows.copy_chunk(
            chunk, self._decoded.get(chunk), pieces, batch)


class ObjectGroups:
    """Rows of groups of objects, such as text; decoded groups are cached."""

    def __init__(self, groups: Groups, cache: ChunkCache) -> None:
        self._groups = groups
        self.bounds = numpy.cumsum([0, *groups.lengths], dtype=numpy.intp)
        self._row_nbytes = math.prod(groups.shape[1:]) * groups.dtype.itemsize
        self._decoded = DecodedGroups(
            groups, cache, numpy.diff(self.bounds) * self._row_nbytes)

    def pieces(self, rows: IndexArray) -> StoredPieces:
        """See :meth:`Reader.pieces`."""
        return StoredPieces(part_numbers(self.bounds, rows), True, True,
                            self._row_nbytes)

    def read(self, part: int, rows: IndexArray) -> NDArray[Any]:
        """Return copies of rows of a group."""
        found = self._decoded.get_recent(part)[rows]
        if self._groups.check is not None:
            self._groups.check(part)
        return own_objects(found)
