"""A client's connection to a server: one thread and one socket."""
from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple

import zmq
from zmq.utils.monitor import recv_monitor_message

from fuel import config
from fuel.exceptions import ServerError
from fuel.transport._leases import Leases
from fuel.wire import WireError, pack_header, unpack_header
from fuel.wire._header import VERSION, get_field
from fuel.wire._indices import as_ranges
from fuel.wire._proof import answer_probe, open_foreign
from fuel.wire._wake import WakeUp

log = logging.getLogger(__name__)

# Milliseconds between signs of life, and without one until the connection
# is cut; the sockets' own threads give them, whatever Python does.
_HEARTBEAT = 200, 800
# Seconds after which the log says what is waited for.
_PATIENCE = 2.0
# Seconds to wait for a batch before the server is told that one is missed.
_MISSED = 0.01
_RETRY = 0.1


class LostError(Exception):
    """The connection was cut while something was waited for."""


class Delivery(NamedTuple):
    """A message about the present epoch."""

    fields: dict[str, Any]
    frames: list[Any]
    base: Any


class Options(NamedTuple):
    """How to connect.

    Attributes
    ----------
    address : str
    sources : int
    examples : bool or None
    hwm : int
    rank : int or None
    timeout : float
        Seconds to wait for a server that is not there yet.
    reconnect : float
        Seconds to wait for the successor of one that vanished.
    stalled : float
        Seconds without a batch after which the pipeline counts as stalled.
    shared_memory : bool
    curve : path or None

    """

    address: str
    sources: int
    examples: bool | None
    hwm: int
    rank: int | None
    timeout: float
    reconnect: float
    stalled: float
    shared_memory: bool
    curve: Any


