"""Transfer the pages of a remote file: from the server, or from the cache on
disk.

Requests are repeated until they succeed or their time is over.
"""
from __future__ import annotations

import asyncio
import concurrent.futures
import heapq
import itertools
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from fuel.exceptions import DamagedFileError
from fuel.remote.disk_cache import CacheEntry
from fuel.remote.urls import Secrets
from fuel.remote.pages import (
    ABSENT, CLAIMED, IN_MEMORY, LARGEST_REQUEST, ON_DISK, Fetch, PageTable,
    Record, Resident, by_first, overlapping)
from fuel.remote.stores import (
    CONNECT_TIMEOUT, Answer, ByteStore, ChangedError, TransientError)
from fuel.utils.io_counts import io_counts
from fuel.utils.seams import fault_point

Result = TypeVar('Result')

logger = logging.getLogger(__name__)

# The largest number of bytes of all running requests, unless a single request
# is larger.
IN_FLIGHT = 32 << 20
# Answers of this size or more are cached in another thread than the one that
# receives them.
OWN_THREAD = 64 << 10

# Seconds before a request is repeated: the first time, and the longest wait.
FIRST_WAIT = .1
LONGEST_WAIT = 10.
# Seconds after which a warning says that a file is not opened yet.
SILENT_WAIT = 2.
# The largest size of a file; larger files do not fit into the address space.
LARGEST_FILE = 1 << 46

# Servers to which this process had a connection.
_reached: set[str] = set()


def changed_error(name: str, before: str, now: str) -> DamagedFileError:
    """Return the error that a file has changed, with both states."""
    return DamagedFileError(
        f'{name} was changed while it was in use ({before} when it was '
        f'opened, {now} now), so old and new rows would be mixed: open the '
        f'data set again')


@fault_point('remote wait')
def pause(seconds: float) -> Awaitable[None]:
    """Wait before a request is repeated."""
    return asyncio.sleep(seconds)


