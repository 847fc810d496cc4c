"""A client's connection to a server: one socket, used by who waits."""
from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import zmq
from zmq.utils.monitor import recv_monitor_message

from fuel import config
from fuel.exceptions import ServerError
from fuel.transport.leases import Leases
from fuel.utils.seams import fault_point
from fuel.utils.thread_exit import end_thread_at_exit
from fuel.wire import WireError, pack_header, unpack_header
from fuel.wire.header import VERSION, get_field
from fuel.wire.index_sets import IndexSet
from fuel.wire.messages import receive_all, send_now
from fuel.wire.same_host import answer_probe, open_foreign
from fuel.wire.wakeup import WakeUp

log = logging.getLogger(__name__)

# Milliseconds between signs of life, and without one until the connection
# is cut; the sockets' own threads give them, whatever Python does.
_HEARTBEAT = 200, 800
# Seconds after which the log says what is waited for.
_PATIENCE = 2.0
# Seconds to wait for a batch before the server is told that one is missed.
_MISSED = 0.01
_RETRY = 0.1
# Seconds between looks at the socket while nobody waits for it.
_GLANCE = 0.05
# Seconds after which the socket is read before what was read earlier is
# used: something kept the interpreter from it.
_ABSENCE = 1.0
# Seconds after which somebody who waits looks at what else has happened.
_SLICE = 0.25


class LostError(Exception):
    """The connection was cut while something was waited for."""


