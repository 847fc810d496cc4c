"""Memory for decoded chunks."""
import multiprocessing
import os

import pytest

from fuel.storage.buffers import Buffers


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')
def test_children_made_by_a_fork_write_into_memory_of_their_own():
    """What they decode is not what the parent remembers in this place."""
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
