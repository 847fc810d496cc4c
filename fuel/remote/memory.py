"""The memory that a remote file's bytes are read from.

It is one map of the file's size. What is in the cache on disk shows through
it; what is not is written into it, and stays until it is evicted.
"""
from __future__ import annotations

import bisect
import mmap
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from fuel.remote.page_table import Run, by_first, overlapping

_RESERVE = getattr(mmap, 'MAP_NORESERVE', 0)


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


# Of the budget, freed at once: to look for what may go takes time.
SHARE = 32


@dataclass(eq=False)
class Extent(Run):
    """Pages that came together, and leave together.

    `used`: when it was last read, counted in reads; 0 if it was not yet.
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
    """What lies in memory, within a budget.

    What was used longest ago goes first; what was prefetched and not used
    yet goes last, the latest first, since it is needed last.
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
        """Count what is being read as used now."""
        self._time += 1
        for extent in self._extents_of(hold):
            extent.used = self._time

    def _extents_of(self, hold: Hold) -> Iterator[Extent]:
        for first, last in zip(hold.firsts, hold.lasts, strict=True):
            yield from overlapping(self._extents, first, last)

    def evict(self) -> list[Extent]:
        """Let go of what exceeds the budget; return it."""
        excess = self.used_bytes - self.budget
        if excess <= 0 or sys.platform == 'win32':
            return []
        excess += self.budget // SHARE
        held = {extent.first for hold in self.holds
                for extent in self._extents_of(hold)}
        evicted: list[Extent] = []
        for extent in sorted(self._extents, key=_order_of_eviction):
            if excess <= 0:
                break
            # What was prefetched goes only where there is no room for it.
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
