"""Decoded chunks, remembered within a budget of bytes.

Files that are given no `cache_bytes` share one `ChunkCache` in this process. A
file that is given them has its own; files that are opened together have one
for all. All readers of the same chunks share a `ChunkStore`. Both live as long
as a reader.
"""
from __future__ import annotations

import threading
import weakref
from collections import Counter, deque
from collections.abc import (
    Callable, Collection, Hashable, Iterable, Sequence)
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.config_parser import config
from fuel.kernels.chunk_slots import Clock, Slots
from fuel.storage.buffers import Buffers, buffer_nbytes
from fuel.utils.forks import Step, each_at_fork
from fuel.utils.io_counts import io_counts
from fuel.utils.memory_limit import usable_memory
from fuel.utils.registry import Registry

Decoded: TypeAlias = NDArray[Any]
#: Decodes chunks, whose numbers it is given, into the arrays of a list; where
#: there is None, it puts an array of its own.
Decode: TypeAlias = Callable[[Sequence[int], list[Any]], None]

# About the bytes of an object in an array, beside its data.
OBJECT_BYTES = 64
TEXTS = frozenset((str, bytes))
# The key of the cache of the files that were given no budget.
_OF_ALL = 'all'
_caches: Registry[Hashable, ChunkCache] = Registry()


def cache_of(identity: Hashable, budget: int | None) -> ChunkCache:
    """Return the cache of a file or of several, made when it is first asked
    for.

    `budget`: None for the one that all files share which are given none.
    """
    key = _OF_ALL if budget is None else identity
    most = default_budget() if budget is None else budget
    with _caches.lock:
        cache = _caches.get(key, ChunkCache, most)
        # Of all files together, that is what the setting is now.
        cache.budget = most if budget is None else max(cache.budget, most)
        return cache