class Connection:
    """Talks to a server in a thread of its own.

    The thread owns the socket, so that the server gets its answers while
    the user trains.  The user's thread and this one share what `changed`
    guards.

    Parameters
    ----------
    options : Options
    client : str
        Names the client, also after its connection was cut.

    """

    def __init__(self, options: Options, client: str) -> None:
        self.options = options
        self.client = client
        self.owner = os.getpid()
        self.changed = threading.Condition()
        self.welcome: dict[str, Any] | None = None
        self.refusal: Exception | None = None
        self.joined: dict[str, Any] | None = None
        self.join_number = 0
        self.generation = 0
        self.queue: deque[Delivery] = deque()
        # Of what the user keeps beyond this, copies are made.
        self._most_lent = config.shared_memory_bytes // 2
        self.leases = Leases(self._most_lent)
        self._stacks: str | None = None
        self._since = time.monotonic()
        self._was_there = False
        self._outgoing: deque[dict[str, Any]] = deque()
        self._closing = False
        self._wake_up = WakeUp()
        self._context = zmq.Context()
        self._thread = threading.Thread(
            target=self._run, name='fuel-client', daemon=True)
        self._thread.start()

    # What the user's thread calls.

    def is_usable(self) -> bool:
        """Tell whether the connection is this process's, and open."""
        return not self._closing and self.owner == os.getpid()

    def tell(self, **fields: Any) -> None:
        """Send a message to the server."""
        with self.changed:
            self._outgoing.append(fields)
        self._wake_up()

    def close(self) -> None:
        """Say goodbye and let go of socket and thread."""
        if self._closing or self.owner != os.getpid():
            return
        self._closing = True
        self._wake_up()
        # The collector may have called this in the thread itself.
        if self._thread is not threading.current_thread():
            self._thread.join()
        with self.changed:
            self.changed.notify_all()

    def greet(self) -> dict[str, Any]:
        """Wait until a server is there.

        Returns
        -------
        dict
            Its welcome.

        Raises
        ------
        ServerError
            If there is none in time, or it refuses the client.

        """
        patience = time.monotonic() + _PATIENCE
        with self.changed:
            while self.welcome is None:
                if self.refusal is not None:
                    raise self.refusal
                if self._closing:
                    raise ServerError('the stream was closed')
                now = time.monotonic()
                allowed = (self.options.reconnect if self._was_there
                           else self.options.timeout)
                if now - self._since >= allowed:
                    raise ServerError(self._describe_absence(allowed))
                if now > patience:
                    patience = float('inf')
                    log.warning('waiting for a server at %s',
                                self.options.address)
                self.changed.wait(0.1)
            return self.welcome

    def _describe_absence(self, allowed: float) -> str:
        if self._was_there:
            return (f'the server at {self.options.address} has vanished, and '
                    f'no other came within {allowed} seconds (reconnect)')
        return (f'no server answers at {self.options.address} after '
                f'{allowed} seconds (timeout): is it running there, and on '
                'this port?')

    def join(self, resume: Any) -> dict[str, Any]:
        """Ask for a place in an epoch and wait for it.

        Parameters
        ----------
        resume : dict or None
            Where to go on.

        Returns
        -------
        dict
            What the server says of the epoch, and `generation`.

        """
        self.greet()
        with self.changed:
            if self.welcome is None:
                raise LostError
            generation = self.generation
            self.join_number += 1
            self.joined = None
            self.queue.clear()
            self.tell(type='join', join=self.join_number, resume=resume)
            self._wait(lambda: self.joined is not None or bool(self.queue),
                       generation, 'the epoch of the other clients to end')
            return {**(self.joined or {}), 'generation': generation}

    def take(self, generation: int) -> Delivery:
        """Return the next message about the epoch.

        Raises
        ------
        LostError
            If the connection was cut since the epoch was joined.
        ServerError
            If the pipeline stalls.

        """
        with self.changed:
            if not self.queue:
                self.changed.wait(_MISSED)
            if not self.queue and generation == self.generation:
                self.tell(type='waiting', join=self.join_number)
                self._wait(lambda: bool(self.queue), generation, 'a batch')
            if generation != self.generation or self.welcome is None:
                raise LostError
            return self.queue.popleft()

    def _wait(self, is_there: Any, generation: int, what: str) -> None:
        start = time.monotonic()
        patience = start + 30 * _PATIENCE
        while not is_there():
            if self._closing:
                raise ServerError('the stream was closed')
            if self.welcome is None or generation != self.generation:
                raise LostError
            now = time.monotonic()
            if now - start > self.options.stalled:
                raise ServerError(self._describe_stall(what))
            if now > patience:
                patience = float('inf')
                log.warning('waiting for %s from %s', what,
                            self.options.address)
            self.changed.wait(0.25)

    def _describe_stall(self, what: str) -> str:
        self._stacks = None
        self.tell(type='stacks')
        deadline = time.monotonic() + _PATIENCE
        while self._stacks is None and time.monotonic() < deadline:
            self.changed.wait(0.1)
        return (f'the server at {self.options.address} is there, but waiting '
                f'for {what} took more than {self.options.stalled} seconds '
                f'(stalled). Its pipeline is at:\n'
                f'{self._stacks or "unknown, since it does not answer"}')

    # What the connection's thread runs.

    def _run(self) -> None:
        try:
            while not self._closing:
                self._talk_to_one_server()
        except Exception as error:
            log.exception('the connection has failed')
            with self.changed:
                self.refusal = ServerError(f'the connection failed: {error}')
        finally:
            self._lose()
            self._context.term()
            self._wake_up.close()

    def _talk_to_one_server(self) -> None:
        """Connect, and talk until the connection is cut."""
        socket = self._context.socket(zmq.DEALER)
        monitor = None
        try:
            self._configure(socket)
            monitor = socket.get_monitor_socket(
                zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_AUTH)
            socket.connect(self.options.address)
            self._send(socket, {
                'type': 'hello', 'version': VERSION, 'client': self.client,
                'sources': self.options.sources,
                'examples': self.options.examples, 'hwm': self.options.hwm,
                'rank': self.options.rank,
                'shared_memory': self.options.shared_memory})
            self._talk(socket, monitor)
            if self._closing and self.welcome is not None:
                self._flush(socket)
                self._send(socket, {'type': 'bye'})
        finally:
            if monitor is not None:
                socket.disable_monitor()
                monitor.close()
            socket.close()
        self._lose()
        if not self._closing:
            time.sleep(_RETRY)

    def _configure(self, socket: Any) -> None:
        socket.linger = 200
        # The server sends no more than it was given room for.
        socket.rcvhwm = socket.sndhwm = 0
        socket.reconnect_ivl, socket.reconnect_ivl_max = 50, 500
        socket.heartbeat_ivl, socket.heartbeat_timeout = _HEARTBEAT
        host = self.options.address.partition('//')[2].rpartition(':')[0]
        socket.ipv6 = ':' in host
        if self.options.curve is not None:
            from fuel.wire._curve import protect_client
            protect_client(socket, self.options.curve)

    def _talk(self, socket: Any, monitor: Any) -> None:
        poller = zmq.Poller()
        for source in (socket, monitor, self._wake_up.descriptor):
            poller.register(source, zmq.POLLIN)
        while not self._closing:
            ready = dict(poller.poll(1000))
            if socket in ready and not self._receive(socket):
                return
            if monitor in ready:
                event = recv_monitor_message(monitor)['event']
                if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                    self._refuse('the server does not accept this key')
                return
            if self._wake_up.descriptor in ready:
                self._wake_up.clear()
                self._flush(socket)

    def _flush(self, socket: Any) -> None:
        with self.changed:
            if self.welcome is None:
                return
            messages = list(self._outgoing)
            self._outgoing.clear()
        for message in messages:
            self._send(socket, message)

    def _send(self, socket: Any, fields: dict[str, Any]) -> None:
        with suppress(zmq.Again):
            socket.send(pack_header(fields), zmq.NOBLOCK)

    def _receive(self, socket: Any) -> bool:
        """Take in messages; return whether the server stays."""
        while True:
            try:
                header, *frames = socket.recv_multipart(
                    zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return True
            try:
                fields = unpack_header(bytes(header))
                if not self._handle(socket, fields, frames):
                    return False
            except LostError:
                return False
            except WireError as error:
                self._refuse(f'not a Fuel server: {error}')
                return False

    def _refuse(self, text: str) -> None:
        with self.changed:
            self.refusal = ServerError(
                f'the server at {self.options.address}: {text}')
            self.changed.notify_all()

    def _handle(self, socket: Any, fields: dict[str, Any],
                frames: list[Any]) -> bool:
        kind = get_field(fields, 'type', str)
        if kind == 'bye':
            return False
        if kind == 'welcome':
            self._take_welcome(socket, fields)
        elif kind == 'refuse':
            self._refuse(get_field(fields, 'error', str)[:2000])
        elif kind == 'stacks':
            with self.changed:
                self._stacks = get_field(fields, 'text', str)
                self.changed.notify_all()
        elif kind == 'revoke':
            self._give_back(socket, get_field(fields, 'join', int))
        elif kind != 'ping':
            self._take_delivery(kind, fields, frames)
        return True

    def _take_welcome(self, socket: Any, fields: dict[str, Any]) -> None:
        version = get_field(fields, 'version', int)
        if version != VERSION:
            raise WireError(f'version {version} of the protocol')
        self._send(socket, {'type': 'ready', 'proof': answer_probe(
            fields.get('probe'), self.client)})
        with self.changed:
            self._outgoing.clear()
            self.leases = Leases(self._most_lent)
            self.welcome = fields
            self.generation += 1
            self._was_there = True
            self.changed.notify_all()

    def _take_delivery(self, kind: str, fields: dict[str, Any],
                       frames: list[Any]) -> None:
        if 'slot' in fields:
            self._open_segment(get_field(fields, 'slot', dict))
        with self.changed:
            if get_field(fields, 'join', int) != self.join_number:
                return
            if kind == 'joined':
                self.joined = fields
            else:
                base = None if self.joined is None else self.joined['base']
                self.queue.append(Delivery(fields, frames, base))
            self.changed.notify_all()

    def _open_segment(self, slot: dict[str, Any]) -> None:
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
            # The server's process has just died, with its memory.
            raise LostError from None
        except OSError as error:
            raise WireError(f'a segment that does not open: {error}') from None

    def _give_back(self, socket: Any, join: int) -> None:
        """Let the server give some of our batches to who waits for them."""
        given = []
        with self.changed:
            if join == self.join_number:
                having = [delivery for delivery in self.queue
                          if 'index' in delivery.fields]
                for delivery in having[len(having) // 2:]:
                    self.queue.remove(delivery)
                    given.append(get_field(delivery.fields, 'index', int))
        self._send(socket, {'type': 'give', 'join': join,
                            'indices': as_ranges(given)})

    def _lose(self) -> None:
        """Forget what the server that is gone had sent."""
        with self.changed:
            if self.welcome is not None:
                self._since = time.monotonic()
            self.welcome = None
            self.joined = None
            self.queue.clear()
            self._outgoing.clear()
            self.changed.notify_all()