class RetryingStore:
    """Store that repeats requests to another store after transient errors.

    `open_store`: returns the other store.
    `name`: name of the file, for errors.
    `server`: the server that has the file.
    `timeout`: seconds after which a request fails, including repetitions.
    """

    def __init__(self, open_store: Callable[[], ByteStore], name: str,
                 server: str, secrets: Secrets, timeout: float) -> None:
        self._open_store = open_store
        self._store: ByteStore | None = None
        self._name = name
        self._server = server
        self._secrets = secrets
        self.timeout = timeout
        self._draw = random.Random()  # noqa: S311 (spreads out requests)

    async def fetch(self, start: int, stop: int, expected: Answer | None,
                    ) -> Answer:
        """Return a range of the file.

        `expected`: an answer in the expected state of the file; None for any
            state.

        Raises: DamagedFileError if the file is in another state, TimeoutError
            if no request succeeds in time, or another error of the store.
        """
        begin = time.monotonic()
        deadline, is_said = begin + self.timeout, expected is not None
        for attempt in range(1, 1 << 30):
            try:
                answer = await self._attempt(start, stop, expected, deadline)
                _reached.add(self._server)
                return answer
            except (TransientError, TimeoutError) as error:
                if getattr(error, 'is_connected', True):
                    _reached.add(self._server)
                is_reached = self._server in _reached
                timeout = self.timeout if is_reached else min(
                    self.timeout, CONNECT_TIMEOUT)
                wait = self._wait_after(attempt, error)
                left = begin + timeout - time.monotonic()
                if wait >= left:
                    what = (
                        f'bytes {start} to {stop - 1} could not be fetched'
                        if is_reached else
                        'could not connect to the server')
                    raise TimeoutError(self._secrets.hide(
                        f'{self._name}: {what} in {timeout:g} seconds, in '
                        f'{attempt} attempts: '
                        f'{str(error) or "there was no answer"}'
                        + ('' if is_reached else '; check the address, and '
                           'that the server runs'))) from None
                logger.debug('%s: request %d failed, the next follows in '
                             '%.1f seconds: %s', self._name, attempt, wait,
                             self._secrets.hide(error))
                if not is_said and time.monotonic() - begin >= SILENT_WAIT:
                    is_said = True
                    logger.warning(
                        '%s: not opened yet, after %d attempts: %s; it is '
                        'asked again for up to %.0f seconds%s',
                        self._name, attempt, self._secrets.hide(
                            error) or 'there was no answer', left,
                        ' (remote_timeout)' * is_reached)
                await pause(wait)
                io_counts.count(retries=1)
        raise AssertionError

    async def close(self) -> None:
        """Close the connections, which are not shared."""
        if self._store is not None:
            await self._store.close()

    async def _attempt(self, start: int, stop: int, expected: Answer | None,
                       deadline: float) -> Answer:
        wanted = '' if expected is None else expected.validator
        try:
            if self._store is None:
                self._store = self._open_store()
            async with asyncio.timeout_at(
                    asyncio.get_running_loop().time()
                    + max(.01, deadline - time.monotonic())):
                answer = await self._store.fetch(start, stop, wanted)
        except ChangedError as error:
            raise changed_error(self._name, _state(expected), str(error)
                                ) from None
        except (TransientError, TimeoutError):
            raise
        except OSError as error:
            # The error has the same class, which tells callers the cause.
            raise type(error)(self._secrets.hide(
                f'{self._name}: {error}')) from None
        except (ImportError, LookupError, TypeError, ValueError) as error:
            # For example, the file system does not accept an option. Some of
            # these errors name the file already.
            text = self._secrets.hide(f'{self._name}: ' + str(
                error).removeprefix(f'{self._name}: '))
            raise (ImportError(text, name=error.name) if isinstance(
                error, ImportError) else ValueError(text)) from None
        if expected is not None and (
                answer.size, answer.validator or wanted) != (
                expected.size, wanted or answer.validator):
            raise changed_error(self._name, _state(expected), _state(answer))
        self._check_length(answer, start, stop)
        return answer

    def _check_length(self, answer: Answer, start: int, stop: int) -> None:
        """Raise an error if an answer does not have exactly the requested
        bytes: it would leave a hole, or overwrite other bytes."""
        if not 0 <= answer.size <= LARGEST_FILE:
            raise OSError(f'{self._name}: the server says that it has '
                          f'{answer.size} bytes, which no file has')
        nbytes = max(0, min(stop, answer.size) - start)
        if len(answer.data) != nbytes:
            raise TransientError(f'the server sent {len(answer.data)} bytes '
                                 f'instead of {nbytes}')

    def _wait_after(self, attempt: int, error: OSError) -> float:
        if isinstance(error, TransientError) and error.wait is not None:
            return error.wait
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2. ** min(attempt - 1, 20))
        # Spread out, so that clients of a busy server repeat their requests at
        # different times.
        return longest * self._draw.uniform(.5, 1.)


def _state(answer: Answer | None) -> str:
    if answer is None:
        return 'unknown'
    return f'{answer.size} bytes, {answer.validator or "no ETag"}'


@dataclass
class TransferCounts:
    """Number of requests that the server answered, and number of bytes of the
    answers."""

    requests: int = 0
    nbytes: int = 0

    def add(self, data: bytes) -> None:
        """Count one answer."""
        self.requests += 1
        self.nbytes += len(data)
        io_counts.count(requests=1, bytes_fetched=len(data))


