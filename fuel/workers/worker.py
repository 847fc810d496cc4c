"""A worker process and the epochs that are read from it."""
from __future__ import annotations

import multiprocessing
import multiprocessing.util
import os
import pickle
import signal
import socket
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from fuel.epochs.state_delta import changed
from fuel.exceptions import WorkerError
from fuel.kernels.prefetch_buffer import PendingItem
from fuel.transport.batches import load
from fuel.transport.channel import (
    Channel,
    ChannelClosed,
    Message,
    Peer,
    close_in_children,
)
from fuel.transport.leases import Leases
from fuel.transport.segment import Segment
from fuel.utils.thread_exit import end_thread_at_exit
from fuel.workers.producer import Kind, serve, unpack_batch

# Seconds that a worker has to end when told so.
_PATIENCE = 2.0


class RemoteTraceback(Exception):  # noqa: N818 - it is a cause
    """The traceback of an exception as it was in the worker."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return '\n' + self.text


class RemoteEpoch:
    """One epoch on the consumer's side.

    Attributes
    ----------
    number : int
    taken : int
        How many batches and errors were taken from the worker.
    handed : int
        How many of them were handed to the user.
    finished : bool
        Whether the end was taken.

    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.taken = 0
        self.handed = 0
        self.finished = False
        self.items: deque[Message] = deque()
        self.opened: tuple[str, Any] | None = None
        self._changes: bytes = b''
        self._final: bytes = b''

    def state(self, is_over: bool) -> Any:
        """Return the state after what was handed out."""
        if self.opened is None:
            return WorkerError('the worker has not begun the epoch')
        kind, base = self.opened
        if kind == 'error':
            return _as_exception(*base)
        if is_over and self.finished:
            return pickle.loads(self._final)
        if isinstance(base, Exception) or not self._changes:
            return base
        steps = pickle.loads(self._changes)
        return steps if isinstance(steps, Exception) else changed(base, steps)

    def has_begun(self) -> bool:
        """Tell whether its state is known."""
        return self.opened is not None

    def note(self, receipt: Receipt) -> None:
        """Remember how the state changed with what was handed out."""
        self.handed, self._changes = receipt.number, receipt.changes

    def end(self, final: bytes) -> None:
        """Remember that the end was taken."""
        self.finished = True
        self._final = final


class Receipt(NamedTuple):
    """That an item of an epoch, by number, was handed out."""

    epoch: RemoteEpoch
    number: int
    changes: bytes


