"""Reading a cold source in order, so that it is soon in memory as a whole."""
from __future__ import annotations

import functools
import threading
import time
import weakref

import numpy
from numpy.typing import NDArray

from fuel.storage.background import Background
from fuel.storage.pages import read_rows
from fuel.storage.file_bytes import LocalBytes
from fuel.utils.forks import Step, each_at_fork

# Bytes that are read at once. The system's own prefetching does better with
# them than with advice, of which it heeds no more than its window.
STEP = 1 << 20
# So many of them are one task: who forks or lets go of the source waits for
# one task at most.
STEPS = 8
# So many seconds from its beginning, the reading is not disturbed: random
# rows need most of the source anyway, and a disk reads it fastest in order.
UNDISTURBED = 1.
# Later, for one second in which rows are fetched out of turn, the reading
# has so many.
SHARE_OF_READING = 3


class SequentialRead:
    """Sequential reading of a part of a file in the background.

    `read_to`: up to here all was read.
    `is_fetching`: whether rows are being fetched out of turn.
    `fetch_from`: when rows may be fetched again, by :func:`time.monotonic`.
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
        """Make a new lock, for a child made by a fork."""
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
        """Do one task of the reading, and see to it that the next follows."""
        for _ in range(STEPS):
            with self._changed:
                self._changed.wait_for(
                    lambda: not self.is_fetching, UNDISTURBED)
            address = self.read_to
            end = min(address + STEP, self._end)
            try:
                self._file.read_into(self._buffer[:end - address], address)
            except OSError:
                # It is raised where these rows are read.
                end = self._end
            # Another thread may have begun the same task after a fork.
            self.read_to = max(self.read_to, end)
            if self.is_done:
                break
        else:
            self._go_on()
        with self._changed:
            self._changed.notify_all()

    def wait(self, starts: NDArray[numpy.int64], nbytes: int) -> None:
        """Wait until rows are in memory.

        Where that would take long they are fetched, out of turn.
        """
        if not starts.size:
            return
        last = min(int(starts.max()) + nbytes, self._end)
        # A fork drops what is left to do.
        if not self.is_done and self.background.is_idle:
            self._go_on()
        with self._changed:
            while self.read_to < last:
                left = self.fetch_from - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(left)
        if self.read_to < last:
            self._fetch(starts[starts + nbytes > self.read_to], nbytes)

    def _fetch(self, starts: NDArray[numpy.int64], nbytes: int) -> None:
        began = time.monotonic()
        # A disk that has megabytes to read would answer late.
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
    # Unless nobody reads the source any more.
    living = reading()
    if living is not None and not living.is_done:
        living.read_on()


_all = each_at_fork(Step.OWNERSHIP, in_child=SequentialRead.unlock)
