"""Inject faults at named points: end the process, raise an error, or wait.

These are points at which a process may end in the middle of an operation.
Tests of crashes use the names of the points, and need no private names of
modules:

'channel send', 'channel receive'
    a message to, or from, another process of this host;
'slot copy'
    a batch is written into shared memory;
'lease'
    memory of a batch is lent to the consumer;
'state delta'
    the change of a pipeline's state is computed for the consumer;
'server send', 'server receive'
    a message of a server to, or from, a client;
'client send', 'client receive'
    a message of a client to, or from, its server;
'client count'
    a client records a batch as delivered;
'remote wait'
    a request for a remote file is about to be repeated;
'cache write', 'cache record'
    bytes of a remote file, or the record of them, are written to the cache on
    disk.

"""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from types import ModuleType
from typing import Any

from fuel.utils import seams

__all__ = ['POINTS', 'intercept']

#: A dict from the name of each point to the module that defines the point.
POINTS = {
    'channel send': 'fuel.transport.channel',
    'channel receive': 'fuel.transport.channel',
    'slot copy': 'fuel.transport.slots',
    'lease': 'fuel.transport.leases',
    'state delta': 'fuel.epochs.state_delta',
    'server send': 'fuel.server.server',
    'server receive': 'fuel.server.server',
    'client send': 'fuel.client.channel',
    'client receive': 'fuel.client.channel',
    'client count': 'fuel.client.session',
    'remote wait': 'fuel.remote.transfers',
    'cache write': 'fuel.remote.disk_cache',
    'cache record': 'fuel.remote.disk_cache',
}


@contextmanager
def intercept(point: str, call: Callable[..., Any]) -> Iterator[None]:
    """Replace the function at a point, within a block.

    A process that is forked in the block keeps the replacement, also after
    the block.

    Parameters
    ----------
    point : str
        A key of :data:`POINTS`.
    call : callable
        Called with the original function and the arguments of the call.  Its
        result takes the place of the function's result.

    Raises
    ------
    ValueError
        If there is no such point.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> from fuel.transformers import MultiProcessing
    >>> stream = MultiProcessing(DataStream(
    ...     IndexableDataset([1, 2, 3]),
    ...     iteration_scheme=SequentialScheme(3, 2)))
    >>> def report(function, *args):
    ...     print('a message comes')
    ...     return function(*args)
    >>> with stream, intercept('channel receive', report):
    ...     batch = next(stream.get_epoch_iterator())
    ... # doctest: +ELLIPSIS
    a message comes...
    """
    if point not in POINTS:
        raise ValueError(f'there is no point {point!r}: choose among '
                         f'{tuple(POINTS)}')
    import_module(POINTS[point])
    original = seams.POINTS[point]

    @wraps(original)
    def intercepted(*args: Any, **kwargs: Any) -> Any:
        return call(original, *args, **kwargs)

    holders = list(_holders(original))
    for holder, name in holders:
        setattr(holder, name, intercepted)
    try:
        yield
    finally:
        for holder, name in holders:
            setattr(holder, name, original)


def _holders(function: Callable[..., object]) -> Iterator[tuple[Any, str]]:
    """Yield each class or module that holds a function, and its name."""
    owner, _, name = function.__qualname__.rpartition('.')
    if owner:
        yield getattr(sys.modules[function.__module__], owner), name
        return
    for path, module in list(sys.modules.items()):
        # A module whose import is blocked is None.
        if path.startswith('fuel.') and isinstance(module, ModuleType) and (
                vars(module).get(name) is function):
            yield module, name
