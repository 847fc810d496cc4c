"""Check whether a client is on the server's host: only then can it read a
secret in shared memory."""
from __future__ import annotations

import hashlib
import os
from contextlib import suppress

from fuel.transport.segment import Segment, is_sealed
from fuel.wire.header import WireError, get_field

_SECRET = 32


def prove(secret: bytes, client: str) -> str:
    """Return the proof that a client has read the secret in a segment."""
    return hashlib.sha256(secret + client.encode()).hexdigest()


def open_foreign(pid: int, descriptor: int, size: int) -> Segment:
    """Map a segment of another process of this host."""
    path = f'/proc/{pid}/fd/{descriptor}'
    # Accept only a segment of Fuel: a server must not make its clients open
    # any other file.
    if not os.readlink(path).startswith('/memfd:fuel-segment'):
        raise PermissionError(f'{path} is not a segment')
    opened = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    if os.fstat(opened).st_size != size or not is_sealed(opened):
        os.close(opened)
        raise PermissionError(f'{path} is not a segment of {size} bytes')
    return Segment(opened, size)


def make_probe() -> tuple[Segment, bytes]:
    """Return a new segment with a secret in it, and the secret."""
    secret = os.urandom(_SECRET)
    segment = Segment.create(4096)
    segment.memory[:_SECRET] = secret
    return segment, secret


def answer_probe(probe: object, client: str) -> str:
    """Return the proof for a server's probe; empty if the client cannot open
    it."""
    if not isinstance(probe, dict):
        return ''
    with suppress(OSError, WireError):
        segment = open_foreign(
            get_field(probe, 'pid', int), get_field(probe, 'descriptor', int),
            get_field(probe, 'size', int))
        secret = segment.memory[:_SECRET]
        segment.close_descriptor()
        return prove(secret, client)
    return ''
