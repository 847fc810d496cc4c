"""Slots are reused when, and only when, nobody looks at them any more."""
import gc
import os

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuel.transport.batches import dump_batch, load_batch
from fuel.transport.leases import Leases
from fuel.transport.segment import Segment
from fuel.transport.slots import BudgetError, SlotPool

SIZE = 1 << 16


def lend(leases, slot=0, count=SIZE):
    """Return an array over slot number `slot` of a segment of slots."""
    return leases.lend(slot, 0, [(slot * SIZE, count)],
                       lambda buffers: numpy.frombuffer(
                           buffers[0], numpy.uint8).reshape(-1, 4))


@pytest.fixture
def leases():
    """Leases over one segment of four slots; three may be lent."""
    leases = Leases(3 * SIZE)
    leases.add_segment(0, Segment.create(4 * SIZE))
    return leases


def test_slot_comes_back_when_its_array_dies(leases):
    """The slot is returned once, and not before."""
    array = lend(leases)
    assert leases.returned() == []
    del array
    assert leases.returned() == [(0, True)]
    assert leases.returned() == []


@pytest.mark.parametrize('view', [
    lambda array: array[1:2],
    lambda array: array.reshape(-1)[::7],
    lambda array: memoryview(array)[3:],
    lambda array: array.view(numpy.uint32).T,
    lambda array: numpy.lib.stride_tricks.as_strided(array, (2,), (1,)),
    lambda array: array.base,
], ids=['slice', 'steps', 'memoryview', 'transpose', 'strided', 'base'])
def test_slot_is_kept_by_a_view_alone(leases, view):
    """Any view keeps the slot, without the array that was handed out."""
    array = lend(leases)
    kept = view(array)
    del array
    gc.collect()
    assert leases.returned() == []
    del kept
    gc.collect()
    assert leases.returned() == [(0, True)]


def test_slot_of_a_cycle_comes_back_within_the_collector(leases):
    """The release inside the garbage collector only appends."""
    holder = [lend(leases)]
    holder.append(holder)
    del holder
    assert leases.returned() == []
    gc.collect()
    assert leases.returned() == [(0, True)]


def test_array_beyond_the_limit_is_a_copy(leases):
    """A consumer that keeps everything gets memory of its own."""
    kept = [lend(leases, slot) for slot in range(3)]
    assert leases.returned() == []
    copied = lend(leases, 3)
    assert leases.returned() == [(3, True)]
    assert leases.lent == 3 * SIZE
    copied[:] = 7
    assert not any(array.any() for array in kept)
    assert copied.flags.writeable
    assert copied.flags.aligned


def test_leased_memory_outlives_the_leases(leases):
    """Arrays stay valid when everything else is gone."""
    array = lend(leases)
    array[:] = 3
    leases.drop_segment(0)
    del leases
    gc.collect()
    assert (array == 3).all()


def test_fork_of_the_consumer_releases_nothing_and_retires(leases):
    """A child's arrays die without a word; the slot is not written again."""
    array = lend(leases)
    other = os.fork()
    if not other:
        del array
        os._exit(0 if leases.returned() == [(0, False)] else 1)
    assert os.waitpid(other, 0)[1] == 0
    assert leases.returned() == []
    del array
    assert leases.returned() == [(0, False)]
    later = lend(leases)
    del later
    assert leases.returned() == [(0, True)]


def test_pool_reuses_the_slot_released_last():
    """Its memory is still in the cache."""
    pool = SlotPool(1 << 30)
    first, second = pool.acquire(5 << 20), pool.acquire(5 << 20)
    pool.release(first.number)
    pool.release(second.number)
    assert pool.acquire(5 << 20) is second


def test_pool_keeps_to_its_budget():
    """Beyond the budget there is no slot until one is released."""
    pool = SlotPool(32 << 20)
    slots = []
    while (slot := pool.acquire(5 << 20)) is not None:
        slots.append(slot)
    assert len(slots) == 6
    pool.release(slots[0].number)
    assert pool.acquire(5 << 20) is slots[0]


