"""The pages of a remote file: which of them are cached, on disk or in memory.

The memory is one map of the size of the file. It maps the file in the cache on
disk. Pages that are not on disk are written into the map, where they stay
until they are evicted.
"""
from __future__ import annotations

import bisect
import itertools
import mmap
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy
from numpy.typing import NDArray

#: Start and end of ranges, shape (ranges,).
Ends: TypeAlias = NDArray[numpy.int64]

# States of a page. CLAIMED: the index of the cache on disk names the page, and
# its checksum was not compared yet.
ABSENT, PENDING, IN_MEMORY, ON_DISK, CLAIMED = range(5)

# The largest number of pages of a file; in larger files, pages are larger.
MOST_PAGES = 1 << 24
SMALLEST_PAGE = 4096

# Ranges that are at most this far apart are fetched in one request: the bytes
# between them take less time than another request.
NEAR = 64 << 10
# The largest number of bytes of a request.
LARGEST_REQUEST = 4 << 20

# 1 / SHARE of the budget of memory is freed at once, since finding pages to
# evict takes time.
SHARE = 32
_RESERVE = getattr(mmap, 'MAP_NORESERVE', 0)


def page_size(size: int) -> int:
    """Return the size of the pages of a file: a power of two."""
    nbytes = SMALLEST_PAGE
    while nbytes * MOST_PAGES < size:
        nbytes *= 2
    return nbytes


@dataclass(eq=False)
class Run:
    """Consecutive pages, from `first` to ``last - 1``."""

    first: int
    last: int


AnyRun = TypeVar('AnyRun', bound=Run)

#: Key of lists of runs in ascending order.
by_first = operator.attrgetter('first')


def overlapping(runs: Sequence[AnyRun], first: int, last: int,
                ) -> list[AnyRun]:
    """Return the runs that overlap a range of pages.

    `runs`: runs that do not overlap each other, sorted.
    """
    place = max(0, bisect.bisect(runs, first, key=by_first) - 1)
    found = []
    for run in itertools.islice(runs, place, None):
        if run.first >= last:
            break
        if run.last > first:
            found.append(run)
    return found


@dataclass(eq=False)
class Record(Run):
    """A run of pages that the index of the cache on disk names."""

    checksum: int


@dataclass(eq=False)
class Fetch(Run):
    """A run of pages that is being fetched.

    `order`: number of the fetch; of equally urgent fetches, the one with the
        smallest number is run first.
    `is_urgent`: whether a reader waits for it.
    `record`: the record of exactly these pages in the index of the cache on
        disk, if they are `CLAIMED`; None if they are only on the server.
    `then`: functions that are called when the pages are fetched; not if the
        fetch failed.
    """

    order: int
    is_urgent: bool
    record: Record | None
    is_running: bool = False
    error: BaseException | None = None
    then: list[Callable[[], None]] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)

    def __lt__(self, other: Fetch) -> bool:
        return (not self.is_urgent, self.order) < (
            not other.is_urgent, other.order)


class PageTable:
    """The states of a file's pages, and the present fetches.

    The caller must ensure that only one thread at a time uses this object.

    `states`: a byte for each page, which is searched faster than an array.
    `fetches`: the fetches that have not ended, in the order of their pages.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.page = page_size(size)
        self.states = bytearray(-(-size // self.page))
        self.fetches: list[Fetch] = []

    def pages_of(self, starts: Ends, stops: Ends) -> tuple[
            list[int], list[int]]:
        """Return the runs of pages that byte ranges need: the first page of
        each run, and the page after its last.

        The runs are sorted. Runs that are at most `NEAR` bytes apart are
        merged.
        """
        if not len(starts):
            return [], []
        order = numpy.argsort(starts, kind='stable')
        first = starts[order] // self.page
        last = numpy.maximum.accumulate(-(-stops[order] // self.page))
        breaks = numpy.flatnonzero(
            first[1:] > last[:-1] + NEAR // self.page)
        return (first[numpy.append(0, breaks + 1)].tolist(),
                last[numpy.append(breaks, -1)].tolist())

    def runs(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Yield the begin, end and state of each run of pages of one state."""
        states = numpy.frombuffer(self.states[first:last], numpy.uint8)
        borders = numpy.flatnonzero(numpy.diff(states)) + 1
        begins = [0, *borders.tolist(), len(states)]
        for begin, end in itertools.pairwise(begins):
            if begin < end:
                yield first + begin, first + end, int(states[begin])

    def set(self, run: Run, state: int) -> None:
        """Set the state of a run of pages."""
        self.states[run.first:run.last] = bytes([state]) * (
            run.last - run.first)

    def is_here(self, first: int, last: int) -> bool:
        """Return whether all pages of a run are cached, on disk or in
        memory."""
        return self.is_on_disk(first, last) or last - first == (
            self.states.count(ON_DISK, first, last)
            + self.states.count(IN_MEMORY, first, last))

    def is_on_disk(self, first: int, last: int) -> bool:
        """Return whether all pages of a run are in the file on disk."""
        return self.states.count(ON_DISK, first, last) == last - first

    def is_in_memory(self, first: int, last: int) -> bool:
        """Return whether all pages of a run are in memory only."""
        return self.states.count(IN_MEMORY, first, last) == last - first

    def is_claimed(self, first: int, last: int) -> bool:
        """Return whether a run has a page whose checksum was not compared."""
        return self.states.find(CLAIMED, first, last) >= 0

    def missing(self, first: int, last: int) -> int:
        """Return the number of pages of a run that are neither cached nor
        requested."""
        return (self.states.count(ABSENT, first, last)
                + self.states.count(CLAIMED, first, last))

    def begin(self, fetch: Fetch) -> None:
        """Add a fetch of pages that are not in any other fetch."""
        bisect.insort(self.fetches, fetch, key=by_first)
        self.set(fetch, PENDING)

    def end(self, fetch: Fetch, state: int) -> None:
        """Remove a fetch, and set the state of its pages."""
        self.fetches.remove(fetch)
        self.set(fetch, state)

    def abandon(self) -> None:
        """Drop all fetches, in a forked child without the parent's threads."""
        self.fetches = []
        self.states = self.states.replace(
            bytes([PENDING]), bytes([ABSENT]))


