"""Locks between real processes."""
import os
import signal
import subprocess
import sys
import threading

import pytest

from fuel.utils.lock import (
    Unlocker,
    get_lock,
    get_readlock,
    get_writelock,
    lock,
    refresh_lock,
    release_lock,
    release_readlock,
    release_writelock,
)


@pytest.fixture
def start():
    """Start an interpreter that runs some code, says so, and then waits.

    It gets the arguments in ``sys.argv`` and ends when its input ends.
    """
    processes = []

    def start(code, *arguments):
        process = subprocess.Popen(
            [sys.executable, '-c', 'import os, sys\n'
             'from fuel.utils.lock import *\n' + code
             + '\nprint("ready", flush=True)\nsys.stdin.read()\n',
             *map(str, arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        assert 'ready\n' == process.stdout.readline()
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate(timeout=30)


def finish(process):
    """End a process of `start` in the ordinary way."""
    process.communicate(timeout=30)
    assert 0 == process.returncode


def test_lock_is_exclusive_between_processes(tmp_path, start):
    """Two processes do not hold it at once; the end of one frees it."""
    owner = start('get_lock(sys.argv[1])', tmp_path / 'folder')
    with pytest.raises(TimeoutError, match='locked by another process'):
        get_lock(str(tmp_path / 'folder'), timeout=0.2)
    finish(owner)
    get_lock(str(tmp_path / 'folder'), timeout=30)
    release_lock()


def test_lock_is_not_stolen_from_a_live_owner(tmp_path, start):
    """A lock is never taken over from an owner that is alive.

    The owner's file is made a day old, which is what looked stale.
    """
    owner = start('get_lock(sys.argv[1])', tmp_path)
    os.utime(tmp_path / 'lock', (0, 0))
    with pytest.raises(TimeoutError, match='locked by another process'):
        lock(str(tmp_path), timeout=0.2, min_wait=0.01)
    finish(owner)


def test_lock_of_a_killed_owner_is_free(tmp_path, start):
    """The system frees the lock of a process that was killed."""
    owner = start('get_lock(sys.argv[1])\n'
                  'get_readlock(os.getpid(), sys.argv[1] + "/a")', tmp_path)
    assert 3 == len(os.listdir(tmp_path))
    owner.send_signal(signal.SIGKILL)
    owner.wait(timeout=30)
    get_lock(str(tmp_path), timeout=30)
    get_writelock(str(tmp_path / 'a'), timeout=30)
    release_writelock()
    release_lock()
    # Its read lock is free, too.
    assert ['a.writelock', 'lock'] == sorted(os.listdir(tmp_path))


def test_lock_of_a_parent_outlives_its_forked_child(tmp_path, start):
    """A child that ends does not release what its parent holds."""
    owner = start(
        'get_lock(sys.argv[1])\n'
        'pid = os.fork()\n'
        'if pid == 0:\n'
        '    release_lock()\n'
        '    sys.exit()\n'
        'os.waitpid(pid, 0)', tmp_path)
    with pytest.raises(TimeoutError, match='locked by another process'):
        get_lock(str(tmp_path), timeout=0.2)
    finish(owner)


def test_lock_of_a_dead_owner_is_free_while_its_child_lives(
        tmp_path, start):
    """A forked child does not keep the lock when its parent is killed."""
    owner = start(
        'get_lock(sys.argv[1])\n'
        'if os.fork() == 0:\n'
        '    sys.stdin.read()\n'
        '    os._exit(0)', tmp_path)
    owner.send_signal(signal.SIGKILL)
    owner.wait(timeout=30)
    get_lock(str(tmp_path), timeout=30)
    release_lock()


def test_lock_of_a_planted_link_is_refused(tmp_path):
    """A lock file never is a link to somebody's file."""
    (tmp_path / 'lock').symlink_to(tmp_path / 'target')
    with pytest.raises(OSError, match='lock'):
        get_lock(str(tmp_path), timeout=0)
    assert not (tmp_path / 'target').exists()


def test_lock_is_exclusive_between_threads(tmp_path):
    """Another thread of the process waits, too."""
    get_lock(str(tmp_path))
    errors = []

    def other():
        try:
            get_lock(str(tmp_path), timeout=0.1)
        except TimeoutError as error:
            errors.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(30)
    release_lock()
    assert 1 == len(errors)


def test_lock_nests_in_one_thread(tmp_path, start):
    """Taken twice, it is free after two releases."""
    folder = str(tmp_path)
    get_lock(folder)
    get_lock(folder, timeout=0)
    release_lock()
    attempt = ('try:\n    get_lock(sys.argv[1], timeout=0.1)\n'
               'except TimeoutError:\n    assert sys.argv[2] == "taken"\n'
               'else:\n    assert sys.argv[2] == "free"')
    finish(start(attempt, folder, 'taken'))
    release_lock()
    finish(start(attempt, folder, 'free'))


@pytest.mark.parametrize('release', [release_lock, release_writelock])
def test_release_without_a_lock_raises(release):
    """There must be something to release."""
    with pytest.raises(RuntimeError, match='holds no lock'):
        release()


def test_unlocker_unlocks_once_or_twice(tmp_path):
    """``unlock`` is harmless when there is nothing to do."""
    folder = str(tmp_path / 'new')
    Unlocker(folder).unlock()
    unlocker = lock(folder, timeout=1)
    with pytest.raises(TimeoutError, match='locked by another process'):
        lock(folder, timeout=0)
    unlocker.unlock()
    unlocker.unlock()
    lock(folder, timeout=0).unlock()


def test_write_lock_waits_for_readers_and_readers_for_a_writer(
        tmp_path, start):
    """Many readers, or one writer."""
    path = str(tmp_path / 'data [1].hdf5')
    readers = [start('get_readlock(os.getpid(), sys.argv[1])', path)
               for _ in range(2)]
    mine = get_readlock(os.getpid(), path)
    with pytest.raises(TimeoutError, match='read by other processes'):
        get_writelock(path, timeout=0.1)
    for reader in readers:
        finish(reader)
    # This process's own read lock is not in its way.
    get_writelock(path, timeout=30)
    release_writelock()
    release_readlock(mine)
    release_readlock(mine)
    writer = start('get_writelock(sys.argv[1])', path)
    with pytest.raises(TimeoutError, match='locked by another process'):
        get_readlock(os.getpid(), path, timeout=0.1)
    finish(writer)
    # No read lock is left over.
    assert ['data [1].hdf5.writelock'] == os.listdir(tmp_path)


def test_refresh_lock_marks_the_file(tmp_path):
    """The file's time becomes now, and each mark is new."""
    path = tmp_path / 'lock'
    path.touch()
    os.utime(path, (0, 0))
    assert refresh_lock(str(path)) != refresh_lock(str(path))
    assert path.stat().st_mtime > 10 ** 9


@pytest.mark.parametrize('take', ['get_lock(sys.argv[1], timeout=.2)',
                                  'lock(sys.argv[1], timeout=.2)'])
def test_lock_by_a_link_is_that_of_the_folder(tmp_path, start, take):
    """A folder has one lock, whatever path leads to it: within a thread it
    nests, for another process it is taken."""
    folder, link = tmp_path / 'folder', tmp_path / 'link'
    folder.mkdir()
    link.symlink_to(folder)
    for first, second in ((folder, link), (link, folder)):
        get_lock(str(first), timeout=1)
        get_lock(str(second), timeout=1)
        release_lock()
        code = (f'try: {take}\nexcept TimeoutError: pass\n'
                'else: raise SystemExit("the lock was free")')
        finish(start(code, second))
        release_lock()
        finish(start(take, second))
