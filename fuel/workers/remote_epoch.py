"""One epoch of one worker, on the consumer's side."""
from __future__ import annotations

import pickle
from collections import deque
from typing import NamedTuple

from fuel.epochs.state import Unavailable
from fuel.epochs.state_delta import changed
from fuel.exceptions import WorkerError
from fuel.transport.channel import Message
from fuel.typing import State
from fuel.workers.remote_errors import unpickle_error


class RemoteEpoch:
    """One epoch of one worker, on the consumer's side.

    `taken`: how many batches and errors were received and opened.
    `items`: those that came and were not opened.
    `opened`: whether the worker answered the request for the epoch.
    `base`: the state before the first batch, or why there is none.
    `failure`: why the epoch could not begin, if it could not.
    `final`: the state after the end, or why there is none, pickled; None
        before the end was received.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.taken = 0
        self.items: deque[Message] = deque()
        self.opened = False
        self.base: State | Unavailable = Unavailable(WorkerError(
            'the worker has not begun the epoch'))
        self.failure: Exception | None = None
        self.final: bytes | None = None

    def open(self, answer: bytes, *, failed: bool) -> None:
        """Record that the worker has begun the epoch, or could not."""
        self.opened = True
        if failed:
            self.failure = pipeline_error(answer)
            self.base = Unavailable(self.failure)
        else:
            self.base = pickle.loads(answer)


class Receipt(NamedTuple):
    """Of a batch or error: the epoch's first state, and what changed.

    `base`: the state before the first batch, or why there is none.
    `changes`: pickled differences of the state after it.
    """

    base: State | Unavailable
    changes: bytes

    def state(self) -> State | Unavailable:
        """Return the state after it, or why there is none."""
        changes = pickle.loads(self.changes) if self.changes else None
        if isinstance(self.base, Unavailable) or changes is None:
            return self.base
        if isinstance(changes, Unavailable):
            return changes
        state: State = changed(self.base, changes)
        return state


def pipeline_error(pickled: bytes) -> Exception:
    """Return an exception of the worker's pipeline as one of ours."""
    return unpickle_error(
        pickled, WorkerError, 'the pipeline in the worker process raised an '
        'error that cannot be pickled: ')
