"""The producer's slots: pieces of segments, used over and over."""
from __future__ import annotations

import sys
from collections.abc import Container, Hashable, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.kernels.memory import address_of, empty
from fuel.kernels.outputs import Placement
from fuel.transport.segment import Segment
from fuel.utils.seams import fault_point

Buffers = list[NDArray[numpy.uint8]]
Extent = tuple[int, int]

# Arrays in a slot begin at multiples of this (a cache line).
ALIGNMENT = 64
# Small slots share a segment of this size, so that there are few
# descriptors.
_SLAB = 1 << 22
_SMALLEST = 1 << 14


class BudgetError(MemoryError):
    """Two batches do not fit into the bytes that may be shared."""


class Slot:
    """A piece of a segment that holds one batch.

    `number`: names the slot between the two processes.
    `offset`, `capacity`: the place of the slot in its segment, in bytes.
    `bytes`: the slot's memory, of uint8.
    `holder`: the client that leases the slot; None if it is free.
    """

    def __init__(self, number: int, segment_number: int, segment: Segment,
                 offset: int, capacity: int) -> None:
        self.number = number
        self.segment_number = segment_number
        self.segment = segment
        self.offset = offset
        self.capacity = capacity
        self.bytes = numpy.frombuffer(
            segment.memory, numpy.uint8, capacity, offset)
        self.holder: Hashable = None


class SlotPool:
    """Slots of one producer, created on demand within a budget.

    The slot released last is used first: its memory is still in the
    processor's cache.

    Not thread-safe; the owner holds a lock.

    `budget`: most bytes of slots that may be in use at once.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.free: list[Slot] = []
        self.used: dict[int, Slot] = {}
        self._in_use = 0
        self.retired_segments: list[int] = []
        # Slots that something in this process still looks at.
        self._deferred: list[tuple[Slot, Placement]] = []
        self._num_slots = 0
        self._num_segments = 0

    def check_size(self, size: int) -> None:
        """Refuse a batch so large that two do not fit."""
        if 2 * _round(size) > self.budget:
            raise BudgetError(
                f'a batch of {size} bytes takes a slot of {_round(size)} '
                f'bytes, and two such slots do not fit into the '
                f'{self.budget} bytes of shared memory allowed: make the '
                'batches smaller or max_bytes larger')

    def acquire(self, size: int, holder: Hashable = 0,
                others: Container[Hashable] = ()) -> Slot | None:
        """Return a free slot, or None if the budget allows none now."""
        if self._deferred:
            self._free_deferred()
        capacity = _round(size)
        in_use = self._in_use
        if others:
            in_use -= sum(slot.capacity for slot in self.used.values()
                          if slot.holder in others)
        if in_use + capacity > self.budget:
            return None
        slot = self._take_free(capacity)
        if slot is None:
            self._trim(self.budget - in_use - capacity)
            slot = self._create(capacity)
        slot.holder = holder
        self.used[slot.number] = slot
        self._in_use += slot.capacity
        return slot

    def _take_free(self, capacity: int) -> Slot | None:
        for place in range(len(self.free) - 1, -1, -1):
            # A slot far too large would waste the budget.
            if capacity <= self.free[place].capacity <= 4 * capacity:
                return self.free.pop(place)
        return None

    def _create(self, capacity: int) -> Slot:
        count = max(1, _SLAB // capacity) if capacity < _SLAB // 4 else 1
        segment = Segment.create(count * capacity)
        slots = [
            Slot(self._num_slots + place, self._num_segments, segment,
                 place * capacity, capacity) for place in range(count)]
        self._num_slots += count
        self._num_segments += 1
        self.free.extend(reversed(slots[1:]))
        return slots[0]

    def release(self, number: int, reuse: bool = True) -> None:
        """Take a slot back.

        `reuse`: False if someone else, such as a fork of the consumer, goes on
            looking at it: then it is never written again.
        """
        slot = self.used.pop(number, None)
        if slot is None:
            return
        self._in_use -= slot.capacity
        slot.holder = None
        if reuse:
            self.free.append(slot)
        elif slot.capacity == slot.segment.size:
            self.retired_segments.append(slot.segment_number)

    def put_back(self, slot: Slot, placement: Placement | None) -> None:
        """Take back a slot that was not sent.

        `placement`: if it gave out arrays that somebody holds, the slot is
            free when they are gone.
        """
        if placement is None or placement.is_free():
            self.release(slot.number)
            return
        del self.used[slot.number]
        self._in_use -= slot.capacity
        slot.holder = None
        self._deferred.append((slot, placement))

    def _free_deferred(self) -> None:
        waiting = []
        for slot, placement in self._deferred:
            if placement.is_free():
                self.free.append(slot)
            else:
                waiting.append((slot, placement))
        self._deferred = waiting

    def _trim(self, allowed: int) -> None:
        """Release segments until the free slots have `allowed` bytes."""
        free = sum(slot.capacity for slot in self.free)
        if free <= allowed:
            return
        busy = {slot.segment_number for slot in self.used.values()}
        busy.update(slot.segment_number for slot, _ in self._deferred)
        retired: set[int] = set()
        for slot in self.free:
            if free > allowed and slot.segment_number not in busy:
                free -= slot.capacity
                retired.add(slot.segment_number)
        self.retired_segments.extend(sorted(retired))
        self.free = [slot for slot in self.free
                     if slot.segment_number not in retired]


def _round(size: int) -> int:
    """Return the capacity of the slot for `size` bytes.

    An eighth more at most, so that batches of nearly equal size share
    slots.
    """
    if size <= _SMALLEST:
        return _SMALLEST
    step = 1 << max(12, size.bit_length() - 4)
    return -(-size // step) * step


def align(offset: int) -> int:
    """Return the next place where an array may begin."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


