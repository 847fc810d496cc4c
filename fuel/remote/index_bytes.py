"""Reads of a remote file from within HDF5.

A thread that calls HDF5 holds h5py's lock. A thread that frees one of h5py's
objects holds this lock too; the garbage collector may free objects in any
thread. A thread inside of HDF5 must not wait for another thread, since the
other thread may be waiting for h5py's lock. So the calling thread does all the
work here, without further locks. It has its own event loop. It also reads
bytes that other threads have fetched, in a way that does not need a lock.
"""
from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fuel.remote.disk_cache import CacheEntry
from fuel.remote.pages import PageTable, Resident
from fuel.remote.stores import Answer

# Bytes of the first piece that is fetched, and of the largest piece: the size
# grows while reading is sequential.
BLOCK = 64 << 10
LARGEST = 2 << 20
# Bytes that are cached here.
MOST_BYTES = 32 << 20
# Pieces that are fetched at once if reads are at equal distances. The nodes of
# an index have equal distances if chunks of data that were written in order
# are between them.
AT_ONCE = 32

Result = TypeVar('Result')


class OwnThreadLoop(asyncio.SelectorEventLoop):
    """An event loop without threads of its own: blocking calls run in the
    thread that runs the loop."""

    def run_in_executor(  # type: ignore[override]
            self, executor: object, function: Callable[..., Any], *args: Any,
            ) -> asyncio.Future[Any]:
        """Call a function now."""
        future = self.create_future()
        try:
            future.set_result(function(*args))
        except Exception as error:  # noqa: BLE001 (raised where it is awaited)
            future.set_exception(error)
        return future


