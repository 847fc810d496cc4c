"""Prefetches batches in a worker process, and sends them as they are made."""
from __future__ import annotations

import enum
import os
import pickle
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy

from fuel.epochs.stage import stage_of
from fuel.transport.batches import dump_batch
from fuel.transport.channel import Channel, ChannelClosed, Message, Peer
from fuel.transport.slots import BudgetError, Slot, SlotPool
from fuel.transport.segment import Segment
from fuel.typing import Batch, State, StreamLike
from fuel.workers.batch_maker import (
    BatchMaker, Buffers, Made, pickle_state)
from fuel.utils.forks import use_no_threads_of_torch
from fuel.workers.deadlock import own_activity, write_stacks_to
from fuel.workers.global_random import Generators
from fuel.workers.remote_errors import pickle_error

# Seconds that a pipeline has to end by itself.
_GRACE = 1.0
# Seconds between looks at whether it is busy.
_GLANCE = 0.25
# Bytes for the stacks of a worker that does not answer.
_TRACE_BYTES = 1 << 15
# A description of fewer bytes travels in the message, not in a slot.
_INLINE = 1 << 10


class Kind(enum.IntEnum):
    """Kinds of messages."""

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
    BATCH = 13
    END = 14
    ERROR = 15
    ACTIVITY = 16
    UNLOADABLE = 18
    TRACE = 19


def encode_batch(batch: Batch) -> tuple[bytes, Buffers]:
    """Return a short description of a batch, and the bytes of the rest.

    A long description is the last of the buffers.
    """
    description, buffers = dump_batch(batch)
    if len(description) > _INLINE:
        buffers.append(numpy.frombuffer(description, numpy.uint8))
        description = b''
    return description, buffers


class _Epoch:
    """One epoch on the producer's side.

    `sent`, `delivered`: items sent, and of those the ones that reached the
        user.
    `waiting`: a batch for which there was no slot yet.
    """

    def __init__(self, number: int, maker: BatchMaker[bytes]) -> None:
        self.number = number
        self.maker = maker
        self.sent = 0
        self.delivered = 0
        self.waiting: Made | None = None


