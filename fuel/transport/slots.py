"""The producer's slots: parts of segments that are reused."""
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
# Small slots share a segment of this size, so that few descriptors are needed.
_SLAB = 1 << 22
_SMALLEST = 1 << 14


class BudgetError(MemoryError):
    """Two batches of the same size do not fit into the allowed shared
    memory."""


class Slot:
    """A part of a segment that holds one batch.

    `number`: number by which both processes identify the slot.
    `offset`, `capacity`: offset in the segment, and size, in bytes.
    `bytes`: the slot's memory as an array of uint8.
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
    """The slots of one producer, created on demand within a budget of bytes.

    The slot released last is used first: its memory is still in the
    processor's cache.

    Not thread-safe; the owner holds a lock.

    `budget`: maximum number of bytes of slots that may be in use at once.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.free: list[Slot] = []
        self.used: dict[int, Slot] = {}
        self._in_use = 0
        self.retired_segments: list[int] = []
        # Slots in which stages of this process still hold arrays.
        self._deferred: list[tuple[Slot, Placement]] = []
        self._num_slots = 0
        self._num_segments = 0

    def check_size(self, size: int) -> None:
        """Raise an error for a batch so large that two of its size do not
        fit."""
        if 2 * _round(size) > self.budget:
            raise BudgetError(
                f'a batch of {size} bytes takes a slot of {_round(size)} '
                f'bytes, and two such slots do not fit into the '
                f'{self.budget} bytes of shared memory allowed: make the '
                'batches smaller or max_bytes larger')

    def acquire(self, size: int, holder: Hashable = 0,
                others: Container[Hashable] = ()) -> Slot | None:
        """Return a free slot of at least `size` bytes, or None if the budget
        allows none now.

        `others`: holders whose slots do not count towards the budget.
        """
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

        `reuse`: False if another process, such as a fork of the consumer,
            still reads the slot.  Then it is never reused.
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

        `placement`: the parts of the slot that were offered to stages for
            their arrays.  The slot becomes free when no stage holds any of
            these arrays.
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
        """Release segments until the free slots have at most `allowed`
        bytes."""
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

    It is at most an eighth larger, so that batches of nearly equal size can
    use the same slots.
    """
    if size <= _SMALLEST:
        return _SMALLEST
    step = 1 << max(12, size.bit_length() - 4)
    return -(-size // step) * step


def align(offset: int) -> int:
    """Return the next aligned offset, at which an array may begin."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


@fault_point('slot copy')
def write_into(slot: Slot, buffers: Buffers,
               placement: Placement | None = None,
               expected: Sequence[Extent] = ()) -> list[Extent] | None:
    """Write arrays into a slot, unless they are there already; return their
    extents, or None if there is no room."""
    start = address_of(slot.bytes)
    offsets = [address_of(buffer) - start for buffer in buffers]
    extents = [(offset, buffer.nbytes) for offset, buffer
               in zip(offsets, buffers, strict=True)]
    # Nearly always they are at the same places as the arrays of the previous
    # batch.
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
    """Return the extent of each array in a slot; None if there is no room.

    Arrays that are in the slot already keep their places.  The memory of other
    arrays that stages made in the slot is not used while a stage holds them.
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
    """Return the first aligned offset with `size` free bytes."""
    place = 0
    for start, stop in taken:
        if place + size <= start:
            break
        place = max(place, align(stop))
    return place


def detach(buffers: Buffers, placement: Placement | None) -> None:
    """Replace arrays that lie in a slot, or that a stage may overwrite, by
    copies."""
    is_placed = placement is not None and bool(placement.references)
    for place in range(len(buffers)):
        if is_placed or _num_references(buffers, place) > _OURS:
            # Copy into memory that earlier batches used: new pages cost more
            # time.
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


# Number of references that this module itself holds. Versions of Python count
# differently.
_OURS = _num_references([numpy.empty(1, numpy.uint8)], 0)
