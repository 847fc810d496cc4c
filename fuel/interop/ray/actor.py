"""Runs a pipeline in an actor: what a worker process is on one host."""
from __future__ import annotations

import enum
import os
import pickle
from typing import Any, NamedTuple

import ray
from numpy.typing import NDArray

from fuel.transport.batches import dump_batch
from fuel.workers.batch_maker import BatchMaker, Made, Note, pickle_state
from fuel.workers.global_random import Generators
from fuel.workers.remote_errors import pickle_error


class ReplyKind(enum.IntEnum):
    """Kinds of answers."""

    BATCH = 1
    ERROR = 2
    END = 3
    TOO_LARGE = 4
    GONE = 5


class ActorReply(NamedTuple):
    """The next batch of an epoch, or why there is none.

    `payload`: description of a batch, error or state after the end, pickled.
    `changes`: difference of the state from the first, pickled.
    `buffers`: memory of the arrays, which stays in the object store.
    `size`: bytes of these, or of a batch that is too large.
    `note`: of what it took.
    """

    kind: ReplyKind
    payload: bytes = b''
    changes: bytes = b''
    buffers: tuple[NDArray[Any], ...] = ()
    size: int = 0
    note: Note | None = None


class _Epoch:
    """One epoch; `waiting` is a batch that its reader had no room for."""

    def __init__(self, maker: BatchMaker[bytes]) -> None:
        self.maker = maker
        self.waiting: Made | None = None


class PipelineActor:
    """Makes the batches of a stream, one for each call.

    Calls come one after another, in the order in which they were made.

    `pickled`: the stream.
    `generators`: the global generators that its stages draw from.
    """

    def __init__(self, pickled: bytes, generators: Generators) -> None:
        self._epochs: dict[int, _Epoch] = {}
        self._stream: Any = None
        self._error: Exception | None = None
        try:
            self._stream = pickle.loads(pickled)
            generators.install()
        except Exception as error:  # noqa: BLE001 - raised by the consumer
            self._error = error

    def locate(self) -> tuple[str, int]:
        """Return the node and the process that the actor runs in."""
        return ray.get_runtime_context().get_node_id(), os.getpid()

    def open(self, number: int, options: dict[str, Any]) -> tuple[bool, bytes]:
        """Begin an epoch with the options of :class:`BatchMaker`.

        Returns: whether that failed, and the first state or the error.
        """
        try:
            if self._error is not None:
                raise self._error
            maker = BatchMaker(self._stream, dump_batch, **options)
            opened = pickle_state(maker.base)
        except Exception as error:  # noqa: BLE001 - raised by the consumer
            return True, pickle_error(error)
        self._epochs[number] = _Epoch(maker)
        return False, opened

    def make(self, number: int, room: int) -> ActorReply:
        """Make the next batch of an epoch, of at most `room` bytes."""
        epoch = self._epochs.get(number)
        if epoch is None:
            return ActorReply(ReplyKind.GONE)
        made = epoch.waiting or epoch.maker.next()
        epoch.waiting = None
        if made.is_end:
            del self._epochs[number]
            return ActorReply(
                ReplyKind.END, pickle_state(made.state), note=made.note)
        changes = b'' if made.changes is None else pickle_state(made.changes)
        if made.error is not None:
            return ActorReply(
                ReplyKind.ERROR, pickle_error(made.error), changes)
        size = sum(buffer.nbytes for buffer in made.buffers)
        if size > room:
            epoch.waiting = made
            return ActorReply(ReplyKind.TOO_LARGE, size=size)
        return ActorReply(ReplyKind.BATCH, made.description, changes,
                          tuple(made.buffers), size, made.note)

    def leave(self, number: int) -> None:
        """Forget an epoch that nobody reads any more."""
        self._epochs.pop(number, None)
