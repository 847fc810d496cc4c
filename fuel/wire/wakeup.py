"""Wake up a thread that waits for sockets."""
from __future__ import annotations

import os
import select
import sys
from contextlib import suppress


def check_platform(user: str) -> None:
    """Raise an error on a system that cannot wait for sockets and a pipe at
    once."""
    if not hasattr(select, 'poll'):
        raise NotImplementedError(
            f'{user} waits for sockets and a pipe at the same time, which '
            f'{sys.platform} cannot: read the data stream itself, or run the '
            'program on Linux or macOS')


class WakeUp:
    """A pipe that makes a poll in another thread return."""

    # `__del__` reads it even if os.pipe failed in `__init__`.
    descriptor = -1

    def __init__(self) -> None:
        self.descriptor, self._end = os.pipe()
        os.set_blocking(self.descriptor, False)
        os.set_blocking(self._end, False)

    def __call__(self) -> None:
        """Wake up the waiting thread."""
        # A full pipe wakes the thread up, too; after closing, no thread waits.
        with suppress(BlockingIOError, OSError):
            os.write(self._end, b'x')

    def clear(self) -> None:
        """Clear the wake-ups so far."""
        with suppress(BlockingIOError):
            os.read(self.descriptor, 4096)

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._end)
        os.close(self.descriptor)
        self._end = self.descriptor = -1

    def __del__(self) -> None:
        # `close` is not called if the owner fails before it starts.
        if self.descriptor >= 0:
            self.close()
