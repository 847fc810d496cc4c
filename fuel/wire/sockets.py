"""Arrays over a socket of one's own."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import zmq

from fuel.wire.decoding import decode
from fuel.wire.encoding import encode
from fuel.wire.header import WireError, get_field, pack_header, unpack_header


def send_arrays(socket: zmq.Socket[bytes], arrays: Sequence[Any] | None,
                stop: bool = False) -> None:
    """Send arrays over a ZeroMQ socket, as one message.

    Parameters
    ----------
    arrays : sequence of numpy.ndarray or None
        Of any type but object.  Lists are sent too: a rectangular one
        arrives as an array, a ragged one as a list of arrays.
    stop : bool, optional
        Whether to say that no more come instead.  Defaults to False.

    Raises
    ------
    TypeError
        If something cannot be sent; then nothing was.

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
    # Copied, since the caller may write the arrays before they are sent.
    socket.send_multipart(
        [pack_header({'type': 'arrays', 'items': items}),
         *map(bytes, buffers)])


def recv_arrays(socket: zmq.Socket[bytes]) -> list[Any]:
    """Receive what :func:`send_arrays` sent.

    Returns
    -------
    list of numpy.ndarray
        Writable, aligned, and the caller's own.

    Raises
    ------
    StopIteration
        If the sender said that no more come.
    fuel.wire.WireError
        If the message is not one of :func:`send_arrays`.
    """
    header, *frames = socket.recv_multipart(copy=False)
    fields = unpack_header(header.bytes)
    kind = get_field(fields, 'type', str)
    if kind == 'stop':
        raise StopIteration
    if kind != 'arrays':
        raise WireError(f'a message of arrays was expected, got {kind!r}')
    return list(decode(fields.get('items'), frames))
