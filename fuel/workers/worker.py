"""A worker process, from the view of its consumer."""
from __future__ import annotations

import logging
import multiprocessing
# Waiting for a process needs this module. The garbage collector may end a
# worker during any import, also during the import of this module.
import multiprocessing.connection
import multiprocessing.context
import multiprocessing.process
import multiprocessing.util
import os
import pickle
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from fuel.config_parser import config
from fuel.exceptions import WorkerError
from fuel.transport.batches import load_batch
from fuel.transport.channel import (Channel, ChannelClosed, Message, Peer,
                                    close_in_children)
from fuel.transport.leases import Leases
from fuel.transport.segment import Segment
from fuel.transport.shared_pickle import SharedPickle
from fuel.transport.slots import Extent
from fuel.typing import StreamLike
from fuel.utils.threads import end_thread_at_exit, users_lines_first
from fuel.workers.batch_maker import ReceivedItem
from fuel.workers.deadlock import (
    Activity, DeadlockWatch, UsageWatch, activity_seen_by_system, read_stacks)
from fuel.workers.global_random import Generators
from fuel.workers.producer import Kind
from fuel.workers.producer import run_worker
from fuel.workers.team import (
    MOMENT, EpochWorker, RemoteEpoch, pipeline_error)
from fuel.utils.remote_errors import signal_name

log = logging.getLogger(__name__)

# Seconds within which a worker must end by itself, or answer.
_ANSWER_SECONDS = 2.0
# Seconds between checks of how long the consumer has waited.
_POLL_SECONDS = 1.0
_NOT_BEGUN = ('It did not even begin; its standard error says why. Workers '
              'that are not forked import your script, so put what it runs, '
              "but not its functions and classes, under if __name__ == "
              "'__main__':")