def default_budget() -> int:
    """Return the budget of all files together that were given none."""
    wanted: int | None = config.chunk_cache_bytes
    if wanted is None:
        return min(2 << 30, usable_memory() // 4)
    return wanted


class ChunkCache:
    """The budget of one file, or of all that were given none.

    `used`: bytes that are remembered now.
    """

    # Looking for what to forget takes time, so a share of the budget is freed
    # at once; of a small one a larger share, for four times what is needed.
    SHARE = 32
    LARGEST_SHARE = 8

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.clock = Clock()
        self._stores: Registry[Hashable, ChunkStore] = Registry()
        self.lock = threading.RLock()
        _all.add(self)

    def start_in_child(self) -> None:
        """Start anew after a fork, without the threads that decoded."""
        self.lock = threading.RLock()
        for store in self.stores():
            store.abandon()

    @property
    def used(self) -> int:
        """Bytes of decoded chunks that are held."""
        return sum(store.used_bytes for store in self.stores())

    def stores(self) -> list[ChunkStore]:
        """Return the stores that are in use."""
        return self._stores.members()

    def store(self, name: Hashable, nbytes: NDArray[numpy.int64],
              has_buffers: bool = True) -> ChunkStore:
        """Return the chunks of one source, as a :class:`ChunkStore`."""
        return self._stores.get(
            name, lambda: ChunkStore(self, nbytes, has_buffers))

    def make_room(self, nbytes: int) -> bool:
        """Remove the least recently used chunks. Needs the lock."""
        if nbytes > self.budget:
            return False
        excess = self.used + nbytes - self.budget
        if excess > 0:
            filling = sum([store.filling_bytes for store in self.stores()])
            if filling + nbytes > self.budget:
                # Chunks that are being decoded cannot be forgotten.
                return False
            self._forget(max(excess, self.budget // self.SHARE, min(
                4 * nbytes, self.budget // self.LARGEST_SHARE)))
        return True

    def _forget(self, nbytes: int) -> None:
        """Forget the least recently used chunks of at least `nbytes` bytes."""
        stores = [store for store in self.stores() if store.used_bytes]
        chunks = [store.slots.held() for store in stores]
        times = numpy.concatenate([
            store.slots.last_used[mine] for store, mine in zip(
                stores, chunks, strict=True)])
        owners = numpy.repeat(numpy.arange(len(stores)),
                              [len(mine) for mine in chunks])
        numbers = numpy.concatenate(chunks)
        for place in numpy.argsort(times, kind='stable'):
            if nbytes <= 0:
                return
            nbytes -= stores[owners[place]].forget(int(numbers[place]))


_all = each_at_fork(Step.OWNERSHIP, in_child=ChunkCache.start_in_child)


class ChunkStore:
    """The decoded chunks of one source, or its groups of rows.

    `nbytes`: shape (chunks,), dtype int64; of each chunk, decoded; of objects
        without what they refer to.
    `has_buffers`: whether chunks are decoded into buffers of the store;
        otherwise whoever decodes one brings its array.
    `slots`: each chunk, if it is remembered, and when it was last needed.
    `num_decoded`: number of decoded chunks.
    """

    def __init__(self, cache: ChunkCache, nbytes: NDArray[numpy.int64],
                 has_buffers: bool = True) -> None:
        self.cache = cache
        self.nbytes = nbytes
        self.slots = Slots(nbytes)
        self.num_decoded = 0
        # The last one may be shorter.
        self._have_one_size = not has_buffers or nbytes.size < 3 or bool(
            nbytes[:-1].min() == nbytes[:-1].max())
        self._buffers = Buffers() if has_buffers else None
        # Of the chunks that are being decoded.
        self._decoding: dict[int, threading.Lock] = {}
        # Bytes of the chunks that are being decoded into their buffers.
        self._filling: dict[int, int] = {}
        # About the bytes that the objects of remembered chunks refer to.
        self._referred: dict[int, int] = {}

    @property
    def used_bytes(self) -> int:
        """Bytes of the chunks that are remembered (int)."""
        return self.slots.held_nbytes + self.filling_bytes + sum(
            list(self._referred.values()))

    @property
    def filling_bytes(self) -> int:
        """Bytes of the chunks that are being decoded (int)."""
        return sum(list(self._filling.values()))

    def get(self, chunk: int, decode: Decode) -> Decoded:
        """Return a chunk; have it decoded if no thread does already."""
        with self.cache.lock:
            remembered = self.slots[chunk]
            if remembered is not None:
                return remembered
            lock = self._decoding.setdefault(chunk, threading.Lock())
        # Released however this ends, by Ctrl-C too.
        with lock:
            decoded = self.slots[chunk]
            if decoded is None:
                decoded = self._decode([chunk], decode)
            if decoded is None:
                outs: list[Any] = [
                    None if self._buffers is None else numpy.empty(
                        self.slots.nbytes(chunk), numpy.uint8)]
                decode([chunk], outs)
                self._count([chunk])
                decoded = outs[0]
            return decoded

    def fill(self, chunks: Sequence[int], decode: Decode) -> None:
        """Decode chunks together that no thread decodes yet, if there is room
        for them."""
        lock = threading.Lock()
        with lock:
            with self.cache.lock:
                # Several requests may have asked for one.
                absent = [
                    chunk for chunk in dict.fromkeys(chunks)
                    if self.slots[chunk] is None
                    and self._decoding.setdefault(chunk, lock) is lock]
            self._decode(absent, decode)

    def _count(self, chunks: Sequence[int]) -> None:
        self.num_decoded += len(chunks)
        io_counts.count(chunks_decoded=len(chunks), bytes_decoded=sum(
            map(self.slots.nbytes, chunks)))

    def _decode(self, chunks: Sequence[int], decode: Decode,
                ) -> Decoded | None:
        """Decode chunks and remember them; return the last one.

        Returns: None if there is no room for all of them: none is decoded.
        """
        sizes = [self._buffer_nbytes(chunk) for chunk in chunks]
        buffers: dict[int, Decoded] = {}
        decoded = None
        try:
            with self.cache.lock:
                if not self.cache.make_room(sum(sizes)):
                    return None
                for chunk, size in zip(chunks, sizes, strict=True):
                    if self._buffers is not None:
                        buffers[chunk] = self._buffers.take(size)
                    self._filling[chunk] = size
            outs: list[Any] = [buffers[chunk][:self.slots.nbytes(chunk)]
                               if buffers else None for chunk in chunks]
            if outs:
                decode(chunks, outs)
            referred = list(map(referred_nbytes, outs))
            with self.cache.lock:
                for chunk, out, more in zip(
                        chunks, outs, referred, strict=True):
                    decoded = buffers.pop(chunk, out)
                    size = self._filling.pop(chunk, 0)
                    if not more or self.cache.make_room(size + more):
                        if more:
                            self._referred[chunk] = more
                        self.slots[chunk] = decoded
                self._count(chunks)
            return decoded
        finally:
            for chunk in chunks:
                self._filling.pop(chunk, None)
                self._decoding.pop(chunk, None)
                if self.slots[chunk] is None:
                    self._referred.pop(chunk, None)
            # Unless all went well.
            if buffers:
                with self.cache.lock:
                    self._give_back(buffers.values())

    def _give_back(self, buffers: Iterable[Decoded]) -> None:
        """Return buffers to the pool, if they are the store's. Needs the
        lock."""
        if self._buffers is not None:
            for buffer in buffers:
                self._buffers.give_back(buffer)

    def _buffer_nbytes(self, chunk: int) -> int:
        """Return the size of the buffer for a chunk."""
        nbytes = self.slots.nbytes(chunk)
        return nbytes if self._have_one_size else buffer_nbytes(nbytes)

    def forget(self, chunk: int) -> int:
        """Forget a chunk and return its number of bytes. A batch that is being
        copied keeps it alive."""
        forgotten = self.slots[chunk]
        if forgotten is None:
            return 0
        self._give_back([forgotten])
        self.slots[chunk] = None
        return forgotten.nbytes + self._referred.pop(chunk, 0)

    def abandon(self) -> None:
        """Forget the decoding of other threads, which a forked child does not
        have."""
        self._decoding.clear()
        self._filling.clear()


#: Of a request, for each store: counts and sizes of its chunks, those that are
#: needed, and how many bytes were counted for them.
NeededChunks: TypeAlias = list[tuple[
    Counter[int], NDArray[numpy.int64], list[int], int]]


class Ahead:
    """The chunks that the requests ahead of an epoch need.

    A chunk counts once, from the first request that needs it to the last.
    """

    def __init__(self) -> None:
        # Of each store: how many requests ahead need a chunk.
        self._counts: weakref.WeakKeyDictionary[
            ChunkStore, Counter[int]] = weakref.WeakKeyDictionary()
        self._requests: deque[NeededChunks] = deque([[]])

    def need(self, store: ChunkStore, chunks: list[int],
             budget: int) -> int | None:
        """Count the chunks that the newest request needs of a store.

        Returns: the bytes of those that no other request ahead needs; None
            if that is more than `budget`, and nothing is counted.
        """
        counts = self._counts.setdefault(store, Counter())
        new = sum([int(store.nbytes[chunk]) for chunk in chunks
                   if chunk not in counts])
        if new > budget:
            return None
        for chunk in chunks:
            counts[chunk] += 1
        self._requests[-1].append((counts, store.nbytes, chunks, new))
        return new

    def end_group(self, num_requests: int) -> None:
        """Keep the counted chunks until the end of several requests."""
        newest = self._requests.pop()
        self._requests.extend([] for _ in range(num_requests - 1))
        self._requests.extend([newest, []])

    def undo(self) -> None:
        """Forget the needs of the newest request."""
        self._forget(self._requests.pop())
        self._requests.append([])

    def release(self, cost: int) -> int:
        """Forget the oldest request, whose cost is given; return the number of
        bytes that are not needed any more."""
        return cost + self._forget(self._requests.popleft())

    def _forget(self, request: NeededChunks) -> int:
        """Forget a request; return the bytes that only it needed, less those
        counted for it."""
        nbytes = 0
        for counts, sizes, chunks, new in request:
            nbytes -= new
            for chunk in chunks:
                counts[chunk] -= 1
                if not counts[chunk]:
                    del counts[chunk]
                    nbytes += int(sizes[chunk])
        return nbytes


def referred_nbytes(rows: NDArray[Any]) -> int:
    """Return about how many bytes the objects in an array take."""
    return 0 if not rows.dtype.hasobject else _nbytes_of(
        rows.reshape(-1).tolist())


def _nbytes_of(objects: Collection[Any]) -> int:
    """Return about how many bytes objects take, with those in them."""
    nbytes = OBJECT_BYTES * len(objects)
    if TEXTS.issuperset(map(type, objects)):
        return nbytes + sum(map(len, objects))
    for one in objects:
        if isinstance(one, numpy.ndarray):
            nbytes += one.nbytes
            nbytes += referred_nbytes(one) if one.dtype.hasobject else 0
        elif isinstance(one, (list, tuple)):
            nbytes += _nbytes_of(one)
        elif isinstance(one, dict):
            # The keys are the same in all rows.
            nbytes += _nbytes_of(one.values())
        elif hasattr(one, '__len__'):
            nbytes += len(one)
    return nbytes
