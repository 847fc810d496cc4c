"""The socket on which a server listens, and the relay in front of it."""
from __future__ import annotations

import errno
import logging
import os
import secrets
import socket
import sys
import threading
import time
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from fuel.kernels.relay import Relay
from fuel.wire.messages import HEARTBEAT
from fuel.wire.wakeup import WakeUp

log = logging.getLogger(__name__)

# Seconds to wait for a busy port.
_BUSY = 2.0
# Maximum number of messages, not counting batches, that may wait for a peer,
# or for the server.
_MOST_WAITING = 200
# Maximum number of bytes of the clients' messages that may wait for the
# server. It is larger than the longest message.
_MOST_UNREAD = 1 << 24
# Maximum number of clients at a time; number of descriptors for each client;
# and number of descriptors that the process needs for other purposes.
_MOST_CLIENTS = 1000
_DESCRIPTORS = 4
_RESERVED = 256
# Seconds between two lines of the log about rejected peers.
_LOG_SECONDS = 1.0


class RejectedPeers:
    """Counts messages and connections that do not follow the protocol.

    `monitor`: socket that is readable when :meth:`read_events` has events to
        read.
    """

    def __init__(self, router: zmq.Socket[bytes],
                 counts: dict[str, int], *, has_keys: bool) -> None:
        self._has_keys = has_keys
        self._router = router
        self._counts = counts
        self.monitor = router.get_monitor_socket(
            zmq.EVENT_ACCEPTED | zmq.EVENT_HANDSHAKE_SUCCEEDED
            | zmq.EVENT_DISCONNECTED)
        # Connections without a handshake yet. The event of a handshake does
        # not name its connection, so the newest one is removed, which may be a
        # different connection.
        self._pending: list[int] = []
        self._next_line = 0.0
        self._unlogged = 0

    def read_events(self) -> None:
        """Read the monitor's events, and count connections without a
        handshake."""
        while self.monitor.poll(0):
            event = recv_monitor_message(self.monitor)
            if event['event'] == zmq.EVENT_ACCEPTED:
                self._pending.append(event['value'])
            elif event['event'] == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                del self._pending[-1:]
            elif event['value'] in self._pending:
                self._pending.remove(event['value'])
                self._drop('connections', 'it does not speak ZeroMQ as '
                           'clients of this Fuel do' + (
                               ', or has no keys (curve), which this server '
                               'asks for' if self._has_keys else
                               ', or has keys (curve), which this server '
                               'does not have'))

    def reject_message(self, error: Exception) -> None:
        """Count a message that does not follow the protocol."""
        self._drop('messages', error)

    def _drop(self, what: str, why: object) -> None:
        self._counts[f'dropped {what}'] += 1
        now = time.monotonic()
        if now < self._next_line:
            self._unlogged += 1
            return
        self._next_line = now + _LOG_SECONDS
        log.warning('dropped a %s: %s (%d others since the last line)',
                    what[:-1], why, self._unlogged)
        self._unlogged = 0

    def close(self) -> None:
        """Close the monitor, before the socket itself is closed."""
        self._router.disable_monitor()
        self.monitor.close()


