"""Decoded groups of objects, such as text, within the budget of a file."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.storage.chunk_cache import ChunkCache, PieceStore

# About the bytes of an object in an array, beside its data.
OBJECT_BYTES = 64


class ObjectStore(PieceStore):
    """The decoded groups of one source of objects.

    `num_groups`: how many there are.
    """

    def __init__(self, cache: ChunkCache, num_groups: int) -> None:
        self.cache = cache
        self.last_used = numpy.zeros(num_groups, numpy.int64)
        self._groups: dict[int, tuple[NDArray[Any], int]] = {}
        self.abandon()

    @property
    def used_bytes(self) -> int:
        """About how many bytes the groups take that are remembered (int)."""
        return sum(size for _, size in list(self._groups.values()))

    def held(self) -> NDArray[numpy.intp]:
        """See :meth:`PieceStore.held`."""
        return numpy.array(list(self._groups), numpy.intp)

    def forget(self, group: int) -> int:
        """See :meth:`PieceStore.forget`."""
        return self._groups.pop(group, (None, 0))[1]

    def abandon(self) -> None:
        """See :meth:`PieceStore.abandon`."""
        self._decoding: dict[int, threading.Lock] = {}

    def get(self, group: int,
            decode: Callable[[int], NDArray[Any]]) -> NDArray[Any]:
        """Return a group; have it decoded if no thread does already."""
        with self.cache.lock:
            self.last_used[group] = self.cache.clock.tick()
            found = self._groups.get(group)
            if found is not None:
                return found[0]
            lock = self._decoding.setdefault(group, threading.Lock())
        with lock:
            found = self._groups.get(group)
            if found is not None:
                return found[0]
            try:
                rows = decode(group)
                size = _nbytes(rows)
                with self.cache.lock:
                    if self.cache.make_room(size):
                        self._groups[group] = rows, size
            finally:
                self._decoding.pop(group, None)
            return rows


def _nbytes(rows: NDArray[Any]) -> int:
    """Return about how many bytes decoded rows of objects take."""
    return rows.nbytes + sum(
        OBJECT_BYTES + (element.nbytes if isinstance(element, numpy.ndarray)
                        else len(element) if hasattr(element, '__len__')
                        else 0)
        for element in rows.reshape(-1).tolist())
