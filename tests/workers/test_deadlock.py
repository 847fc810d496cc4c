"""A worker that waits for nothing that comes is told, and no other one."""
import ctypes
import math
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from functools import partial
from types import SimpleNamespace

import pytest
from support.process_pipelines import Faulty, assert_same, build
from support.waiting import wait_until

from fuel import config
from fuel.exceptions import WorkerError
from fuel.transformers import BackgroundProcess, MultiProcessing
from fuel.workers import deadlock
from fuel.workers.deadlock import (
    Activity,
    DeadlockWatch,
    activity_seen_by_system,
)

pytestmark = pytest.mark.timeout(60)

LOCK = threading.Lock()
SHARED = multiprocessing.get_context('fork').Lock()
# Seconds. The workers under test get far fewer.
WAIT = 1.5


# The worker needs the memory of this process as it is, or starts in less than
# the timeout.
FORKED = pytest.mark.parametrize('start_method', ['fork'])


def do_nothing():
    """Be no fault."""


def take_lock():
    """Take a lock that somebody held when this process was forked."""
    with LOCK:
        pass


def lock_interpreter():
    """Wait without end, as a library does that keeps the interpreter."""
    mutex = ctypes.create_string_buffer(64)
    libc = ctypes.PyDLL(None)
    libc.pthread_mutex_lock(mutex)
    libc.pthread_mutex_lock(mutex)


def sleep():
    """Wait for a clock."""
    time.sleep(WAIT)


def wait_with_limit():
    """Wait for another thread, but not without end."""
    threading.Event().wait(WAIT)


def wait_for_child():
    """Let another program do the work."""
    subprocess.run(['sleep', str(WAIT)], check=True)


def wait_for_network():
    """Wait for an answer of a database, say."""
    near, far = socket.socketpair()
    with near, far:
        child = subprocess.Popen(
            ['sh', '-c', f'sleep {WAIT}; echo x'], stdout=far)
        near.recv(1)
        child.wait()


def wait_for_thread():
    """Wait without a limit for a thread, which waits for a network."""
    near, far = socket.socketpair()
    with near, far:
        reader = threading.Thread(target=near.recv, args=(1,))
        reader.start()
        child = subprocess.Popen(
            ['sh', '-c', f'sleep {WAIT}; echo x'], stdout=far)
        reader.join()
        child.wait()


def wait_for_lock_of_processes():
    """Wait for a lock that another process has for a while."""
    SHARED.acquire()
    SHARED.release()


def compute():
    """Use a processor."""
    end = time.process_time() + WAIT
    while time.process_time() < end:
        pass


@pytest.fixture
def deadlock_timeout():
    """Return the seconds after which workers are judged."""
    return 0.3


@FORKED
def test_lock_that_was_held_at_the_fork_is_told_with_the_stack(ahead):
    """The text names the remedies, and the setting."""
    with LOCK:
        epoch = ahead(take_lock)
        next(epoch)
        with pytest.raises(
                WorkerError, match=r"(?s)used no processor time for 0\.3 s.*"
                "start_method='forkserver'.*__main__.*"
                'fuel.config.deadlock_timeout.*take_lock'):
            next(epoch)


def test_wait_that_keeps_the_interpreter_is_told_with_the_stack(ahead):
    """No thread of the worker can answer, so the system is asked."""
    epoch = ahead(lock_interpreter)
    next(epoch)
    with pytest.raises(
            WorkerError, match='(?s)no processor time.*in lock_interpreter'):
        next(epoch)


@FORKED
@pytest.mark.full
def test_wait_that_keeps_the_interpreter_shows_its_stack_at_timeout(ahead):
    """The stack is shown also if deadlocks are not looked for."""
    config.deadlock_timeout = 'off'
    epoch = ahead(lock_interpreter, timeout=0.5)
    next(epoch)
    with pytest.raises(
            WorkerError, match=r'(?s)0\.5 seconds \(timeout\).*in lock_inter'):
        next(epoch)


@pytest.mark.parametrize('fault', [
    compute, sleep, wait_with_limit, wait_for_child, wait_for_network,
    wait_for_thread])
def test_worker_whose_wait_may_end_is_waited_for(ahead, fault):
    """The worker computes, or waits for something outside its process."""
    assert_same(build().get_epoch_iterator(), ahead(fault))


@FORKED
def test_lock_of_another_process_is_waited_for(ahead):
    """The lock is in memory that both processes have; it will be released."""
    with SHARED:
        epoch = ahead(wait_for_lock_of_processes)
        found = [next(epoch)]
        threading.Timer(WAIT, SHARED.release).start()
        found += epoch
        SHARED.acquire()
    assert_same(build().get_epoch_iterator(), found)


@FORKED
def test_idle_worker_is_warned_of_once_where_waits_are_unknown(
        ahead, monkeypatch):
    """On macOS waits are unknown: an error might be a false alarm."""
    monkeypatch.setattr(deadlock, '_FUTEX', {})
    monkeypatch.setattr(DeadlockWatch, '_has_warned', False)
    waiting, warned = os.pipe()

    def sleep_until_warned():
        os.read(waiting, 1)

    def warn(*arguments, **options):
        os.write(warned, b'x')
        warnings.warn(*arguments, **options)

    monkeypatch.setattr(deadlock, 'warnings', SimpleNamespace(warn=warn))
    epoch = ahead(sleep_until_warned)
    with pytest.warns(RuntimeWarning, match='no processor time') as caught:
        assert_same(build().get_epoch_iterator(), epoch)
    assert len(caught) == 1
    assert 'sleep' in str(caught[0].message)
    os.close(waiting)
    os.close(warned)