class Listener:
    """A ROUTER socket, with encryption and a count of rejected peers.

    Clients connect to a relay.  The relay passes their messages on to this
    socket, no faster than the server reads them.  The socket itself must not
    listen at the port.  With a limited queue, libzmq 4.3.5 aborts the process
    if a peer's messages fill the queue and the peer disconnects.  With an
    unlimited queue, messages may fill the memory while a stage holds the
    interpreter.

    `address`: such as ``'tcp://127.0.0.1:5557'``.
    """

    def __init__(self, host: str, port: int,
                 curve: str | os.PathLike[str] | None,
                 counts: dict[str, int], largest: int, hwm: int) -> None:
        self.keys = None
        if curve is not None:
            from fuel.wire.curve import ServerKeys
            self.keys = ServerKeys(curve)
        self._context: zmq.Context[Any] = zmq.Context()
        self.router: zmq.Socket[bytes] = self._context.socket(zmq.ROUTER)
        self.rejected = RejectedPeers(
            self.router, counts, has_keys=self.keys is not None)
        self._relay: Relay | None = None
        self._thread: threading.Thread | None = None
        try:
            self._configure(largest, hwm)
            with self._bind(host, port) as listening:
                self._start_relay(listening)
        except BaseException:
            self.close(linger=0)
            self.end()
            raise

    def _configure(self, largest: int, hwm: int) -> None:
        router = self.router
        router.linger = 1000
        router.router_mandatory = 1
        # If two peers have the same name, it belongs to the later one.
        # Otherwise the later one's messages would never be read.
        router.router_handover = 1
        # Limits of the messages to, and from, one peer: far more than a
        # client leaves unread, which includes up to `hwm` batches.
        router.sndhwm = router.rcvhwm = _MOST_WAITING + 2 * hwm
        router.maxmsgsize = largest
        router.heartbeat_ivl, router.heartbeat_timeout = HEARTBEAT
        router.heartbeat_ttl = HEARTBEAT[1]
        if self.keys is not None:
            self.keys.protect(self._context, router)

    def _bind(self, host: str, port: int) -> socket.socket:
        """Return a TCP socket that listens at the port; wait up to `_BUSY`
        seconds until the port is free."""
        deadline = time.monotonic() + _BUSY
        while True:
            try:
                return self._listen(host, port)
            except (OSError, zmq.ZMQError) as error:
                if error.errno == errno.EADDRINUSE \
                        and time.monotonic() <= deadline:
                    time.sleep(0.05)
                    continue
                why = ('' if error.errno != errno.EADDRINUSE else
                       ': another program listens there, perhaps another '
                       'server')
                raise zmq.ZMQError(
                    error.errno, f'cannot listen at tcp://{host}:'
                    f'{port or "*"}: {error.strerror}{why}') from None

    def _listen(self, host: str, port: int) -> socket.socket:
        # libzmq finds the address of an interface by its name.
        with self._context.socket(zmq.ROUTER) as resolver:
            resolver.bind(f'tcp://{host}:*')
            found = resolver.getsockopt_string(zmq.LAST_ENDPOINT)
        interface = found.rpartition(':')[0]
        listening = socket.socket()
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((interface.removeprefix('tcp://'), port))
            listening.listen(_MOST_CLIENTS)
        except BaseException:
            listening.close()
            raise
        self.address = (f'{interface}:{listening.getsockname()[1]}'
                        ).replace('//0.0.0.0:', '//*:')
        return listening

    def _start_relay(self, listening: socket.socket) -> None:
        """Bind the router at an address for the relay alone, and start the
        relay."""
        router = self.router
        router.backlog = _MOST_CLIENTS
        if sys.platform == 'linux':
            # An abstract address leaves no file if the process is killed. Any
            # process may connect to it, but only this one is accepted.
            name = f'fuel-{secrets.token_hex(16)}'
            router.setsockopt(zmq.IPC_FILTER_PID, os.getpid())
            router.bind(f'ipc://@{name}')
            target = b'\0' + name.encode()
        else:
            # The socket is in a directory that libzmq makes for this user
            # alone.
            router.bind('ipc://*')
            target = router.getsockopt(zmq.LAST_ENDPOINT).rstrip(
                b'\0').removeprefix(b'ipc://')
        self._relay = Relay(
            listening.detach(), target, _most_clients(), _MOST_UNREAD)
        self._thread = threading.Thread(
            target=self._relay.run, name='fuel-relay', daemon=True)
        self._thread.start()

    def make_poller(self, wake_up: WakeUp) -> zmq.Poller:
        """Return a poller of the socket, its monitor and a wake-up pipe."""
        poller = zmq.Poller()
        for source in (self.router, self.rejected.monitor,
                       wake_up.descriptor):
            poller.register(source, zmq.POLLIN)
        return poller

    def credit(self, count: int) -> None:
        """Let the relay pass on `count` more bytes, after as many were
        read."""
        if self._relay is not None:
            self._relay.credit(count)

    def reset(self) -> None:
        """Restore the relay's full credit, after all messages were read."""
        if self._relay is not None:
            self._relay.reset()

    def unbind(self) -> None:
        """Free the port, and keep the clients' connections."""
        if self._relay is not None:
            while not self._relay.unbind():
                time.sleep(0.001)

    def close(self, linger: int | None = None) -> None:
        """Close the socket; closing again does nothing."""
        if not self.router.closed:
            self.rejected.close()
            self.router.close(linger)
            if self.keys is not None:
                self.keys.stop()

    def end(self) -> None:
        """Wait until all messages are sent, and stop the relay."""
        self._context.term()
        if self._relay is not None and self._thread is not None:
            self._relay.stop()
            self._thread.join()
            self._relay = self._thread = None


def _most_clients() -> int:
    """Return the greatest number of clients that the limit of open files
    allows."""
    # Windows has no such module, and Fuel's server does not run there.
    import resource
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST_CLIENTS
    return min(_MOST_CLIENTS, max(
        _DESCRIPTORS, (files - _RESERVED) // _DESCRIPTORS))
