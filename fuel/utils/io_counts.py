"""Counts of bytes and chunks that this process has read, decoded or
fetched."""
from __future__ import annotations

import threading

from fuel.utils.forks import Step, at_fork


class IOCounts:
    """Counts since the process began, over all files.

    `bytes_read`: bytes read from files, without files mapped into memory.
    `chunks_decoded`: number of decoded chunks of compressed or chunked arrays.
    `bytes_decoded`: number of bytes of these chunks.
    `requests`: number of requests that servers of files answered.
    `bytes_fetched`: number of bytes that these servers sent.
    `retries`: number of requests that were repeated.
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Reset the counts in a forked child."""
        self._lock = threading.Lock()
        self.bytes_read = self.chunks_decoded = self.bytes_decoded = 0
        self.requests = self.bytes_fetched = self.retries = 0

    def count(self, **amounts: int) -> None:
        """Add amounts to counts, from any thread."""
        with self._lock:
            for name, amount in amounts.items():
                setattr(self, name, getattr(self, name) + amount)


io_counts = IOCounts()
at_fork(Step.OWNERSHIP, in_child=io_counts.clear)
