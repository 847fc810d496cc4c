"""Recycled memory: arrays never share it while both live."""
import gc
import multiprocessing
import threading

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuel.kernels import memory
from fuel.kernels.memory import MOST_BYTES, empty

LARGE = (256, 1024)


def address(array):
    """Return where the data of an array begin."""
    return array.__array_interface__['data'][0]


def test_an_array_is_ordinary():
    """It owns its data and can be written."""
    array = empty((300, 1000), 'f4')
    assert (array.shape, array.dtype) == ((300, 1000), 'f4')
    assert array.flags.owndata
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert array.base is None


@pytest.mark.parametrize('shape, dtype', [
    ((), 'f8'), (0, 'f8'), (5, 'u1'), ((3, 0, 2), 'i4'), ((2, 3), 'S7'),
    ((40_000, 2), [('a', 'i4'), ('b', '>f8')]), (100_000, 'datetime64[s]'),
    ((100, 1000), '>f4'), (100_000, object), ((20_000,), '(2,3)f4')])
def test_shapes_and_types_are_those_of_numpy(shape, dtype):
    """Any shape and type of `numpy.empty` gives an equal array."""
    expected = numpy.empty(shape, dtype)
    array = empty(shape, dtype)
    assert array.shape == expected.shape
    assert array.dtype == expected.dtype
    assert array.strides == expected.strides


def test_memory_of_a_dead_array_is_used_again():
    """An array of about its size uses it."""
    memory.release()
    array = empty(LARGE, 'u1')
    place = address(array)
    del array
    assert memory.kept_bytes() == 256 * 1024
    again = empty((1024, 255), 'u1')
    assert address(again) == place
    assert memory.kept_bytes() == 0


def test_a_view_keeps_the_memory():
    """As long as a view lives, nobody else writes there."""
    view = empty(LARGE, 'u1')[10:]
    view[...] = 7
    other = empty(LARGE, 'u1')
    other[...] = 8
    assert (view == 7).all()


def test_data_begin_at_a_cache_line():
    """An array of any size is aligned."""
    arrays = [empty(70_000 + 24 * i, 'u1') for i in range(20)]
    assert {address(array) % 64 for array in arrays} == {0}


def test_what_is_kept_is_bounded_in_bytes_and_in_blocks():
    """`release` keeps no blocks."""
    memory.release()
    arrays = [empty(20 << 20, 'u1') for _ in range(10)]
    del arrays
    assert MOST_BYTES - (20 << 20) < memory.kept_bytes() <= MOST_BYTES
    memory.release()
    arrays = [empty(100_000, 'u1') for _ in range(200)]
    del arrays
    assert memory.kept_bytes() == 64 * 100_000
    too_large = empty(MOST_BYTES + 1, 'u1')
    del too_large
    assert memory.kept_bytes() == 64 * 100_000
    memory.release()
    assert memory.kept_bytes() == 0


def test_sizes_that_went_out_of_use_make_room():
    """The longest unused block goes first."""
    memory.release()
    for nbytes in range(10 << 20, 60 << 20, 10 << 20):
        empty(nbytes, 'u1')
    # 10 to 50 MB would be 150: the first one was let go.
    assert memory.kept_bytes() <= MOST_BYTES
    newest = empty(50 << 20, 'u1')
    assert memory.kept_bytes() <= MOST_BYTES - (50 << 20)
    del newest


def test_resizing_keeps_the_content():
    """NumPy reallocates through the same handler."""
    array = empty(100_000, 'u1')
    array[:] = numpy.arange(100_000) % 251
    array.resize(200_000)
    assert (array[:100_000] == numpy.arange(100_000) % 251).all()
    assert not array[100_000:].any()
    array.resize(10)
    assert array.tolist() == list(range(10))


@pytest.mark.parametrize('shape', [-1, (3, -2), (1,) * 33, (1 << 62, 1 << 62)])
def test_shapes_that_are_impossible_are_refused(shape):
    """NumPy refuses them, too."""
    with pytest.raises(ValueError, match='dimension|too big'):
        empty(shape, 'f8')


def test_what_the_system_has_not_is_a_memory_error():
    """The next array is made as before."""
    with pytest.raises(MemoryError):
        empty(1 << 60, 'u1')
    assert empty(LARGE, 'u1').size == 1 << 18


@settings(max_examples=50, deadline=None)
@given(steps=st.lists(st.tuples(
    st.integers(60_000, 300_000), st.integers(0, 9)), max_size=60))
def test_living_arrays_never_share_memory(steps):
    """Arrays may be made and freed in any order."""
    living = {}
    for number, (nbytes, place) in enumerate(steps):
        living[place] = (number % 256, empty(nbytes, 'u1'))
        living[place][1][:] = number % 256
        for value, array in living.values():
            assert array[0] == array[-1] == value
    for value, array in living.values():
        assert (array == value).all()


def test_threads_never_share_memory():
    """Arrays of eight threads that come and go."""
    wrong = []

    def work(value):
        for size in range(300):
            array = empty(70_000 + 100 * size, 'u1')
            array[:] = value
            kept = array[::997].copy()
            del array
            array = empty(90_000, 'u1')
            array[:] = value
            if (kept != value).any() or (array != value).any():
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _sum_in_child(array, answers):
    first = int(array.sum())
    del array
    other = empty(LARGE, 'u1')
    other[:] = 2
    answers.put((first, int(other.sum())))


def test_a_forked_child_has_memory_of_its_own():
    """The child's writes and frees do not change the parent."""
    if 'fork' not in multiprocessing.get_all_start_methods():
        pytest.skip('no fork on this system')
    context = multiprocessing.get_context('fork')
    array = empty(LARGE, 'u1')
    array[:] = 1
    answers = context.SimpleQueue()
    child = context.Process(target=_sum_in_child, args=(array, answers))
    child.start()
    assert answers.get() == (1 << 18, 2 << 18)
    child.join()
    assert (array == 1).all()


def test_cycles_give_memory_back():
    """They do when the garbage collector finds them."""
    memory.release()
    holder = []
    holder.append((holder, empty(LARGE, 'u1')))
    del holder
    gc.collect()
    assert memory.kept_bytes() == 1 << 18


def test_tracemalloc_sees_the_arrays():
    """A tool for memory finds what lives, not what is kept."""
    import tracemalloc
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        array = empty(1 << 20, 'u1')
        assert tracemalloc.get_traced_memory()[0] - before >= 1 << 20
        del array
        assert tracemalloc.get_traced_memory()[0] - before < 1 << 18
    finally:
        tracemalloc.stop()
