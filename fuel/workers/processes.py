"""What the system tells of another process: the files of ``/proc`` on Linux.

Elsewhere nothing is told.
"""
from __future__ import annotations

import os
import platform
import sys
import time
from collections import deque
from contextlib import suppress
from typing import IO, NamedTuple

# The number of the system call ``futex``, by the kind of machine.
_FUTEX = {'x86_64': '202', 'aarch64': '98', 'riscv64': '98',
          'loongarch64': '98', 'ppc64le': '221', 's390x': '238'}
# Seconds that a description looks back.
_SPAN = 10.0
# The part of that from which a process is busy, starved, or reads pages.
_MOST = 0.5
# Pages a second, and at all, that come from the disk if memory is short.
_SWAPPED, _SWAPPED_LEAST = 20, 100
_STATES = {
    'T': 'it is stopped (SIGSTOP; `kill -CONT {pid}` lets it go on)',
    't': 'it is stopped by a debugger'}
# Seconds that a description needs at least, since the system counts in
# hundredths.
_LEAST = 0.2


class Usage(NamedTuple):
    """What a process has had of the machine up to now.

    `state`: letter of ``/proc/PID/stat``: R runs, or is ready to; S sleeps,
        D does so for a disk, T is stopped.
    `seconds`: processor time of all its threads.
    `delay`: seconds in which its first thread, which runs the pipeline of a
        worker, was ready but had no processor; 0 if the system does not
        count them.
    `pages`: how many pages of its memory were read from a disk.
    """

    state: str
    seconds: float
    delay: float
    pages: int


def _open(pid: int | None, name: str) -> IO[str]:
    """Open what the system tells of a process, in which the names of programs
    and files may be in any encoding."""
    return open(f'/proc/{pid}/{name}', encoding='latin-1', newline='\n')


def usage_of(pid: int) -> Usage | None:
    """Return what a process has had, None if that is unknown."""
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
    """Tells why a process that is waited for makes nothing.

    `pid`: None if it is unknown.
    """

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self._seen: deque[tuple[float, Usage]] = deque()
        self._first_delay: float | None = None

    def look(self) -> None:
        """Look at the process, once a second or so."""
        now = None if self._pid is None else usage_of(self._pid)
        if now is None:
            return
        if self._first_delay is None:
            self._first_delay = now.delay
        self._seen.append((time.monotonic(), now))
        # The first one that is left is of so many seconds ago, or later.
        while len(self._seen) > 2 and (
                self._seen[-1][0] - self._seen[1][0] >= _SPAN):
            self._seen.popleft()

    def seconds_without_processor(self) -> float:
        """Return how long, of the time that it was looked at, the process
        was ready but had no processor."""
        if self._first_delay is None:
            return 0.0
        return self._seen[-1][1].delay - self._first_delay

    def is_kept_from_work(self) -> bool:
        """Return whether it is stopped, or short of processors or memory."""
        return self._describe()[0]

    def describe(self) -> str:
        """Return what the process does, with its last seconds as reasons."""
        if self._seen and self._seen[-1][0] - self._seen[0][0] < _LEAST:
            time.sleep(1.1 * _LEAST)
            self.look()
        return self._describe()[1]

    def _describe(self) -> tuple[bool, str]:
        """Return whether it is kept from work, and what it does."""
        if not self._seen:
            return False, ('this system does not tell whether it is busy, '
                           'stopped or asleep')
        begin, before = self._seen[0]
        end, now = self._seen[-1]
        if now.state in _STATES:
            return True, _STATES[now.state].format(pid=self._pid)
        span = end - begin
        if span < _LEAST:
            return False, 'what it does is not known yet'
        used = now.seconds - before.seconds
        had = f'used {used:.1f} s of processor time in the last {span:.1f} s'
        if used >= _MOST * span:
            return False, f'it is busy (it {had})'
        pages = now.pages - before.pages
        if pages >= max(_SWAPPED * span, _SWAPPED_LEAST):
            return True, (
                f'it is short of memory (it read {pages} pages of its memory '
                f'from the disk, and {had})')
        if now.state == 'R' or now.delay - before.delay >= _MOST * span:
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
    """Return whether a wait of a process may end, None if unknown.

    `asking`: the thread of it that asks, which is not looked at. If there is
        none, only the main thread must be without a time limit, and others
        may run for a moment.
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
                # It looks whether the interpreter is free.
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
    """Return whether an address is in memory that processes share."""
    with _open(pid, 'maps') as file:
        for line in file:
            place, access = line.split()[:2]
            start, stop = (int(end, 16) for end in place.split('-'))
            if access.endswith('s') and any(
                    start <= address < stop for address in addresses):
                return True
    return False
