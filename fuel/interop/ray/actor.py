"""Run a pipeline in an actor, as a worker process does on one host."""
from __future__ import annotations

import os
import pickle
from typing import Any, NamedTuple

import ray
from numpy.typing import NDArray

from fuel.transport.batches import dump_batch
from fuel.workers.batch_maker import ReceivedItem, RunningEpochs
from fuel.workers.global_random import Generators
from fuel.utils.remote_errors import pickle_error


class ActorReply(NamedTuple):
    """The answer to a request for the next item of an epoch.

    `answer`: the item without its arrays; None if no item is sent.
    `buffers`: memory of the arrays, which stays in the object store.
    `size`: bytes of the arrays; they are not sent if they are too large.
    """

    answer: ReceivedItem | None = None
    buffers: tuple[NDArray[Any], ...] = ()
    size: int = 0


class PipelineActor:
    """Makes the batches of a stream, one for each call.

    Ray runs the calls one after another, in the order in which they were
    made.

    `pickled`: the pickled stream.
    `generators`: the global random generators that its stages draw from.
    """

    def __init__(self, pickled: bytes, generators: Generators) -> None:
        stream: Any = None
        self._error = b''
        try:
            stream = pickle.loads(pickled)
            generators.install()
        except Exception as error:  # noqa: BLE001 - raised by the consumer
            self._error = pickle_error(error)
        self._epochs = RunningEpochs(stream, dump_batch)

    def locate(self) -> tuple[str, int]:
        """Return the node and the process that the actor runs in."""
        return ray.get_runtime_context().get_node_id(), os.getpid()

    def open(self, number: int, options: bytes) -> tuple[bool, bytes]:
        """Begin an epoch.

        `options`: the pickled options of :class:`BatchMaker`.

        Returns: whether that failed, and the first state or the error.
        """
        if self._error:
            return True, self._error
        return self._epochs.open_for_another(number, options)

    def make(self, number: int, room: int) -> ActorReply:
        """Return the next batch of an epoch, if it has at most `room` bytes.

        A larger batch is kept for the next call; only its size is returned.
        """
        maker = self._epochs.get(number)
        if maker is None:
            return ActorReply()
        made = self._epochs.make(number)
        size = sum(buffer.nbytes for buffer in made.buffers)
        if size > room:
            maker.waiting = made
            return ActorReply(size=size)
        return ActorReply(
            made.as_received(elsewhere=True), tuple(made.buffers), size)

    def leave(self, number: int) -> None:
        """Drop an epoch that is not read any more."""
        self._epochs.leave(number)
