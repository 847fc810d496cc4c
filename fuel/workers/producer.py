"""What runs in a worker process: epochs of a stream, sent as they come."""
from __future__ import annotations

import enum
import os
import pickle
import signal
import struct
import sys
import threading
import time
import traceback
from collections.abc import Container
from contextlib import suppress
from functools import partial
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.epochs.state_delta import Course
from fuel.kernels.memory import address_of
from fuel.kernels.outputs import Placement, placed
from fuel.transport.batches import dump
from fuel.transport.channel import Channel, ChannelClosed, Message, Peer
from fuel.transport.slots import BudgetError, Slot, SlotPool, align

# A description of fewer bytes travels in the message, not in a slot.
INLINE = 1 << 10
# Seconds that a pipeline has to end by itself.
_GRACE = 1.0
# Seconds between looks at whether it is busy.
_GLANCE = 0.25

_EXTENT = struct.Struct('<QQ')
_TAIL = struct.Struct('<II')


class Kind(enum.IntEnum):
    """What a message says."""

    # From the consumer.
    EPOCH = 1
    HANDED = 2
    RELEASE = 3
    LEAVE = 4
    ASK_STACKS = 5
    STREAM = 6
    # From the producer.
    OPENED = 10
    SEGMENT = 11
    DROP = 12
    BATCH = 13
    END = 14
    ERROR = 15
    STACKS = 16


class Feed:
    """One epoch on the producer's side.

    Attributes
    ----------
    number : int
    iterator : iterator
    base : dict or Exception
        State before the first item, or why there is none.
    produced, handed : int
        Items sent, and of those the ones handed to the user.
    place, step : int
        Of every `step` batches this worker makes the one at `place`.
    need : int
        Bytes that the next batch will probably take.
    extents : list of (int, int)
        Where in its slot the arrays of the last batch were.
    waiting : tuple or None
        A batch for which there was no slot yet.

    """

    def __init__(self, number: int, iterator: Any,
                 turn: tuple[int, int, Any] = (0, 1, None)) -> None:
        self.number = number
        self.iterator = iterator
        self._course = Course(iterator)
        self.base = self._course.base
        self.place, self.step, self._skip = turn
        self.produced = 0
        self.handed = 0
        self.ended = False
        self.need = 0
        self.extents: list[tuple[int, int]] = []
        self.waiting: tuple[bytes, list[NDArray[Any]], bytes] | None = None

    def make(self) -> Any:
        """Return the next batch that this worker makes."""
        if self.step > 1:
            self._skip(self.iterator,
                       self.step - 1 if self.produced else self.place)
        return next(self.iterator)

    def position(self) -> bytes:
        """Return what the state has changed by, pickled."""
        steps = self._course.changes(self.iterator)
        return b'' if steps is None else pickle_state(steps)


