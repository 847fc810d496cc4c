"""A client's socket to a server."""
from __future__ import annotations

import logging
import os
import platform
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import zmq
from zmq.utils.monitor import recv_monitor_message

from fuel import config
from fuel.client.measures import take_stages
from fuel.exceptions import ServerError
from fuel.profiling.measurements import StageMeasurements
from fuel.transport.leases import Leases
from fuel.utils.seams import fault_point
from fuel.wire import WireError, pack_header, unpack_header
from fuel.wire.header import VERSION, Fields, get_field
from fuel.wire.index_sets import IndexSet
from fuel.wire.messages import HEARTBEAT, receive_all, send_now
from fuel.wire.same_host import answer_probe, open_foreign
from fuel.wire.wakeup import WakeUp

log = logging.getLogger(__name__)

# Seconds before another attempt to connect.
_CONNECT_SECONDS = 0.1
# libzmq's error number if only one of client and server has CURVE keys.
_MECHANISM_MISMATCH = 0x11000002


class LostError(Exception):
    """The connection was cut while the client waited for a message."""


class Delivery(NamedTuple):
    """A batch or another message of the server about the present epoch."""

    fields: Fields
    frames: list[Any]
    base: Any
    leases: Leases


class Options(NamedTuple):
    """Options of a connection to a server.

    `sources`: the client's names of the sources that the server sends.
    `timeout`: seconds to wait for a server before the first connection.
    `reconnect`: seconds to wait for the successor of a server that vanished.
    `stalled`: seconds without a batch after which the pipeline counts as
        stalled.
    """

    address: str
    sources: Sequence[str]
    examples: bool | None
    hwm: int
    rank: int | None
    timeout: float
    reconnect: float
    stalled: float
    shared_memory: bool
    curve: str | os.PathLike[str] | None


