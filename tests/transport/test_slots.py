"""Slots are given out within a budget, and segments given back unused."""
from itertools import pairwise

import numpy
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)

from fuel.kernels.outputs import Placement, empty, placed
from fuel.transport.slots import SlotPool, align, write_into

MB = 1 << 20


def test_slot_of_20_mib_is_not_used_for_16_kib():
    """A slot far too large would waste the budget."""
    pool = SlotPool(64 * MB)
    large = pool.acquire(20 * MB)
    pool.release(large.number)
    small = pool.acquire(16 << 10)
    assert small is not large
    assert small.capacity < 64 << 10
    assert pool.acquire(20 * MB) is large


def fill(pool):
    """Return slots of one segment, and free ones that are in the way."""
    small = [pool.acquire(16 << 10) for _ in range(3)]
    assert 1 == len({slot.segment_number for slot in small})
    others = [pool.acquire(5 * MB) for _ in range(5)]
    for slot in others:
        pool.release(slot.number)
    return small


def test_segment_with_a_slot_in_use_is_never_retired():
    """A single slot in use keeps its segment."""
    pool = SlotPool(32 * MB)
    small = fill(pool)
    for slot in small[1:]:
        pool.release(slot.number)
    assert pool.acquire(15 * MB) is not None
    assert pool.acquire(15 * MB) is not None
    assert pool.retired_segments
    assert small[0].segment_number not in pool.retired_segments


def test_segment_with_a_slot_that_a_stage_holds_is_never_retired():
    """A slot that was not sent may still have an array of a stage."""
    pool = SlotPool(32 * MB)
    small = fill(pool)
    placement = Placement(small[0].bytes, [(0, 1024)])
    with placed(placement):
        kept = empty(1024, 'u1')
    for slot in small:
        pool.put_back(slot, placement if slot is small[0] else None)
    again = [pool.acquire(15 * MB), pool.acquire(15 * MB)]
    assert None not in again
    assert small[0].segment_number not in pool.retired_segments
    kept[...] = 1
    for slot in again:
        slot.bytes[...] = 2
        pool.release(slot.number)
    assert (kept == 1).all()
    del kept
    found = [pool.acquire(16 << 10) for _ in range(3)]
    assert small[0] in found


class Pool(RuleBasedStateMachine):
    """Any history of a pool."""

    slots = Bundle('slots')

    def __init__(self):
        super().__init__()
        self.pool = SlotPool(24 * MB)
        self.held = {}
        self.seen_elsewhere = set()
        self.marks = 0

    @rule(target=slots, size=st.sampled_from(
        [1, 16 << 10, 200_000, 2 * MB, 5 * MB, 11 * MB]))
    def acquire(self, size):
        """A slot has room, is nobody else's and its segment is there."""
        slot = self.pool.acquire(size)
        if slot is None:
            return multiple()
        assert size <= slot.capacity == slot.bytes.nbytes
        assert slot.number not in self.held
        assert slot.number not in self.seen_elsewhere
        self.marks += 1
        slot.bytes[::4096] = self.marks % 251
        self.held[slot.number] = slot, self.marks % 251
        return slot

    @rule(slot=consumes(slots), reuse=st.booleans())
    def release(self, slot, reuse):
        """Release a slot; it comes back unless a child process looks at it."""
        _, mark = self.held.pop(slot.number)
        assert (slot.bytes[::4096] == mark).all()
        if not reuse:
            self.seen_elsewhere.add(slot.number)
        self.pool.release(slot.number, reuse)

    @invariant()
    def segments_in_use_stay(self):
        """Check the budget and the segments in use."""
        used = [slot for slot, _ in self.held.values()]
        assert sum(slot.capacity for slot in used) <= self.pool.budget
        assert {slot.segment_number for slot in used}.isdisjoint(
            self.pool.retired_segments)
        assert len(set(self.pool.retired_segments)) == len(
            self.pool.retired_segments)

    @invariant()
    def slots_in_use_do_not_overlap(self):
        """No two slots of one segment share a byte."""
        places = sorted((slot.segment_number, slot.offset, slot.capacity)
                        for slot, _ in self.held.values())
        for (one, start, size), (other, begin, _) in pairwise(places):
            assert one != other or start + size <= begin


TestPool = Pool.TestCase
TestPool.settings = settings(max_examples=40, stateful_step_count=30,
                             deadline=None)


@pytest.mark.parametrize('size', [1, 16 << 10, 5 * MB])
def test_slot_is_aligned_memory_of_uint8(size):
    """Arrays of any type may begin there."""
    memory = SlotPool(32 * MB).acquire(size).bytes
    assert numpy.uint8 == memory.dtype
    assert 0 == memory.ctypes.data % 64


PARTS = st.lists(st.tuples(
    # Bytes, and whether the array was made in the slot, is held by a stage.
    st.integers(1, 6000), st.booleans(), st.booleans()), max_size=6)


@settings(max_examples=200)
@given(PARTS, st.randoms(use_true_random=False))
@example([(64, False, False)] * 3 + [(64, True, True)], None)
@example([(100, True, True), (64, False, False), (200, True, True),
          (64, False, False), (192, False, False)], None)
@example([(5377, True, False), (5441, True, False), (5441, True, False)], None)
def test_arrays_in_a_slot_never_share_a_byte(parts, rng):
    """Arrays do not overlap each other, or the bytes that a stage holds."""
    slot = SlotPool(32 * MB).acquire(16 << 10)
    places, start = [], 0
    for size, inside, _ in parts:
        if inside:
            places.append((start, size))
            start = align(start + size)
    placement = Placement(slot.bytes, places)
    arrays, held = [], []
    with placed(placement):
        for number, (size, inside, is_held) in enumerate(parts, 1):
            array = (empty if inside else numpy.empty)(size, 'u1')
            array[...] = number
            (held if is_held else arrays).append(array)
            del array
    if rng is not None:
        rng.shuffle(arrays)
    before = [array.tobytes() for array in arrays]
    kept = [(array, array.tobytes()) for array in held]
    extents = write_into(slot, arrays, placement)
    if extents is None:
        assert sum(align(part[0]) for part in parts) > slot.capacity
        return
    assert before == [slot.bytes[offset:offset + size].tobytes()
                      for offset, size in extents]
    assert all(array.tobytes() == content for array, content in kept)
    assert all(0 == offset % 64 for offset, _ in extents)
