"""Detects that a worker waits for something that never comes.

The consumer looks at the worker from time to time while it waits for a batch.
A worker that made no step and used no processor time from one look to the
next is held to be deadlocked, unless it is known to wait for an end.
"""
from __future__ import annotations

import faulthandler
import math
import os
import signal
import sys
import time
from contextlib import suppress
from typing import NamedTuple

from fuel.transport.channel import Channel, Message
from fuel.transport.segment import Segment
from fuel.utils.threads import stack_of
from fuel.utils.waits import has_limited_waits
from fuel.workers.messages import Kind

# What a worker that does nothing uses of a processor at most: threads that
# wake now and then to look at a clock.
_IDLE_SHARE = 1e-4
# Seconds between looks at a worker that cannot be judged yet.
_RETRY = 1.0
# Harmless where nobody handles it.
_SIGNAL = signal.SIGURG
_TRACE_BYTES = 1 << 15
# Seconds that the system has to write the stacks, and between looks at them.
_PATIENCE = 2.0
_GLANCE = 0.02


class Activity(NamedTuple):
    """What a worker has done up to now.

    `stack`: of its pipeline, empty if it does not answer.
    `steps`: how many steps it has taken, -1 if it does not answer.
    `seconds`: processor time that it has used.
    `may_wait`: whether it waits for work, for another process, or with a time
        limit of its own.
    """

    stack: str
    steps: int
    seconds: float
    may_wait: bool


def own_activity(pipeline_thread: int, steps: int, *,
                 is_busy: bool) -> Activity:
    """Return the activity of this process, except for this thread."""
    return Activity(
        stack_of(pipeline_thread), steps,
        time.process_time() - time.thread_time(),
        not is_busy or has_limited_waits() or _has_children())


def activity_seen_by_system(pid: int) -> Activity | None:
    """Return the activity of another process's main thread, None if unknown.

    For a worker that does not answer, since its pipeline waits while it holds
    the interpreter.  One that is stopped, or has no processor, may wait.
    """
    with suppress(OSError), open(f'/proc/{pid}/task/{pid}/stat') as file:
        fields = file.read().rpartition(')')[2].split()
        ticks = int(fields[11]) + int(fields[12])
        return Activity('', -1, ticks / os.sysconf('SC_CLK_TCK'),
                        may_wait=fields[0] != 'S')
    return None


class DeadlockWatch:
    """Compares the activity of a worker from one look to the next.

    `limit`: seconds of waiting without any activity that make a deadlock;
        infinite if nothing does.
    """

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
        return (before is not None and now.steps == before.steps
                and now.seconds - before.seconds
                <= self._limit * _IDLE_SHARE)


def deadlock_text(worker: str, limit: float, stacks: str) -> str:
    """Return what an error says of a deadlocked worker."""
    return (
        f'the worker process {worker} has made nothing and used no processor '
        f'time for {limit:g} seconds. If it waits for a lock, or for threads, '
        'that this process had when it forked, start workers with '
        "start_method='forkserver', and let what your script does stand under "
        "if __name__ == '__main__':. If it waits for a file, a network or "
        'another program, and that may take longer, raise the setting '
        'deadlock_timeout (fuel.config.deadlock_timeout; 0 waits for timeout '
        f'alone). It is at:\n{stacks}')


def offer_stacks(channel: Channel) -> Segment:
    """Let the consumer read the stacks of this process after a signal.

    That needs no interpreter.  The memory returned must be kept.
    """
    trace = Segment.create(_TRACE_BYTES)
    assert trace.descriptor is not None
    faulthandler.register(_SIGNAL, file=trace.descriptor)
    channel.send(Message(
        Kind.TRACE, 0, 0, trace.size, descriptor=trace.descriptor))
    return trace


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


def _has_children() -> bool:
    """Return whether this process has children, which may work for it."""
    if sys.platform != 'linux':
        return False
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True