class Producer:
    """Makes batches ahead of the consumer, one process's whole work.

    Parameters
    ----------
    max_batches : int
        How many batches of an epoch may be made and not yet handed out.
    max_bytes : int
        How much shared memory they may take.

    """

    def __init__(self, stream: Any, channel: Channel, max_batches: int,
                 max_bytes: int) -> None:
        self.stream = stream
        self.channel = channel
        self.max_batches = max_batches
        self.pool = SlotPool(max_bytes)
        self.feeds: dict[int, Feed] = {}
        self.last: Feed | None = None
        self._commands: list[Message] = []
        self._announced: set[int] = set()
        # Guards the channel's reading end, the epochs and the pool.
        self._changed = threading.RLock()
        self._busy_since = 0.0
        self._expected: tuple[int, list[tuple[int, int]]] = (0, [])
        self._finished = threading.Event()

    def run(self) -> None:
        """Serve until told to stop, or until the consumer is gone."""
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
        """Take in what has arrived; the caller holds the lock."""
        for message in self.channel.drain():
            self._take(message, pipeline_thread)

    def _take(self, message: Message, pipeline_thread: int) -> None:
        kind = message.kind
        if kind == Kind.HANDED:
            # It tells of one slot too, which nearly always comes back then.
            if message.second:
                self.pool.release(message.second - 1, bool(message.third))
            if message.feed in self.feeds:
                self.feeds[message.feed].handed = message.first
        elif kind == Kind.RELEASE:
            self.pool.release(message.first, bool(message.second))
        elif kind == Kind.EPOCH:
            self._commands.append(message)
        elif kind == Kind.LEAVE:
            self.feeds.pop(message.feed, None)
        elif kind == Kind.ASK_STACKS:
            self.channel.send(Message(
                Kind.STACKS, 0, payload=_stack_of(pipeline_thread)))

    def _take_step(self) -> None:
        """Do one thing: begin an epoch, make a batch, or wait."""
        step: Any = None
        with self._changed:
            self._receive(threading.get_ident())
            if self._commands:
                step = partial(self._begin, self._commands.pop(0))
            else:
                feed, slot = self._choose()
                if feed is not None:
                    step = partial(self._produce, feed, slot)
        if step is None:
            self.channel.wait(1.0)
            return
        self._busy_since = time.monotonic()
        step()
        self._busy_since = 0.0

    def _choose(self) -> tuple[Feed | None, Slot | None]:
        """Return an epoch that may go on, and the slot for its batch."""
        for feed in list(self.feeds.values()):
            if feed.ended or feed.produced - feed.handed >= self.max_batches:
                continue
            slot = None
            if feed.need:
                slot = self.pool.acquire(
                    feed.need, feed.number, self._others(feed))
                if slot is None:
                    continue
            if len(self.feeds) > 1:
                # The others come first the next time.
                self.feeds[feed.number] = self.feeds.pop(feed.number)
            return feed, slot
        return None, None

    def _others(self, feed: Feed) -> Container[int]:
        return (self.feeds.keys() - {feed.number} if len(self.feeds) > 1
                else ())

    def _begin(self, command: Message) -> None:
        options = pickle.loads(command.payload)
        try:
            turn = options.pop('turn', (0, 1, None))
            feed = Feed(command.feed, self._open(**options), turn)
            opened = pickle_state(('state', feed.base))
        except Exception as error:  # noqa: BLE001 - told to the consumer
            self.channel.send(Message(
                Kind.OPENED, command.feed,
                payload=pickle.dumps(('error', describe_error(error)))))
            return
        # Batches of the next epoch will be like those of the last.
        feed.need, feed.extents = self._expected
        self.last = feed
        with self._changed:
            self.feeds[feed.number] = feed
        self.channel.send(Message(
            Kind.OPENED, command.feed, payload=opened))

    def _open(self, resume: Any = None, after: Any = None, left: int = 0,
              handed: int = 0, calls: tuple[str, ...] = ()) -> Any:
        """Return an iterator of the epoch that the consumer wants.

        Parameters
        ----------
        resume : dict, optional
            State to go on from.
        after : dict, optional
            State of the epoch before this, as its user left it.
        left, handed : int
            Which epoch that was, and how many items were handed out.
        calls : tuple of str
            Methods to call before: reset, next_epoch.

        """
        last, self.last = self.last, None
        if resume is not None:
            self.stream.load_state_dict(resume)
        elif after is not None and not (
                last is not None and last.number == left
                and last.produced == handed and last.ended):
            # What was made ahead and not handed out never happened.
            self.stream.load_state_dict(after)
            if after['epoch'] == 'running':
                self.stream.get_epoch_iterator()
        del last
        for name in calls:
            getattr(self.stream, name)()
        return self.stream.get_epoch_iterator()

    def _produce(self, feed: Feed, slot: Slot | None) -> None:
        """Make the next item of an epoch, and send it if there is room."""
        placement = None
        if feed.waiting is None:
            if slot is not None and feed.extents:
                placement = Placement(slot.bytes, feed.extents)
            feed.waiting = self._make(feed, placement)
        if feed.waiting is None or self._sent_inline(feed):
            self._release(slot, placement)
            return
        try:
            self._send_in_slot(feed, slot, placement)
        except BudgetError as error:
            feed.waiting = None
            feed.need = 0
            self._release(slot, placement)
            self._fail(feed, error)

    def _make(self, feed: Feed, placement: Placement | None) -> Any:
        """Return the next batch, described; None if there was none."""
        try:
            with placed(placement):
                batch = feed.make()
            description, buffers = dump(batch)
            del batch
        except StopIteration:
            self._end(feed)
            return None
        except Exception as error:  # noqa: BLE001 - told to the consumer
            self._fail(feed, error)
            return None
        return description, buffers, feed.position()

    def _end(self, feed: Feed) -> None:
        with self._changed:
            self.feeds.pop(feed.number, None)
        feed.ended = True
        try:
            state = self.stream.state_dict()
        except Exception as error:  # noqa: BLE001 - told to the consumer
            state = error
        self.channel.send(Message(
            Kind.END, feed.number, payload=pickle_state(state)))

    def _fail(self, feed: Feed, error: Exception) -> None:
        position = feed.position()
        feed.produced += 1
        self.channel.send(Message(
            Kind.ERROR, feed.number,
            payload=pickle.dumps((position, describe_error(error)))))

    def _sent_inline(self, feed: Feed) -> bool:
        """Send a batch without large arrays in the message itself."""
        assert feed.waiting is not None
        description, buffers, position = feed.waiting
        if buffers or len(description) + len(position) > INLINE:
            return False
        feed.need = 0
        self._send(feed, Message(
            Kind.BATCH, feed.number,
            payload=pack_batch([], position, description)))
        return True

    def _send_in_slot(self, feed: Feed, slot: Slot | None,
                      placement: Placement | None) -> None:
        assert feed.waiting is not None
        if not _lies_as_before(feed, slot, placement) \
                and not self._put_into(feed, slot, placement):
            self._release(slot, placement)
            return
        assert slot is not None
        description, buffers, position = feed.waiting
        feed.waiting = None
        buffers.clear()
        if placement is not None and not placement.is_free():
            # A stage keeps what it returned, so nobody may write there.
            memory = slot.bytes
            feed.waiting = (description, [
                memory[offset:offset + nbytes].copy()
                for offset, nbytes in feed.extents], position)
            self._release(slot, placement)
            return
        self._send_slot(feed, slot,
                        pack_batch(feed.extents, position, description))

    def _put_into(self, feed: Feed, slot: Slot | None,
                  placement: Placement | None) -> bool:
        """Put a batch into its slot; return whether it is there."""
        assert feed.waiting is not None
        description, buffers, position = feed.waiting
        tail = align(len(description) + len(position) + INLINE
                     + _EXTENT.size * len(buffers))
        size = sum(align(buffer.nbytes) for buffer in buffers) + tail
        self.pool.check_size(size)
        feed.need = size
        extents = None if slot is None else lay_out(
            slot, buffers, tail, placement)
        if slot is None or extents is None:
            feed.waiting = (
                description, _private(buffers, placement), position)
            return False
        memory = slot.bytes
        start = address_of(memory)
        for (offset, nbytes), buffer in zip(extents, buffers, strict=True):
            if address_of(buffer) != start + offset:
                memory[offset:offset + nbytes] = buffer
        feed.extents = extents
        self._expected = size, extents
        return True

    def _send_slot(self, feed: Feed, slot: Slot, payload: bytes) -> None:
        start = length = 0
        if len(payload) > INLINE:
            length = len(payload)
            start = align(max((offset + nbytes for offset, nbytes
                               in feed.extents), default=0))
            slot.bytes[start:start + length] = numpy.frombuffer(
                payload, numpy.uint8)
            payload = b''
        # What the consumer must know of the slot, in one number each.
        self._send(feed, *self._segment_messages(slot), Message(
            Kind.BATCH, feed.number, slot.number + 1,
            slot.segment_number << 32 | start, slot.offset << 32 | length,
            payload))
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

    def _send(self, feed: Feed, *messages: Message) -> None:
        feed.waiting = None
        feed.produced += 1
        self.channel.send(*messages)

    def _release(self, slot: Slot | None,
                 placement: Placement | None = None) -> None:
        """Take back a slot that was not sent."""
        if slot is None:
            return
        with self._changed:
            if placement is None or placement.is_free():
                self.pool.release(slot.number)
            else:
                self.pool.hold(slot.number, placement.references)