@fault_point('slot copy')
def write_into(slot: Slot, buffers: Buffers,
               placement: Placement | None = None,
               expected: Sequence[Extent] = ()) -> list[Extent] | None:
    """Write arrays into a slot, unless they are there."""
    start = address_of(slot.bytes)
    offsets = [address_of(buffer) - start for buffer in buffers]
    extents = [(offset, buffer.nbytes) for offset, buffer
               in zip(offsets, buffers, strict=True)]
    # Nearly always they are where those of the batch before were.
    if placement is not None and extents == expected:
        return extents
    found = _find_places(slot, extents, placement)
    if found is not None:
        for offset, (place, size), buffer in zip(
                offsets, found, buffers, strict=True):
            if offset != place:
                slot.bytes[place:place + size] = buffer
    return found


def _find_places(slot: Slot, extents: list[Extent],
                 placement: Placement | None) -> list[Extent] | None:
    """Return the offset of each array in a slot, None if there is no room.

    Arrays that are in the slot already stay there.  So does what the stages
    made there on the way, for as long as somebody holds it.
    """
    is_inside = [0 <= offset < slot.capacity for offset, _ in extents]
    taken = [] if placement is None else placement.get_kept()
    taken += [(offset, offset + size) for (offset, size), inside
              in zip(extents, is_inside, strict=True) if inside]
    taken.sort()
    found = []
    for (offset, size), inside in zip(extents, is_inside, strict=True):
        place = offset
        if not inside:
            place = _first_gap(taken, size)
            taken.append((place, place + size))
            taken.sort()
        found.append((place, size))
    end = max((stop for _, stop in taken), default=0)
    return found if end <= slot.capacity else None


def _first_gap(taken: list[Extent], size: int) -> int:
    """Return the first aligned place with `size` free bytes."""
    place = 0
    for start, stop in taken:
        if place + size <= start:
            break
        place = max(place, align(stop))
    return place


def detach(buffers: Buffers, placement: Placement | None) -> None:
    """Copy arrays that lie in a slot, or that a stage may overwrite."""
    is_placed = placement is not None and bool(placement.references)
    for place in range(len(buffers)):
        if is_placed or _num_references(buffers, place) > _OURS:
            # Into memory that earlier batches had: new pages cost more.
            copy = empty(buffers[place].shape, numpy.uint8)
            copy[...] = buffers[place]
            buffers[place] = copy


def _num_references(buffers: Buffers, place: int) -> int:
    """Return the number of references to an array's memory."""
    root: Any = buffers[place]
    while isinstance(root, numpy.ndarray) and isinstance(
            root.base, numpy.ndarray):
        root = root.base
    return sys.getrefcount(root) if isinstance(root, numpy.ndarray) else 0


# As many of them are ours; versions of Python count differently.
_OURS = _num_references([numpy.empty(1, numpy.uint8)], 0)
