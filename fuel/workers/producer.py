"""Prefetches batches in a worker process, and sends each one when it is
made."""
from __future__ import annotations

import enum
import os
import pickle
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy

from fuel.epochs.stage import stage_of
from fuel.transport.batches import dump_batch
from fuel.transport.channel import Channel, ChannelClosed, Message, Peer
from fuel.transport.slots import BudgetError, Buffers, Slot, SlotPool
from fuel.transport.segment import Segment
from fuel.typing import Batch, StreamLike
from fuel.workers.batch_maker import BatchMaker, Made, RunningEpochs
from fuel.utils.forks import use_no_threads_of_torch
from fuel.workers.deadlock import own_activity, write_stacks_to
from fuel.workers.global_random import Generators
from fuel.utils.remote_errors import pickle_error

# Seconds within which a pipeline must end by itself.
_END_SECONDS = 1.0
# Seconds between checks whether the pipeline is busy.
_POLL_SECONDS = 0.25
# Bytes for the stacks of a worker that does not answer.
_TRACE_BYTES = 1 << 15
# A description of at most so many bytes is sent in the message, not in a slot.
_INLINE = 1 << 10


class Kind(enum.IntEnum):
    """Kinds of messages between a worker process and its consumer."""

    # From the consumer.
    OPEN = 1
    DELIVERED = 2
    RELEASE = 3
    LEAVE = 4
    ASK_ACTIVITY = 5
    STREAM = 6
    # From the producer.
    OPENED = 10
    SEGMENT = 11
    DROP = 12
    ITEM = 13
    END = 14
    ACTIVITY = 16
    UNLOADABLE = 18
    TRACE = 19


def encode_batch(batch: Batch) -> tuple[bytes, Buffers]:
    """Return a short description of a batch, and the bytes of its arrays.

    If the description is long, it is returned as the last of the buffers.
    """
    description, buffers = dump_batch(batch)
    if len(description) > _INLINE:
        buffers.append(numpy.frombuffer(description, numpy.uint8))
        description = b''
    return description, buffers


