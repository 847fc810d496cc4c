"""Work on all cores, results in order, memory bounded."""
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ['ordered_map']

T = TypeVar('T')
R = TypeVar('R')


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, 'sched_getaffinity'):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def ordered_map(function: Callable[[T], R], items: Iterable[T],
                workers: int | None = None) -> Iterator[R]:
    """Apply a function that frees the interpreter's lock to many items.

    Parameters
    ----------
    function : callable
        Called in threads.
    items : iterable
        Consumed in the calling thread, a few items ahead of the results.
    workers : int, optional
        Number of threads. Default: the number of cores.

    Yields
    ------
    object
        The results, in the order of the items. An exception of `function`
        is raised in its place.
    """
    workers = workers or _cores()
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 4 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
