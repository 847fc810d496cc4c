"""A worker that makes nothing is busy, asleep, stopped or starved."""
import logging
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from support.process_pipelines import (
    assert_same, build, sleep_long)
from support.waiting import wait_until

from fuel import config
from fuel.exceptions import WorkerError
from fuel.workers.deadlock import Usage, UsageWatch, may_wait, usage_of

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != 'linux', reason='looks into /proc')]

BUSY = 'while True: pass'
# The worker starts in less than the timeout.
FORKED = pytest.mark.parametrize('start_method', ['fork'])


def do_nothing():
    """Be no fault."""


def compute(seconds=30.):
    """Use a processor."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def compute_in_the_background():
    """Compute when no other wants the same processor."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.nice(19)
    end = time.monotonic() + 3
    while time.monotonic() < end:
        pass


@pytest.fixture
def start():
    """Return a function that runs a program in the first processor."""
    started = []

    def start(program):
        first = min(os.sched_getaffinity(0))
        process = subprocess.Popen(
            [sys.executable, '-c', f'import os, time; '
             f'os.sched_setaffinity(0, {{{first}}}); print(flush=True)\n'
             + program], stdout=subprocess.PIPE)
        started.append(process)
        process.stdout.readline()
        return process.pid

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def deadlock_timeout():
    """Return the seconds after which workers are judged."""
    return 0.5


def describe(pid, seconds=1.):
    """Return what a process does after a while."""
    watch = UsageWatch(pid)
    watch.look()
    time.sleep(seconds)
    watch.look()
    return watch.is_kept_from_work(), watch.describe()


def test_process_that_sleeps_waits_in_a_call(start):
    """The system says in which one."""
    kept, what = describe(start('time.sleep(60)'))
    assert not kept
    assert 'asleep in a call (' in what
    assert 'nanosleep' in what


def test_process_that_computes_is_busy(start):
    """The process has its share even if others want the processor too."""
    kept, what = describe(start('os.sched_setaffinity(0, {*range(99)})\n'
                                + BUSY))
    # On a machine with more work than processors it may have less.
    assert what.startswith(('it is busy (it used', 'it is starved (it is '))
    assert kept is ('starved' in what)


def test_process_that_is_stopped_is_said_to_be(start):
    """The text has the command that lets the process go on."""
    pid = start(BUSY)
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: usage_of(pid).state == 'T')
    assert describe(pid, 0) == (
        True, f'it is stopped (SIGSTOP; `kill -CONT {pid}` lets it go on)')


def test_process_that_gets_no_processor_is_starved(start):
    """Another one of higher priority has it."""
    pid = start('os.nice(19)\n' + BUSY)
    start(BUSY)
    kept, what = describe(pid, 2.)
    assert kept
    assert what.startswith('it is starved (it is ready to run, but used 0.')


WAITING = Usage('S', 5., 0., 100)


def test_processes_may_have_names_of_any_encoding(start, tmp_path):
    """The system cuts the name of a process within a character, and files
    that a process has mapped have the names that they have."""
    path = os.fsencode(tmp_path) + b'/\xe9\rx'
    pid = start(f"""import ctypes, mmap
ctypes.CDLL(None).prctl(15, {'αβγδεζηθ'.encode()!r})
file = open({path!r}, 'w+b')
file.truncate(9)
memory = mmap.mmap(file.fileno(), 9)
import threading
threading.Event().wait()""")
    wait_until(lambda: usage_of(pid).state == 'S')
    assert may_wait(pid) is False


@pytest.mark.parametrize('after, kept, what', [
    (WAITING._replace(seconds=14.8), False,
     'it is busy (it used 9.8 s of processor time in the last 10.0 s)'),
    (WAITING._replace(pages=301), True,
     'it is short of memory (it read 201 pages of its memory from the '),
    (WAITING._replace(state='D'), False, 'it waits, for a disk, and used'),
    (WAITING._replace(state='t'), True, 'it is stopped by a debugger'),
    (WAITING._replace(delay=6.), True, 'it is starved'),
    (WAITING._replace(state='R', seconds=5.1), True,
     'it is starved (it is ready to run, but used 0.1 s of processor '),
    (WAITING._replace(delay=4.), False, 'it waits, asleep in a call, and')])
