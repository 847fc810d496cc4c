"""Prefetch what the next requests need, in the background.

Of compressed sources the chunks are decoded; of mapped ones that do not fit
in memory the pages of the next rows are read from the disk.
"""
from __future__ import annotations

import collections
import logging
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.storage.memory_limit import usable_memory
from fuel.storage.raw_file import RawFile
from fuel.utils.forks import Step, at_fork, for_each
from fuel.utils.threads import number_of_threads, start

logger = logging.getLogger(__name__)

# Places at which a file is probed for being in memory.
PROBES = 64
# Of the memory, what a source may take to be read as a whole.
SHARE = 0.5
# Two pieces of a file this near to each other are asked for as one.
NEAR = 16 << 10


class Background:
    """Tasks that are done when there is time, in the order given.

    At most `num_threads` of the pool work for it; what is left undone when
    it is forgotten, or when the process forks, is dropped.
    """

    def __init__(self) -> None:
        self._tasks: collections.deque[Callable[[], Any]] = (
            collections.deque())
        self._workers = 0
        self._lock = threading.Lock()
        self._stopped = False
        _all.add(self)

    def add(self, task: Callable[[], Any]) -> None:
        """Do a task, later; what it raises is dropped."""
        if self._stopped:
            return
        self._tasks.append(task)
        with self._lock:
            if self._workers >= number_of_threads():
                return
            self._workers += 1
        try:
            start(_Worker(weakref.ref(self)))
        except RuntimeError as error:
            # The process has as many as it may, or is about to end.
            with self._lock:
                self._workers -= 1
            logger.debug('nothing is prefetched: %s', error)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being done, nor left to do (bool)."""
        return self._workers < 1

    def stop(self) -> None:
        """Leave undone what was not begun, and take no more for now."""
        self._stopped = True
        self._tasks.clear()

    def go_on(self) -> None:
        """Take tasks again."""
        self._stopped = False

    def start_in_child(self) -> None:
        """Begin anew after a fork, without the parent's threads."""
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


class _Worker:
    """A thread's work for a :class:`Background` that may be forgotten."""

    def __init__(self, background: weakref.ref[Background]) -> None:
        self._background = background

    def __call__(self) -> None:
        while True:
            background = self._background()
            if background is None or not background.work():
                return
            del background


_all: weakref.WeakSet[Background] = weakref.WeakSet()


# A fork waits for the pool's threads, which should be done soon.
at_fork(Step.PREFETCH, before=for_each(_all, Background.stop),
        in_parent=for_each(_all, Background.go_on),
        in_child=for_each(_all, Background.start_in_child))
# The end of the process waits for them as well, before it calls what the
# module atexit knows. Without this function, Python's own, it takes longer.
_before_exit = getattr(threading, '_register_atexit', None)
if _before_exit is not None:
    _before_exit(for_each(_all, Background.stop))


def is_resident(file: RawFile, address: int, nbytes: int) -> bool:
    """Return whether a part of a file seems to be in memory already."""
    if nbytes <= 0:
        return True
    places = (address + int(place) for place in numpy.linspace(
        0, nbytes - 1, PROBES))
    return all(file.is_cached(place) for place in places)


def fits(nbytes: int) -> bool:
    """Return whether so many bytes of a file would stay in memory."""
    return nbytes <= SHARE * usable_memory()


class PagePrefetcher:
    """Reads the pages of some rows before they are needed."""

    def __init__(self, file: RawFile) -> None:
        self._file = file
        self._background = Background()

    def prefetch(self, starts: NDArray[numpy.int64], nbytes: int) -> None:
        """Ask for the pages of rows."""
        pieces = _pieces(starts, nbytes)

        def advise() -> None:
            for first, end in pieces:
                self._file.advise(first, end - first)

        if pieces:
            self._background.add(advise)


def read_rows(file: RawFile, starts: NDArray[numpy.int64],
              nbytes: int) -> None:
    """Read the pages of rows now.

    A map would read megabytes around each page that is missing, and push
    out what was prefetched; this reads what is asked for.
    """
    for first, end in _pieces(starts, nbytes):
        file.read(first, end - first)


def _pieces(starts: NDArray[numpy.int64], nbytes: int,
            ) -> list[tuple[int, int]]:
    """Return begin and end of the parts of a file with some rows, in its
    order."""
    if not starts.size:
        return []
    starts = numpy.sort(starts)
    breaks = numpy.flatnonzero(numpy.diff(starts) > nbytes + NEAR) + 1
    firsts = starts[numpy.append(0, breaks)]
    lasts = starts[numpy.append(breaks - 1, -1)]
    return list(zip(firsts.tolist(), (lasts + nbytes).tolist(), strict=True))


class RequestPrefetcher:
    """Prefetches what the next requests of an epoch need.

    `upcoming`: takes the number of a request and returns it, None after the
        last.
    `prefetch`: takes a request and how many bytes may be spent on it; returns
        how many are, None if that is too little.
    `budget`: bytes that may be spent on what was prefetched and not yet read.
    """

    # How many requests are looked at beyond the present one.
    DEPTH = 8
    # How many of them at once: to look at a request takes time.
    STEPS = 8
    # The first one that is looked at, beyond the present one.
    FIRST = 1

    def __init__(self, upcoming: Callable[[int], Any],
                 prefetch: Callable[[Any, int], int | None],
                 budget: int) -> None:
        self._upcoming = upcoming
        self._prefetch = prefetch
        self._budget = budget
        # The number of the next request to look at, and what those between
        # it and the present one cost.
        self._next = 0
        self._costs: collections.deque[int] = collections.deque()
        self._cost = 0

    def __call__(self, position: int) -> None:
        """Prefetch what comes after request number `position`."""
        if self._next <= position:
            self._next = position + self.FIRST
            self._costs.clear()
            self._cost = 0
        while len(self._costs) > self._next - position - self.FIRST:
            self._cost -= self._costs.popleft()
        last = min(position + self.DEPTH, self._next + self.STEPS)
        while self._next <= last:
            request = self._upcoming(self._next)
            if request is None:
                return
            cost = self._prefetch(request, self._budget - self._cost)
            if cost is None:
                return
            self._costs.append(cost)
            self._cost += cost
            self._next += 1


class BytePrefetcher(RequestPrefetcher):
    """Fetches the bytes of the next requests: of as many as there is a
    budget for, since a network takes long to answer and can do a lot at a
    time."""

    DEPTH = 1 << 20
    STEPS = 64
    FIRST = 0
