"""Counts of what this process has read, decoded and fetched."""
from __future__ import annotations

import threading

from fuel.utils.forks import Step, at_fork


class IOCounts:
    """Counts since the process began, of all files.

    `bytes_read`: read from files; what is mapped into memory is not.
    `chunks_decoded`, `bytes_decoded`: of compressed or chunked arrays.
    `requests`, `bytes_fetched`: that servers of files answered, and sent.
    `retries`: requests that were made again.
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
