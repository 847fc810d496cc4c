"""Call handlers before and after a fork, in a fixed order.

A child made by a fork has the memory of its parent, but not its threads. So
threads end before a fork, and the child replaces locks that another thread may
have held.
"""
from __future__ import annotations

import enum
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
# This import registers fork handlers of its own: see below.
from concurrent.futures import thread as _executor  # noqa: F401
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from h5py import _objects

Handler = Callable[[], None]
Member = TypeVar('Member')


class Step(enum.IntEnum):
    """Steps before a fork, in this order; after a fork, in reverse order."""

    #: Slots that are leased now are never written again.
    LEASES = 0
    #: Prefetching stops.
    PREFETCH = 1
    #: The pool's threads end. h5py's lock must be free for that.
    THREADS = 2
    #: h5py's lock is taken for the time of the fork.
    H5PY = 3
    #: The child gets new locks; files and connections belong to the parent.
    OWNERSHIP = 4


_handlers: dict[tuple[Step, str], list[Handler]] = {}


def at_fork(step: Step, *, before: Handler | None = None,
            in_parent: Handler | None = None,
            in_child: Handler | None = None) -> None:
    """Call functions before and after each fork of this process."""
    for moment, handler in (('before', before), ('after_in_parent', in_parent),
                            ('after_in_child', in_child)):
        if handler is not None:
            _handlers.setdefault((step, moment), []).append(handler)


def each_at_fork(step: Step, **methods: Callable[[Member], object],
                 ) -> weakref.WeakSet[Member]:
    """Return a weak set; methods of its members are called at each fork.

    `methods`: methods of the members, by the keywords of :func:`at_fork`.
    """
    members: weakref.WeakSet[Member] = weakref.WeakSet()
    at_fork(step, **{moment: for_each(members, method)
                     for moment, method in methods.items()})
    return members


def for_each(members: Iterable[Member],
             method: Callable[[Member], object]) -> Handler:
    """Return a handler that calls a method of each object in a weak set."""
    def handle() -> None:
        for member in list(members):
            method(member)
    return handle


def _run(step: Step, moment: str) -> None:
    for handler in _handlers.get((step, moment), ()):
        handler()


def use_no_threads_of_torch() -> None:
    """Make PyTorch compute in the calling thread alone, if it is loaded.

    A fork does not copy the threads that PyTorch used in the parent. PyTorch
    would wait for them without end in the child.
    """
    # Another thread may have been importing PyTorch when the process was
    # forked.
    set_threads = getattr(sys.modules.get('torch'), 'set_num_threads', None)
    if set_threads is not None:
        set_threads(1)


@contextmanager
def warned_of_jax(method: str | None) -> Iterator[None]:
    """Warn once if workers are forked from a process that has loaded JAX.

    In the block, the warnings of JAX and of Python are suppressed: there is
    one for each worker, and they do not name a remedy.

    `method`: the start method of the workers.
    """
    if method != 'fork' or 'jax' not in sys.modules:
        yield
        return
    warnings.warn(
        'workers are forked from a process that has loaded JAX, whose threads '
        'are not copied: a worker may wait for them without end. Start the '
        "workers with start_method='forkserver', and put what your script "
        "runs, but not its functions and classes, under if __name__ == "
        "'__main__':, since they import it",
        RuntimeWarning, stacklevel=1)
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', r'os\.fork\(\) was called')
        warnings.filterwarnings('ignore', r'.*use of fork\(\) may lead')
        yield


# These handlers are registered after those of the executor and of h5py, so
# that they run first: the handler that is registered last is called first. The
# handler of h5py takes h5py's lock. If it ran first, a thread of the pool that
# reads a file, or forks, would need this lock and never end.
if hasattr(os, 'register_at_fork'):
    for _step in reversed(Step):
        os.register_at_fork(**{
            moment: partial(_run, _step, moment)
            for moment in ('before', 'after_in_parent', 'after_in_child')})

# Recent versions of h5py take their lock for the time of a fork. With other
# versions, a child that is forked while a thread reads a file would wait for
# ever for that thread, which does not exist in the child.
if not hasattr(_objects, '_phil_before_fork'):
    at_fork(Step.H5PY, before=_objects.phil.acquire,
            in_parent=_objects.phil.release, in_child=_objects.phil.release)
