"""Memory for decoded chunks."""
import multiprocessing
import os

import pytest

from fuel.storage.buffers import Buffers


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')
def test_children_made_by_a_fork_write_into_memory_of_their_own():
    """A child does not overwrite what the parent remembers."""
    buffer = Buffers().take(100)
    buffer[:] = 1

    def overwrite():
        buffer[:] = 2
        assert (buffer == 2).all()

    child = multiprocessing.get_context('fork').Process(target=overwrite)
    child.start()
    child.join(30)
    assert 0 == child.exitcode
    assert (buffer == 1).all()


def test_a_buffer_that_is_free_is_used_before_one_that_is_new():
    """The system has to make and clear the pages of new ones."""
    buffers = Buffers()
    used = [buffers.take(1 << 20) for _ in range(6)]
    assert 6 == len({buffer.ctypes.data for buffer in used})
    address = used[5].ctypes.data
    buffers.give_back(used.pop())
    assert address == buffers.take(1 << 20).ctypes.data


def test_a_buffer_that_was_in_use_is_used_before_one_that_is_new():
    """A batch may be copied from a buffer for a moment after it came back."""
    buffers = Buffers()
    first, second = (buffers.take(1 << 20) for _ in range(2))
    addresses = {each.ctypes.data for each in (first, second)}
    buffers.give_back(first)
    third = buffers.take(1 << 20)
    assert third.ctypes.data not in addresses
    addresses.add(third.ctypes.data)
    del first
    for buffer in second, third:
        buffers.give_back(buffer)
    del buffer, second, third
    used = [buffers.take(1 << 20) for _ in range(3)]
    assert addresses == {each.ctypes.data for each in used}