class Delivery(NamedTuple):
    """A message about the present epoch."""

    fields: dict[str, Any]
    frames: list[Any]
    base: Any
    leases: Leases


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
    """Talks to a server.

    Whoever waits for the server uses the socket itself: handing each
    message over to another thread would cost more than most messages take.
    While nobody waits, a thread of the connection answers the server.  They
    take turns by a lock, which guards all that is here.  Users take it by
    `with` alone: anything else may keep it for ever when Ctrl-C comes.

    Parameters
    ----------
    client : str
        Names the client, also after its connection was cut.

    Attributes
    ----------
    is_waiting : bool
        Whether an exception that comes out of here, by Ctrl-C say, came while
        it waited, so that no message is lost.

    """

    def __init__(self, options: Options, client: str) -> None:
        self.options = options
        self.client = client
        self.owner = os.getpid()
        self.welcome: dict[str, Any] | None = None
        self.refusal: Exception | None = None
        self.joined: dict[str, Any] | None = None
        self.join_number = 0
        self.generation = 0
        self.queue: deque[Delivery] = deque()
        # Of what the user keeps beyond this, copies are made.
        self._most_lent = config.shared_memory_bytes // 2
        self.leases = Leases(self._most_lent)
        # Closes the connection when its stream dies.
        self.finalizer: weakref.finalize[..., object] | None = None
        self._turn = threading.RLock()
        self.is_waiting = False
        self._stacks: str | None = None
        self._since = self._last_look = time.monotonic()
        self._was_there = False
        self._outgoing: deque[dict[str, Any]] = deque()
        self._closing = threading.Event()
        self._wake_up = WakeUp()
        self._context = zmq.Context()
        self._socket: Any = None
        self._monitor: Any = None
        self._poller: Any = None
        self._next_try = 0.0
        self._thread = threading.Thread(
            target=self._run, name='fuel-client', daemon=True)
        try:
            self._thread.start()
        except BaseException:
            # Ctrl-C: the thread may run, and nobody else would end it.
            self._closing.set()
            raise

    def is_usable(self) -> bool:
        """Tell whether the connection is this process's, and open."""
        return not self._closing.is_set() and self.owner == os.getpid()

    def tell(self, **fields: Any) -> None:
        """Send a message to the server, at once."""
        self._outgoing.append(fields)
        with self._turn:
            self._flush()

    def mention(self, **fields: Any) -> None:
        """Have a message sent soon; the garbage collector may call this."""
        self._outgoing.append(fields)
        self._wake_up()

    def close(self) -> None:
        """Say goodbye and let go of socket and thread."""
        if not self.is_usable():
            return
        self._closing.set()
        self._wake_up()
        # The collector may have called this where the socket is in use.
        is_mine: bool = self._turn._is_owned()  # type: ignore[attr-defined]
        if not is_mine and threading.current_thread() is not self._thread:
            self._thread.join(_PATIENCE)

    def greet(self) -> dict[str, Any]:
        """Wait until a server is there.

        Raises
        ------
        ServerError
            If there is none in time, or it refuses the client.

        """
        patience = time.monotonic() + _PATIENCE
        while (welcome := self.welcome) is None:
            if self.refusal is not None:
                raise self.refusal
            self._check_open()
            now = time.monotonic()
            allowed = (self.options.reconnect if self._was_there
                       else self.options.timeout)
            if now - self._since >= allowed:
                raise ServerError(self._describe_absence(allowed))
            if now > patience:
                patience = float('inf')
                log.warning('waiting for a server at %s',
                            self.options.address)
            self._talk(lambda: self.welcome or self.refusal, 0.1)
        return welcome

    def _check_open(self) -> None:
        if self._closing.is_set():
            end_thread_at_exit()
            raise ServerError('the stream was closed')

    def _describe_absence(self, allowed: float) -> str:
        if self._was_there:
            return (f'the server at {self.options.address} has vanished, and '
                    f'no other came within {allowed} seconds (reconnect)')
        return (f'no server answers at {self.options.address} after '
                f'{allowed} seconds (timeout): is it running there, and on '
                'this port?')

    def join(self, resume: Any) -> dict[str, Any]:
        """Ask for a place in an epoch and wait for it.

        Returns
        -------
        dict
            What the server says of the epoch, and `generation`.

        """
        self.greet()
        with self._turn:
            if self.welcome is None:
                raise LostError
            generation = self.generation
            self.join_number += 1
            self.joined = None
            self.queue.clear()
            self._outgoing.append({'type': 'join', 'join': self.join_number,
                                   'resume': resume})

        def answer() -> Any:
            self._check_generation(generation)
            return self.joined or self.queue
        self._wait(answer, 'the epoch of the other clients to end')
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
        def next_delivery() -> Any:
            self._check_generation(generation)
            return self.queue.popleft() if self.queue else None
        delivery: Delivery | None = self._talk(next_delivery, _MISSED)
        if delivery is None:
            self.tell(type='waiting', join=self.join_number)
            delivery = self._wait(next_delivery, 'a batch')
        return delivery

    def _check_generation(self, generation: int) -> None:
        if self.refusal is not None:
            raise self.refusal
        if self.welcome is None or generation != self.generation:
            raise LostError

    def _wait(self, find: Callable[[], Any], what: str) -> Any:
        """Return what is wanted once it is there."""
        start = time.monotonic()
        patience = start + 30 * _PATIENCE
        while not (found := self._talk(find, _SLICE)):
            self._check_open()
            now = time.monotonic()
            if now - start > self.options.stalled:
                raise ServerError(self._describe_stall(what))
            if now > patience:
                patience = float('inf')
                log.warning('waiting for %s from %s', what,
                            self.options.address)
        return found

    def _describe_stall(self, what: str) -> str:
        self._stacks = None
        self.tell(type='stacks')
        deadline = time.monotonic() + _PATIENCE
        while self._stacks is None and time.monotonic() < deadline:
            self._talk(lambda: self._stacks, 0.1)
        return (f'the server at {self.options.address} is there, but waiting '
                f'for {what} took more than {self.options.stalled} seconds '
                f'(stalled). Its pipeline is at:\n'
                f'{self._stacks or "unknown, since it does not answer"}')

    def _talk(self, find: Callable[[], Any], timeout: float) -> Any:
        """Use the socket until something is found, or time has passed.

        Parameters
        ----------
        find : callable
            Called while nobody else uses the socket.
        timeout : float
            Seconds; it may return earlier without having found anything.

        """
        with self._turn:
            self.is_waiting = False
            if time.monotonic() - self._last_look > _ABSENCE:
                # The server may have given our batches to others.
                self._exchange(0)
            found = find()
            if not found:
                self._exchange(timeout)
                found = find()
            return found

    def _run(self) -> None:
        """Answer the server while nobody waits for it."""
        try:
            while not self._closing.wait(_GLANCE):
                if self._turn.acquire(blocking=False):
                    try:
                        self._exchange(0)
                    finally:
                        self._turn.release()
        finally:
            with self._turn:
                self._say_goodbye()
            # Their memory is freed when no array of the user's is in it.
            self.leases = Leases(0)
            self.queue.clear()
            self._context.term()
            self._wake_up.close()

    # Everything below is called by who holds the lock.

    def _say_goodbye(self) -> None:
        try:
            if self._socket is not None and self.welcome is not None:
                self._flush()
                self._send(self._socket, {'type': 'bye'})
        finally:
            self._cut()

    def _exchange(self, timeout: float) -> None:
        """Send and receive what there is; wait for more if there is none."""
        try:
            if self._closing.is_set():
                return
            if self._socket is None:
                remaining = self._next_try - time.monotonic()
                if remaining > 0:
                    self.is_waiting = timeout > 0
                    time.sleep(min(timeout, remaining))
                    return
                self._connect()
            self._flush()
            if not self._listen(timeout):
                self._cut()
        except zmq.ZMQError as error:
            log.exception('the connection has failed')
            self._refuse(f'the connection failed: {error}')
            self._cut()
        except BaseException:
            # In the middle of a message, say by Ctrl-C: what the server had
            # sent is asked for again.  It has not vanished.
            if not self.is_waiting:
                self._cut()
                self._was_there = False
            raise

    def _connect(self) -> None:
        self._socket = socket = self._context.socket(zmq.DEALER)
        self._configure(socket)
        self._monitor = socket.get_monitor_socket(
            zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_AUTH)
        self._poller = zmq.Poller()
        for source in (socket, self._monitor, self._wake_up.descriptor):
            self._poller.register(source, zmq.POLLIN)
        socket.connect(self.options.address)
        self._send(socket, {
            'type': 'hello', 'version': VERSION, 'client': self.client,
            'sources': self.options.sources,
            'examples': self.options.examples, 'hwm': self.options.hwm,
            'rank': self.options.rank,
            'shared_memory': self.options.shared_memory})

    def _cut(self) -> None:
        """Close the socket and forget what the server had sent."""
        if self._monitor is not None:
            self._socket.disable_monitor()
            self._monitor.close()
        if self._socket is not None:
            self._socket.close()
        self._socket = self._monitor = self._poller = None
        self._next_try = time.monotonic() + _RETRY
        self._lose()

    def _listen(self, timeout: float) -> bool:
        """Take in what comes; return whether the server stays."""
        self.is_waiting = timeout > 0
        self._last_look = time.monotonic()
        ready = dict(self._poller.poll(timeout * 1000))
        self.is_waiting = False
        if self._socket in ready and not self._receive(self._socket):
            return False
        if self._monitor in ready:
            event = recv_monitor_message(self._monitor)['event']
            if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                self._refuse('the server does not accept this key')
            return False
        if self._wake_up.descriptor in ready:
            self._wake_up.clear()
            self._flush()
        return True

    def _configure(self, socket: Any) -> None:
        socket.linger = 200
        # The server sends no more than it was given room for.
        socket.rcvhwm = socket.sndhwm = 0
        socket.reconnect_ivl, socket.reconnect_ivl_max = 50, 500
        socket.heartbeat_ivl, socket.heartbeat_timeout = _HEARTBEAT
        host = self.options.address.partition('//')[2].rpartition(':')[0]
        socket.ipv6 = ':' in host
        if self.options.curve is not None:
            from fuel.wire.curve import protect_client
            protect_client(socket, self.options.curve)

    def _flush(self) -> None:
        while self._outgoing and self.welcome is not None:
            self._send(self._socket, self._outgoing.popleft())

    @fault_point('client send')
    def _send(self, socket: Any, fields: dict[str, Any]) -> None:
        with suppress(zmq.Again):
            send_now(socket, [pack_header(fields)])

    def _receive(self, socket: Any) -> bool:
        """Take in messages; return whether the server stays."""
        for header, *frames in receive_all(socket):
            try:
                fields = unpack_header(bytes(header))
                if not self._handle(socket, fields, frames):
                    return False
            except LostError:
                return False
            except WireError as error:
                self._refuse(f'not a Fuel server: {error}')
                return False
        return True

    def _refuse(self, text: str) -> None:
        self.refusal = ServerError(
            f'the server at {self.options.address}: {text}')

    @fault_point('client receive')
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
            self._stacks = get_field(fields, 'text', str)
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
        self._outgoing.clear()
        self.leases = Leases(self._most_lent)
        self.generation += 1
        self._was_there = True
        self.refusal = None
        self.welcome = fields

    def _take_delivery(self, kind: str, fields: dict[str, Any],
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
        """Forget what the server that is gone had sent."""
        if self.welcome is not None:
            self._since = time.monotonic()
        self.welcome = None
        self.joined = None
        self.queue.clear()
        self._outgoing.clear()