class Transfers:
    """Fetches pages of a file, several runs at a time, urgent ones first.

    `entry`: the file's entry in the cache on disk, None if there is none.
    `opened`: the server's answer when the file was opened.
    `most`: the largest number of requests at a time.
    """

    def __init__(self, table: PageTable, resident: Resident,
                 entry: CacheEntry | None, origin: RetryingStore,
                 opened: Answer, most: int) -> None:
        self.table = table
        self.resident = resident
        self.entry = entry
        self.counts = TransferCounts()
        # Bytes that readers within HDF5 have fetched, to be cached.
        self.fetched: deque[tuple[int, bytes]] = deque()
        self.failure: BaseException | None = None
        self._opened = opened
        self._most = most
        self._order = itertools.count()
        # Records of the index of the cache on disk, sorted, without overlaps.
        self._claims: list[Record] = []
        self.start_in_child(origin)
        with self.lock:
            self._read_index()

    def start_in_child(self, origin: RetryingStore) -> None:
        """Reset the state in a forked child, without the parent's threads."""
        self.lock = threading.RLock()
        self._origin = origin
        self._queue: list[Fetch] = []
        self._running = 0
        self._in_flight = 0
        self.table.abandon()

    def request(self, firsts: list[int], lasts: list[int], is_urgent: bool,
                ) -> list[Fetch]:
        """Request runs of pages; return the fetches to wait for."""
        found: list[Fetch] = []
        with self.lock:
            while self.fetched:
                self.take(*self.fetched.popleft())
            if not all(map(self.table.is_here, firsts, lasts)):
                self._read_index()
                for first, last in zip(firsts, lasts, strict=True):
                    found += self._request(first, last, is_urgent)
                self._start()
        return found

    def _request(self, first: int, last: int, is_urgent: bool,
                 ) -> list[Fetch]:
        for begin, end, state in list(self.table.runs(first, last)):
            if state == ABSENT:
                self._split(begin, end, is_urgent)
            elif state == CLAIMED:
                for record in overlapping(self._claims, begin, end):
                    self._begin(record.first, record.last, is_urgent, record)
        fetches = overlapping(self.table.fetches, first, last)
        for fetch in fetches:
            if is_urgent and not fetch.is_urgent:
                fetch.is_urgent = True
                if not fetch.is_running:
                    heapq.heappush(self._queue, fetch)
        return fetches

    def _split(self, begin: int, end: int, is_urgent: bool) -> None:
        """Begin requests of about equal size for a run of pages."""
        nbytes = (end - begin) * self.table.page
        parts = -(-nbytes // LARGEST_REQUEST)
        for part in range(parts):
            self._begin(begin + (end - begin) * part // parts,
                        begin + (end - begin) * (part + 1) // parts,
                        is_urgent, None)

    def _begin(self, first: int, last: int, is_urgent: bool,
               record: Record | None) -> None:
        fetch = Fetch(first, last, next(self._order), is_urgent, record)
        self.table.begin(fetch)
        heapq.heappush(self._queue, fetch)

    def _read_index(self) -> None:
        """Read from the index which pages other processes have written."""
        if self.entry is None:
            return
        added: list[Record] = []
        for record in self.entry.read_index():
            if not any(self.table.states[record.first:record.last]):
                if not added:
                    # Pages of older records may have been damaged, and have
                    # new records now.
                    self._claims = [
                        claim for claim in self._claims
                        if self.table.is_claimed(claim.first, claim.last)]
                self.table.set(record, CLAIMED)
                added.append(record)
        if added:
            self._claims = sorted(self._claims + added, key=by_first)

    def settle(self, first: int, last: int) -> None:
        """Compare the checksums of the `CLAIMED` pages of a run.

        Intact pages can be read afterwards. Damaged pages are absent from now
        on. Nothing is done while another thread uses the table: the other
        thread may wait for h5py's lock, which the caller holds.
        """
        if not self.lock.acquire(blocking=False):
            return
        try:
            for record in overlapping(self._claims, first, last):
                if self.table.is_claimed(record.first, record.last):
                    self.table.set(record, self._state_of(record))
        finally:
            self.lock.release()

    def _state_of(self, record: Record) -> int:
        """Return the state of a run of pages after comparing its checksum:
        `ON_DISK` if it is intact, otherwise `ABSENT`."""
        assert self.entry is not None
        if self.entry.is_sound(record):
            return ON_DISK
        logger.warning('%s is damaged, bytes %d to %d are fetched again',
                       self.entry.folder, record.first * self.table.page,
                       record.last * self.table.page)
        return ABSENT

    def _start(self) -> None:
        """Start queued fetches, up to the limit."""
        while self._queue and self._running < self._most:
            fetch = self._queue[0]
            nbytes = (fetch.last - fetch.first) * self.table.page
            if self._running and self._in_flight + nbytes > IN_FLIGHT:
                return
            heapq.heappop(self._queue)
            if fetch.is_running or fetch.done.is_set():
                # Queued a second time, when it became urgent.
                continue
            fetch.is_running = True
            self._running += 1
            self._in_flight += nbytes
            run_on_loop(self._run(fetch))

    async def _run(self, fetch: Fetch) -> None:
        state, data = ABSENT, b''
        try:
            state, data = await self._transfer(fetch)
        except BaseException as error:
            fetch.error = error
            if isinstance(error, DamagedFileError):
                self.failure = error
            if not isinstance(error, Exception):
                raise
        finally:
            with self.lock:
                self._end(fetch, state, data)
                self._running -= 1
                self._in_flight -= (fetch.last - fetch.first
                                    ) * self.table.page
                self.evict()
                self._start()
            fetch.done.set()
            for task in fetch.then if state != ABSENT else ():
                task()

    def _end(self, fetch: Fetch, state: int, data: bytes) -> None:
        """End a fetch: set the state of its pages, and write them into memory
        if they are not on disk."""
        if state == IN_MEMORY:
            self.resident.write(fetch.first, fetch.last, data)
        self.table.end(fetch, state)

    async def _transfer(self, fetch: Fetch) -> tuple[int, bytes]:
        """Fetch pages; return their new state, and the data if these are not
        on disk."""
        table = self.table
        start = fetch.first * table.page
        stop = min(fetch.last * table.page, table.size)
        if fetch.record is not None and await asyncio.to_thread(
                self._state_of, fetch.record) == ON_DISK:
            return ON_DISK, b''
        answer = await self._origin.fetch(start, stop, self._opened)
        self.counts.add(answer.data)
        if len(answer.data) < OWN_THREAD:
            return self._keep(fetch, answer.data)
        return await asyncio.to_thread(self._keep, fetch, answer.data)

    def take(self, start: int, data: bytes) -> None:
        """Cache those pages that are complete in `data`: bytes that were
        received without a fetch of this object."""
        self.counts.add(data)
        page = self.table.page
        first, last = -(-start // page), (start + len(data)) // page
        if start + len(data) == self.table.size:
            last = -(-self.table.size // page)
        with self.lock:
            if first < last and not any(self.table.states[first:last]):
                fetch = Fetch(first, last, 0, True, None)
                self.table.begin(fetch)
                self._end(fetch, *self._keep(
                    fetch, data[first * page - start:last * page - start]))

    def _keep(self, fetch: Fetch, data: bytes) -> tuple[int, bytes]:
        """Write pages to the cache on disk, if there is space.

        Returns: the new state of the pages, and the data if these are not on
            disk.
        """
        if self.entry is not None and self.entry.keep(
                fetch.first, fetch.last, data):
            return ON_DISK, b''
        return IN_MEMORY, data

    def evict(self) -> None:
        """Evict the pages in memory that exceed the budget."""
        with self.lock:
            for extent in self.resident.evict():
                self.table.set(extent, ABSENT)

    def missing_bytes(self, firsts: list[int], lasts: list[int]) -> int:
        """Return the number of bytes of pages that are neither cached nor
        requested."""
        return self.table.page * sum([
            self.table.missing(first, last)
            for first, last in zip(firsts, lasts, strict=True)])


def run_on_loop(coroutine: Coroutine[Any, Any, Result],
                ) -> concurrent.futures.Future[Result]:
    """Run a coroutine on the event loop of fsspec, in its thread."""
    from fsspec.asyn import get_loop
    return asyncio.run_coroutine_threadsafe(coroutine, get_loop())
