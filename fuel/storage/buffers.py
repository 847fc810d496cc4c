"""Memory for decoded chunks, used again and again.

Chunks live long while what they are decoded from does not. From one heap,
the two would leave holes that grow with every epoch.
"""
from __future__ import annotations

import contextlib
import mmap
import sys
from collections import deque

import numpy
from numpy.typing import NDArray

# Bytes asked from the system at once, and how many buffers at most; so many
# times as much from the second time on.
SLAB = 4 << 20
MOST = 256
LATER = 4
# Not shared with a child made by a fork, which writes chunks of its own.
PRIVATE: dict[str, int] = (
    {} if sys.platform == 'win32'
    else {'flags': mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS})


def _take_first(queue: deque[NDArray[numpy.uint8]],
                ) -> tuple[NDArray[numpy.uint8], int]:
    """Take the first buffer of a queue; count the references to it."""
    buffer = queue.popleft()
    return buffer, sys.getrefcount(buffer)


# The count where nobody else has a buffer. Versions of Python differ in which
# variables and arguments count, even from one function to the next.
ALONE = _take_first(deque([numpy.empty(0, numpy.uint8)]))[1]


def buffer_nbytes(nbytes: int) -> int:
    """Return the size of the buffers for chunks of about so many bytes: chunks
    of nearly one size can share buffers."""
    step = max(64, 1 << nbytes.bit_length() >> 3)
    return -(-nbytes // step) * step


class Buffers:
    """Buffers of some sizes. The caller sees to it that one thread at a time
    uses this object."""

    def __init__(self) -> None:
        self._free: dict[int, deque[NDArray[numpy.uint8]]] = {}

    def take(self, nbytes: int) -> NDArray[numpy.uint8]:
        """Return an unused buffer of arbitrary content."""
        times = LATER if nbytes in self._free else 1
        free = self._free.setdefault(nbytes, deque())
        in_use: list[NDArray[numpy.uint8]] = []
        while free:
            buffer, count = _take_first(free)
            # A batch may still be copied from it: others hold it then.
            if count == ALONE:
                # The next time before those that the system has not made yet.
                free.extendleft(in_use)
                return buffer
            in_use.append(buffer)
        free.extend(in_use)
        free.extend(_slab(nbytes, times))
        # The last, which is new: those before it are in use.
        return free.pop()

    def give_back(self, buffer: NDArray[numpy.uint8]) -> None:
        """Take back a buffer that :meth:`take` returned."""
        # Used again before those that the system has not made yet.
        self._free[buffer.nbytes].appendleft(buffer)


def _slab(nbytes: int, times: int) -> NDArray[numpy.uint8]:
    """Return new buffers of one size, as rows."""
    count = max(1, times * min(MOST, SLAB // nbytes))
    memory = mmap.mmap(-1, count * nbytes, **PRIVATE)
    if times > 1 and sys.platform == 'linux':
        # To clear small pages takes a third of the time of decoding. Where
        # the advice is refused, they do.
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    return numpy.frombuffer(memory, numpy.uint8).reshape(count, nbytes)


class Scratch:
    """Memory that is needed for a moment: to ask the system for it takes as
    long as to decode into it. Threads may use one object at once."""

    # Larger arrays are new each time, and so are more of them.
    LARGEST = 2 << 20
    MOST = 64

    def __init__(self) -> None:
        self._all: deque[NDArray[numpy.uint8]] = deque()

    def take(self, nbytes: int) -> NDArray[numpy.uint8]:
        """Return an array of arbitrary content, which is used again when no
        part of it is referenced."""
        if nbytes > self.LARGEST:
            return numpy.empty(nbytes, numpy.uint8)
        for _ in range(len(self._all)):
            try:
                whole, count = _take_first(self._all)
            except IndexError:
                break
            if count == ALONE:
                part = whole[:nbytes]
                self._all.appendleft(whole)
                return part
            self._all.append(whole)
        if len(self._all) >= self.MOST:
            return numpy.empty(nbytes, numpy.uint8)
        whole = numpy.empty(self.LARGEST, numpy.uint8)
        self._all.appendleft(whole)
        return whole[:nbytes]


#: Buffers that chunks are read and decoded into, before they are kept.
scratch = Scratch()
