"""Messages over ZeroMQ's sockets, without what its own helpers ask besides.

They ask the socket after each part whether there are more, and compute with
flags that are enumerations: more than the rest of a small message takes.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import zmq

# Milliseconds between signs of life, and without one until a connection is
# cut; the sockets' own threads give them, whatever Python does.
HEARTBEAT = 200, 800
_NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)
_EVENTS = int(zmq.EVENTS)
_POLLIN = int(zmq.POLLIN)


def receive_all(socket: zmq.Socket[bytes]) -> Iterator[list[Any]]:
    """Yield the messages that have come."""
    # Asking is cheaper than the exception that says that there are none.
    while int(socket.get(_EVENTS)) & _POLLIN:
        try:
            part = socket.recv(_NOBLOCK, copy=False)
        except zmq.Again:
            return
        parts = [part]
        while part.more:
            part = socket.recv(_NOBLOCK, copy=False)
            parts.append(part)
        yield parts


def send_now(socket: zmq.Socket[bytes], parts: Sequence[Any],
             copy: bool = True) -> None:
    """Send a message, or fail at once."""
    for part in parts[:-1]:
        socket.send(part, _MORE, copy)
    socket.send(parts[-1], _NOBLOCK, copy)