def _lies_as_before(feed: Feed, slot: Slot | None,
                    placement: Placement | None) -> bool:
    """Tell whether a batch is already where the one before was.

    Nearly all are, and then nothing needs to be worked out.
    """
    if slot is None or placement is None:
        return False
    assert feed.waiting is not None
    description, buffers, position = feed.waiting
    return (len(description) + len(position) <= INLINE // 2
            and lie_at(slot, buffers, feed.extents))


def lie_at(slot: Slot, buffers: list[NDArray[Any]],
           extents: list[tuple[int, int]]) -> bool:
    """Tell whether arrays of uint8 lie in some places of a slot already."""
    start = address_of(slot.bytes)
    return extents == [(address_of(buffer) - start, buffer.nbytes)
                       for buffer in buffers]


def lay_out(slot: Slot, buffers: list[NDArray[Any]], tail: int,
            placement: Placement | None = None
            ) -> list[tuple[int, int]] | None:
    """Return where each array goes in a slot.

    Parameters
    ----------
    buffers : list of numpy.ndarray
        Of uint8.  Those that lie in the slot already stay where they are.
    tail : int
        How many bytes come after them.
    placement : Placement, optional
        What it gave out stays as it is, as long as somebody holds it: a
        stage may keep what it made on the way.

    Returns
    -------
    list of (int, int) or None
        Offset and size of each; None if the slot is too small.

    """
    start = address_of(slot.bytes)
    offsets = [address_of(buffer) - start for buffer in buffers]
    inside = [0 <= offset < slot.capacity for offset in offsets]
    taken = [] if placement is None else placement.get_kept()
    taken += [(offset, offset + buffer.nbytes) for offset, buffer, there
              in zip(offsets, buffers, inside, strict=True) if there]
    taken.sort()
    for place, buffer in enumerate(buffers):
        if not inside[place]:
            offsets[place] = _first_gap(taken, buffer.nbytes)
            taken.append((offsets[place], offsets[place] + buffer.nbytes))
            taken.sort()
    end = max((stop for _, stop in taken), default=0)
    if align(end) + tail > slot.capacity:
        return None
    return [(offset, buffer.nbytes)
            for offset, buffer in zip(offsets, buffers, strict=True)]


