"""Messages between a worker process and its consumer."""
from __future__ import annotations

import enum
import pickle

import numpy

from fuel.epochs.state import Unavailable
from fuel.transport.batches import dump_batch
from fuel.typing import Batch
from fuel.workers.batch_maker import Buffers

# A description of fewer bytes travels in the message, not in a slot.
INLINE = 1 << 10


class Kind(enum.IntEnum):
    """Kinds of messages."""

    # From the consumer.
    OPEN = 1
    DELIVERED = 2
    RELEASE = 3
    LEAVE = 4
    ASK_ACTIVITY = 5
    STREAM = 6
    MEASURE = 7
    # From the producer.
    OPENED = 10
    SEGMENT = 11
    DROP = 12
    BATCH = 13
    END = 14
    ERROR = 15
    ACTIVITY = 16
    MEASURED = 17
    UNLOADABLE = 18
    TRACE = 19


def encode_batch(batch: Batch) -> tuple[bytes, Buffers]:
    """Return a short description of a batch, and the bytes of the rest.

    A long description is the last of the buffers.
    """
    description, buffers = dump_batch(batch)
    if len(description) > INLINE:
        buffers.append(numpy.frombuffer(description, numpy.uint8))
        description = b''
    return description, buffers


def pickle_state(state: object) -> bytes:
    """Return a state, or why there is none, pickled."""
    try:
        return pickle.dumps(state)
    except Exception:  # noqa: BLE001 - pickling runs any code
        reason = state.reason if isinstance(state, Unavailable) else state
        return pickle.dumps(Unavailable(TypeError(str(reason))))
