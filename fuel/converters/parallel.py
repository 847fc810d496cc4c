"""A map over items in threads: results in order, memory bounded."""
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from fuel.utils.threads import number_of_threads

__all__ = ['ordered_map']

T = TypeVar('T')
R = TypeVar('R')


def ordered_map(function: Callable[[T], R], items: Iterable[T],
                workers: int | None = None) -> Iterator[R]:
    """Map items in threads (default `config.num_threads`), yield results in
    order."""
    workers = workers or number_of_threads()
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
