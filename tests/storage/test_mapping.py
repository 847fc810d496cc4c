"""A file is mapped when that is first needed."""
import mmap
import multiprocessing
import os
import threading

import pytest

from fuel.storage import file_bytes
from fuel.storage.file_bytes import raw_file_at


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')
def test_fork_while_another_thread_maps_a_file_is_safe(tmp_path, monkeypatch):
    """The child can map files, although that thread does not exist there."""
    for name in 'ab':
        (tmp_path / name).write_bytes(b'abc')
    first, second = (raw_file_at(str(tmp_path / name)) for name in 'ab')
    begun, go_on = threading.Event(), threading.Event()

    class SlowMap:
        """A stand-in for the module, which takes its time."""

        ACCESS_READ = mmap.ACCESS_READ

        @staticmethod
        def mmap(*args, **kwargs):
            begun.set()
            assert go_on.wait(30)
            return mmap.mmap(*args, **kwargs)

    def check():
        assert b'abc' == second.memory[:]

    monkeypatch.setattr(file_bytes, 'mmap', SlowMap)
    thread = threading.Thread(target=lambda: first.memory)
    thread.start()
    assert begun.wait(30)
    monkeypatch.undo()
    child = multiprocessing.get_context('fork').Process(
        target=check, daemon=True)
    child.start()
    child.join(30)
    code = child.exitcode
    child.kill()
    go_on.set()
    thread.join(30)
    assert 0 == code
    assert b'abc' == first.memory[:] == second.memory[:]
