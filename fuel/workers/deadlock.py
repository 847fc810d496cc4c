"""Finds out why a worker sends nothing: a deadlock, or too few resources.

The consumer checks the worker from time to time while it waits for a batch.  A
worker is deadlocked if all of this is true: it made no step and used no
processor time from one check to the next, and all its threads wait in the
system call ``futex`` without a time limit, for memory that no other process
shares.  Only the waiting threads themselves could end such a wait.  A thread
that waits for a file, a network, another program, a clock or a lock that
processes share waits in another way.  Only Linux reports this.
"""
from __future__ import annotations

import faulthandler
import math
import os
import platform
import signal
import sys
import threading
import time
import warnings
from collections import deque
from contextlib import suppress
from typing import IO, NamedTuple

from fuel.exceptions import WorkerError
from fuel.transport.segment import Segment
from fuel.utils.threads import stack_of

# The number of the system call ``futex``, by the kind of machine.
_FUTEX = {'x86_64': '202', 'aarch64': '98', 'riscv64': '98',
          'loongarch64': '98', 'ppc64le': '221', 's390x': '238'}
# Length, in seconds, of the period that a description covers.
_WINDOW_SECONDS = 10.0
# A process counts as busy if it uses a processor, and as starved if it waits
# for one, for at least this share of the period.
_BUSY_SHARE = 0.5
# Memory counts as short if a process reads at least so many of its pages from
# the disk, per second and in total.
_SWAPPED, _SWAPPED_LEAST = 20, 100
_STATES = {
    'T': 'it is stopped (SIGSTOP; `kill -CONT {pid}` lets it go on)',
    't': 'it is stopped by a debugger'}
# Minimum length, in seconds, of the period that a description covers, since
# the system counts in hundredths of a second.
_LEAST_SECONDS = 0.2
# Greatest share of a processor that an idle worker uses, in threads that wake
# up now and then to check a clock.
_IDLE_SHARE = 1e-4
# The same share for threads that wait for the interpreter, which another
# thread holds: they check it 200 times a second. The system counts in
# hundredths of a second.
_POLLING_SHARE = 0.02
_TICK_SECONDS = 0.01
# Seconds before another check of a worker that cannot be judged yet.
_RETRY_SECONDS = 1.0
# A process without a handler ignores this signal.
_SIGNAL = signal.SIGURG
# Seconds within which the stacks are written, and between reads of them.
_STACKS_SECONDS = 2.0
_POLL_SECONDS = 0.02


class Usage(NamedTuple):
    """Processor time and memory that a process has used up to now.

    `state`: letter of ``/proc/PID/stat``: R runs, or is ready to run; S
        sleeps; D waits for a disk; T is stopped.
    `seconds`: processor time of all its threads.
    `delay`: seconds in which its first thread, which runs the pipeline of a
        worker, was ready but had no processor; 0 if the system does not
        count them.
    `pages`: number of pages of its memory that were read from a disk.
    """

    state: str
    seconds: float
    delay: float
    pages: int


def _open(pid: int | None, name: str) -> IO[str]:
    """Open a file ``/proc/PID/name``.  The names of programs and files in it
    may have any encoding."""
    return open(f'/proc/{pid}/{name}', encoding='latin-1', newline='\n')


def usage_of(pid: int) -> Usage | None:
    """Return the usage of a process, None if it is unknown."""
    try:
        with _open(pid, 'stat') as file:
            fields = file.read().rpartition(')')[2].split()
    except OSError:
        return None
    delay = 0.0
    with suppress(OSError), _open(pid, 'schedstat') as file:
        delay = int(file.read().split()[1]) / 1e9
    ticks = int(fields[11]) + int(fields[12])
    return Usage(fields[0], ticks / os.sysconf('SC_CLK_TCK'), delay,
                 int(fields[9]))


