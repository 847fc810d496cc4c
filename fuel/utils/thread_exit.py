"""What threads do when the interpreter ends."""
from __future__ import annotations

import threading


def end_thread_at_exit() -> None:
    """End this thread without a word if the interpreter is about to end.

    What a daemon thread waits for is taken away then, and nobody is left
    to be told.
    """
    if not threading.main_thread().is_alive():
        raise SystemExit