class Worker(EpochWorker[RemoteEpoch]):
    """A process that prefetches batches of a stream."""

    def __init__(
            self, name: str, connection: socket.socket, max_bytes: int,
            stalled: float,
            process: multiprocessing.process.BaseProcess | None = None,
    ) -> None:
        super().__init__(name, stalled)
        self.leases = Leases(max_bytes // 2)
        self._load_error: Exception | None = None
        self._deadlock_timeout: float = config.deadlock_timeout
        self._activity: Activity | None = None
        # Memory for the stacks of a worker that does not answer.
        self._trace: Segment | None = None
        # True after a warning about what keeps the worker from working.
        self._has_warned = False
        self._has_answered = False
        # True after a wait timed out: another worker makes new epochs.
        self._has_stalled = False
        self.waiter = self._channel = Channel(connection)
        self._process = process
        # ``process.pid`` raises after ``close()``.
        self._pid = None if process is None else process.pid
        if self._pid is not None:
            self._channel.watch(Peer(self._pid))
        # Runs when this object is freed. At exit it runs first of all, before
        # multiprocessing waits for its children.
        self.finalizer = multiprocessing.util.Finalize(
            self, _stop, (self._channel, process), exitpriority=100)

    @classmethod
    def start(cls, name: str, forked: tuple[StreamLike, Generators] | None,
              context: multiprocessing.context.BaseContext, max_batches: int,
              max_bytes: int, stalled: float) -> Worker:
        """Start a process that makes batches of a stream.

        `forked`: objects for a forked process; None if they are sent later, by
            :meth:`send_stream`.
        """
        ours, theirs = Channel.pair()
        process = context.Process(  # type: ignore[attr-defined]
            target=run_worker, name=f'fuel-worker-{name}',
            args=(theirs, os.getpid(), max_batches, max_bytes, forked))
        with theirs:
            close_in_children(ours)
            try:
                process.start()
            except (ConnectionError, EOFError) as error:
                ours.close()
                raise WorkerError(
                    f'the fork server ended before it started a worker of '
                    f'{name}. {_NOT_BEGUN}') from error
            except BaseException:
                ours.close()
                raise
        return cls(name, ours, max_bytes, stalled, process)

    def send_stream(self, pickled: SharedPickle,
                    generators: Generators) -> None:
        """Send a process that was not forked its stream and its generators.

        They are sent over the worker's own connection: `process.start` would
        wait for ever if the process ended before it read them.
        """
        message = Message(
            Kind.STREAM, 0, payload=pickle.dumps((pickled.shared, generators)),
            descriptor=pickled.descriptor)
        with suppress(ChannelClosed):
            self._channel.send(message)

    @property
    def pid(self) -> int | None:
        """Process identifier of the worker (int), None if unknown."""
        return self._pid

    def _is_open(self) -> bool:
        return (self._load_error is None and not self._has_stalled
                and self.finalizer.still_active())

    def _begin(self, number: int, options: dict[str, Any]) -> RemoteEpoch:
        self._send(Message(Kind.OPEN, number, payload=pickle.dumps(options)))
        return RemoteEpoch(number)

    def _leave(self, epoch: RemoteEpoch) -> None:
        self._send(Message(Kind.LEAVE, epoch.number))
        for item in epoch.items:
            self._drop(item)
        epoch.items.clear()

    def _receive_end(self, epoch: RemoteEpoch) -> None:
        """Receive the last measurements of an epoch, if they come at once."""
        deadline = time.monotonic() + MOMENT
        with suppress(ChannelClosed):
            while not (epoch.items and epoch.items[-1].kind == Kind.END):
                left = deadline - time.monotonic()
                message = self._channel.receive(left) if left > 0 else None
                if message is None:
                    return
                self._handle(message)
            self.take_note(epoch, self._load(epoch.items[-1]).note)

    def _load(self, item: Message) -> ReceivedItem:
        """Return the item in a message, with its arrays."""
        extents, data, error, changes, final, note = pickle.loads(item.payload)
        if error is not None:
            error = pipeline_error(error)
        elif final is None:
            data = (self._load_slot(item, extents, data) if extents
                    else load_batch(data, []))
        return ReceivedItem(data, error, changes, final, note)

    def _load_slot(self, item: Message, extents: Sequence[Extent],
                   description: Any) -> Any:
        """Return a batch whose arrays are in a slot."""
        slot, segment = item.first - 1, item.second
        places = [(item.third + start, size) for start, size in extents]
        if not description:
            description = self.leases.view(segment, *places.pop())
        if places:
            return self.leases.lend(
                slot, segment, places,
                lambda buffers: load_batch(description, buffers))
        batch = load_batch(description, [])
        self.leases.give_back(slot)
        return batch

    def _ask_for_more(self, epoch: RemoteEpoch) -> None:
        returned = self.leases.returned()
        slot, reuse = returned.pop() if returned else (-1, False)
        # If the worker has ended, the next wait for it raises the error.
        delivered = Message(
            Kind.DELIVERED, epoch.number, epoch.taken, slot + 1, int(reuse))
        self._send(*[Message(Kind.RELEASE, 0, slot, int(reuse))
                     for slot, reuse in returned], delivered)

    def _send(self, *messages: Message) -> None:
        # Send without waiting, since a stopped worker reads no messages.
        with suppress(ChannelClosed):
            self._channel.post(*messages)

    def _drop(self, item: Message) -> None:
        if item.kind == Kind.ITEM and item.first:
            self._send(Message(Kind.RELEASE, 0, item.first - 1, 1))

    def _wait(self, epoch: RemoteEpoch, is_there: Callable[[], bool]) -> None:
        if self.error is not None and not is_there():
            raise self.error
        returned = self.leases.returned()
        if returned:
            self._send(*[Message(Kind.RELEASE, 0, slot, int(reuse))
                         for slot, reuse in returned])
        waited, watch, usage = 0.0, None, None
        interval = min(_POLL_SECONDS, self._deadlock_timeout)
        while not is_there():
            begin = time.monotonic()
            try:
                message = self._channel.receive(interval)
            except ChannelClosed:
                end_thread_at_exit()
                self.error = self._death()
                raise self.error from None
            # The time while this process was stopped, by Ctrl-Z for example,
            # does not count.
            waited += min(time.monotonic() - begin, interval)
            if message is not None:
                self._handle(message)
                continue
            if watch is None or usage is None:
                watch = DeadlockWatch(self._deadlock_timeout)
                usage = UsageWatch(self.pid)
            usage.look()
            if waited - usage.seconds_without_processor() >= self.stalled:
                self._ask_activity()
                self._has_stalled = True
                raise WorkerError(
                    f'{self._described()} has sent nothing for '
                    f'{self.stalled} seconds (timeout): {usage.describe()}. '
                    'A new epoch iterator starts a new worker. Its pipeline '
                    f'is at:\n{self._get_stacks()}')
            if usage.is_kept_from_work():
                if waited >= self._deadlock_timeout and not self._has_warned:
                    self._has_warned = True
                    log.warning(
                        '%s has sent nothing for %.3g seconds, and is waited '
                        'for: %s', self._described(), waited,
                        usage.describe())
            elif watch.is_due(waited) and watch.look(
                    waited, self._ask_activity(is_there)):
                watch.report(self._described(), self._get_stacks())

    def _described(self) -> str:
        return f'the worker process {self.pid} of {self.name}'

    def _handle(self, message: Message) -> None:
        self._has_answered, self._has_stalled = True, False
        if message.kind == Kind.SEGMENT:
            assert message.descriptor is not None
            self.leases.add_segment(
                message.first, Segment(message.descriptor, message.second))
        elif message.kind == Kind.DROP:
            self.leases.drop_segment(message.first)
        elif message.kind == Kind.ACTIVITY:
            self._activity = pickle.loads(message.payload)
        elif message.kind == Kind.TRACE:
            assert message.descriptor is not None
            self._trace = Segment(message.descriptor, message.second)
        elif message.kind == Kind.UNLOADABLE:
            self._load_error = pipeline_error(message.payload)
            for epoch in self.epochs.values():
                epoch.open(message.payload, failed=True)
        elif message.epoch not in self.epochs:
            self._drop(message)
        elif message.kind == Kind.OPENED:
            self.epochs[message.epoch].open(
                message.payload, failed=bool(message.first))
        else:
            self.epochs[message.epoch].items.append(message)

    def _death(self) -> WorkerError:
        if self.is_cut:
            return WorkerError(
                f'the worker of {self.name} was closed by another thread '
                'while this one waited for a batch')
        if not self.finalizer.still_active():
            return WorkerError(
                f'the worker of {self.name} was closed, and with it the '
                'epochs that it made: begin another one, or load a state')
        code = None
        if self._process is not None:
            self._process.join(_ANSWER_SECONDS)
            code = self._process.exitcode
        how = f'with exit code {code}'
        if code is None:
            how = '(or its connection did)'
        elif code < 0:
            how = f'by signal {signal_name(-code)}'
        hint = ('If it was killed, memory may have run out; a traceback, if '
                'there was one, is in its standard error. A new epoch '
                'iterator starts a new worker')
        if code == 1 and not self._has_answered:
            hint = _NOT_BEGUN
        return WorkerError(
            f'{self._described()} ended {how} '
            f'before the epoch did. {hint}')

    def _ask_activity(self, is_there: Callable[[], bool] = lambda: False,
                      ) -> Activity | None:
        """Request the worker's activity, and return it; None if it is unknown,
        or if `is_there` returns True before the answer comes.

        If the worker does not answer in time, return the activity that the
        system reports.
        """
        self._activity = None
        self._send(Message(Kind.ASK_ACTIVITY, 0))
        deadline = time.monotonic() + _ANSWER_SECONDS
        with suppress(ChannelClosed):
            while time.monotonic() < deadline:
                message = self._channel.receive(0.2)
                if message is not None:
                    self._handle(message)
                if self._activity is not None or is_there():
                    return self._activity
        return None if self.pid is None else activity_seen_by_system(self.pid)

    def _get_stacks(self) -> str:
        """Return the stacks of the worker; call this after its activity was
        requested."""
        if self._activity is not None:
            return self._activity.stack
        stacks = ''
        if (self._process is not None and self._process.pid is not None
                and self._process.exitcode is None
                and self._trace is not None):
            stacks = users_lines_first(
                read_stacks(self._process.pid, self._trace),
                is_newest_first=True)
        return stacks or 'unknown, since it does not answer'

    def cut(self) -> None:
        """Make a thread that waits for a batch raise an error."""
        super().cut()
        self._channel.cut()


def _stop(channel: Channel,
          process: multiprocessing.process.BaseProcess | None) -> None:
    # The worker ends when its connection has ended.
    channel.cut()
    if process is not None:
        process.join(_ANSWER_SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join(_ANSWER_SECONDS)
        if process.exitcode is not None:
            process.close()
    if channel.peer is not None:
        # If the fork server has ended, its processes seem to have ended, too,
        # even if they still run.
        channel.peer.end(_ANSWER_SECONDS)
    channel.close()