class UsageWatch:
    """Determines why a process makes nothing while another process waits for
    it.

    `pid`: process identifier; None if unknown.
    """

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._seen: deque[tuple[float, Usage]] = deque()
        self._first_delay: float | None = None

    def look(self) -> None:
        """Record the process's present usage; call this about once a
        second."""
        now = None if self._pid is None else usage_of(self._pid)
        if now is None:
            return
        if self._first_delay is None:
            self._first_delay = now.delay
        self._seen.append((time.monotonic(), now))
        # Drop the usages before the window, except the last of them.
        while len(self._seen) > 2 and (
                self._seen[-1][0] - self._seen[1][0] >= _WINDOW_SECONDS):
            self._seen.popleft()

    def seconds_without_processor(self) -> float:
        """Return the seconds, since the first call of :meth:`look`, in which
        the process was ready but had no processor."""
        if self._first_delay is None:
            return 0.0
        return self._seen[-1][1].delay - self._first_delay

    def is_kept_from_work(self) -> bool:
        """Return whether the process is stopped, or lacks a processor or
        memory."""
        return self._describe()[0]

    def describe(self) -> str:
        """Return a text that describes the process's state in the last
        seconds."""
        if self._seen and (
                self._seen[-1][0] - self._seen[0][0] < _LEAST_SECONDS):
            time.sleep(1.1 * _LEAST_SECONDS)
            self.look()
        return self._describe()[1]

    def _describe(self) -> tuple[bool, str]:
        """Return whether the process is kept from work, and a description of
        its state."""
        if not self._seen:
            return False, ('this system does not report whether it is busy, '
                           'stopped or asleep')
        begin, before = self._seen[0]
        end, now = self._seen[-1]
        if now.state in _STATES:
            return True, _STATES[now.state].format(pid=self._pid)
        span = end - begin
        if span < _LEAST_SECONDS:
            return False, 'what it does is not known yet'
        used = now.seconds - before.seconds
        had = f'used {used:.1f} s of processor time in the last {span:.1f} s'
        if used >= _BUSY_SHARE * span:
            return False, f'it is busy (it {had})'
        pages = now.pages - before.pages
        if pages >= max(_SWAPPED * span, _SWAPPED_LEAST):
            return True, (
                f'it is short of memory (it read {pages} pages of its memory '
                f'from the disk, and {had})')
        if now.state == 'R' or now.delay - before.delay >= _BUSY_SHARE * span:
            return True, (
                f'it is starved (it is ready to run, but {had}: other '
                'programs, or a limit, keep the processors)')
        wait = 'for a disk' if now.state == 'D' else 'asleep in a call'
        place = _place_of_wait(self._pid)
        return False, (f'it waits, {wait}{place and f" ({place})"}, and '
                       f'{had}')


def _place_of_wait(pid: int | None) -> str:
    """Return the function of the kernel in which a process sleeps."""
    with suppress(OSError), _open(pid, 'wchan') as file:
        return file.read().strip().lstrip('0')
    return ''


def may_wait(pid: int, asking: int | None = None) -> bool | None:
    """Return whether the wait of a process may end by itself; None if unknown.

    `asking`: identifier of the thread of the process that calls this function.
        This thread is not checked.  None if another process calls the
        function: then the result may be False although threads other than the
        main thread run at this moment, or wait for a ``futex`` with a time
        limit.
    """
    number = _FUTEX.get(platform.machine())
    if sys.platform != 'linux' or number is None:
        return None
    try:
        addresses = []
        for thread in os.listdir(f'/proc/{pid}/task'):
            if int(thread) == asking:
                continue
            with _open(pid, f'task/{thread}/syscall') as file:
                call = file.read().split()
            if asking is None and int(thread) != pid and (
                    call[0] == 'running'):
                # The thread checks whether the interpreter is free.
                continue
            if call[0] != number:
                return True
            has_limit = int(call[4], 16) != 0
            if has_limit and (asking is not None or int(thread) == pid):
                return True
            addresses.append(int(call[1], 16))
        return _is_any_shared(pid, addresses)
    except OSError:
        return None


def _is_any_shared(pid: int, addresses: list[int]) -> bool:
    """Return whether one of the addresses is in memory that processes
    share."""
    with _open(pid, 'maps') as file:
        for line in file:
            place, access = line.split()[:2]
            start, stop = (int(end, 16) for end in place.split('-'))
            if access.endswith('s') and any(
                    start <= address < stop for address in addresses):
                return True
    return False


