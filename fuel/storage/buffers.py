"""Memory for decoded chunks, used again and again.

Chunks live long while what they are decoded from does not. From one heap,
the two would leave holes that grow with every epoch.
"""
from __future__ import annotations

import mmap
import sys
from collections import deque

import numpy
from numpy.typing import NDArray

# Bytes asked from the system at once, and how many buffers at most.
SLAB = 4 << 20
MOST = 256
# Not shared with a child made by a fork, which writes chunks of its own.
PRIVATE: dict[str, int] = (
    {} if sys.platform == 'win32'
    else {'flags': mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS})


def _count_alone() -> int:
    """Return the count of references to what one variable alone holds.

    Versions of Python differ in whether the argument counts.
    """
    queue = deque([numpy.empty(0, numpy.uint8)])
    buffer = queue.popleft()
    return sys.getrefcount(buffer)


ALONE = _count_alone()


class Buffers:
    """Buffers of one size. The caller sees to it that one thread at a time
    uses this object."""

    def __init__(self, nbytes: int) -> None:
        self._nbytes = nbytes
        self._free: deque[NDArray[numpy.uint8]] = deque()

    def take(self) -> NDArray[numpy.uint8]:
        """Return a buffer that nobody uses; its content is arbitrary."""
        for _ in range(len(self._free)):
            buffer = self._free.popleft()
            # A batch may still be copied from it: others hold it then.
            if sys.getrefcount(buffer) == ALONE:
                return buffer
            self._free.append(buffer)
        count = max(1, min(MOST, SLAB // self._nbytes))
        slab = numpy.frombuffer(
            mmap.mmap(-1, count * self._nbytes, **PRIVATE), numpy.uint8)
        self._free.extend(slab.reshape(count, self._nbytes))
        # The last, which is new: those before it are in use.
        return self._free.pop()

    def give_back(self, buffer: NDArray[numpy.uint8]) -> None:
        """Take a buffer that :meth:`take` returned."""
        self._free.append(buffer)