def _first_gap(taken: list[tuple[int, int]], size: int) -> int:
    """Return the first aligned place with `size` free bytes."""
    place = 0
    for start, stop in taken:
        if place + size <= start:
            break
        place = max(place, align(stop))
    return place


def _private(buffers: list[NDArray[Any]],
             placement: Placement | None) -> list[NDArray[Any]]:
    """Return arrays that do not need the slot any more."""
    if placement is None or not placement.references:
        return list(buffers)
    return [buffer.copy() for buffer in buffers]


def pack_batch(extents: list[tuple[int, int]], position: bytes,
               description: bytes) -> bytes:
    """Return what :func:`unpack_batch` takes apart."""
    return b''.join([
        _TAIL.pack(len(extents), len(position)),
        *(_EXTENT.pack(*extent) for extent in extents),
        position, description])


def unpack_batch(payload: Any) -> tuple[list[tuple[int, int]], Any, Any]:
    """Return where the arrays are, the position, and the description."""
    count, length = _TAIL.unpack_from(payload)
    end = _TAIL.size + count * _EXTENT.size
    extents = [(offset, size) for offset, size
               in _EXTENT.iter_unpack(payload[_TAIL.size:end])]
    return extents, payload[end:end + length], payload[end + length:]


def pickle_state(state: Any) -> bytes:
    """Return a state, or the exception in its place, pickled."""
    try:
        return pickle.dumps(state)
    except Exception:  # noqa: BLE001 - pickling runs any code
        return pickle.dumps(TypeError(str(state)))


def describe_error(error: BaseException) -> tuple[bytes | None, str, str]:
    """Return an exception pickled, if that is possible, and in words."""
    summary = traceback.format_exception_only(error)[0].strip()
    text = ''.join(traceback.format_exception(error))
    try:
        pickled = pickle.dumps(error)
        if type(pickle.loads(pickled)) is not type(error):
            return None, summary, text
    except Exception:  # noqa: BLE001 - pickling runs any code
        return None, summary, text
    return pickled, summary, text


def _stack_of(thread: int) -> bytes:
    frame = sys._current_frames().get(thread)
    if frame is None:
        return b''
    return ''.join(traceback.format_stack(frame)).encode()


def serve(stream: Any, connection: Any, consumer: int, max_batches: int,
          max_bytes: int) -> None:
    """Run a worker process.

    Parameters
    ----------
    stream : AbstractDataStream or None
        None if it comes over the connection.
    consumer : int
        Process identifier of the consumer, whose end is this one's end.
    max_batches, max_bytes : int
        See :class:`Producer`.

    """
    # The terminal sends Ctrl-C to all; the consumer decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(connection, Peer(consumer))
    with suppress(ChannelClosed):
        if stream is None:
            stream = _receive_stream(channel)
        if stream is not None:
            Producer(stream, channel, max_batches, max_bytes).run()
    channel.close()


def _receive_stream(channel: Channel) -> Any:
    """Return the stream that the consumer sends; None if it does not load.

    What is wrong is then told to the first epoch.
    """
    message = channel.receive()
    assert message is not None
    try:
        return pickle.loads(message.payload)
    except Exception as error:  # noqa: BLE001 - told to the consumer
        told = pickle.dumps(('error', describe_error(error)))
    message = channel.receive()
    assert message is not None
    channel.send(Message(Kind.OPENED, message.feed, payload=told))
    return None
