"""The pages of a remote file: which are here, and where in memory.

The memory is one map of the file's size. What is in the cache on disk shows
through it; what is not is written into it, and stays until it is evicted.
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

# States of a page. CLAIMED: the index of the cache on disk names it, and its
# checksum was not compared yet.
ABSENT, PENDING, IN_MEMORY, ON_DISK, CLAIMED = range(5)

# At most so many pages are kept account of: their size grows with the file.
MOST_PAGES = 1 << 24
SMALLEST_PAGE = 4096

# Ranges this near to each other are one request: their bytes take less time
# than a request.
NEAR = 64 << 10
# Bytes of a request at most, where ranges are merged or large.
LARGEST_REQUEST = 4 << 20

# Of the budget of memory, freed at once: to look for what may go takes time.
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
    """Pages from `first` to before `last`."""

    first: int
    last: int


AnyRun = TypeVar('AnyRun', bound=Run)

#: Key of lists of runs in ascending order.
by_first = operator.attrgetter('first')


def overlapping(runs: Sequence[AnyRun], first: int, last: int,
                ) -> list[AnyRun]:
    """Return those of some sorted, separate runs that overlap a range of
    pages."""
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

    `is_urgent`: whether somebody waits for it.
    `record`: what the index of the cache on disk says of just these pages,
        which are `CLAIMED`; None if they are on the server alone.
    `then`: called when it is here; not if it failed.
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
    """The states of a file's pages, and the fetches that are under way.

    The caller sees to it that one thread at a time uses it.

    `states`: a byte for each page; searched much faster than an array.
    `fetches`: in the order of their pages.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.page = page_size(size)
        self.states = bytearray(-(-size // self.page))
        self.fetches: list[Fetch] = []

    def pages_of(self, starts: Ends, stops: Ends) -> tuple[
            list[int], list[int]]:
        """Return the pages that ranges lie in, as runs in ascending order
        that are `NEAR` bytes apart or more."""
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
        """Yield begin, end and state of runs of pages of one state."""
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
        """Return whether all pages of a run can be read."""
        return self.is_on_disk(first, last) or last - first == (
            self.states.count(ON_DISK, first, last)
            + self.states.count(IN_MEMORY, first, last))

    def is_on_disk(self, first: int, last: int) -> bool:
        """Return whether all pages of a run are in the file on disk."""
        return self.states.count(ON_DISK, first, last) == last - first

    def is_in_memory(self, first: int, last: int) -> bool:
        """Tell whether all pages of a run are in memory only."""
        return self.states.count(IN_MEMORY, first, last) == last - first

    def is_claimed(self, first: int, last: int) -> bool:
        """Tell whether the checksum of a page of a run was not compared."""
        return self.states.find(CLAIMED, first, last) >= 0

    def missing(self, first: int, last: int) -> int:
        """Return the number of pages of a run that are neither here nor
        requested."""
        return (self.states.count(ABSENT, first, last)
                + self.states.count(CLAIMED, first, last))

    def begin(self, fetch: Fetch) -> None:
        """Add a fetch of pages that are under no other."""
        bisect.insort(self.fetches, fetch, key=by_first)
        self.set(fetch, PENDING)

    def end(self, fetch: Fetch, state: int) -> None:
        """Remove a fetch, whose pages are in some state now."""
        self.fetches.remove(fetch)
        self.set(fetch, state)

    def abandon(self) -> None:
        """Forget all fetches: those who made them are gone."""
        self.fetches = []
        self.states = self.states.replace(
            bytes([PENDING]), bytes([ABSENT]))


def map_file(descriptor: int | None, size: int) -> mmap.mmap:
    """Return a map of a sparse file, or of memory alone, that can be written
    to without changing the file."""
    flags = mmap.MAP_PRIVATE | _RESERVE
    if descriptor is None:
        flags |= mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1 if descriptor is None else descriptor, size,
                       flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    if sys.platform == 'linux':
        # Otherwise a few bytes in a hole would take two megabytes.
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory


@dataclass(eq=False)
class Extent(Run):
    """Pages that came together, and leave together.

    `used`: number of the last read of it; 0 for none.
    """

    arrived: int
    used: int = 0


@dataclass
class Hold:
    """Runs of pages that are being read, which are not evicted."""

    firsts: list[int]
    lasts: list[int]


@dataclass
class Resident:
    """The pages in memory, within a budget.

    The least recently used ones are evicted first. Prefetched ones that were
    not used yet are evicted last, the latest first: it is needed last.
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
        """Remove the extents beyond the budget; return them."""
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
        # Before it is gone: who reads without a hold looks at it afterwards.
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
