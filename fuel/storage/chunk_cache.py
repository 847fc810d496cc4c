"""Cache of decoded chunks, within a budget of bytes.

Files that are opened without `cache_bytes` share one `ChunkCache` in this
process. A file that is opened with this argument has its own cache. Files that
are opened together with it share one. All readers of the same chunks share a
`ChunkStore`. Caches and stores exist as long as a reader uses them.
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
#: Function that decodes chunks, given their numbers, into a list of arrays. An
#: item of the list that is None is replaced by a new array.
Decode: TypeAlias = Callable[[Sequence[int], list[Any]], None]

# Approximate bytes of an object in an array, in addition to its data.
OBJECT_BYTES = 64
TEXTS = frozenset((str, bytes))
# The key of the cache of all files that were opened without a budget.
_OF_ALL = 'all'
_caches: Registry[Hashable, ChunkCache] = Registry()


def cache_of(identity: Hashable, budget: int | None) -> ChunkCache:
    """Return the cache of one or several files; the first call makes it.

    `identity`: identity of the files.
    `budget`: bytes of the cache. None for the cache that all files without a
        budget share.
    """
    key = _OF_ALL if budget is None else identity
    most = default_budget() if budget is None else budget
    with _caches.lock:
        cache = _caches.get(key, ChunkCache, most)
        # The budget of the shared cache follows the current setting.
        cache.budget = most if budget is None else max(cache.budget, most)
        return cache


def default_budget() -> int:
    """Return the budget, in bytes, of the cache that all files without a
    budget share."""
    wanted: int | None = config.chunk_cache_bytes
    if wanted is None:
        return min(2 << 30, usable_memory() // 4)
    return wanted


class ChunkCache:
    """Cache of one file, of files opened together, or of all other files.

    `budget`: the largest number of bytes of decoded chunks.
    """

    # Finding chunks to evict takes time, so more bytes are freed at once than
    # are needed: 1 / SHARE of the budget, or four times the needed bytes if
    # this is more, but of these at most 1 / LARGEST_SHARE of the budget.
    SHARE = 32
    LARGEST_SHARE = 8

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.clock = Clock()
        self._stores: Registry[Hashable, ChunkStore] = Registry()
        self.lock = threading.RLock()
        _all.add(self)

    def start_in_child(self) -> None:
        """Reset the locks in a forked child, which lacks the threads that were
        decoding."""
        self.lock = threading.RLock()
        for store in self.stores():
            store.abandon()

    @property
    def used(self) -> int:
        """Number of bytes of the decoded chunks in the cache."""
        return sum(store.used_bytes for store in self.stores())

    def stores(self) -> list[ChunkStore]:
        """Return the stores that are in use."""
        return self._stores.members()

    def store(self, name: Hashable, nbytes: NDArray[numpy.int64],
              has_buffers: bool = True) -> ChunkStore:
        """Return the store of the chunks of one source; the first call makes
        the store."""
        return self._stores.get(
            name, lambda: ChunkStore(self, nbytes, has_buffers))

    def make_room(self, nbytes: int) -> bool:
        """Evict the least recently used chunks until `nbytes` bytes are free.

        The caller must hold the lock.

        Returns: False if this is not possible.
        """
        if nbytes > self.budget:
            return False
        excess = self.used + nbytes - self.budget
        if excess > 0:
            filling = sum([store.filling_bytes for store in self.stores()])
            if filling + nbytes > self.budget:
                # Chunks that are being decoded cannot be evicted.
                return False
            self._forget(max(excess, self.budget // self.SHARE, min(
                4 * nbytes, self.budget // self.LARGEST_SHARE)))
        return True

    def _forget(self, nbytes: int) -> None:
        """Evict the least recently used chunks, at least `nbytes` bytes."""
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
    """Store of the decoded chunks, or groups of rows, of one source.

    `nbytes`: shape (chunks,), dtype int64; number of bytes of each decoded
        chunk. For chunks of objects, without the data to which the objects
        refer.
    `has_buffers`: whether chunks are decoded into buffers of the store;
        otherwise the decoding function makes the arrays.
    `slots`: for each chunk, its array if it is cached, and the time of its
        last use.
    `num_decoded`: number of chunks that were decoded.
    """

    def __init__(self, cache: ChunkCache, nbytes: NDArray[numpy.int64],
                 has_buffers: bool = True) -> None:
        self.cache = cache
        self.nbytes = nbytes
        self.slots = Slots(nbytes)
        self.num_decoded = 0
        # The last chunk may be shorter.
        self._have_one_size = not has_buffers or nbytes.size < 3 or bool(
            nbytes[:-1].min() == nbytes[:-1].max())
        self._buffers = Buffers() if has_buffers else None
        # Locks of the chunks that are being decoded.
        self._decoding: dict[int, threading.Lock] = {}
        # Bytes of the chunks that are being decoded into their buffers.
        self._filling: dict[int, int] = {}
        # Approximate bytes to which the objects of cached chunks refer.
        self._referred: dict[int, int] = {}

    @property
    def used_bytes(self) -> int:
        """Number of bytes of the chunks that are cached or being decoded
        (int)."""
        return self.slots.held_nbytes + self.filling_bytes + sum(
            list(self._referred.values()))

    @property
    def filling_bytes(self) -> int:
        """Number of bytes of the chunks that are being decoded (int)."""
        return sum(list(self._filling.values()))

    def get(self, chunk: int, decode: Decode) -> Decoded:
        """Return a chunk; decode it if it is not cached.

        If another thread is decoding the chunk, wait for this thread.
        """
        with self.cache.lock:
            remembered = self.slots[chunk]
            if remembered is not None:
                return remembered
            lock = self._decoding.setdefault(chunk, threading.Lock())
        # The lock is released however this ends, even by Ctrl-C.
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
        """Decode and cache chunks together, if the budget has space for them.

        Chunks that are cached, or that another thread is decoding, are left
        out.
        """
        lock = threading.Lock()
        with lock:
            with self.cache.lock:
                # Several requests may need the same chunk.
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
        """Decode chunks and cache them.

        Returns: the last chunk. None if the budget does not have space for all
            of them; then none is decoded.
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
            # Only if decoding failed.
            if buffers:
                with self.cache.lock:
                    self._give_back(buffers.values())

    def _give_back(self, buffers: Iterable[Decoded]) -> None:
        """Return buffers to the store's pool, if it has one.

        The caller must hold the lock.
        """
        if self._buffers is not None:
            for buffer in buffers:
                self._buffers.give_back(buffer)

    def _buffer_nbytes(self, chunk: int) -> int:
        """Return the size of the buffer for a chunk."""
        nbytes = self.slots.nbytes(chunk)
        return nbytes if self._have_one_size else buffer_nbytes(nbytes)

    def forget(self, chunk: int) -> int:
        """Evict a chunk; return its number of bytes.

        A thread that is copying a batch keeps the chunk alive.
        """
        forgotten = self.slots[chunk]
        if forgotten is None:
            return 0
        self._give_back([forgotten])
        self.slots[chunk] = None
        return forgotten.nbytes + self._referred.pop(chunk, 0)

    def abandon(self) -> None:
        """Drop the records of chunks that are being decoded, in a forked child
        without the decoding threads."""
        self._decoding.clear()
        self._filling.clear()


