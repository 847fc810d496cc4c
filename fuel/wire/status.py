"""Asking a server how it is."""
from __future__ import annotations

import os
from typing import Any

import zmq

from fuel.exceptions import ServerError
from fuel.wire.header import get_field, pack_header, unpack_header


def ask_status(address: str, timeout: float = 5.0,
               curve: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Return the statistics of a server."""
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
                'is it running there, and on this port?')
        fields = unpack_header(socket.recv_multipart()[0])
        status: dict[str, Any] = get_field(fields, 'status', dict)
        return status
