"""A small pool of threads of the process, for work without the GIL.

The pool is made when it is needed for the first time. Its threads end before a
fork, so that a child never has a lock that a missing thread holds. Parent and
child each make a new pool when they need one.
"""
from __future__ import annotations

import itertools
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from fuel.config_parser import config
from fuel.utils.forks import Step, at_fork

Result = TypeVar('Result')

# Chunks per thread: enough that other threads do not wait for one slow chunk,
# few enough that distributing them takes no time.
CHUNKS_PER_THREAD = 4
# The largest number of threads of the pool, for all callers together.
MAX_THREADS = 256

# An entry of a stack, as traceback or faulthandler writes it. The second
# pattern matches the file and the function of an entry.
_ENTRY = re.compile(r'^  File ".*\n(?:    .*\n)*', re.MULTILINE)
# Faulthandler writes question marks for a line it does not know.
_PLACE = re.compile(r'  File "(.*)", line (?:\d+|\?\?\?),? in (.*)')
_PROCESS = os.path.join('multiprocessing', 'process.py')

_lock = threading.RLock()
_pool: ThreadPoolExecutor | None = None


class _Thread(threading.local):
    """State of the running thread.

    `is_ours`: whether it belongs to the pool.
    """

    is_ours = False


_thread = _Thread()


def number_of_threads() -> int:
    """Return the number of threads that a stage uses:
    ``config.num_threads``."""
    threads: int = config.num_threads
    return threads


def map_chunks(function: Callable[[int, int], Result], n_items: int,
               min_items_per_thread: int = 1,
               num_threads: int | None = None) -> list[Result]:
    """Call a function for consecutive chunks of a range, on all cores, and
    return its results in order.

    The calling thread runs chunks too. A call from a thread of the pool runs
    in this thread alone. So calls may be nested, and never wait for each
    other.

    `function`: called as ``function(start, stop)`` with ``0 <= start < stop <=
        n_items``, in any order and from several threads at once. Threads make
        it faster only if it releases the GIL.
    `min_items_per_thread`: the smallest size of a chunk, unless the whole
        range is smaller. It should be the measured size from which on a second
        thread saves time.
    `num_threads`: the largest number of threads to use. Defaults to
        :func:`number_of_threads`.

    Examples
    --------
    >>> import numpy
    >>> squares = numpy.empty(5, int)
    >>> def square(start, stop):
    ...     squares[start:stop] = numpy.arange(start, stop) ** 2
    >>> _ = map_chunks(square, len(squares))
    >>> squares
    array([ 0,  1,  4,  9, 16])
    """
    if n_items <= 0:
        return []
    most = n_items // max(1, min_items_per_thread)
    if most < 2 or _thread.is_ours:
        return [function(0, n_items)]
    threads = min(
        most, number_of_threads() if num_threads is None else num_threads)
    if threads < 2:
        return [function(0, n_items)]
    n_chunks = min(most, threads * CHUNKS_PER_THREAD)
    return _run(function, n_items, n_chunks, threads)