class Activity(NamedTuple):
    """Activity of a worker up to now.

    `stack`: stack of its pipeline; empty if it does not answer.
    `steps`: number of steps that it has made; -1 if it does not answer.
    `seconds`: processor time that it has used.
    `may_wait`: whether it waits for work, or for something outside of the
        process, or with a time limit; None if the system does not report it.
    """

    stack: str
    steps: int
    seconds: float
    may_wait: bool | None


def own_activity(pipeline_thread: int, steps: int, *,
                 is_busy: bool) -> Activity:
    """Return the activity of this process, without the calling thread."""
    return Activity(
        stack_of(pipeline_thread), steps,
        time.process_time() - time.thread_time(),
        not is_busy or may_wait(os.getpid(), threading.get_native_id()))


def activity_seen_by_system(pid: int) -> Activity | None:
    """Return the activity of a worker that does not answer; None if unknown.

    A worker does not answer while its pipeline waits and holds the
    interpreter.  Its other threads wait for the interpreter with a time limit.
    `may_wait` is True for a process that is stopped, or has no processor.
    """
    usage = usage_of(pid)
    if usage is None:
        return None
    return Activity('', -1, usage.seconds,
                    usage.state != 'S' or may_wait(pid))


class DeadlockWatch:
    """Compares the activity of a worker from one check to the next.

    `limit`: seconds of waiting without activity that count as a deadlock;
        infinite to check nothing.
    """

    _has_warned = False

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._before: Activity | None = None
        self._due = min(limit, _RETRY_SECONDS)

    def is_due(self, waited: float) -> bool:
        """Return whether to call :meth:`look`, after `waited` seconds."""
        return waited >= self._due and self._limit < math.inf

    def look(self, waited: float, now: Activity | None) -> bool:
        """Record the worker's activity, and return whether it is deadlocked.

        `now`: the worker's present activity; None if unknown.
        """
        before, self._before = self._before, now
        if now is None or now.may_wait:
            self._before = None
            self._due = waited + min(self._limit, _RETRY_SECONDS)
            return False
        self._due = waited + self._limit
        used = (self._limit * _IDLE_SHARE if now.steps >= 0
                else self._limit * _POLLING_SHARE + _TICK_SECONDS)
        return (before is not None and now.steps == before.steps
                and now.seconds - before.seconds <= used)

    def report(self, worker: str, stacks: str) -> None:
        """Raise an error about a deadlock; if it is not certain, warn once
        instead.

        Call it after :meth:`look` has returned True.
        """
        what = (
            f'{worker} has made nothing and used no processor time for '
            f'{self._limit:g} seconds')
        remedy = (
            "start workers with start_method='forkserver', and put what your "
            "script runs, but not its functions and classes, under "
            "if __name__ == '__main__':. The setting "
            'deadlock_timeout (fuel.config.deadlock_timeout) changes how many '
            f'seconds; 0 waits for timeout alone. It is at:\n{stacks}')
        if self._before is not None and self._before.may_wait is False:
            raise WorkerError(
                f'{what}, and waits without end for a lock or a thread, '
                f'perhaps one of the process that forked it: {remedy}')
        if not DeadlockWatch._has_warned:
            DeadlockWatch._has_warned = True
            warnings.warn(
                f'{what}. If it waits for a lock or a thread of the process '
                f'that forked it, {remedy}', RuntimeWarning, stacklevel=2)


def write_stacks_to(trace: Segment) -> None:
    """Make this process write its stacks to memory when it gets a signal.

    It writes them even while a thread holds the interpreter.  The caller must
    keep `trace`.
    """
    assert trace.descriptor is not None
    faulthandler.register(_SIGNAL, file=trace.descriptor)


def read_stacks(pid: int, trace: Segment) -> str:
    """Return the stacks of another process; empty if it writes none in
    time."""
    assert trace.descriptor is not None
    trace.memory[:] = bytes(trace.size)
    # The worker writes at the descriptor's offset, which both processes share.
    os.lseek(trace.descriptor, 0, os.SEEK_SET)
    os.kill(pid, _SIGNAL)
    deadline = time.monotonic() + _STACKS_SECONDS
    text = b''
    while time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        before, text = text, trace.memory[:].rstrip(b'\0')
        if text and text == before:
            break
    return text.decode(errors='replace')