class Producer:
    """Prefetches batches for the consumer: the work of one process."""

    def __init__(self, stream: StreamLike, channel: Channel, max_batches: int,
                 max_bytes: int) -> None:
        self.stream = stream
        self.channel = channel
        self.max_batches = max_batches
        self.pool = SlotPool(max_bytes)
        self.epochs: dict[int, _Epoch] = {}
        self.last: _Epoch | None = None
        # The epochs that the consumer asked for.
        self._steps: deque[Callable[[], None]] = deque()
        self._announced: set[int] = set()
        # Guards the channel's reading end, the epochs and the pool.
        self._changed = threading.RLock()
        self._busy_since = 0.0
        self._steps_taken = 0
        self._finished = threading.Event()

    def run(self) -> None:
        """Work until the consumer closes the channel or is gone."""
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
        """End with the consumer, and answer while the pipeline is busy."""
        while not self._finished.is_set():
            if self.channel.is_cut(_GLANCE):
                # The pipeline may be in the middle of something long.
                if not self._finished.wait(_GRACE):
                    os._exit(0)
                return
            if self._busy_since and (
                    time.monotonic() - self._busy_since > _GLANCE):
                with suppress(ChannelClosed), self._changed:
                    self._receive(pipeline_thread)

    def _receive(self, pipeline_thread: int) -> None:
        """Handle messages that have arrived; the caller holds the lock."""
        for message in self.channel.drain():
            self._handle(message, pipeline_thread)

    def _handle(self, message: Message, pipeline_thread: int) -> None:
        kind = message.kind
        if kind == Kind.DELIVERED:
            # It names one slot too, which nearly always comes back then.
            if message.second:
                self.pool.release(message.second - 1, bool(message.third))
            if message.epoch in self.epochs:
                self.epochs[message.epoch].delivered = message.first
        elif kind == Kind.RELEASE:
            self.pool.release(message.first, bool(message.second))
        elif kind == Kind.OPEN:
            self._steps.append(partial(self._begin, message))
        elif kind == Kind.LEAVE:
            self.epochs.pop(message.epoch, None)
        elif kind == Kind.ASK_ACTIVITY:
            self.channel.send(Message(
                Kind.ACTIVITY, 0, payload=pickle.dumps(own_activity(
                    pipeline_thread, self._steps_taken,
                    is_busy=bool(self._busy_since)))))

    def _take_step(self) -> None:
        """Do one thing: begin an epoch, make a batch, or wait."""
        step: Callable[[], None] | None = None
        with self._changed:
            self._receive(threading.get_ident())
            if self._steps:
                step = self._steps.popleft()
            else:
                epoch, slot = self._choose()
                if epoch is not None:
                    step = partial(self._produce, epoch, slot)
        if step is None:
            begin = time.perf_counter()
            self.channel.wait(1.0)
            if self.epochs:
                stage_of(self.stream).meter.count_room(
                    time.perf_counter() - begin)
            return
        self._busy_since = time.monotonic()
        step()
        self._busy_since = 0.0
        self._steps_taken += 1

    def _choose(self) -> tuple[_Epoch | None, Slot | None]:
        """Return an epoch that may go on, and the slot for its batch."""
        for epoch in list(self.epochs.values()):
            if epoch.sent - epoch.delivered >= self.max_batches:
                continue
            slot = None
            need = epoch.maker.sizes[0]
            if need:
                slot = self.pool.acquire(
                    need, epoch.number, self._others(epoch))
                if slot is None:
                    continue
            if len(self.epochs) > 1:
                # The others come first the next time.
                self.epochs[epoch.number] = self.epochs.pop(epoch.number)
            return epoch, slot
        return None, None

    def _others(self, epoch: _Epoch) -> Container[int]:
        return (self.epochs.keys() - {epoch.number} if len(self.epochs) > 1
                else ())

    def _begin(self, message: Message) -> None:
        try:
            maker = self._open(**pickle.loads(message.payload))
            opened = pickle_state(maker.base)
        except Exception as error:  # noqa: BLE001 - raised by the consumer
            self.channel.send(Message(
                Kind.OPENED, message.epoch, 1, payload=pickle_error(error)))
            return
        epoch = self.last = _Epoch(message.epoch, maker)
        with self._changed:
            self.epochs[epoch.number] = epoch
        self.channel.send(Message(
            Kind.OPENED, message.epoch, payload=opened))

    def _open(self, state: State | None = None, after: bool = False,
              calls: Sequence[str] = (), left: int = 0, delivered: int = 0,
              **options: Any) -> BatchMaker[bytes]:
        """Return the maker of the epoch that the consumer asks for."""
        last, self.last = self.last, None
        if last is not None:
            # Batches of the next epoch will be like those of the last.
            options['expected'] = last.maker.sizes
            if after and last.maker.ended and (
                    last.number, last.sent) == (left, delivered):
                # Nothing was prefetched beyond it: the stream stands there.
                state = None
        # Its iterator must be gone before the next is made.
        del last
        return BatchMaker(self.stream, encode_batch, state=state, after=after,
                          calls=calls, **options)

    def _produce(self, epoch: _Epoch, slot: Slot | None) -> None:
        """Make the next item of an epoch, and send it if there is room."""
        maker, waiting, epoch.waiting = epoch.maker, epoch.waiting, None
        if waiting is not None and slot is not None:
            made = maker.place(waiting, slot)
        else:
            maker.num_ahead = epoch.sent - epoch.delivered
            made = maker.next(slot)
        if slot is not None and made.extents is None:
            with self._changed:
                self.pool.put_back(slot, made.placement)
            slot = None
        if slot is None and made.buffers:
            try:
                self.pool.check_size(maker.sizes[0])
            except BudgetError as error:
                maker.sizes = 0, ()
                made = made._replace(error=error)
            else:
                epoch.waiting = made
                return
        self._send(epoch, made, slot)

    def _send(self, epoch: _Epoch, made: Made, slot: Slot | None) -> None:
        number = epoch.number
        changes = (b'' if made.changes is None
                   else pickle_state(made.changes))
        if made.is_end:
            with self._changed:
                self.epochs.pop(number, None)
            self.channel.send(Message(
                Kind.END, number, payload=pickle.dumps(
                    (pickle_state(made.state), made.note))))
            return
        epoch.sent += 1
        if made.error is not None:
            self.channel.send(Message(
                Kind.ERROR, number,
                payload=pickle.dumps((changes, pickle_error(made.error)))))
            return
        payload = pickle.dumps(
            (made.extents, changes, made.description, made.note), protocol=5)
        if slot is None:
            self.channel.send(Message(Kind.BATCH, number, payload=payload))
            return
        self.channel.send(*self._segment_messages(slot), Message(
            Kind.BATCH, number, slot.number + 1, slot.segment_number,
            slot.offset, payload))
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

    `forked`: its stream, and its generators if they are others than those of
        this process; None if the consumer sends both.
    """
    # The terminal sends Ctrl-C to all; the consumer decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(connection, Peer(consumer))
    with suppress(ChannelClosed):
        # Kept until the end, since the handler of the signal writes there.
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
    """Return what the consumer sends.

    If that does not load, the error is sent, and there is nothing to do.
    """
    message = channel.receive()
    assert message is not None
    try:
        shared, generators = pickle.loads(message.payload)
        return shared.load(message.descriptor), generators
    except Exception as error:  # noqa: BLE001 - raised by the consumer
        channel.send(Message(
            Kind.UNLOADABLE, 0, payload=pickle_error(error)))
    # Until the consumer closes it.
    while True:
        channel.receive()
