"""Detects that a worker waits for something that never comes.

The consumer looks at the worker from time to time while it waits for a batch.
A worker is deadlocked if it made no step and used no processor time from one
look to the next, and all its threads wait in the system call ``futex`` without
a time limit, for memory that no other process has.  Only they themselves could
end such a wait.  Files, networks, other programs, clocks and locks that
processes share are waited for in other ways.  Linux alone tells that.
"""
from __future__ import annotations

import faulthandler
import math
import os
import signal
import threading
import time
import warnings
from typing import NamedTuple

from fuel.exceptions import WorkerError
from fuel.transport.segment import Segment
from fuel.utils.threads import stack_of
from fuel.workers.processes import may_wait, usage_of

# What a worker that does nothing uses of a processor at most: threads that
# wake now and then to look at a clock.
_IDLE_SHARE = 1e-4
# The same of threads that wait for an interpreter that another one keeps, at
# which they look 200 times a second; the system counts in hundredths.
_POLLING_SHARE = 0.02
_TICK = 0.01
# Seconds between looks at a worker that cannot be judged yet.
_RETRY = 1.0
# Harmless where nobody handles it.
_SIGNAL = signal.SIGURG
# Seconds that the system has to write the stacks, and between looks at them.
_PATIENCE = 2.0
_GLANCE = 0.02


class Activity(NamedTuple):
    """What a worker has done up to now.

    `stack`: of its pipeline, empty if it does not answer.
    `steps`: how many steps it has taken, -1 if it does not answer.
    `seconds`: processor time that it has used.
    `may_wait`: whether it waits for work, or for something outside of the
        process, or with a time limit; None if the system does not tell.
    """

    stack: str
    steps: int
    seconds: float
    may_wait: bool | None


def own_activity(pipeline_thread: int, steps: int, *,
                 is_busy: bool) -> Activity:
    """Return the activity of this process, except for this thread."""
    return Activity(
        stack_of(pipeline_thread), steps,
        time.process_time() - time.thread_time(),
        not is_busy or may_wait(os.getpid(), threading.get_native_id()))


def activity_seen_by_system(pid: int) -> Activity | None:
    """Return the activity of another process, None if unknown.

    For a worker that does not answer, since its pipeline waits while it holds
    the interpreter, for which other threads wait with a time limit.  One that
    is stopped, or has no processor, may wait.
    """
    usage = usage_of(pid)
    if usage is None:
        return None
    return Activity('', -1, usage.seconds,
                    usage.state != 'S' or may_wait(pid))


class DeadlockWatch:
    """Compares the activity of a worker from one look to the next.

    `limit`: seconds of waiting without any activity that make a deadlock;
        infinite if nothing does.
    """

    _has_warned = False

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._before: Activity | None = None
        self._due = min(limit, _RETRY)

    def is_due(self, waited: float) -> bool:
        """Return whether to look, after so many seconds of waiting."""
        return waited >= self._due and self._limit < math.inf

    def look(self, waited: float, now: Activity | None) -> bool:
        """Return whether the worker is deadlocked.

        `now`: None if its activity is unknown.
        """
        before, self._before = self._before, now
        if now is None or now.may_wait:
            self._before = None
            self._due = waited + min(self._limit, _RETRY)
            return False
        self._due = waited + self._limit
        used = (self._limit * _IDLE_SHARE if now.steps >= 0
                else self._limit * _POLLING_SHARE + _TICK)
        return (before is not None and now.steps == before.steps
                and now.seconds - before.seconds <= used)

    def report(self, worker: str, stacks: str) -> None:
        """Raise an error of a deadlock; warn, once, where it is not certain.

        Call it after a look that found one.
        """
        what = (
            f'{worker} has made nothing and used no processor time for '
            f'{self._limit:g} seconds')
        remedy = (
            "start workers with start_method='forkserver', and let what your "
            "script does stand under if __name__ == '__main__':. The setting "
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
    """Let this process write its stacks after a signal.

    That needs no interpreter.  The memory must be kept.
    """
    assert trace.descriptor is not None
    faulthandler.register(_SIGNAL, file=trace.descriptor)


def read_stacks(pid: int, trace: Segment) -> str:
    """Return the stacks of another process, empty if it does not run."""
    assert trace.descriptor is not None
    trace.memory[:] = bytes(trace.size)
    # The worker writes where the descriptor stands, which both share.
    os.lseek(trace.descriptor, 0, os.SEEK_SET)
    os.kill(pid, _SIGNAL)
    deadline = time.monotonic() + _PATIENCE
    text = b''
    while time.monotonic() < deadline:
        time.sleep(_GLANCE)
        before, text = text, trace.memory[:].rstrip(b'\0')
        if text and text == before:
            break
    return text.decode(errors='replace')