def test_last_ten_seconds_are_what_counts(monkeypatch, after, kept, what):
    """The seconds before those do not count."""
    seen = [WAITING._replace(seconds=1.), WAITING, after]
    monkeypatch.setattr(
        'fuel.workers.deadlock.usage_of', lambda _: seen.pop(0))
    now = [0.]
    monkeypatch.setattr(time, 'monotonic', lambda: now[0])
    # A process that is not there sleeps in no known place.
    watch = UsageWatch(2 ** 30)
    for moment in (0., 5., 15.):
        now[0] = moment
        watch.look()
    assert watch.is_kept_from_work() is kept
    assert watch.describe().startswith(what)
    assert watch.seconds_without_processor() == after.delay


def test_systems_without_proc_tell_nothing(monkeypatch):
    """The text says that the system does not tell."""
    monkeypatch.setattr('fuel.workers.deadlock.usage_of', lambda _: None)
    kept, what = describe(os.getpid(), 0)
    assert not kept
    assert what == ('this system does not report whether it is busy, stopped '
                    'or asleep')
    assert describe(None, 0) == (kept, what)


@FORKED
@pytest.mark.parametrize('fault, what', [
    (sleep_long, r'it waits, asleep in a call \(.*sleep.*\).*in sleep_long'),
    (compute, r'it is (busy \(it used|starved \().*in compute')])
def test_timeout_says_what_the_worker_does(ahead, fault, what):
    """The error also says where in the code the worker is."""
    config.deadlock_timeout = 'off'
    epoch = ahead(fault, timeout=2)
    next(epoch)
    with pytest.raises(WorkerError, match=rf'(?s)2 seconds \(timeout\): {what}'
                       ):
        while True:
            next(epoch)


def test_stopped_worker_is_told_in_the_log_and_at_the_timeout(ahead, caplog):
    """The worker is waited for, since somebody may let it go on."""
    epoch = ahead(do_nothing, timeout=6, max_store=1)
    next(epoch)
    pid = epoch.data_stream.worker_pids[0]
    os.kill(pid, signal.SIGSTOP)
    caplog.set_level(logging.WARNING, 'fuel')
    with pytest.raises(
            WorkerError, match=f'timeout.*stopped .SIGSTOP.*-CONT {pid}`'):
        for _ in epoch:
            pass
    record, = [record for record in caplog.records
               if record.name == 'fuel.workers.worker']
    assert 'and is waited for: it is stopped (SIGSTOP; `kill' in (
        record.getMessage())


def test_worker_that_stalled_makes_no_other_epoch(ahead):
    """A new one does, which goes on where the reader was."""
    epoch = ahead(do_nothing, timeout=6, max_store=1)
    stream, found = epoch.data_stream, [next(epoch)]
    pid, = stream.worker_pids
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(WorkerError, match='A new epoch iterator starts a new'):
        while True:
            found.append(next(epoch))
    # The state is that after the last delivered batch.
    state = stream.state_dict()
    stream.load_state_dict(state)
    found += stream.get_epoch_iterator()
    assert_same(build().get_epoch_iterator(), found)
    assert stream.worker_pids != [pid]
    assert usage_of(pid) is None


def test_worker_that_was_stopped_goes_on(ahead, caplog):
    """The log says that it was waited for, and nothing is lost."""
    epoch = ahead(do_nothing, timeout=20, max_store=1)
    found = [next(epoch)]
    pid = epoch.data_stream.worker_pids[0]
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(2, lambda: os.kill(pid, signal.SIGCONT)).start()
    found += epoch
    assert_same(build().get_epoch_iterator(), found)
    assert len([record for record in caplog.records
                if 'kill -CONT' in record.getMessage()]) == 1


@FORKED
def test_time_without_a_processor_does_not_count_as_timeout(
        ahead, start, caplog):
    """A starved worker gets on, so it is not stuck."""
    start(BUSY)
    epoch = ahead(compute_in_the_background, timeout=1)
    begin = time.monotonic()
    assert_same(build().get_epoch_iterator(), epoch)
    assert time.monotonic() - begin > 3
    assert 'it is starved' in caplog.text