class IndexBytes:
    """Reader of a remote file that does all its work in the calling thread.

    `settle`: compares the checksums of the `CLAIMED` pages of a run, without
        waiting for another thread.
    `new_origin`: returns a store that makes its requests on a given event
        loop.
    `fetched`: start and content of the pieces that were fetched here. Another
        thread puts them into the cache.
    """

    def __init__(self, table: PageTable, resident: Resident,
                 entry: CacheEntry | None, opened: Answer,
                 settle: Callable[[int, int], None],
                 new_origin: Callable[[asyncio.AbstractEventLoop], Any],
                 ) -> None:
        self._table = table
        self._resident = resident
        self._entry = entry
        self._opened = opened
        self._settle = settle
        self._new_origin = new_origin
        self.fetched: deque[tuple[int, bytes]] = deque(maxlen=1024)
        self.start_in_child()

    def start_in_child(self) -> None:
        """Reset the state in a forked child."""
        # The parent's connections are kept: closing them would disturb the
        # parent.
        self._inherited = vars(self).get('_loop'), vars(self).get('_origin')
        self._loop: asyncio.AbstractEventLoop | None = None
        self._origin: Any = None
        self._pieces: OrderedDict[int, bytes] = OrderedDict()
        self._nbytes = 0
        # The end of the last piece, and the size of the next one.
        self._end, self._size = -1, BLOCK
        # The place of the last read, its distance from the read before, and
        # the number of times that the distance was the same.
        self._address = self._distance = self._num_equal = 0

    @property
    def size(self) -> int:
        """Number of bytes of the file (int)."""
        return self._table.size

    def read_ahead(self, address: int) -> None:
        """Do nothing: the bytes after an index are rarely needed."""

    def read_into(self, buffer: memoryview, address: int) -> int:
        """Read bytes into the caller's memory; return their number."""
        distance, self._address = address - self._address, address
        self._num_equal = (self._num_equal + 1 if distance == self._distance
                           else 0)
        self._distance = distance
        stop = min(address + len(buffer), self.size)
        place = address
        while place < stop:
            data = self._read(place, stop)
            buffer[place - address:place - address + len(data)] = data
            place += len(data)
        return max(0, stop - address)

    def _read(self, start: int, stop: int) -> bytes:
        """Return one or more bytes of the range ``start:stop``, from its
        start."""
        found = self._look_up(start, stop)
        if found is not None:
            return found
        begin = start // BLOCK * BLOCK
        piece = self._pieces.get(begin)
        if piece is None:
            piece = self._fetch(begin, stop)
        return piece[start - begin:stop - begin]

    def _look_up(self, start: int, stop: int) -> bytes | None:
        """Return bytes that other threads have fetched; None if they are not
        there."""
        table = self._table
        first, last = start // table.page, -(-stop // table.page)
        if table.is_claimed(first, last):
            self._settle(first, last)
        if self._entry is not None and table.is_on_disk(first, last):
            return self._entry.read(start, stop - start) or None
        count = self._resident.num_evictions
        if not table.is_here(first, last):
            return None
        if self._entry is not None and not table.is_in_memory(first, last):
            return None
        data = self._resident.memory[start:stop]
        # The data are valid if none of them were evicted during the copy.
        if count == self._resident.num_evictions and table.is_in_memory(
                first, last):
            return data
        return None

    def _fetch(self, begin: int, stop: int) -> bytes:
        """Fetch a piece; its size grows while reading is sequential."""
        self._size = min(LARGEST, 2 * self._size) if (
            begin == self._end) else BLOCK
        end = min(begin + max(self._size, min(
            LARGEST, -(-(stop - begin) // BLOCK) * BLOCK)), self.size)
        self._end = end
        ends = {begin: end, **self._find_next(begin, stop, end)}
        for place, answer in self._run(ends).items():
            self._remember(place, answer)
        return self._pieces[begin]

    def _find_next(self, begin: int, stop: int, end: int) -> dict[int, int]:
        """Return a mapping from starts to ends of the later pieces to fetch
        together with a piece; {} unless reads are at equal distances."""
        if self._num_equal < 2 or self._distance <= end - begin:
            return {}
        found: dict[int, int] = {}
        nbytes = max(end - begin, stop - self._address)
        for number in range(1, min(AT_ONCE, LARGEST // nbytes)):
            first = self._address + number * self._distance
            last = first + stop - self._address
            if last > self.size:
                break
            first = first // BLOCK * BLOCK
            if first not in self._pieces:
                found[first] = min(-(-last // BLOCK) * BLOCK, self.size)
        return found

    def _remember(self, begin: int, answer: bytes) -> None:
        for place in range(0, len(answer), BLOCK):
            # Earlier reads may have fetched a part of this block.
            before = self._pieces.pop(begin + place, b'')
            self._pieces[begin + place] = piece = answer[place:place + BLOCK]
            self._nbytes += len(piece) - len(before)
        while self._nbytes > MOST_BYTES:
            _, dropped = self._pieces.popitem(last=False)
            self._nbytes -= len(dropped)
        self.fetched.append((begin, answer))

    def _run(self, ends: dict[int, int]) -> dict[int, bytes]:
        """Fetch pieces; return a mapping from their starts to their bytes.

        Only the first piece is needed: other pieces that fail are left out.
        """
        if self._loop is None:
            self._loop = OwnThreadLoop()
            self._origin = self._new_origin(self._loop)
        answers = _run_here(self._loop, _fetch_all(
            self._origin, ends, self._opened))
        if isinstance(answers[0], BaseException):
            raise answers[0]
        return {begin: answer.data for begin, answer in zip(
            ends, answers, strict=True) if isinstance(answer, Answer)}

    def close(self) -> None:
        """Close the connections of this reader."""
        loop, self._loop = self._loop, None
        if loop is not None and not loop.is_running():
            _run_here(loop, self._origin.close())
            loop.close()


async def _fetch_all(origin: Any, ends: dict[int, int], opened: Answer,
                     ) -> list[Answer | BaseException]:
    answers: list[Answer | BaseException] = await asyncio.gather(*(
        origin.fetch(begin, end, opened) for begin, end in ends.items()),
        return_exceptions=True)
    return answers


def _run_here(loop: asyncio.AbstractEventLoop,
              coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in this thread on an event loop.

    The thread may be in a task of another loop: the loop of a notebook, or the
    loop of transfers if the garbage collector runs there.
    """
    outer = asyncio._get_running_loop()
    task = None if outer is None else asyncio.current_task(outer)
    if outer is not None and task is not None:
        # From Python 3.14 on, a thread is in one task at a time.
        asyncio.tasks._leave_task(outer, task)
    asyncio._set_running_loop(None)
    try:
        return loop.run_until_complete(coroutine)
    finally:
        asyncio._set_running_loop(outer)
        if outer is not None and task is not None:
            asyncio.tasks._enter_task(outer, task)