class Worker:
    """A process that makes batches of a stream ahead of this one.

    Parameters
    ----------
    name : str
        What errors call the stream.
    max_bytes : int
        How much shared memory the batches may take.
    stalled : float
        Seconds without a batch after which the worker counts as stalled.
    process : multiprocessing.Process, optional
        If it was started here.

    """

    def __init__(self, name: str, connection: socket.socket, max_bytes: int,
                 stalled: float, process: Any = None) -> None:
        self.name = name
        self.stalled = stalled
        self.owner = os.getpid()
        self.leases = Leases(max_bytes // 2)
        self.epochs: dict[int, RemoteEpoch] = {}
        self.error: WorkerError | None = None
        self.interrupted = False
        self.is_cut = False
        self._stacks = ''
        self._has_answered = False
        self._next_number = 1
        self._channel = Channel(connection)
        self._process = process
        if process is not None:
            self._channel.watch(Peer(process.pid))
        # Runs when this object is gone, and first of all at exit, before
        # multiprocessing waits for its children.
        self._finalizer = multiprocessing.util.Finalize(
            self, _stop, (self._channel, process), exitpriority=100)

    @classmethod
    def start(cls, stream: Any, context: Any, max_batches: int,
              max_bytes: int, stalled: float) -> Worker:
        """Start a process that makes batches of a stream."""
        name = type(stream).__name__
        # A process that is not forked gets the stream over our connection:
        # should it end before it reads, `process.start` would wait for ever.
        sent = (None if context.get_start_method() == 'fork'
                else pickle.dumps(stream))
        ours, theirs = Channel.pair()
        process = context.Process(
            target=serve, name=f'fuel-worker-{name}',
            args=(stream if sent is None else None, theirs, os.getpid(),
                  max_batches, max_bytes))
        with theirs:
            close_in_children(ours)
            try:
                process.start()
            except BaseException:
                ours.close()
                raise
        worker = cls(name, ours, max_bytes, stalled, process)
        if sent is not None:
            worker._send(Message(Kind.STREAM, 0, payload=sent))
        return worker

    @property
    def pid(self) -> int | None:
        """Process identifier of the worker (int), None if unknown."""
        return None if self._process is None else self._process.pid

    def is_usable(self) -> bool:
        """Tell whether epochs can be begun with this worker."""
        return (self.error is None and self._finalizer.still_active()
                and self.owner == os.getpid())

    def begin(self, **options: Any) -> RemoteEpoch:
        """Begin an epoch."""
        epoch = RemoteEpoch(self._next_number)
        with self._abandoned_if_interrupted():
            self._next_number += 1
            self.epochs[epoch.number] = epoch
            self._send(Message(
                Kind.EPOCH, epoch.number, payload=pickle.dumps(options)))
            return epoch

    def leave(self, epoch: RemoteEpoch) -> None:
        """Stop reading an epoch."""
        if self.epochs.pop(epoch.number, None) is None:
            return
        if not self.is_usable():
            return
        with self._abandoned_if_interrupted():
            self._send(Message(Kind.LEAVE, epoch.number))
            for item in epoch.items:
                self._drop(item)
            epoch.items.clear()

    def state(self, epoch: RemoteEpoch, is_over: bool) -> Any:
        """Return the state of an epoch after what was handed out."""
        if epoch.opened is None and self.is_usable():
            with self._abandoned_if_interrupted():
                self._wait(lambda: epoch.opened is not None)
        return epoch.state(is_over)

    def take(self, epoch: RemoteEpoch, pending_item: PendingItem) -> None:
        """Let the next batch of an epoch, or its error, be held.

        Raises
        ------
        StopIteration
            At the end of the epoch.
        WorkerError
            If the worker is dead or stalled.

        """
        if epoch.finished:
            raise StopIteration
        if self.owner != os.getpid():
            raise WorkerError(
                f'the worker of {self.name} belongs to process {self.owner} '
                f'and cannot be used by its child {os.getpid()}: make a new '
                'epoch iterator there')
        try:
            self._take_item(epoch, pending_item)
        except (StopIteration, WorkerError):
            raise
        except BaseException:
            self._note_interrupt()
            raise

    def _take_item(self, epoch: RemoteEpoch,
                   pending_item: PendingItem) -> None:
        self._channel.is_resting = False
        if not epoch.items:
            self._wait(lambda: bool(epoch.items) or _has_failed(epoch))
        if _has_failed(epoch):
            described: Any = epoch.opened[1]  # type: ignore[index]
            pending_item.held = None, _as_exception(*described), None
            return
        item = epoch.items.popleft()
        if item.kind == Kind.END:
            epoch.end(item.payload)
            self.epochs.pop(epoch.number, None)
            raise StopIteration
        data = error = None
        if item.kind == Kind.ERROR:
            changes, described = pickle.loads(item.payload)
            error = _as_exception(*described)
        else:
            data, changes = self._open(item)
        epoch.taken += 1
        pending_item.held = data, error, Receipt(epoch, epoch.taken, changes)
        self._acknowledge(epoch)

    @contextmanager
    def _abandoned_if_interrupted(self) -> Iterator[None]:
        self._channel.is_resting = False
        try:
            yield
        except (StopIteration, WorkerError):
            raise
        except BaseException:
            self._note_interrupt()
            raise

    def _note_interrupt(self) -> None:
        """Give the worker up if a message may have been lost by Ctrl-C.

        Another one goes on where the user was.
        """
        if not self._channel.is_resting:
            self.interrupted = True
            self.error = WorkerError(
                f'the worker of {self.name} was given up, since an interrupt '
                'came in the middle of a message, and another one needs a '
                'position to go on from')

    def _open(self, item: Message) -> tuple[Any, bytes]:
        """Return the batch of a message, and how the state changed."""
        slot, segment, start, offset, length = _place_of(item)
        payload: Any = item.payload
        if length:
            payload = self.leases.view(segment, offset + start, length)
        extents, changes, description = unpack_batch(payload)
        changes = bytes(changes)
        if extents:
            batch = self.leases.lend(
                slot, segment,
                [(offset + begin, size) for begin, size in extents],
                lambda buffers: load(description, buffers))
        else:
            batch = load(description, [])
            if slot >= 0:
                self.leases.give_back(slot)
        return batch, changes

    def _acknowledge(self, epoch: RemoteEpoch) -> None:
        returned = self.leases.returned()
        slot, reuse = returned.pop() if returned else (-1, False)
        messages = [Message(Kind.RELEASE, 0, slot, int(reuse))
                    for slot, reuse in returned]
        messages.append(Message(
            Kind.HANDED, epoch.number, epoch.taken, slot + 1, int(reuse)))
        # A worker that is gone is noticed when something is wanted of it.
        with suppress(ChannelClosed):
            self._channel.send(*messages)

    def _send(self, *messages: Message) -> None:
        with suppress(ChannelClosed):
            self._channel.send(*messages)

    def _drop(self, item: Message) -> None:
        slot = _place_of(item)[0]
        if item.kind == Kind.BATCH and slot >= 0:
            self._send(Message(Kind.RELEASE, 0, slot, 1))

    def _wait(self, is_there: Any) -> None:
        """Take in messages until what is wanted is there."""
        if self.error is not None and not is_there():
            raise self.error
        self._send(*(Message(Kind.RELEASE, 0, slot, int(reuse))
                     for slot, reuse in self.leases.returned()))
        deadline = time.monotonic() + self.stalled
        while not is_there():
            try:
                message = self._channel.receive(1.0)
            except ChannelClosed:
                end_thread_at_exit()
                self.error = self._death()
                raise self.error from None
            if message is not None:
                self._take(message)
            elif time.monotonic() > deadline:
                raise WorkerError(self._describe_stall())

    def _take(self, message: Message) -> None:
        self._has_answered = True
        if message.kind == Kind.SEGMENT:
            assert message.descriptor is not None
            self.leases.add_segment(
                message.first, Segment(message.descriptor, message.second))
        elif message.kind == Kind.DROP:
            self.leases.drop_segment(message.first)
        elif message.kind == Kind.STACKS:
            self._stacks = message.payload.decode()
        elif message.feed in self.epochs:
            epoch = self.epochs[message.feed]
            if message.kind == Kind.OPENED:
                epoch.opened = pickle.loads(message.payload)
            else:
                epoch.items.append(message)
        else:
            self._drop(message)

    def _death(self) -> WorkerError:
        if self.is_cut:
            return WorkerError(
                f'the worker of {self.name} was closed by another thread '
                'while this one waited for a batch')
        code = None
        if self._process is not None:
            self._process.join(_PATIENCE)
            code = self._process.exitcode
        how = f'with exit code {code}'
        if code is None:
            how = '(or its connection did)'
        elif code < 0:
            how = f'by signal {_signal_name(-code)}'
        hint = ('If it was killed, memory may have run out; a traceback, if '
                'there was one, is in its standard error. A new epoch '
                'iterator starts a new worker')
        if code == 1 and not self._has_answered:
            hint = ('It did not even begin; its standard error says why. '
                    'Workers that are not forked import your script, so '
                    'what it does must stand under '
                    "if __name__ == '__main__':")
        return WorkerError(
            f'the worker process {self.pid} of {self.name} ended {how} '
            f'before the epoch did. {hint}')

    def _describe_stall(self) -> str:
        self._stacks = ''
        self._send(Message(Kind.ASK_STACKS, 0))
        deadline = time.monotonic() + _PATIENCE
        with suppress(ChannelClosed):
            while not self._stacks and time.monotonic() < deadline:
                message = self._channel.receive(0.2)
                if message is not None:
                    self._take(message)
        stacks = self._stacks or 'unknown, since it does not answer'
        return (f'the worker process {self.pid} of {self.name} has '
                f'sent nothing for {self.stalled} seconds (timeout). It is '
                f'at:\n{stacks}')

    def cut(self) -> None:
        """Let a thread that waits for a batch stop."""
        self.is_cut = True
        self._channel.cut()

    def close(self) -> None:
        """End the worker; arrays that were handed out stay."""
        self._finalizer()
        self.epochs.clear()

    def __getstate__(self) -> Any:
        raise TypeError('a worker process cannot be pickled')


def _stop(channel: Channel, process: Any) -> None:
    # The worker ends when its connection does.
    channel.close()
    if process is None:
        return
    process.join(_PATIENCE)
    if process.exitcode is None:
        process.kill()
        process.join(_PATIENCE)
    if process.exitcode is not None:
        process.close()


def _place_of(item: Message) -> tuple[int, int, int, int, int]:
    """Return slot (-1: none), segment, and where the description is."""
    low = 0xffffffff
    return (item.first - 1, item.second >> 32, item.second & low,
            item.third >> 32, item.third & low)


def _has_failed(epoch: RemoteEpoch) -> bool:
    return epoch.opened is not None and epoch.opened[0] == 'error'


def _as_exception(pickled: bytes | None, summary: str,
                  text: str) -> Exception:
    """Return an exception of the worker as one of ours."""
    if pickled is None:
        error: Exception = WorkerError(
            'the pipeline in the worker process raised an error that cannot '
            f'be pickled: {summary}')
    else:
        error = pickle.loads(pickled)
    error.__cause__ = RemoteTraceback(text)
    return error


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
