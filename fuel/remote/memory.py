"""The memory that a remote file's bytes are read from.

It is one map of the file's size. What is in the cache on disk shows through
it; what is not is written into it, and stays until it is evicted.
"""
from __future__ import annotations

import mmap
from collections import OrderedDict
from dataclasses import dataclass, field

import numpy
from numpy.typing import NDArray

_RESERVE = getattr(mmap, 'MAP_NORESERVE', 0)
_EVICT = getattr(mmap, 'MADV_DONTNEED', None)
_SMALL_PAGES = getattr(mmap, 'MADV_NOHUGEPAGE', None)


def map_file(descriptor: int | None, size: int) -> mmap.mmap:
    """Return a map of a sparse file, or of memory alone, that can be written
    to without changing the file."""
    flags = mmap.MAP_PRIVATE | _RESERVE
    if descriptor is None:
        flags |= mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1 if descriptor is None else descriptor, size,
                       flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    if _SMALL_PAGES is not None:
        # Otherwise a few bytes in a hole would take two megabytes.
        memory.madvise(_SMALL_PAGES)
    return memory


@dataclass
class Extent:
    """Pages that came together, and leave together."""

    first: int
    last: int
    is_used: bool = False


@dataclass
class Hold:
    """Pages that are being read: runs, which are not evicted."""

    firsts: NDArray[numpy.int64]
    lasts: NDArray[numpy.int64]

    def covers(self, extent: Extent) -> bool:
        """Tell whether some page of an extent is being read."""
        return bool(((self.firsts < extent.last)
                     & (self.lasts > extent.first)).any())


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
    holds: list[Hold] = field(default_factory=list)
    extents: OrderedDict[int, Extent] = field(default_factory=OrderedDict)

    def write(self, first: int, last: int, data: bytes) -> None:
        """Write pages into the map."""
        start = first * self.page
        self.memory[start:start + len(data)] = data
        self.extents[first] = Extent(first, last)
        self.used_bytes += (last - first) * self.page

    def touch(self, hold: Hold) -> None:
        """Count what is being read as used now."""
        for first, extent in list(self.extents.items()):
            if hold.covers(extent):
                extent.is_used = True
                self.extents.move_to_end(first)

    def evict(self) -> list[Extent]:
        """Let go of what exceeds the budget; return it."""
        if self.used_bytes <= self.budget or _EVICT is None:
            return []
        unused = [extent for extent in self.extents.values()
                  if not extent.is_used]
        candidates = [extent for extent in self.extents.values()
                      if extent.is_used] + unused[::-1]
        evicted = []
        for extent in candidates:
            if self.used_bytes <= self.budget:
                break
            if not any(hold.covers(extent) for hold in self.holds):
                self._discard(extent)
                evicted.append(extent)
        return evicted

    def _discard(self, extent: Extent) -> None:
        start = extent.first * self.page
        # From the system's pages on, which may be larger than ours.
        length = min(extent.last * self.page, len(self.memory)) - start
        self.memory.madvise(_EVICT, start, length)
        del self.extents[extent.first]
        self.used_bytes -= (extent.last - extent.first) * self.page
