"""Threads that belong to one owner, and end before the process forks."""
from __future__ import annotations

import itertools
import logging
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from fuel.utils.forks import Step, at_fork
from fuel.utils.threads import mark_thread, stack_of

log = logging.getLogger(__name__)

# Seconds to wait for running tasks to end: before a fork, and when their owner
# is closed.
_JOIN_SECONDS = 5.0
# Seconds to wait for a started thread to run.
_START_SECONDS = 1.0
_numbers = itertools.count()


class Crew:
    """Threads that run the tasks of one owner, in the order of submission.

    They start when there are tasks. They end when the owner calls
    :meth:`close`; it must do so, since the threads keep this object alive.

    `size`: the largest number of threads.
    `name`: prefix of the names of the threads.
    `is_nested`: whether a task must compute in its own thread alone, since
        other tasks use the other cores.
    """

    def __init__(self, size: int, name: str, *,
                 is_nested: bool = False) -> None:
        self.size = size
        self.name = name
        self.number = next(_numbers)
        self._is_nested = is_nested
        self._make_locks()
        _crews.add(self)

    def _make_locks(self) -> None:
        """Set the initial state, in which there are no threads; also called in
        a forked child."""
        self._changed = threading.Condition()
        self._tasks: deque[Callable[[], None]] = deque()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._paused = False
        self._closed = False

    @property
    def is_halted(self) -> bool:
        """Whether tasks that have not begun have to wait (bool)."""
        return self._is_resting or not self._threads

    @property
    def _is_resting(self) -> bool:
        return self._paused or self._closed

    def submit(self, task: Callable[[], None]) -> None:
        """Run a task, which must not raise, in a thread.

        Raises: RuntimeError if there is no thread, and none can be started.
        """
        with self._changed:
            if self._closed:
                return
            self._tasks.append(task)
            self._changed.notify()
            try:
                self._start_threads()
            except RuntimeError:
                self._tasks.remove(task)
                raise

    def start_threads(self) -> None:
        """Start threads for waiting tasks, if the threads could not be started
        before.

        Raises: RuntimeError if there is no thread, and none can be started.
        """
        with self._changed:
            self._start_threads()

    def _start_threads(self) -> None:
        # A thread that was woken counts as idle until it has taken a task.
        while not self._is_resting and self._idle < len(self._tasks) and (
                len(self._threads) < self.size):
            thread = threading.Thread(
                target=self._work, daemon=True,
                name=f'{self.name}-{len(self._threads)}')
            self._threads.append(thread)
            self._idle += 1
            try:
                thread.start()
            except BaseException as error:
                # The process has as many threads as it may have, or is about
                # to end; or the start was interrupted, before or after the
                # thread began to run.
                is_refused = isinstance(error, RuntimeError)
                if is_refused or not _has_started(thread):
                    self._threads.remove(thread)
                    self._idle -= 1
                if not (is_refused and self._threads):
                    raise
                return

    def _work(self) -> None:
        with self._changed:
            if threading.current_thread() not in self._threads:
                # This thread began so late that it was counted as not started.
                return
        if self._is_nested:
            mark_thread()
        _own.is_member = True
        while True:
            with self._changed:
                while not self._tasks and not self._is_resting:
                    self._changed.wait()
                self._idle -= 1
                if self._is_resting:
                    self._threads.remove(threading.current_thread())
                    return
                task = self._tasks.popleft()
            try:
                task()
            finally:
                # The task may hold much memory.
                del task
                with self._changed:
                    self._idle += 1

    def pause(self, deadline: float) -> bool:
        """End the threads after the tasks that have begun; keep the other
        tasks.

        Returns: whether all threads ended before the deadline.
        """
        with self._changed:
            self._paused = True
        return self._end_threads(deadline)

    def _end_threads(self, deadline: float) -> bool:
        with self._changed:
            self._changed.notify_all()
            threads = list(self._threads)
        for thread in threads:
            # The garbage collector may close the crew in one of the crew's own
            # threads.
            if thread is not threading.current_thread():
                thread.join(max(0., deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def resume(self) -> None:
        """Run tasks again, in new threads.

        If none can be started, the tasks wait for :meth:`start_threads`.
        """
        with self._changed:
            self._paused = False
            with suppress(RuntimeError):
                self._start_threads()

    def forget_threads(self) -> None:
        """Reset and close this object in a forked child: it has no threads
        there."""
        self._make_locks()
        self._closed = True

    def close(self) -> None:
        """End the threads after the tasks that have begun; drop the others.

        A thread that does not end in time ends later by itself.
        """
        with self._changed:
            self._closed = True
            self._tasks.clear()
        self._end_threads(time.monotonic() + _JOIN_SECONDS)

    def stacks(self) -> str:
        """Return the stacks of the threads."""
        return '\n'.join(
            f'{thread.name}:\n{stack_of(thread.ident)}'
            for thread in list(self._threads) if thread.ident is not None)


def _has_started(thread: threading.Thread) -> bool:
    """Return whether a thread has started although its start was
    interrupted."""
    deadline = time.monotonic() + _START_SECONDS
    # A thread that has an identifier may not be ready to be joined yet.
    while not thread.is_alive() and time.monotonic() < deadline:
        time.sleep(.001)
    return thread.is_alive()


class _Own(threading.local):
    """State of the running thread.

    `is_member`: whether it belongs to a crew.
    """

    is_member = False


_own = _Own()
_crews: weakref.WeakSet[Crew] = weakref.WeakSet()


def _before_fork() -> None:
    # A member that forks cannot wait for itself.
    if _own.is_member:
        return
    deadline = time.monotonic() + _JOIN_SECONDS
    # An older crew may wait for a newer crew that its tasks have made.
    for crew in sorted(_crews, key=lambda crew: crew.number):
        if not crew.pause(deadline):
            log.warning(
                'this process forks while threads of %s run: a lock that '
                'they hold is never released in the child', crew.name)


def _after_fork_in_parent() -> None:
    if not _own.is_member:
        for crew in list(_crews):
            crew.resume()


def _after_fork_in_child() -> None:
    _own.is_member = False
    for crew in list(_crews):
        crew.forget_threads()


at_fork(Step.PREFETCH, before=_before_fork, in_parent=_after_fork_in_parent,
        in_child=_after_fork_in_child)
