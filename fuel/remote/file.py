"""Remote files that are read like local files."""
from __future__ import annotations

import asyncio
import contextlib
import functools
import io
import itertools
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import numpy

from fuel.config_parser import config
from fuel.exceptions import DamagedFileError
from fuel.remote.disk_cache import CacheEntry, digest, disk_cache
from fuel.remote.index_bytes import IndexBytes
from fuel.remote.pages import (
    Ends, Fetch, Hold, PageTable, Resident, map_file)
from fuel.remote.stores import Answer, fsspec_for, open_store
from fuel.remote.transfers import (
    RetryingStore, TransferCounts, Transfers, run_on_loop)
from fuel.remote.urls import Secrets, StorageOptions, shown
from fuel.utils.forks import Step, each_at_fork

logger = logging.getLogger(__name__)

# Bytes at the beginning of a file that are read when it is opened: most of
# the index of an HDF5 file, and the header of other files.
HEAD = 64 << 10
# A reader waits so many seconds longer than the timeout of its request.
GRACE = 30.
# For sequential reading: bytes that are prefetched, and bytes of one request.
ORDERED_AHEAD = 16 << 20
PIECE = 1 << 20
# Bytes that may be prefetched if the file is cached on disk.
DISK_AHEAD = 256 << 20


class ByteStream(io.RawIOBase):
    """Stream of the bytes of a remote file.

    HDF5 uses its ``repr`` as the name of the file.

    `owner`: an object that the stream keeps alive.
    """

    def __init__(self, file: RemoteFile | IndexBytes, name: str,
                 owner: object = None) -> None:
        super().__init__()
        self._file = file
        self._owner = owner
        self.name = name
        self._position = 0

    def __repr__(self) -> str:
        return self.name

    def readable(self) -> bool:
        """Return True: the stream can be read."""
        return True

    def seekable(self) -> bool:
        """Return True: the stream can seek."""
        return True

    def tell(self) -> int:
        """Return the position in the file."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position, and return it."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position,
                os.SEEK_END: self._file.size}[whence]
        if base + offset < 0:
            raise ValueError(f'a position must not be negative, got '
                             f'{base + offset}')
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; return the number of bytes."""
        self._file.read_ahead(self._position)
        with memoryview(buffer) as view:
            count = self._file.read_into(view.cast('B'), self._position)
        self._position += count
        return count


