"""Libraries whose threads a forked worker does not have."""
from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


def use_no_threads_of_torch() -> None:
    """Let PyTorch compute in this thread, where it is loaded.

    The threads that it used in the parent were not copied by the fork, and it
    would wait for them without end.
    """
    # Another thread may have been importing it when the process was forked.
    set_threads = getattr(sys.modules.get('torch'), 'set_num_threads', None)
    if set_threads is not None:
        set_threads(1)


@contextmanager
def warned_of_jax(method: str | None) -> Iterator[None]:
    """Warn of workers that are forked where JAX is loaded, once for all.

    The warnings of JAX and of Python, one for each worker, name no remedy and
    are left out.
    """
    if method != 'fork' or 'jax' not in sys.modules:
        yield
        return
    warnings.warn(
        'workers are forked from a process that has loaded JAX, whose threads '
        'are not copied: a worker may wait for them without end. Start the '
        "workers with start_method='forkserver', and let what your script "
        "does stand under if __name__ == '__main__':, since they import it",
        RuntimeWarning, stacklevel=1)
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', r'os\.fork\(\) was called')
        warnings.filterwarnings('ignore', r'.*use of fork\(\) may lead')
        yield
