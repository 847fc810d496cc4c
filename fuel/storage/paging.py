"""Read the rows of a file into the memory from which they are copied."""
from __future__ import annotations

import contextlib
import functools
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager

import numpy

from fuel.storage.file_bytes import (
    Ends, FileBytes, LocalBytes, RemoteBytes, is_local, is_remote)
from fuel.utils.background import Background
from fuel.utils.forks import Step, each_at_fork
from fuel.utils.memory_limit import usable_memory

# The largest part of the memory for a source that is read as a whole.
SHARE = 0.5
# Two pieces of a file that are at most this far apart are read as one.
NEAR = 16 << 10


def fits(nbytes: int) -> bool:
    """Return whether `nbytes` bytes of a file would stay in memory."""
    return nbytes <= SHARE * usable_memory()


def advise_rows(file: LocalBytes, background: Background,
                starts: Ends, nbytes: int | Ends) -> None:
    """Advise the system to read the pages of rows, in the background."""
    pieces = _pieces(starts, nbytes)

    def advise() -> None:
        for first, end in pieces:
            file.advise(first, end - first)

    if pieces:
        background.add(advise)


def read_rows(file: LocalBytes, starts: Ends, nbytes: int | Ends) -> None:
    """Read the pages of rows into memory now.

    `nbytes`: number of bytes of each row; one number if all are equal.

    If the rows were copied from the mapped file instead, the system would read
    megabytes around each missing page, and evict prefetched pages. This
    function reads only the rows, and gaps of at most `NEAR` bytes between
    them.
    """
    for first, end in _pieces(starts, nbytes):
        file.read(first, end - first)


def _pieces(starts: Ends, nbytes: int | Ends) -> list[tuple[int, int]]:
    """Return the start and end of each piece of a file that contains rows, in
    the order of the file."""
    if not starts.size:
        return []
    order = numpy.argsort(starts, kind='stable')
    starts, ends = starts[order], (starts + nbytes)[order]
    ends = numpy.maximum.accumulate(ends)
    breaks = numpy.flatnonzero(starts[1:] - ends[:-1] > NEAR) + 1
    firsts = starts[numpy.append(0, breaks)]
    lasts = ends[numpy.append(breaks - 1, -1)]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


# Bytes of one read. The system prefetches better with such reads than with
# advice: it follows only as much advice as fits its window.
STEP = 1 << 20
# Number of reads in one task. A fork, or the release of the source, waits for
# at most one task.
STEPS = 8
# For so many seconds from its beginning, nothing interrupts sequential
# reading: random rows need most of the source, and a disk reads it fastest in
# order.
UNDISTURBED = 1.
# Seconds of sequential reading after each second in which rows are fetched out
# of order.
SHARE_OF_READING = 3


class SequentialRead:
    """Sequential reading of a part of a file in the background.

    `read_to`: address up to which the file was read.
    `is_fetching`: whether rows are being fetched out of order.
    `fetch_from`: the time from which rows may be fetched out of order.
    """

    def __init__(self, file: LocalBytes, address: int, nbytes: int) -> None:
        self._file = file
        self.background = Background()
        self._end = address + nbytes
        self.read_to = address
        self.fetch_from = time.monotonic() + UNDISTURBED
        self._buffer = memoryview(bytearray(STEP))
        self.unlock()
        _all.add(self)
        self._go_on()

    def unlock(self) -> None:
        """Make a new lock, for a forked child."""
        self._changed = threading.Condition()
        self.is_fetching = False

    @property
    def is_done(self) -> bool:
        """Whether everything was read (bool)."""
        return self.read_to >= self._end

    def _go_on(self) -> None:
        self.background.add(functools.partial(
            _read_on, weakref.ref(self)))

    def read_on(self) -> None:
        """Run one task of the sequential reading."""
        for _ in range(STEPS):
            with self._changed:
                self._changed.wait_for(
                    lambda: not self.is_fetching, UNDISTURBED)
            address = self.read_to
            end = min(address + STEP, self._end)
            try:
                self._file.read_into(self._buffer[:end - address], address)
            except OSError:
                # The error is raised later, where these rows are read.
                end = self._end
            # Another thread may have begun the same task after a fork.
            self.read_to = max(self.read_to, end)
            if self.is_done:
                break
        with self._changed:
            self._changed.notify_all()

    def wait(self, starts: Ends, nbytes: int | Ends) -> None:
        """Wait until rows are in memory.

        If this would take long, they are fetched out of order.
        """
        if not starts.size:
            return
        ends = starts + nbytes
        last = min(int(ends.max()), self._end)
        # A fork drops the tasks that are left.
        if not self.is_done and self.background.is_idle:
            self._go_on()
        with self._changed:
            while self.read_to < last:
                left = self.fetch_from - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
        if self.read_to < last:
            is_missing = ends > self.read_to
            self._fetch(starts[is_missing], (ends - starts)[is_missing])

    def _fetch(self, starts: Ends, nbytes: Ends) -> None:
        began = time.monotonic()
        # Sequential reading pauses: a disk that has megabytes to read would
        # answer late.
        self.is_fetching = True
        try:
            read_rows(self._file, starts, nbytes)
        finally:
            with self._changed:
                self.is_fetching = False
                self._changed.notify_all()
            now = time.monotonic()
            self.fetch_from = now + SHARE_OF_READING * (now - began)


def _read_on(reading: weakref.ref[SequentialRead]) -> None:
    # The source may not be in use any more.
    living = reading()
    if living is None or living.is_done:
        return
    living.read_on()
    if not living.is_done:
        background = living.background
        # Without this, two threads in turn would keep the object alive.
        del living
        background.add(functools.partial(_read_on, reading))


