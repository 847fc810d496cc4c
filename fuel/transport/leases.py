"""The consumer's side of the slots: arrays that keep their slots leased."""
from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.transport.segment import Segment
from fuel.utils.forks import Step, each_at_fork
from fuel.utils.seams import fault_point


class _Root(weakref.ref[NDArray[Any]]):
    """Weak reference to the array that a slot is lent to."""

    __slots__ = ('nbytes', 'slot')
    slot: int
    nbytes: int


class Leases:
    """Slots of one producer that are lent to arrays of the consumer.

    A slot is lent to one *root* array of its bytes.  Each other object over
    the slot (a reshaped array, a view, a memoryview, a tensor) has the root as
    its base and keeps it alive.  When the root is freed, the producer may
    reuse the slot.

    A root may be freed anywhere: in the garbage collector, in another thread,
    or while a method of this class runs.  So freeing it only appends to a
    deque, by a function of C that Ctrl-C cannot interrupt.  The owner calls
    :meth:`returned` when it sends a message to the producer anyway.

    `limit`: maximum number of bytes that may be lent at once.  Beyond this
        limit, data are copied: a consumer that keeps all its batches gets
        memory of its own, and the producer gets its slots back.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.lent = 0
        self._segments: dict[int, Segment] = {}
        self._roots: dict[int, _Root] = {}
        self._dead: deque[_Root] = deque()
        self._unused: deque[int] = deque()
        self._forked: set[int] = set()
        _all_leases.add(self)

    def add_segment(self, number: int, segment: Segment) -> None:
        """Add a segment of the producer, whose slots may be lent."""
        segment.close_descriptor()
        self._segments[number] = segment

    def drop_segment(self, number: int) -> None:
        """Remove a segment; arrays over it remain valid."""
        self._segments.pop(number, None)

    def has_segment(self, number: int) -> bool:
        """Return whether a segment was added."""
        return number in self._segments

    def view(self, segment: int, start: int, size: int) -> memoryview:
        """Return `size` bytes of a segment from `start` on.  The caller must
        read them before it returns the slot."""
        return memoryview(self._segments[segment].memory)[start:start + size]

    @fault_point('lease')
    def lend(self, slot: int, segment: int,
             extents: Sequence[tuple[int, int]],
             build: Callable[[list[Any]], Any]) -> Any:
        """Call `build` with the memory of the arrays in a slot, and return its
        result.

        `extents`: offset in the segment and size, in bytes, of each array.
        """
        memory = self._segments[segment].memory
        start, stop = extents[0][0], 0
        for offset, size in extents:
            start, stop = min(start, offset), max(stop, offset + size)
        root = numpy.frombuffer(memory, numpy.uint8, stop - start, start)
        if self.lent + root.nbytes > self.limit:
            self.give_back(slot)
            return build([root[offset - start:offset - start + size].copy()
                          for offset, size in extents])
        self.lent += root.nbytes
        lease = self._roots[slot] = _Root(root, self._dead.append)
        lease.slot, lease.nbytes = slot, root.nbytes
        view = memoryview(root)  # type: ignore[arg-type]
        return build([view[offset - start:offset - start + size]
                      for offset, size in extents])

    def give_back(self, slot: int) -> None:
        """Return a slot whose data are not needed."""
        self._unused.append(slot)

    def returned(self) -> list[tuple[int, bool]]:
        """Return the slots that were returned since the last call, and for
        each whether it may be reused."""
        while self._dead:
            lease = self._dead.popleft()
            self.lent -= lease.nbytes
            del self._roots[lease.slot]
            self.give_back(lease.slot)
        result = []
        while self._unused:
            slot = self._unused.popleft()
            result.append((slot, slot not in self._forked))
            self._forked.discard(slot)
        return result

    def note_fork(self) -> None:
        """Mark the slots that are lent now: a forked child reads them, too.

        The child shares the memory, and does not report when its arrays are
        freed.  So these slots are never reused.
        """
        self._forked.update(self._roots)


_all_leases = each_at_fork(Step.LEASES, before=Leases.note_fork)
