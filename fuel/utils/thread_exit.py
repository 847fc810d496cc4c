"""The end of threads at the end of the interpreter."""
from __future__ import annotations

import threading


def end_thread_at_exit() -> None:
    """End this thread silently if the interpreter is about to end.

    What a daemon thread waits for goes away then, which is no error.
    """
    if not threading.main_thread().is_alive():
        raise SystemExit
