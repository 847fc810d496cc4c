"""A hanging process prints its stacks."""
import textwrap
from pathlib import Path

from support import processes, stuck

SCRIPT = """
    import os, sys, threading, time
    sys.path.insert(0, sys.argv[1])
    from support import stuck
    def hang():
        time.sleep(1.5)
    if __name__ == '__main__':
        stuck.arm_forks(0.3)
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        else:
            thread = threading.Thread(target=hang, name='other')
            thread.start()
            thread.join()
"""


def test_stacks_of_a_process_that_takes_too_long_are_printed(tmp_path):
    """Those of all its threads, and it goes on."""
    path = tmp_path / 'script.py'
    path.write_text(textwrap.dedent(SCRIPT))
    status, _, errors = processes.run_python(
        str(path), str(Path(stuck.__file__).parents[1]))
    assert status == 0
    assert b'thread other' in errors
    assert b'in hang' in errors
    assert b'thread MainThread' in errors


PROBE = """
    import pytest
    @pytest.mark.skip(reason='cannot run here')
    def test_that_needs_something():
        pass
    @pytest.mark.skip(reason='cannot run here')
    def test_that_needs_more():
        pass
"""


def test_summary_names_what_cannot_run(tmp_path, pytestconfig):
    """It names each test, not only their number."""
    path = tmp_path / 'test_probe.py'
    path.write_text(textwrap.dedent(PROBE))
    _, output, _ = processes.run_python(
        '-m', 'pytest', '-c', str(pytestconfig.inipath), '--rootdir',
        str(tmp_path), '-p', 'no:cacheprovider', str(path))
    assert b'test_that_needs_something' in output
    assert b'test_that_needs_more' in output