class RemoteFile:
    """The bytes of a remote file, cached in memory and on disk.

    Any number of threads may use this object, and so may a forked child.

    `options`: options of the file system.
    `is_kept`: whether the file may be cached on disk.
    `path`: the URL without credentials.
    `size`: number of bytes.
    `identity`: equal for two handles of one file in one state.
    """

    is_remote = True
    path: str
    size: int
    identity: tuple[int, ...]

    def __init__(self, url: str, options: StorageOptions,
                 is_kept: bool = True) -> None:
        self.path = shown(url)
        fsspec_for(url)
        # Seconds that a reader waits for a request. A wait for a lock cannot
        # be longer than TIMEOUT_MAX.
        timeout: float = config.remote_timeout
        self._patience = min(timeout + GRACE, threading.TIMEOUT_MAX)
        # Not a method, which would make a cycle of references: a file that is
        # not in use should be freed at once.
        self._new_origin = functools.partial(
            _origin, url, dict(options), timeout)
        self._origin = self._new_origin()
        first = self._ask(0, HEAD, None)
        self._opened = opened = first._replace(data=b'')
        self.size = opened.size
        # The URL with its credentials, since a user must not find in the cache
        # what only another user may read. A digest does not show the URL.
        key = digest(url, sorted(map(repr, options.items())))
        self.identity = (-1, int(key[:15], 16), self.size,
                         int(digest(opened.validator)[:15], 16))
        table = PageTable(self.size)
        entry = self._open_entry(key, table) if is_kept else None
        self.memory = map_file(
            None if entry is None else entry.descriptor, max(1, self.size))
        self._transfers = Transfers(
            table,
            Resident(self.memory, table.page, config.remote_memory_bytes),
            entry, self._origin, opened, config.remote_connections)
        if entry is not None:
            # Not __del__, which would also run if __init__ fails half-way.
            weakref.finalize(self, entry.close)
        self._transfers.take(0, first.data)
        self._index = IndexBytes(table, self._transfers.resident, entry,
                                  opened, self._transfers.settle,
                                  self._new_origin)
        self._transfers.fetched = self._index.fetched
        weakref.finalize(self, self._index.close)
        _all.add(self)

    def __repr__(self) -> str:
        return self.path

    def __reduce__(self) -> Any:
        raise TypeError('a remote file that is open cannot be pickled')

    def _ask(self, start: int, stop: int, expected: Answer | None) -> Answer:
        """Make one request for a range, and wait for the answer."""
        future = run_on_loop(self._origin.fetch(start, stop, expected))
        try:
            answer: Answer = future.result(self._patience)
        except BaseException:
            future.cancel()
            raise
        return answer

    def _open_entry(self, key: str, table: PageTable) -> CacheEntry | None:
        cache = disk_cache()
        if cache is None or not self._opened.validator or not self.size:
            # Without a validator, an old copy cannot be recognised.
            return None
        return cache.open(key, self.size, self._opened.validator,
                          table.page, self.path)

    @property
    def counts(self) -> TransferCounts:
        """Counts of answered requests and of their bytes (TransferCounts)."""
        return self._transfers.counts

    def start_in_child(self) -> None:
        """Make new connections in a forked child."""
        self._origin = self._new_origin()
        self._transfers.start_in_child(self._origin)
        self._index.start_in_child()

    def check(self) -> None:
        """Raise DamagedFileError if a request has found the file changed."""
        if self._transfers.failure is not None:
            raise self._transfers.failure.with_traceback(None)

    def ask_state(self) -> bool:
        """Request the state of the file from the server; return whether it is
        unchanged."""
        try:
            self.check()
            self._ask(0, 1, self._opened)
        except DamagedFileError:
            return False
        return True

    def is_current(self) -> bool:
        """Return whether the file is unchanged.

        If the server does not answer, the result is True: the cached bytes may
        be enough, and missing bytes are never fetched from another state.
        """
        try:
            return self.ask_state()
        except OSError as error:
            logger.warning('whether the file has changed is not known, it is '
                           'read as it was: %s', error)
            return True

    def open(self) -> Any:
        """Return a stream of the file's bytes, from its beginning."""
        return io.BufferedReader(
            ByteStream(self, self.path), HEAD)

    def stream(self, name: str) -> ByteStream:
        """Return a stream without a buffer of its own, for HDF5."""
        return ByteStream(self._index, name, owner=self)

    def request(self, starts: Ends, stops: Ends,
                is_urgent: bool = False) -> list[Fetch]:
        """Request byte ranges, without waiting; return the fetches."""
        table = self._transfers.table
        return self._transfers.request(
            *table.pages_of(starts, stops), is_urgent)

    def call_when_fetched(self, starts: Ends, stops: Ends,
                          task: Callable[[], None]) -> None:
        """Request byte ranges, and call a function when all are fetched.

        The function must return soon.
        """
        transfers = self._transfers
        with transfers.lock:
            fetches = self.request(starts, stops)
            if fetches:
                # One step of a counter is atomic. `arrive` refers only to the
                # number of fetches: a reference to a fetch would be a cycle.
                arrivals, last = itertools.count(1), len(fetches)

                def arrive() -> None:
                    if next(arrivals) == last:
                        task()

                for fetch in fetches:
                    fetch.then.append(arrive)
                return
        task()

    @contextlib.contextmanager
    def hold(self, starts: Ends, stops: Ends) -> Iterator[None]:
        """Fetch byte ranges; return a context in which they stay readable."""
        transfers = self._transfers
        table, resident = transfers.table, transfers.resident
        firsts, lasts = table.pages_of(starts, stops)
        hold = Hold(firsts, lasts)
        with transfers.lock:
            resident.holds.append(hold)
        try:
            while fetches := transfers.request(firsts, lasts, True):
                for fetch in fetches:
                    self._wait(fetch)
            if resident.used_bytes:
                with transfers.lock:
                    resident.touch(hold)
            self.check()
            yield
        finally:
            with transfers.lock:
                resident.holds = [other for other in resident.holds
                                  if other is not hold]
            transfers.evict()

    def _wait(self, fetch: Fetch) -> None:
        is_done = fetch.done.wait(self._patience)
        if not is_done:
            raise TimeoutError(
                f'{self.path}: the request for bytes from '
                f'{fetch.first * self._transfers.table.page} on did not end')
        if fetch.error is not None:
            raise fetch.error.with_traceback(None)

    def read(self, address: int, nbytes: int) -> bytes:
        """Return bytes of the file, fewer than `nbytes` at its end."""
        stop = min(address + nbytes, self.size)
        if address >= stop:
            return b''
        transfers = self._transfers
        page = transfers.table.page
        first, last = address // page, -(-stop // page)
        if transfers.entry is not None and transfers.table.is_on_disk(
                first, last):
            self.check()
            return transfers.entry.read(address, stop - address)
        with self.hold(numpy.array([address]), numpy.array([stop])):
            if transfers.entry is not None and transfers.table.is_on_disk(
                    first, last):
                return transfers.entry.read(address, stop - address)
            return self.memory[address:stop]

    def read_ahead(self, address: int) -> None:
        """Prefetch the bytes after a position, in pieces, for sequential
        reading."""
        start = -(-address // PIECE) * PIECE
        stop = min(start + min(ORDERED_AHEAD, self.prefetch_budget()),
                   self.size)
        page = self._transfers.table.page
        if start < stop and self._transfers.missing_bytes(
                [start // page], [-(-stop // page)]):
            for first in range(start, stop, PIECE):
                self.request(numpy.array([first]), numpy.array(
                    [min(first + PIECE, self.size)]))

    def read_into(self, buffer: memoryview, address: int) -> int:
        """Read bytes of the file into the caller's memory; return their
        number."""
        data = self.read(address, len(buffer))
        buffer[:len(data)] = data
        return len(data)

    def is_settled(self, start: int, stop: int) -> bool:
        """Return whether a range is cached and will not be evicted.

        This holds for a range on disk. For a range in memory, it holds only if
        the whole file is cached and fits into the budget.
        """
        table = self._transfers.table
        page, count = table.page, len(table.states)
        return table.is_on_disk(
            max(0, start) // page, -(-min(stop, self.size) // page)) or (
            count * page <= self._transfers.resident.budget
            and table.is_here(0, count))

    def missing_bytes(self, starts: Ends, stops: Ends) -> int:
        """Return how many bytes of ranges are neither cached nor requested."""
        table = self._transfers.table
        return self._transfers.missing_bytes(
            *table.pages_of(starts, stops))

    def keeps(self, nbytes: int) -> bool:
        """Return whether `nbytes` bytes would stay cached, once fetched."""
        entry = self._transfers.entry
        if entry is not None and entry.fits():
            return True
        return nbytes <= self._transfers.resident.budget

    def prefetch_budget(self) -> int:
        """Return the number of bytes that may be prefetched."""
        if self._transfers.entry is not None:
            return DISK_AHEAD
        return self._transfers.resident.budget // 2


def _origin(url: str, options: StorageOptions, timeout: float,
            loop: asyncio.AbstractEventLoop | None = None) -> RetryingStore:
    """Return the store of a file.

    `loop`: the event loop of the store's requests. Defaults to the loop of
        fsspec.
    """
    place = urlsplit(url.rpartition('::')[2]).netloc
    server = place.rpartition('@')[2]
    return RetryingStore(
        lambda: open_store(url, options, loop), shown(url), server,
        Secrets(url, options), timeout)


_all = each_at_fork(Step.OWNERSHIP, in_child=RemoteFile.start_in_child)