def map_file(descriptor: int | None, size: int) -> mmap.mmap:
    """Return a private map of a sparse file, or of memory alone.

    Writing to the map does not change the file.

    `descriptor`: descriptor of the file; None for memory alone.
    """
    flags = mmap.MAP_PRIVATE | _RESERVE
    if descriptor is None:
        flags |= mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1 if descriptor is None else descriptor, size,
                       flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    if sys.platform == 'linux':
        # Otherwise a few bytes in a hole would use two megabytes of memory.
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory


@dataclass(eq=False)
class Extent(Run):
    """Pages that were fetched together, and are evicted together.

    `arrived`: time of the fetch, as a number that grows.
    `used`: time of the last use; 0 if the pages were not used yet.
    """

    arrived: int
    used: int = 0


@dataclass
class Hold:
    """Runs of pages that are being read, and must not be evicted."""

    firsts: list[int]
    lasts: list[int]


@dataclass
class Resident:
    """The pages in memory, within a budget.

    The least recently used pages are evicted first. Prefetched pages that were
    not used yet are evicted last; of these, the last one that was fetched goes
    first, since it will be needed last.
    """

    memory: mmap.mmap
    page: int
    budget: int
    used_bytes: int = 0
    num_evictions: int = 0
    holds: list[Hold] = field(default_factory=list)
    _time: int = 0
    _extents: list[Extent] = field(default_factory=list)

    def write(self, first: int, last: int, data: bytes) -> None:
        """Write pages into the map."""
        start = first * self.page
        self.memory[start:start + len(data)] = data
        self._time += 1
        bisect.insort(self._extents, Extent(first, last, self._time),
                      key=by_first)
        self.used_bytes += (last - first) * self.page

    def touch(self, hold: Hold) -> None:
        """Mark the pages that are being read as used now."""
        self._time += 1
        for extent in self._extents_of(hold):
            extent.used = self._time

    def _extents_of(self, hold: Hold) -> Iterator[Extent]:
        for first, last in zip(hold.firsts, hold.lasts, strict=True):
            yield from overlapping(self._extents, first, last)

    def evict(self) -> list[Extent]:
        """Evict pages that exceed the budget; return their extents."""
        excess = self.used_bytes - self.budget
        if excess <= 0:
            return []
        excess += self.budget // SHARE
        held = {extent.first for hold in self.holds
                for extent in self._extents_of(hold)}
        evicted: list[Extent] = []
        for extent in sorted(self._extents, key=_order_of_eviction):
            if excess <= 0:
                break
            # Prefetched pages are evicted only if there is no room for them.
            if not extent.used and self.used_bytes <= self.budget:
                break
            if extent.first not in held:
                evicted.append(extent)
                excess -= self._discard(extent)
        gone = {extent.first for extent in evicted}
        self._extents = [extent for extent in self._extents
                         if extent.first not in gone]
        return evicted

    def _discard(self, extent: Extent) -> int:
        # Counted before the pages are gone: a reader without a hold checks
        # this number after it has copied them.
        self.num_evictions += 1
        start = extent.first * self.page
        length = min(extent.last * self.page, len(self.memory)) - start
        self.memory.madvise(mmap.MADV_DONTNEED, start, length)
        nbytes = (extent.last - extent.first) * self.page
        self.used_bytes -= nbytes
        return nbytes


def _order_of_eviction(extent: Extent) -> tuple[bool, int]:
    if extent.used:
        return False, extent.used
    return True, -extent.arrived
