"""Receives and sends the server's messages."""
from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import zmq

from fuel.export.prometheus import Sample
from fuel.server.connections import ClientConnection, produces_examples
from fuel.server.journal import Journal
from fuel.server.listener import Listener
from fuel.server.pipeline import Pipeline
from fuel.server.scheduler import Scheduler
from fuel.server.status import clients_of, samples_of_server
from fuel.typing import StreamLike
from fuel.utils.seams import fault_point
from fuel.wire import Limits, WireError, pack_header, unpack_header
from fuel.wire.header import VERSION, Fields, get_field
from fuel.wire.messages import ClientStatus, receive_all, send_now

log = logging.getLogger(__name__)

# Clients' messages are short.
CLIENT_LIMITS = Limits(header=1 << 22, frames=0, total=0)
# Seconds between checks whether clients are still connected.
PING = 0.3
# Maximum number of seconds for which clients' messages are read before a batch
# is made.
_RECEIVE_SECONDS = 0.01
# Seconds within which the last messages of a client that is gone are read.
_LAST_MESSAGES_SECONDS = 1.0


class Service:
    """Answers the clients of one server.  One thread at a time may call it."""

    listener: Listener

    def __init__(self, data_stream: StreamLike, hwm: int, sharing: str,
                 num_clients: int, hold: float, max_bytes: int) -> None:
        self.data_stream = data_stream
        self.hwm = hwm
        self.sharing = sharing
        self.num_clients = num_clients
        self.connections: dict[bytes, ClientConnection] = {}
        self.pipeline = Pipeline(data_stream)
        self.scheduler = scheduler = Scheduler(
            self.pipeline, self.connections, self.send, self.ping, sharing,
            num_clients, hold, max_bytes)
        self._admission = scheduler.admission
        self.counts = scheduler.counts
        self._handlers: dict[
            str, Callable[[ClientConnection, Fields], None]] = {
            'ready': self._on_ready, 'join': scheduler.on_join,
            'handed': scheduler.on_delivered, 'leave': scheduler.on_leave,
            'give': scheduler.on_returned, 'waiting': scheduler.on_waiting,
            'measure': scheduler.on_measure, 'stacks': self._on_stacks,
            'bye': self._on_bye}
        self._next_ping = 0.0

    def open(self, listener: Listener, journal: Journal | None) -> None:
        """Set the listener to read from, and the journal to record in."""
        self.listener = listener
        if journal is not None:
            self.scheduler.use_journal(journal)

    def handle_messages(self) -> None:
        """Handle the messages that have arrived, and advance the epoch."""
        now = time.monotonic()
        is_due = now > self._next_ping
        if is_due:
            self._next_ping = now + PING
            self.ping()
        self._remove_gone(self._receive(), now)
        if is_due:
            self.scheduler.expire()
            self.listener.rejected.read_events()
        self.scheduler.advance()

    def close(self) -> None:
        """Say goodbye to the clients, and close the sockets."""
        try:
            self.listener.unbind()
            for connection in self.connections.values():
                self.send(connection, {'type': 'bye'})
        finally:
            self.listener.close()
            if self.scheduler.journal is not None:
                self.scheduler.journal.close()

    def _receive(self) -> bool:
        """Handle the clients' messages for a limited time, since more may
        come.

        Returns: whether all messages that have come were read.
        """
        size = 0
        deadline = time.monotonic() + _RECEIVE_SECONDS
        for parts in receive_all(self.listener.router):
            size += sum(map(len, parts))
            self._read(parts)
            if time.monotonic() > deadline:
                self.listener.credit(size)
                return False
        # Reset the credit even if nothing came: the previous call may have
        # read all messages.
        self.listener.reset()
        return True

    def _read(self, parts: list[zmq.Frame]) -> None:
        """Handle one message; count it if it is invalid."""
        try:
            if len(parts) != 2:
                raise WireError(f'a message has 2 parts, got {len(parts)}')
            fields = unpack_header(parts[1].bytes, CLIENT_LIMITS)
            self._handle(parts[0].bytes, fields, parts[1])
        except (WireError, TypeError, ValueError, LookupError) as error:
            # No message of one client may end the service of the others.
            self.listener.rejected.reject_message(error)

    @fault_point('server receive')
    def _handle(self, identity: bytes, fields: Fields,
                frame: zmq.Frame) -> None:
        kind = get_field(fields, 'type', str)
        if kind == 'hello':
            self._greet(identity, fields, frame)
            return
        if kind == 'status':
            self._post(identity, {'type': 'status',
                                  'status': self.status()})
            return
        connection = self.connections.get(identity)
        if connection is None:
            raise WireError(f'{kind[:20]!r} before a hello')
        handler = self._handlers.get(kind)
        if handler is None:
            raise WireError(f'unknown message {kind[:20]!r}')
        handler(connection, fields)

    def _greet(self, identity: bytes, fields: Fields,
               frame: zmq.Frame) -> None:
        """Answer the first message of a client."""
        connection = ClientConnection(
            identity, fields, self.hwm, self.scheduler.clock)
        if self.listener.keys is not None:
            connection.key = str(frame.get('User-Id')).encode()
        refusal = connection.check(
            fields, self.data_stream, self.sharing, self.num_clients)
        if refusal:
            self._post(identity, {'type': 'refuse', 'error': refusal})
            return
        for other in list(self.connections.values()):
            if other.client == connection.client \
                    or other.identity == identity:
                if other.identity != identity:
                    # If that client still runs, it must connect again, and not
                    # wait.
                    self.send(other, {'type': 'bye'})
                self._lose(other)
        self.connections[identity] = connection
        self.send(connection, {
            'type': 'welcome', 'version': VERSION, 'run': self._admission.run,
            'sources': list(self.data_stream.sources),
            'examples': produces_examples(self.data_stream),
            'axis_labels': _labels(self.data_stream),
            'sharing': self.sharing, 'probe': connection.make_probe()})

    def _on_ready(self, connection: ClientConnection,
                  fields: Fields) -> None:
        connection.check_proof(get_field(fields, 'proof', str, ''))

    def _on_stacks(self, connection: ClientConnection, _: Fields) -> None:
        self.send(connection, {'type': 'stacks',
                               'text': self.pipeline.stack(),
                               'wait': self._admission.describe_wait()})

    def _on_bye(self, connection: ClientConnection, _: Fields) -> None:
        self._lose(connection, has_left=True)

    @fault_point('server send')
    def send(self, connection: ClientConnection, fields: Fields,
             frames: Sequence[object] = ()) -> None:
        """Send a message to a client."""
        error = self._post(connection.identity, fields, frames)
        if error:
            # The client misses a message, so later messages are useless to it.
            connection.gone_since = connection.gone_since or time.monotonic()
            connection.is_deaf = error == zmq.EAGAIN

    def _post(self, identity: bytes, fields: Fields,
              frames: Sequence[object] = ()) -> int:
        """Send a message; return the error number if the receiver is gone or
        does not read, else 0."""
        try:
            send_now(self.listener.router,
                     [identity, pack_header(fields), *frames],
                     copy=not frames)
        except zmq.ZMQError as error:
            if error.errno == zmq.EAGAIN:
                self.listener.rejected.reject_message(RuntimeError(
                    'a peer does not read its messages'))
            elif error.errno != zmq.EHOSTUNREACH:
                raise
            return int(error.errno)
        return 0

    def ping(self) -> None:
        """Send each client a message, to find out which clients are gone.

        The service removes them when it has read all their messages.
        """
        keys = self.listener.keys
        allowed = None if keys is None else keys.clients.current()
        for connection in list(self.connections.values()):
            if allowed is not None and connection.key not in allowed:
                self._post(connection.identity, {
                    'type': 'refuse',
                    'error': 'the server does not accept this key any more'})
                self._lose(connection)
                continue
            self.send(connection, {'type': 'ping'})
            if connection.gone_since:
                continue
            if self.scheduler.is_unresponsive(connection):
                log.warning('client %s does not answer; the others get its '
                            'batches', connection.client)
                self.send(connection, {'type': 'bye'})
                self._lose(connection, hold=False)

    def _remove_gone(self, is_all_read: bool, now: float) -> None:
        """Remove the clients that are gone and did not say goodbye.

        If messages keep coming, the service waits a second for the last
        messages of such a client.  It does not wait for the successor of a
        client that does not read its messages.
        """
        for connection in list(self.connections.values()):
            if connection.gone_since and (
                    is_all_read or connection.is_deaf
                    or now - connection.gone_since > _LAST_MESSAGES_SECONDS):
                self._lose(connection, hold=not connection.is_deaf)

    def _lose(self, connection: ClientConnection, has_left: bool = False,
              hold: bool = True) -> None:
        """Remove a client; other clients get its undelivered batches."""
        # Remove the client here first, so that nothing is sent to it any more.
        self.connections.pop(connection.identity, None)
        self.scheduler.forget_measures(connection)
        self.scheduler.remove(connection, has_left, hold)
        connection.close(self.scheduler.pool)

    def status(self) -> dict[str, Any]:
        """Return the status that ``fuel-server --status`` shows."""
        return {
            **self._numbers(), 'address': self.listener.address,
            'pid': os.getpid(),
            'stages': [asdict(stage) for stage in self.pipeline.stages()],
            'connections': [one._asdict() for one in self._clients()]}

    def samples(self) -> Iterator[Sample]:
        """Yield the samples for Prometheus.  Any thread may call this."""
        yield from samples_of_server(
            self._numbers(), self._clients(), self.data_stream)

    def _clients(self) -> Iterator[ClientStatus]:
        return clients_of(
            list(self.connections.values()), self._admission.epoch)

    def _numbers(self) -> dict[str, Any]:
        """Return the counts, and the reason why clients wait.  Any thread may
        call this."""
        epoch = self._admission.epoch
        waited = self.scheduler.waited
        return {
            **self.counts,
            'clients': len(self.connections),
            'local clients': sum(connection.is_local for connection
                                 in list(self.connections.values())),
            'epoch': 0 if epoch is None else epoch.ledger.number,
            'queue': 0 if epoch is None else sum(
                len(member.account.pending)
                for member in list(epoch.members.values())),
            'waits for clients': self._admission.describe_wait() or 'no',
            'seconds waiting on the pipeline': waited['pipeline'],
            'seconds waiting on clients': waited['clients']}


def _labels(stream: StreamLike) -> list[Any] | None:
    """Return the axis labels of each source, in the order of the sources."""
    labels = getattr(stream, 'axis_labels', None)
    if labels is None:
        return None
    found = [labels.get(source) for source in stream.sources]
    return [list(label) if isinstance(label, (tuple, list)) else label
            for label in found]
