"""Messages between a worker process and its consumer."""
from __future__ import annotations

import enum
import pickle
import struct

import numpy

from fuel.transport.batches import dump
from fuel.typing import Batch
from fuel.workers.batch_maker import Buffers, Extent

# A description of fewer bytes travels in the message, not in a slot.
INLINE = 1 << 10

_COUNTS = struct.Struct('<II')
_EXTENT = struct.Struct('<QQ')
_LOW = 0xffffffff


class Kind(enum.IntEnum):
    """Kinds of messages."""

    # From the consumer.
    OPEN = 1
    DELIVERED = 2
    RELEASE = 3
    LEAVE = 4
    ASK_STACKS = 5
    STREAM = 6
    MEASURE = 7
    # From the producer.
    OPENED = 10
    SEGMENT = 11
    DROP = 12
    BATCH = 13
    END = 14
    ERROR = 15
    STACKS = 16
    MEASURED = 17
    UNLOADABLE = 18


def encode(batch: Batch) -> tuple[bytes, Buffers]:
    """Return a short description of a batch, and the bytes of the rest.

    A long description is the last of the buffers.
    """
    description, buffers = dump(batch)
    if len(description) > INLINE:
        buffers.append(numpy.frombuffer(description, numpy.uint8))
        description = b''
    return description, buffers


def pack_batch(extents: list[Extent], changes: bytes,
               description: bytes) -> bytes:
    """Return the payload of a message that delivers a batch."""
    return b''.join([
        _COUNTS.pack(len(extents), len(changes)),
        *(_EXTENT.pack(*extent) for extent in extents),
        changes, description])


def unpack_batch(payload: bytes) -> tuple[list[Extent], bytes, bytes]:
    """Return the arguments of :func:`pack_batch`."""
    count, length = _COUNTS.unpack_from(payload)
    end = _COUNTS.size + count * _EXTENT.size
    extents = [(offset, size) for offset, size
               in _EXTENT.iter_unpack(payload[_COUNTS.size:end])]
    return extents, payload[end:end + length], payload[end + length:]


def pickle_state(state: object) -> bytes:
    """Return a state, or the exception in its place, pickled."""
    try:
        return pickle.dumps(state)
    except Exception:  # noqa: BLE001 - pickling runs any code
        return pickle.dumps(TypeError(str(state)))