class ServerChannel:
    """A client's socket to a server: connects, sends, and receives messages.

    Not thread-safe: its subclass :class:`~fuel.client.connection.Connection`
    has a lock.

    `welcome`, `joined`: the server's answers to the messages hello and join;
        None while there is no answer.
    `refusal`: the server's reason not to serve this client.
    `queue`: received messages about the epoch that no session has taken yet.
    `stacks`, `obstacle`: the server's answer to the last request for stacks:
        the stack of the pipeline's thread, and the reason why the server waits
        for other clients.
    `leases`: the slots of the server's shared memory that the client reads.
    `generation`: number of connections made.
    `is_waiting`: whether the channel waits for messages.  An exception that is
        raised during the wait, by Ctrl-C for example, loses no message.
    """

    def __init__(self, options: Options, client: str) -> None:
        self.options = options
        self.client = client
        self.welcome: Fields | None = None
        self.refusal: Exception | None = None
        self.joined: Fields | None = None
        self.join_number = 0
        self.generation = 0
        self.queue: deque[Delivery] = deque()
        # If the user keeps batches of more than so many bytes, further batches
        # are copied.
        self._most_lent = config.shared_memory_bytes // 2
        self.leases = Leases(self._most_lent)
        self.is_waiting = False
        self.stacks: str | None = None
        self.obstacle = ''
        self.measured: list[StageMeasurements] | None = None
        self.since = self.last_look = time.monotonic()
        self.was_there = False
        self.outgoing: deque[Fields] = deque()
        self.closing = threading.Event()
        self.wake_up = WakeUp()
        self._context: zmq.Context[Any] = zmq.Context()
        self._socket: Any = None
        self._monitor: Any = None
        self._poller: Any = None
        self._next_try = 0.0

    def end(self) -> None:
        """Free the queued batches, the leases and the ZeroMQ context."""
        # The slots' memory is freed when the user's last array in it is freed.
        self.leases = Leases(0)
        self.queue.clear()
        self._context.term()
        self.wake_up.close()

    def say_goodbye(self) -> None:
        """Send the queued messages, and close the socket."""
        try:
            if self._socket is not None and self.welcome is not None:
                self.flush()
                self._send(self._socket, {'type': 'bye'})
        finally:
            self._cut()

    def exchange(self, timeout: float) -> None:
        """Send and receive all messages; wait for one if there is none."""
        try:
            if self.closing.is_set():
                return
            if self._socket is None:
                remaining = self._next_try - time.monotonic()
                if remaining > 0:
                    self.is_waiting = timeout > 0
                    time.sleep(min(timeout, remaining))
                    return
                self._connect()
            self.flush()
            self._listen(timeout)
        except LostError:
            self._cut()
        except zmq.ZMQError as error:
            log.exception('the connection has failed')
            self._refuse(f'the connection failed: {error}')
            self._cut()
        except BaseException:
            # An exception, such as Ctrl-C, came in the middle of a message.
            # The server has not vanished: the client requests its messages
            # again.
            if not self.is_waiting:
                self._cut()
                self.was_there = False
            raise

    def _connect(self) -> None:
        self._socket = socket = self._context.socket(zmq.DEALER)
        self._configure(socket)
        self._monitor = socket.get_monitor_socket(
            zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_AUTH
            | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)
        self._poller = zmq.Poller()
        for source in (socket, self._monitor, self.wake_up.descriptor):
            self._poller.register(source, zmq.POLLIN)
        socket.connect(self.options.address)
        self._send(socket, {
            'type': 'hello', 'version': VERSION, 'client': self.client,
            'sources': len(self.options.sources),
            'examples': self.options.examples, 'hwm': self.options.hwm,
            'rank': self.options.rank,
            'host': platform.node(), 'pid': os.getpid(),
            'shared_memory': self.options.shared_memory})

    def _cut(self) -> None:
        """Close the socket, and drop the messages that the server has sent."""
        if self._monitor is not None:
            self._socket.disable_monitor()
            self._monitor.close()
        if self._socket is not None:
            self._socket.close()
        self._socket = self._monitor = self._poller = None
        self._next_try = time.monotonic() + _CONNECT_SECONDS
        self._lose()

    def _listen(self, timeout: float) -> None:
        """Wait up to `timeout` seconds, and handle the messages that have
        arrived; raise LostError if the server is gone."""
        self.is_waiting = timeout > 0
        self.last_look = time.monotonic()
        ready = dict(self._poller.poll(timeout * 1000))
        self.is_waiting = False
        if self._socket in ready:
            self._receive(self._socket)
        if self._monitor in ready:
            self._explain(recv_monitor_message(self._monitor))
            raise LostError
        if self.wake_up.descriptor in ready:
            self.wake_up.clear()
            self.flush()

    def _explain(self, event: Any) -> None:
        """Record a refusal if the server rejects the client's keys, or if only
        one of the two has keys."""
        if event['event'] == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
            self._refuse('the server does not accept this key')
        elif (event['event'] == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
              and event['value'] == _MECHANISM_MISMATCH):
            self._refuse(
                'it has keys, and this client has none: pass curve=DIRECTORY, '
                'the one that fuel-server keys made for the client'
                if self.options.curve is None else
                'it has no keys, and this client has some: leave out curve=, '
                'or start the server with --curve')

    def _configure(self, socket: zmq.Socket[bytes]) -> None:
        socket.linger = 200
        # No limit of messages: the server sends no more than the client's
        # credit.
        socket.rcvhwm = socket.sndhwm = 0
        socket.reconnect_ivl, socket.reconnect_ivl_max = 50, 500
        socket.heartbeat_ivl, socket.heartbeat_timeout = HEARTBEAT
        host = self.options.address.partition('//')[2].rpartition(':')[0]
        socket.ipv6 = ':' in host
        if self.options.curve is not None:
            from fuel.wire.curve import protect_client
            protect_client(socket, self.options.curve)

    def flush(self) -> None:
        """Send the queued messages if a server is connected."""
        while self.outgoing and self.welcome is not None:
            self._send(self._socket, self.outgoing.popleft())

    @fault_point('client send')
    def _send(self, socket: zmq.Socket[bytes], fields: Fields) -> None:
        with suppress(zmq.Again):
            send_now(socket, [pack_header(fields)])

    def _receive(self, socket: zmq.Socket[bytes]) -> None:
        """Handle the messages that have arrived; raise LostError if one is
        invalid or the server says goodbye."""
        for header, *frames in receive_all(socket):
            try:
                self._handle(socket, unpack_header(bytes(header)), frames)
            except WireError as error:
                self._refuse(f'not a Fuel server: {error}')
                raise LostError from None

    def _refuse(self, text: str) -> None:
        self.refusal = ServerError(
            f'the server at {self.options.address}: {text}')

    @fault_point('client receive')
    def _handle(self, socket: zmq.Socket[bytes], fields: Fields,
                frames: list[Any]) -> None:
        kind = get_field(fields, 'type', str)
        if kind == 'bye':
            raise LostError
        if kind == 'welcome':
            self._take_welcome(socket, fields)
        elif kind == 'refuse':
            self._refuse(get_field(fields, 'error', str)[:2000])
        elif kind == 'stacks':
            self.stacks = get_field(fields, 'text', str)
            self.obstacle = get_field(fields, 'wait', str, '')[:2000]
        elif kind == 'measure':
            self.measured = take_stages(get_field(fields, 'stages', list))
        elif kind == 'revoke':
            self._give_back(socket, get_field(fields, 'join', int))
        elif kind != 'ping':
            self._take_delivery(kind, fields, frames)

    def _take_welcome(self, socket: zmq.Socket[bytes],
                      fields: Fields) -> None:
        version = get_field(fields, 'version', int)
        if version != VERSION:
            raise WireError(f'version {version} of the protocol')
        self._send(socket, {'type': 'ready', 'proof': answer_probe(
            fields.get('probe'), self.client)})
        if not self.was_there:
            self._check_order(fields)
        self.outgoing.clear()
        self.leases = Leases(self._most_lent)
        self.generation += 1
        self.was_there = True
        self.refusal = None
        self.welcome = fields

    def _check_order(self, welcome: Fields) -> None:
        """Warn if the client and the server have the same name for different
        sources."""
        names = list(self.options.sources)
        sent = get_field(welcome, 'sources', list)
        if any(name in sent and name != other
               for name, other in zip(names, sent, strict=False)):
            log.warning(
                'the server at %s sends the sources %.500s, which are named '
                '%s here: new names do not change the order of sources',
                self.options.address, sent, names)

    def _take_delivery(self, kind: str, fields: Fields,
                       frames: list[Any]) -> None:
        if 'slot' in fields:
            self._open_segment(get_field(fields, 'slot', dict))
        if get_field(fields, 'join', int) != self.join_number:
            return
        if kind == 'joined':
            self.joined = fields
        else:
            base = None if self.joined is None else self.joined['base']
            self.queue.append(Delivery(fields, frames, base, self.leases))

    def _open_segment(self, slot: Fields) -> None:
        opening = get_field(slot, 'open', list, None)
        if opening is None:
            return
        if len(opening) != 3 or not all(
                type(part) is int and part > 0 for part in opening):
            raise WireError('not a segment')
        try:
            self.leases.add_segment(
                get_field(slot, 'segment', int), open_foreign(*opening))
        except (FileNotFoundError, ProcessLookupError):
            # The server's process has just died, and its memory is gone.
            raise LostError from None
        except OSError as error:
            raise WireError(f'a segment that does not open: {error}') from None

    def _give_back(self, socket: zmq.Socket[bytes], join: int) -> None:
        """Return half of the prefetched batches to the server, for clients
        that wait."""
        given = IndexSet()
        if join == self.join_number:
            having = [delivery for delivery in self.queue
                      if 'index' in delivery.fields]
            for delivery in having[len(having) // 2:]:
                self.queue.remove(delivery)
                given.add(get_field(delivery.fields, 'index', int))
        self._send(socket, {'type': 'give', 'join': join,
                            'indices': given.ranges()})

    def _lose(self) -> None:
        """Drop the messages from and to a server that is gone."""
        if self.welcome is not None:
            self.since = time.monotonic()
        self.welcome = None
        self.joined = None
        self.queue.clear()
        self.outgoing.clear()