def test_pool_trades_small_slots_for_large_ones():
    """Free slots of another size do not stand in the way."""
    pool = SlotPool(32 << 20)
    for slot in [pool.acquire(5 << 20) for _ in range(6)]:
        pool.release(slot.number)
    assert pool.acquire(15 << 20) is not None
    assert pool.retired_segments


def test_pool_refuses_batches_of_which_two_do_not_fit():
    """The error has the numbers."""
    with pytest.raises(BudgetError, match='600 bytes .*1000 bytes of shared'):
        SlotPool(1000).check_size(600)


def test_pool_never_reuses_a_slot_that_someone_else_sees():
    """A retired slot's segment is given back."""
    pool = SlotPool(1 << 30)
    slot = pool.acquire(5 << 20)
    pool.release(slot.number, reuse=False)
    assert pool.acquire(5 << 20) is not slot
    assert pool.retired_segments == [slot.segment_number]


@pytest.mark.skipif(not hasattr(os, 'memfd_create'), reason='no memfd here')
def test_segment_cannot_be_made_smaller():
    """Nobody can take mapped memory away."""
    segment = Segment.create(SIZE)
    with pytest.raises(PermissionError, match='not permitted'):
        os.ftruncate(segment.descriptor, 0)


DTYPES = st.sampled_from([
    'u1', '<f4', '>f8', 'c16', '?', 'M8[s]', 'S3', 'U2', 'V5',
    [('a', '<i2'), ('b', '>f4', (2,))], 'S0'])


@st.composite
def arrays(draw):
    """Return arrays of many types, shapes, orders and strides."""
    dtype = numpy.dtype(draw(DTYPES))
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    count = int(numpy.prod(shape, dtype=int))
    raw = draw(st.binary(min_size=count * dtype.itemsize,
                         max_size=count * dtype.itemsize))
    if raw:
        array = numpy.frombuffer(raw, dtype).reshape(shape)
    else:
        array = numpy.zeros(shape, dtype)
    kind = draw(st.sampled_from(['plain', 'own', 'F', 'reversed']))
    if kind == 'own':
        return array.copy()
    if kind == 'F':
        return array.copy(order='F')
    if kind == 'reversed':
        return array[::-1] if array.ndim else array
    return array


BATCHES = st.recursive(
    arrays() | st.binary() | st.text() | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner),
    max_leaves=8)


def assert_same(expected, actual):
    """Compare data of any nesting, types and layout included."""
    assert type(expected) is type(actual)
    if isinstance(expected, numpy.ndarray):
        assert expected.dtype == actual.dtype
        assert expected.shape == actual.shape
        assert expected.tobytes() == actual.tobytes()
        assert actual.flags.writeable
        assert actual.flags.aligned
        assert (expected.flags.f_contiguous and not
                expected.flags.c_contiguous) <= actual.flags.f_contiguous
    elif isinstance(expected, (list, tuple)):
        assert len(expected) == len(actual)
        for one, other in zip(expected, actual, strict=True):
            assert_same(one, other)
    else:
        assert expected == actual


@given(BATCHES, st.sampled_from([0, 10, 1 << 14]))
def test_any_data_survives_the_way(batch, small):
    """Values, types, shapes and order stay; arrays are writable, aligned."""
    description, buffers = dump_batch(batch, small)
    copies = [buffer.copy() for buffer in buffers]
    assert_same(batch, load_batch(description, copies))


def test_object_arrays_go_through_the_general_path():
    """Ragged data arrive as they were."""
    ragged = numpy.empty(2, object)
    ragged[:] = [numpy.arange(3), numpy.arange(30000.)]
    description, buffers = dump_batch((ragged,))
    (actual,) = load_batch(description, [bytearray(b) for b in buffers])
    assert actual.dtype == object
    assert len(buffers) == 1
    for expected, got in zip(ragged, actual, strict=True):
        numpy.testing.assert_array_equal(expected, got)
