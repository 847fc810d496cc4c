"""Messages over ZeroMQ's sockets.

`receive_all` and `send_now` replace the helpers of pyzmq for messages of
several parts.  The helpers query the socket after each part, and compute with
flags that are enumerations.  For a small message, that takes more time than
all other steps.
"""
from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import zmq

from fuel.exceptions import ServerError
from fuel.wire.decoding import decode
from fuel.wire.encoding import encode
from fuel.wire.header import WireError, get_field, pack_header, unpack_header

# Milliseconds between heartbeats, and milliseconds without a heartbeat after
# which a connection is cut. The sockets' own threads send heartbeats even
# while Python is busy.
HEARTBEAT = 200, 800
_NOBLOCK = int(zmq.NOBLOCK)
_MORE = int(zmq.NOBLOCK | zmq.SNDMORE)
_EVENTS = int(zmq.EVENTS)
_POLLIN = int(zmq.POLLIN)


def receive_all(socket: zmq.Socket[bytes]) -> Iterator[list[Any]]:
    """Yield the messages that have arrived, without waiting."""
    # The query takes less time than the exception about a missing message.
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
    """Send a message without waiting; raise an error if that is not
    possible."""
    for part in parts[:-1]:
        socket.send(part, _MORE, copy)
    socket.send(parts[-1], _NOBLOCK, copy)


def send_arrays(socket: zmq.Socket[bytes], arrays: Sequence[Any] | None,
                stop: bool = False) -> None:
    """Send arrays over a ZeroMQ socket, as one message.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray or None
        Arrays of any type but object.  Lists are sent, too: a rectangular one
        is received as an array, a ragged one as a list of arrays.
    stop : bool, optional
        Whether to send a message that ends the sequence of arrays instead.
        Defaults to False.

    Raises
    ------
    TypeError
        If one of the arrays cannot be sent.  In this case nothing is sent.

    Examples
    --------
    >>> import numpy, zmq
    >>> with zmq.Context() as context:
    ...     left, right = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    ...     with left, right:
    ...         left.bind('inproc://example')
    ...         right.connect('inproc://example')
    ...         send_arrays(left, [numpy.arange(3)])
    ...         recv_arrays(right)
    <...>
    <...>
    [array([0, 1, 2])]
    """
    if stop:
        socket.send_multipart([pack_header({'type': 'stop'})])
        return
    items, buffers = encode([] if arrays is None else arrays)
    # Copy the arrays, since the caller may change them before they are sent.
    socket.send_multipart(
        [pack_header({'type': 'arrays', 'items': items}),
         *map(bytes, buffers)])


def recv_arrays(socket: zmq.Socket[bytes]) -> list[Any]:
    """Receive the arrays that :func:`send_arrays` sent.

    Returns
    -------
    list of numpy.ndarray
        Writable, aligned arrays, which the caller may keep.

    Raises
    ------
    StopIteration
        If the message ends the sequence of arrays.
    fuel.wire.WireError
        If the message is not in the format of :func:`send_arrays`.
    """
    header, *frames = socket.recv_multipart(copy=False)
    fields = unpack_header(header.bytes)
    kind = get_field(fields, 'type', str)
    if kind == 'stop':
        raise StopIteration
    if kind != 'arrays':
        raise WireError(f'a message of arrays was expected, got {kind!r}')
    return list(decode(fields.get('items'), frames))


class ClientStatus(NamedTuple):
    """Status of a client of a server.

    `client`: the first half of the client's name.
    `rank`: rank of the client; None if it has none.
    `is_local`: whether it is on the server's host, and gets batches in shared
        memory.
    `seconds`: seconds since it connected.
    `batches`: number of batches that its user has received since.
    `lag`: number of sent batches that its user has not received yet.
    `hwm`: limit of `lag`.
    `is_waiting`: whether its user waits for a batch.
    `host`, `pid`: host and process identifier that the client reports; '' and
        0 if it reports none.
    `waited`: seconds that its user has waited for batches.
    """

    client: str
    rank: int | None
    is_local: bool
    seconds: float
    batches: int
    lag: int
    hwm: int
    is_waiting: bool
    host: str = ''
    pid: int = 0
    waited: float = 0.


def ask_status(address: str, timeout: float = 5.0,
               curve: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Request the status of a server, and return it."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        if curve is not None:
            from fuel.wire.curve import protect_client
            protect_client(socket, curve)
        try:
            socket.connect(address)
        except zmq.ZMQError as error:
            raise ServerError(
                f'cannot connect to {address!r} ({error.strerror}): expected '
                'an address such as tcp://localhost:5557') from error
        socket.send(pack_header({'type': 'status'}))
        if not socket.poll(int(timeout * 1000)):
            raise ServerError(
                f'no server answers at {address} after {timeout} seconds: '
                'is it running there, and on this port? ' + (
                    'A server with keys ignores clients that have no keys: '
                    'pass --curve' if curve is None else
                    'A server that has no keys, or other keys, ignores a '
                    'client with these keys'))
        fields = unpack_header(socket.recv_multipart()[0])
        status: dict[str, Any] = get_field(fields, 'status', dict)
        return status
