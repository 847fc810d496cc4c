"""Tasks that threads of the pool run in the background."""
from __future__ import annotations

import collections
import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from fuel.utils.forks import Step, each_at_fork, for_each
from fuel.utils.threads import number_of_threads, start

logger = logging.getLogger(__name__)

# Maximum number of seconds to wait for the release of an object. Each queued
# task takes milliseconds.
_RELEASE_SECONDS = 1.0


class Background:
    """Queue of tasks that threads of the pool run in the order given.

    At most ``config.num_threads`` threads run its tasks. The tasks that have
    not begun are dropped when the queue is garbage-collected, or when the
    process forks.
    """

    def __init__(self) -> None:
        self._tasks: collections.deque[Callable[[], object]] = (
            collections.deque())
        self._workers = self._most = 0
        self._lock = threading.Lock()
        self._stopped = False
        _all.add(self)

    def add(self, *tasks: Callable[[], object]) -> None:
        """Queue tasks; their errors are dropped."""
        if self._stopped or not tasks:
            return
        self._tasks.extend(tasks)
        # Start at most as many threads as there are tasks: some tasks may be
        # done before the next thread starts.
        for _ in tasks:
            with self._lock:
                if not self._workers:
                    # Reading this setting takes as long as a small task.
                    self._most = number_of_threads()
                elif self._workers >= self._most:
                    return
                self._workers += 1
            try:
                start(_Worker(weakref.ref(self)))
            except RuntimeError as error:
                # The process has as many threads as it may have, or is about
                # to end.
                with self._lock:
                    self._workers -= 1
                logger.debug('nothing is prefetched: %s', error)
                return

    @property
    def is_idle(self) -> bool:
        """Whether no task runs or waits (bool)."""
        return self._workers < 1

    @property
    def num_workers(self) -> int:
        """Number of threads that are doing tasks (int)."""
        return self._workers

    def stop(self) -> None:
        """Drop the queued tasks, and accept no tasks until :meth:`go_on` is
        called."""
        self._stopped = True
        self._tasks.clear()

    def go_on(self) -> None:
        """Accept tasks again."""
        self._stopped = False

    def start_in_child(self) -> None:
        """Reset the queue after a fork, without the parent's threads."""
        self._lock = threading.Lock()
        self._workers = 0
        self._stopped = False

    def work(self) -> bool:
        """Do one task; return whether there was one."""
        try:
            task = self._tasks.popleft()
        except IndexError:
            with self._lock:
                if self._tasks:
                    return True
                self._workers -= 1
                return False
        try:
            task()
        except Exception as error:  # noqa: BLE001 (the reader meets it too)
            logger.debug('prefetching failed: %s', error)
        return True


def wait_for_release(held: weakref.ref[Any]) -> None:
    """Wait until queued tasks have released an object, at most one second.

    If other code holds the object too, wait until no task is left.
    """
    deadline = time.monotonic() + _RELEASE_SECONDS
    while (held() is not None and time.monotonic() < deadline
           and not all(each.is_idle for each in list(_all))):
        time.sleep(0.001)


class _Worker:
    """The work of a thread for a :class:`Background`, held by a weak
    reference."""

    def __init__(self, background: weakref.ref[Background]) -> None:
        self._background = background

    def __call__(self) -> None:
        while True:
            background = self._background()
            if background is None or not background.work():
                return
            del background


# A fork waits for the pool's threads, which should be done soon.
_all = each_at_fork(Step.PREFETCH, before=Background.stop,
                    in_parent=Background.go_on,
                    in_child=Background.start_in_child)
# At the end of the process, Python also waits for these threads, before it
# calls the functions that are registered with the module atexit. If Python's
# private function `_register_atexit` is missing, this wait takes longer.
_before_exit = getattr(threading, '_register_atexit', None)
if _before_exit is not None:
    _before_exit(for_each(_all, Background.stop))