#: The chunks that a request needs. For each store: counts and sizes of all its
#: chunks, the numbers of the needed chunks, and the bytes that were counted
#: for these.
NeededChunks: TypeAlias = list[tuple[
    Counter[int], NDArray[numpy.int64], list[int], int]]


class Ahead:
    """Counts of the chunks that the prefetched requests of an epoch need.

    The bytes of a chunk count once, from the first request that needs it to
    the last one.
    """

    def __init__(self) -> None:
        # For each store: how many prefetched requests need each chunk.
        self._counts: weakref.WeakKeyDictionary[
            ChunkStore, Counter[int]] = weakref.WeakKeyDictionary()
        self._requests: deque[NeededChunks] = deque([[]])

    def need(self, store: ChunkStore, chunks: list[int],
             budget: int) -> int | None:
        """Count the chunks of a store that the newest request needs.

        Returns: number of bytes of those chunks that no other prefetched
            request needs. None if this is more than `budget`; then nothing is
            counted.
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
        """End a group of requests that need the counted chunks together.

        The chunks are counted until the last request of the group is released.
        """
        newest = self._requests.pop()
        self._requests.extend([] for _ in range(num_requests - 1))
        self._requests.extend([newest, []])

    def undo(self) -> None:
        """Drop the needs of the newest request."""
        self._forget(self._requests.pop())
        self._requests.append([])

    def release(self, cost: int) -> int:
        """Drop the oldest request; return the number of bytes that are not
        needed any more.

        `cost`: number of bytes that were counted for this request.
        """
        return cost + self._forget(self._requests.popleft())

    def _forget(self, request: NeededChunks) -> int:
        """Drop a request; return the bytes that only this request needed,
        minus the bytes that were counted for it."""
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
    """Return the approximate number of bytes of the objects in an array; 0 for
    an array without objects."""
    return 0 if not rows.dtype.hasobject else _nbytes_of(
        rows.reshape(-1).tolist())


def _nbytes_of(objects: Collection[Any]) -> int:
    """Return the approximate number of bytes of objects and their contents."""
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
            # The keys are not counted, since all rows share them.
            nbytes += _nbytes_of(one.values())
        elif hasattr(one, '__len__'):
            nbytes += len(one)
    return nbytes