@pytest.mark.parametrize('off', [0, None, 'off', False])
def test_setting_turns_it_off(ahead, off):
    """A worker may wait for the stall's timeout then."""
    config.deadlock_timeout = off
    assert config.deadlock_timeout == math.inf
    assert_same(build().get_epoch_iterator(), ahead(
        partial(time.sleep, 0.7), timeout=10))


def test_worker_that_was_stopped_is_waited_for(ahead):
    """A process that the system does not run is not deadlocked."""
    epoch = ahead(partial(time.sleep, 0.3))
    worker = epoch.data_stream.worker_pids[0]
    os.kill(worker, signal.SIGSTOP)
    threading.Timer(
        1, lambda: os.kill(worker, signal.SIGCONT)).start()
    assert_same(build().get_epoch_iterator(), epoch)


def test_full_queue_is_not_a_deadlock(ahead):
    """A worker waits for its consumer for any time."""
    epoch = ahead(do_nothing, max_store=1)
    found = []
    for batch in epoch:
        found.append(batch)
        if len(found) < 3:
            time.sleep(0.5)
    assert_same(build().get_epoch_iterator(), found)


@pytest.mark.usefixtures('ahead')
def test_workers_of_workers_are_waited_for(start_method):
    """The outer one is idle while the inner one computes."""
    inner = MultiProcessing(Faulty(build(), 1, compute),
                            start_method=start_method)
    with MultiProcessing(inner, start_method=start_method) as outer:
        assert_same(build().get_epoch_iterator(), outer.get_epoch_iterator())


def test_time_for_which_the_consumer_was_stopped_does_not_count(
        ahead, monkeypatch):
    """Ctrl-Z and a lid that is closed stop both."""
    config.deadlock_timeout = 2
    now, skipped = time.monotonic, [0.]
    monkeypatch.setattr(time, 'monotonic', lambda: now() + skipped[0])
    epoch = ahead(partial(time.sleep, 1.9), timeout=10)
    threading.Timer(1.2, lambda: skipped.insert(0, 3600.)).start()
    assert_same(build().get_epoch_iterator(), epoch)


@FORKED
@pytest.mark.usefixtures('ahead')
def test_process_of_the_caller_is_judged_too():
    """The process was not started by Fuel."""
    with LOCK:
        background = BackgroundProcess(Faulty(build(), 0, take_lock), 2)
        child = os.fork()
        if not child:
            background.main()
            os._exit(0)
        with pytest.raises(WorkerError, match='(?s)None of Faulty.*take_lock'):
            background.get_next_data()
    background.close()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


IDLE = Activity('', 3, 1., may_wait=False)


@pytest.mark.parametrize('before, now, deadlocked', [
    (IDLE, IDLE, True),
    (IDLE, IDLE._replace(seconds=1.0009), True),
    (IDLE, IDLE._replace(seconds=1.0011), False),
    (IDLE, IDLE._replace(steps=4), False),
    (IDLE, IDLE._replace(may_wait=True), False),
    (IDLE._replace(may_wait=True), IDLE, False),
    (IDLE._replace(may_wait=None), IDLE._replace(may_wait=None), True),
    (IDLE, None, False), (None, IDLE, False)])
def test_two_looks_of_no_activity_make_a_deadlock(before, now, deadlocked):
    """Activity, or a wait that may end at either look, rules it out."""
    watch = DeadlockWatch(10)
    assert not watch.is_due(0.9)
    assert watch.is_due(1)
    assert not watch.look(1, before)
    assert watch.look(11, now) is deadlocked


def test_watch_looks_again_soon_if_it_could_not_judge():
    """The next look after a judgement comes after the limit."""
    watch = DeadlockWatch(10)
    watch.look(1, None)
    assert (watch.is_due(1.9), watch.is_due(2)) == (False, True)
    watch.look(2, IDLE)
    assert (watch.is_due(11.9), watch.is_due(12)) == (False, True)
    assert not DeadlockWatch(math.inf).is_due(1e9)


@pytest.mark.parametrize('program, may_wait', [
    ('time.sleep(60)', True),
    ('threading.Event().wait(60)', True),
    ('threading.Event().wait()', False)])
def test_activity_of_a_process_is_seen_from_outside(program, may_wait):
    """The system tells its time, and whether its wait may end."""
    process = subprocess.Popen(
        [sys.executable, '-c', 'import threading, time; print(flush=True);'
         + program], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        wait_until(lambda: activity_seen_by_system(
            process.pid).may_wait is may_wait)
        assert activity_seen_by_system(process.pid).seconds < 10
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: activity_seen_by_system(process.pid).may_wait)
    finally:
        process.kill()
        process.communicate()
    assert activity_seen_by_system(process.pid) is None