class Producer:
    """Prefetches batches in a worker process for its consumer."""

    def __init__(self, stream: StreamLike, channel: Channel, max_batches: int,
                 max_bytes: int) -> None:
        self.channel = channel
        self.max_batches = max_batches
        self.pool = SlotPool(max_bytes)
        self.epochs = RunningEpochs(stream, encode_batch)
        # The epochs to begin and to leave, in the order of the messages.
        self._steps: deque[Callable[[], None]] = deque()
        self._announced: set[int] = set()
        # Guards the channel's reading end, the steps and the pool.
        self._changed = threading.RLock()
        self._busy_since = 0.0
        self._steps_taken = 0
        self._finished = threading.Event()

    def run(self) -> None:
        """Make batches until the consumer closes the channel or ends."""
        watcher = threading.Thread(
            target=self._watch, args=(threading.get_ident(),), daemon=True,
            name='fuel-watcher')
        watcher.start()
        try:
            while True:
                self._take_step()
        except ChannelClosed:
            pass
        finally:
            self._finished.set()

    def _watch(self, pipeline_thread: int) -> None:
        """End the process when the consumer ends, and handle messages while
        the pipeline is busy."""
        while not self._finished.is_set():
            if self.channel.is_cut(_POLL_SECONDS):
                # The pipeline may be in the middle of something long.
                if not self._finished.wait(_END_SECONDS):
                    os._exit(0)
                return
            if self._busy_since and (
                    time.monotonic() - self._busy_since > _POLL_SECONDS):
                with suppress(ChannelClosed), self._changed:
                    self._receive(pipeline_thread)

    def _receive(self, pipeline_thread: int) -> None:
        """Handle the messages that have arrived; the caller must hold the
        lock."""
        for message in self.channel.drain():
            self._handle(message, pipeline_thread)

    def _handle(self, message: Message, pipeline_thread: int) -> None:
        kind = message.kind
        if kind == Kind.DELIVERED:
            # The message may also return one slot: nearly always there is one
            # to return when a batch was delivered.
            if message.second:
                self.pool.release(message.second - 1, bool(message.third))
            self.epochs.count_delivered(message.epoch, message.first)
        elif kind == Kind.RELEASE:
            self.pool.release(message.first, bool(message.second))
        elif kind == Kind.OPEN:
            self._steps.append(partial(self._begin, message))
        elif kind == Kind.LEAVE:
            self._steps.append(partial(self.epochs.leave, message.epoch))
        elif kind == Kind.ASK_ACTIVITY:
            self.channel.send(Message(
                Kind.ACTIVITY, 0, payload=pickle.dumps(own_activity(
                    pipeline_thread, self._steps_taken,
                    is_busy=bool(self._busy_since)))))

    def _take_step(self) -> None:
        """Take one step: begin or leave an epoch, make a batch, or wait for
        messages."""
        with self._changed:
            self._receive(threading.get_ident())
            step = self._steps.popleft() if self._steps else self._choose()
        if step is None:
            begin = time.perf_counter()
            self.channel.wait(1.0)
            if self.epochs.in_turn():
                stage_of(self.epochs.stream).meter.count_room(
                    time.perf_counter() - begin)
            return
        self._busy_since = time.monotonic()
        step()
        self._busy_since = 0.0
        self._steps_taken += 1

    def _choose(self) -> Callable[[], None] | None:
        """Return the step that makes the next item of an epoch that has room
        for it; None if no epoch has room."""
        for number, maker in self.epochs.with_room(self.max_batches):
            slot, need = None, maker.sizes[0]
            if need:
                slot = self.pool.acquire(need, number, {
                    other for other, _ in self.epochs.in_turn()
                    if other != number})
                if slot is None:
                    continue
            self.epochs.postpone(number)
            return partial(self._produce, number, maker, slot)
        return None

    def _begin(self, message: Message) -> None:
        failed, answer = self.epochs.open_for_another(
            message.epoch, message.payload)
        self.epochs.count_delivered(message.epoch, 0)
        self.channel.send(Message(
            Kind.OPENED, message.epoch, int(failed), payload=answer))

    def _produce(self, number: int, maker: BatchMaker[bytes],
                 slot: Slot | None) -> None:
        """Make the next item of an epoch, and send it; keep it as `waiting` if
        it needs a larger slot."""
        made = self.epochs.make(number, slot)
        if slot is not None and made.extents is None:
            with self._changed:
                self.pool.put_back(slot, made.placement)
            slot = None
        if slot is None and made.buffers:
            try:
                self.pool.check_size(maker.sizes[0])
            except BudgetError as error:
                maker.sizes = 0, ()
                made = Made([], error=error, changes=made.changes)
            else:
                maker.waiting = made
                return
        self._send(number, made, slot)

    def _send(self, number: int, made: Made, slot: Slot | None) -> None:
        message = Message(
            Kind.END if made.is_end else Kind.ITEM, number,
            payload=pickle.dumps(
                (made.extents, *made.as_received(elsewhere=True)), protocol=5))
        if slot is None:
            self.channel.send(message)
            return
        self.channel.send(*self._segment_messages(slot), message._replace(
            first=slot.number + 1, second=slot.segment_number,
            third=slot.offset))
        slot.segment.close_descriptor()

    def _segment_messages(self, slot: Slot) -> list[Message]:
        if slot.segment_number in self._announced \
                and not self.pool.retired_segments:
            return []
        with self._changed:
            retired, self.pool.retired_segments = (
                self.pool.retired_segments, [])
        messages = [Message(Kind.DROP, 0, number) for number in retired]
        if slot.segment_number not in self._announced:
            self._announced.add(slot.segment_number)
            messages.append(Message(
                Kind.SEGMENT, 0, slot.segment_number, slot.segment.size,
                descriptor=slot.segment.descriptor))
        return messages


def run_worker(connection: socket.socket, consumer: int, max_batches: int,
               max_bytes: int,
               forked: tuple[StreamLike, Generators | None] | None) -> None:
    """Run a worker process.

    `forked`: the worker's stream, and its generators (None to keep those of
        this process). None if the consumer sends both.
    """
    # The terminal sends the signal of Ctrl-C to all processes; the consumer
    # decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(connection, Peer(consumer))
    with suppress(ChannelClosed):
        # `trace` is kept until the end, since the handler of the signal writes
        # to it.
        trace = Segment.create(_TRACE_BYTES)
        write_stacks_to(trace)
        channel.send(Message(
            Kind.TRACE, 0, 0, trace.size, descriptor=trace.descriptor))
        if forked is not None:
            use_no_threads_of_torch()
        stream, generators = forked or _receive_stream(channel)
        if generators is not None:
            generators.install()
        Producer(stream, channel, max_batches, max_bytes).run()
    channel.close()


def _receive_stream(channel: Channel) -> tuple[StreamLike, Generators]:
    """Receive the stream and the generators that the consumer sends.

    If they do not load, send the error, and wait until the consumer closes the
    channel.
    """
    message = channel.receive()
    assert message is not None
    try:
        shared, generators = pickle.loads(message.payload)
        return shared.load(message.descriptor), generators
    except Exception as error:  # noqa: BLE001 - raised by the consumer
        channel.send(Message(
            Kind.UNLOADABLE, 0, payload=pickle_error(error)))
    # Until the consumer closes the channel, which raises ChannelClosed.
    while True:
        channel.receive()
