"""Waits that end by themselves, known to whoever looks for deadlocks."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fuel.utils.forks import Step, at_fork

_waits: set[object] = set()


@contextmanager
def limited_wait() -> Iterator[None]:
    """Mark a wait that has a time limit of its own, or needs none.

    Examples
    --------
    >>> from fuel.utils.waits import has_limited_waits, limited_wait
    >>> with limited_wait():
    ...     has_limited_waits()
    True
    """
    wait = object()
    _waits.add(wait)
    try:
        yield
    finally:
        _waits.discard(wait)


def has_limited_waits() -> bool:
    """Return whether a thread of this process waits with a limit."""
    return bool(_waits)


# The threads that wait are the parent's.
at_fork(Step.OWNERSHIP, in_child=_waits.clear)