_all = each_at_fork(Step.OWNERSHIP, in_child=SequentialRead.unlock)


# Bytes of rows whose pages may be prefetched.
PAGES_AHEAD = 256 << 20
# Bytes of the blocks in which a remote source is fetched, if the cache can
# hold all of it.
BLOCK = 1 << 20
PAGE = 1 << 16
# The least part of the fetched range that must belong to the source.
DENSE = .5


class LocalPaging:
    """Reads a source on disk into memory: in order if it fits into memory,
    otherwise row by row."""

    #: True if ranges of rows, like lists of rows, must be fetched before they
    #: are copied.
    is_remote = False

    def __init__(self, file: LocalBytes) -> None:
        self._file = file
        self._ordered: SequentialRead | None = None
        self._by_rows: Background | None = None

    def begin(self, first: int, last: int, nbytes: int) -> int | None:
        """Begin an epoch; if the source is not in memory and fits into it,
        begin to read it in order.

        Returns: number of bytes that may be prefetched, for a source that is
            not in memory and does not fit into it; None for no prefetching.

        `first`, `last`: start and end of the bytes of the source.
        `nbytes`: number of bytes between `first` and `last` that belong to the
            source.
        """
        ordered = by_rows = None
        if not self._file.is_resident(first, last):
            if fits(last - first):
                ordered = SequentialRead(self._file, first, last - first)
            else:
                by_rows = Background()
        self._ordered, self._by_rows = ordered, by_rows
        return PAGES_AHEAD if by_rows else None

    @property
    def fetches_first(self) -> bool:
        """Whether rows are fetched before they are copied (bool)."""
        # Read once, since another thread may begin an epoch at the same time.
        ordered = self._ordered
        return self._by_rows is not None or (
            ordered is not None and not ordered.is_done)

    def prefetch(self, starts: Ends, nbytes: int | Ends) -> None:
        """Prefetch pieces in the background."""
        by_rows = self._by_rows
        if by_rows is not None:
            advise_rows(self._file, by_rows, starts, nbytes)

    def widen(self, starts: Ends, nbytes: int | Ends) -> tuple[Ends, Ends]:
        """Return the ranges of pieces, unchanged."""
        return starts, starts + nbytes

    @contextlib.contextmanager
    def fetched(self, starts: Ends, nbytes: int | Ends) -> Iterator[None]:
        """Read pieces; return a context in which they are in memory."""
        ordered = self._ordered
        if ordered is None:
            read_rows(self._file, starts, nbytes)
        else:
            ordered.wait(starts, nbytes)
        yield


class Blocks:
    """Widens small byte ranges of a remote source to whole blocks.

    This is done if the cache can hold the whole source, and if the source has
    at least half of the bytes from its start to its end. The requests are then
    fewer, and large enough to use the network well.

    `first`, `last`: start and end of the bytes of the source.
    `nbytes`: number of bytes between `first` and `last` that belong to the
        source.
    """

    def __init__(self, file: RemoteBytes, first: int, last: int,
                 nbytes: int) -> None:
        self._file = file
        self.first, self.last = first, last
        # Bytes between the chunks may not belong to the source.
        self._is_dense = nbytes >= DENSE * (last - first)

    def widen(self, starts: Ends, stops: Ends) -> tuple[Ends, Ends]:
        """Return byte ranges widened to whole blocks, or unchanged."""
        # Blocks begin at a page of the file, so that no page is in two blocks.
        first, last = self.first // PAGE * PAGE, self.last
        if not (starts.size and self._is_dense
                and (stops - starts).max() < BLOCK
                and self._file.keeps(last - first)):
            return starts, stops
        low = (starts - first) // BLOCK
        high = -(-(stops - first) // BLOCK)
        # A range may reach into the next block.
        blocks = numpy.unique(numpy.concatenate([low, high - 1]))
        starts = first + blocks * BLOCK
        return starts, numpy.minimum(starts + BLOCK, last)


class RemotePaging:
    """Fetches a remote source, unless all of it is cached."""

    is_remote = True

    def __init__(self, file: RemoteBytes) -> None:
        self._file = file
        self._is_here = False
        self._blocks = Blocks(file, 0, 0, 0)

    def begin(self, first: int, last: int, nbytes: int) -> int | None:
        """See :class:`LocalPaging`."""
        self._blocks = Blocks(self._file, first, last, nbytes)
        self._is_here = self._file.is_settled(first, last)
        return None

    @property
    def fetches_first(self) -> bool:
        """See :class:`LocalPaging`."""
        return not self._is_here

    def prefetch(self, starts: Ends, nbytes: int | Ends) -> None:
        """See :class:`LocalPaging`."""
        self._file.request(*self.widen(starts, nbytes))

    def fetched(self, starts: Ends, nbytes: int | Ends,
                ) -> AbstractContextManager[None]:
        """See :class:`LocalPaging`."""
        return self._file.hold(*self.widen(starts, nbytes))

    def widen(self, starts: Ends, nbytes: int | Ends) -> tuple[Ends, Ends]:
        """See :class:`LocalPaging`."""
        return self._blocks.widen(starts, starts + nbytes)


def paging_of(file: FileBytes) -> LocalPaging | RemotePaging:
    """Return the object that reads rows of a file into memory."""
    if is_remote(file):
        return RemotePaging(file)
    assert is_local(file)
    return LocalPaging(file)
