"""Buffers for decoded chunks, which are reused.

Decoded chunks stay in memory for long, but compressed data do not. If both
were allocated on one heap, it would get holes that grow with every epoch.
"""
from __future__ import annotations

import contextlib
import mmap
import sys
from collections import deque

import numpy
from numpy.typing import NDArray

# Bytes that are requested from the system at once; the largest number of
# buffers that are made at once; and the factor for later requests.
SLAB = 4 << 20
MOST = 256
LATER = 4
# Not shared with a forked child, which writes its own chunks.
PRIVATE: dict[str, int] = (
    {} if sys.platform == 'win32'
    else {'flags': mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS})


def _take_first(queue: deque[NDArray[numpy.uint8]],
                ) -> tuple[NDArray[numpy.uint8], int]:
    """Remove the first buffer of a queue; return it and the number of
    references to it."""
    buffer = queue.popleft()
    return buffer, sys.getrefcount(buffer)


# The number of references to a buffer that no other code holds. It depends on
# the version of Python, and on the function that counts the references.
ALONE = _take_first(deque([numpy.empty(0, numpy.uint8)]))[1]


def buffer_nbytes(nbytes: int) -> int:
    """Return the size of the buffers for chunks of about `nbytes` bytes.

    Chunks of similar sizes have buffers of one size, so that they can share
    buffers.
    """
    step = max(64, 1 << nbytes.bit_length() >> 3)
    return -(-nbytes // step) * step


class Buffers:
    """Pool of buffers of several sizes.

    The caller must ensure that only one thread at a time uses this object.
    """

    def __init__(self) -> None:
        self._free: dict[int, deque[NDArray[numpy.uint8]]] = {}

    def take(self, nbytes: int) -> NDArray[numpy.uint8]:
        """Return an unused buffer of arbitrary content."""
        times = LATER if nbytes in self._free else 1
        free = self._free.setdefault(nbytes, deque())
        in_use: list[NDArray[numpy.uint8]] = []
        while free:
            buffer, count = _take_first(free)
            # More references mean that another thread copies from the buffer.
            if count == ALONE:
                # At the front, they are reused before new buffers, whose
                # pages do not exist yet.
                free.extendleft(in_use)
                return buffer
            in_use.append(buffer)
        free.extend(in_use)
        free.extend(_slab(nbytes, times))
        # Return the last buffer, which is new: the first ones are in use.
        return free.pop()

    def give_back(self, buffer: NDArray[numpy.uint8]) -> None:
        """Put a buffer that :meth:`take` returned back into the pool."""
        # At the front, it is reused before new buffers, whose pages do not
        # exist yet.
        self._free[buffer.nbytes].appendleft(buffer)


def _slab(nbytes: int, times: int) -> NDArray[numpy.uint8]:
    """Return new buffers of one size, as rows."""
    count = max(1, times * min(MOST, SLAB // nbytes))
    memory = mmap.mmap(-1, count * nbytes, **PRIVATE)
    if times > 1 and sys.platform == 'linux':
        # With small pages, clearing new memory would take a third of the time
        # of decoding. The system may refuse this advice.
        with contextlib.suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    return numpy.frombuffer(memory, numpy.uint8).reshape(count, nbytes)


class Scratch:
    """Pool of arrays that are needed for a short time.

    Getting new memory from the system would take as long as decoding into it.
    Several threads may use this object at once.
    """

    # Number of bytes of the largest arrays that are reused, and the largest
    # number of arrays that are kept for reuse.
    LARGEST = 2 << 20
    MOST = 64

    def __init__(self) -> None:
        self._all: deque[NDArray[numpy.uint8]] = deque()

    def take(self, nbytes: int) -> NDArray[numpy.uint8]:
        """Return an array of arbitrary content; it is reused when no reference
        to a part of it is left."""
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