class _Chunks:
    """The chunks of one call; each thread takes the next one when it is
    free."""

    def __init__(self, function: Callable[[int, int], Result],
                 n_items: int, n_chunks: int) -> None:
        self.function = function
        self.bounds = [n_items * i // n_chunks for i in range(n_chunks + 1)]
        self.results: list[Any] = [None] * n_chunks
        self.errors: dict[int, BaseException] = {}
        # One step of a counter is atomic.
        self.counter = itertools.count()

    def work(self) -> None:
        """Run chunks until none is left, or until one has failed.

        Chunks are begun in order, so all chunks before a failed chunk are run
        as well. Which error is the first one does not depend on timing.
        """
        for i in self.counter:
            if i >= len(self.results) or self.errors:
                return
            try:
                self.results[i] = self.function(
                    self.bounds[i], self.bounds[i + 1])
            except BaseException as error:  # noqa: BLE001 (raised later)
                self.errors[i] = error

    def release(self) -> list[Any]:
        """Return the results, and release them and the function.

        The pool may hold this object for some time after its work is done.
        """
        results, self.results = self.results, []
        del self.function
        return results


def _run(function: Callable[[int, int], Result], n_items: int,
         n_chunks: int, threads: int) -> list[Result]:
    """Run the chunks on the calling thread and ``threads - 1`` others."""
    chunks = _Chunks(function, n_items, n_chunks)
    helpers = _submit(chunks.work, threads - 1)
    chunks.work()
    # A helper that has not begun is not needed any more. Waiting for it would
    # mean waiting for the work of other callers.
    wait([helper for helper in helpers if not helper.cancel()])
    results = chunks.release()
    if chunks.errors:
        raise chunks.errors[min(chunks.errors)]
    return results


def start(task: Callable[[], None]) -> None:
    """Queue a task for a thread of the pool; its errors are dropped."""
    _submit(task, 1)


def end_thread_at_exit() -> None:
    """End this thread silently, by SystemExit, if the interpreter is about to
    end.

    At that time, the process or thread that a daemon thread waits for may have
    ended already. This is not an error of the program.
    """
    if not threading.main_thread().is_alive():
        raise SystemExit


def stack_of(thread: int) -> str:
    """Return the stack of a thread, the user's lines first; '' if the thread
    has ended."""
    frame = sys._current_frames().get(thread)
    if frame is None:
        return ''
    return users_lines_first(
        ''.join(traceback.format_stack(frame)), is_newest_first=False)


def users_lines_first(stack: str, *, is_newest_first: bool) -> str:
    """Return the text of stacks, with a list of the user's own calls before
    it.

    The text itself contains many more calls, of Fuel, Python and installed
    packages.

    `stack`: the text.
    `is_newest_first`: whether the last call is the first one in the text.
    """
    entries = [entry.group() for entry in _ENTRY.finditer(stack)]
    if not is_newest_first:
        entries.reverse()
    own: list[str] = []
    for entry in entries:
        place = _PLACE.match(entry)
        if place is None:
            continue
        path, function = place.groups()
        if function == '_bootstrap' and path.endswith(_PROCESS):
            # The calls below this one are those of the parent at the fork.
            break
        if not path.startswith(('<frozen', *_libraries())):
            own.append(entry.rstrip('\n'))
    if not own:
        return stack
    return '\n'.join([
        'Your code, the last call first:', *own, 'All of it:', stack])


@cache
def _libraries() -> tuple[str, ...]:
    """Return the folders of Python, of installed packages and of Fuel."""
    import sysconfig

    names = 'stdlib', 'platstdlib', 'purelib', 'platlib'
    folders = {*map(sysconfig.get_path, names),
               os.path.dirname(os.path.dirname(__file__))}
    return tuple(os.path.join(folder, '') for folder in folders)


def _submit(work: Callable[[], None], times: int) -> list[Future[None]]:
    """Queue a task `times` times in the pool."""
    global _pool
    with _lock:
        if _pool is None:
            # The pool starts a thread only when no other thread is idle.
            _pool = ThreadPoolExecutor(
                MAX_THREADS, thread_name_prefix='fuel',
                initializer=mark_thread)
        return [_pool.submit(work) for _ in range(times)]


def mark_thread() -> None:
    """Mark this thread, so that its calls of :func:`map_chunks` use no other
    threads."""
    _thread.is_ours = True


def before_fork() -> None:
    """End the threads of the pool, after their tasks.

    The lock stays held, so that no other thread makes a pool while the
    process forks.
    """
    global _pool
    # A thread of the pool that forks cannot wait for itself.
    if _thread.is_ours:
        return
    _lock.acquire()
    if _pool is not None:
        _pool.shutdown(wait=True)
        _pool = None


def after_fork_in_parent() -> None:
    """Let threads start again.

    The lock is released as often as this thread holds it, since Ctrl-C may
    have interrupted this function at an earlier fork.
    """
    if not _thread.is_ours:
        with suppress(RuntimeError):
            while True:
                _lock.release()


def _after_fork_in_child() -> None:
    """Make a new lock: the threads that held the old one do not exist here."""
    global _lock, _pool
    _lock = threading.RLock()
    _pool = None
    _thread.is_ours = False


at_fork(Step.THREADS, before=before_fork, in_parent=after_fork_in_parent,
        in_child=_after_fork_in_child)
