"""The server: sockets at the edge, one thread for them."""
from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

import zmq

from fuel import config
from fuel.server.admission import Admission
from fuel.server.connections import ClientConnection, kind_of
from fuel.server.journal import Journal, default_path
from fuel.server.ledger import RANK, SHARINGS
from fuel.server.listener import Listener
from fuel.server.pipeline import Pipeline
from fuel.server.scheduler import Scheduler
from fuel.typing import State, StreamLike
from fuel.utils.checks import positive
from fuel.utils.seams import fault_point
from fuel.wire import Limits, WireError, pack_header, unpack_header
from fuel.wire.header import VERSION, Fields, get_field
from fuel.wire.messages import receive_all, send_now
from fuel.wire.wakeup import WakeUp, check_platform

log = logging.getLogger(__name__)

# A client has little to say.
CLIENT_LIMITS = Limits(header=1 << 22, frames=0, total=0)
# Seconds between looks at whether clients are still there.
_PING = 0.3
# Seconds that the pipeline may take before another thread sees to clients.
_GLANCE = 0.05


class Server:
    """Serves the batches of a stream to other processes.

    Parameters
    ----------
    port : int, optional
        Defaults to 5557; 0 takes a free one, see :attr:`address`.
    hwm : int, optional
        How many batches each client may have and not have delivered to its
        user.  The smaller of this and the client's own counts.  Defaults to
        10.  For a single client one more is made and waits here.
    host : str, optional
        Where to listen.  Defaults to ``'127.0.0.1'``: only processes of
        this host can connect.  ``'*'`` means every interface.
    sharing : str, optional
        What several clients get: ``'split'``, each batch goes to exactly
        one of them (the default); ``'all'``, each gets every batch;
        ``'rank'``, batch `i` goes to the client whose rank is ``i %
        num_clients``.
    num_clients : int, optional
        How many clients an epoch waits for before it begins.  Defaults to
        one; required with ``'rank'``.
    max_bytes : int, optional
        Shared memory for clients on this host.  Defaults to
        ``config.shared_memory_bytes``, 1 GiB.
    curve : str or path, optional
        Directory of keys made by ``fuel-server keys``: then clients must
        have one, and everything is encrypted.
    journal : str, path or bool, optional
        The file in which the server records which client was sent, and
        delivered, which batch, so that the next server at this port can
        continue if this one is killed; False for none.  Defaults to None: a
        file named after host and port in the directory
        ``config.server_journal``, none with port 0.
    reconnect : float, optional
        Seconds for which the batches of a client that vanished are held for
        its successor, before other clients get them.  Defaults to
        ``config.reconnect_timeout``, 30.

    Attributes
    ----------
    address : str
        Such as ``'tcp://127.0.0.1:5557'``.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream, ServerDataStream
    >>> stream = DataStream(IndexableDataset([1, 2, 3]),
    ...                     iteration_scheme=SequentialScheme(3, 2))
    >>> with Server(stream, port=0) as server:
    ...     with ServerDataStream(('data',), port=server.port) as client:
    ...         for batch, in client.get_epoch_iterator():
    ...             print(batch.tolist())
    [1, 2]
    [3]
    """

    def __init__(self, data_stream: StreamLike, port: int = 5557,
                 hwm: int = 10, *, host: str = '127.0.0.1',
                 sharing: str = 'split', num_clients: int | None = None,
                 max_bytes: int | None = None,
                 curve: str | os.PathLike[str] | None = None,
                 journal: str | os.PathLike[str] | bool | None = None,
                 reconnect: float | None = None) -> None:
        check_platform('the server')
        if sharing not in SHARINGS:
            raise ValueError(f'sharing must be one of {SHARINGS}, got '
                             f'{sharing!r}')
        if sharing == RANK and num_clients is None:
            raise ValueError("sharing='rank' needs num_clients")
        if journal is True:
            raise ValueError('journal must be a path, False or None, got '
                             'True')
        self.data_stream = data_stream
        self.hwm = _positive('hwm', hwm)
        self.sharing = sharing
        self.num_clients = 1 if num_clients is None else _positive(
            'num_clients', num_clients)
        self.address = ''
        self._host, self._wanted_port = host, port
        self._curve = curve
        self._journal = journal
        self._connections: dict[bytes, ClientConnection] = {}
        self._wake_up = WakeUp()
        self._pipeline = Pipeline(data_stream)
        self._admission = Admission(
            self._check_state, self._ping, sharing, self.num_clients)
        self.scheduler = scheduler = Scheduler(
            self._pipeline, self._admission, self._connections, self._send,
            config.reconnect_timeout if reconnect is None else reconnect,
            config.shared_memory_bytes if max_bytes is None else max_bytes)
        self._handlers: dict[
            str, Callable[[ClientConnection, Fields], None]] = {
            'ready': self._on_ready, 'join': self._admission.on_join,
            'handed': scheduler.on_delivered, 'leave': scheduler.on_leave,
            'give': scheduler.on_returned, 'waiting': scheduler.on_waiting,
            'stacks': self._on_stacks, 'bye': self._on_bye}
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        # Who holds this uses the sockets, and all but the pipeline.
        self._turn = threading.Lock()
        self._busy_since = 0.0
        self._next_ping = 0.0
        self._thread: threading.Thread | None = None
        self._stand_in: threading.Thread | None = None

    def _check_state(self, state: State) -> None:
        check = getattr(self.data_stream, '_check_state', None)
        if check is not None:
            check(state)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of batches, bytes, errors and so on (dict)."""
        return self.scheduler.counts

    @property
    def port(self) -> int:
        """The port on which the server listens (int)."""
        return int(self.address.rpartition(':')[2])

    def start(self) -> None:
        """Bind the socket and serve in the background.

        Raises
        ------
        zmq.ZMQError
            If the port stays busy for two seconds, or the host is not one
            of this machine's.
        OSError
            If there are no keys in the directory `curve`.
        fuel.exceptions.ServerError
            If the journal cannot be written.
        """
        self._listener = listener = Listener(
            self._host, self._wanted_port, self._curve, self.counts,
            CLIENT_LIMITS.header)
        try:
            self._open_journal()
        except BaseException:
            listener.close(linger=0)
            listener.end()
            raise
        self.address = listener.address
        self._poller = listener.make_poller(self._wake_up)
        self._thread = threading.Thread(
            target=self._serve, name='fuel-server', daemon=True)
        self._thread.start()
        self._stand_in = threading.Thread(
            target=self._serve_while_busy, name='fuel-stand-in', daemon=True)
        self._stand_in.start()

    def _open_journal(self) -> None:
        path = self._journal
        if path is None:
            path = default_path(
                config.server_journal, self._host, self._wanted_port)
        if path is not None and not isinstance(path, bool):
            self._admission.journal = Journal(path)

    def stop(self, timeout: float = 1.0) -> None:
        """Stop listening at once, and end; harmless if stopped before.

        Parameters
        ----------
        timeout : float, optional
            Seconds that the pipeline has for the batch it is making.
        """
        self._stopped.set()
        self._wake_up()
        if self._thread is not None and self._stand_in is not None:
            self._stand_in.join()
            self._thread.join(timeout)
            self._thread = self._stand_in = None
            self._listener.end()
            self._wake_up.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the server ends.

        Parameters
        ----------
        timeout : float, optional
            Seconds.  Defaults to None: without limit.

        Returns
        -------
        bool
            Whether it has ended.
        """
        ended = self._ended.wait(timeout)
        if self._failure is not None:
            raise self._failure
        return ended

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # One thread makes the batches and, between them, talks to the clients:
    # passing each message to another would cost more than it takes.
    # When a batch takes long, a second thread talks to them meanwhile.

    def _serve(self) -> None:
        """Make batches and talk to the clients until stopped."""
        try:
            with self._turn:
                while not self._stopped.is_set():
                    self._talk(wait=False)
                    if self._pipeline.is_idle():
                        self._talk(wait=True)
                    else:
                        self._make()
        except BaseException as error:  # noqa: BLE001 - raised by wait()
            self._fail(error)
        finally:
            self._pipeline.close()

    def _make(self) -> None:
        """Let the pipeline make something, without the sockets."""
        self._busy_since = time.monotonic()
        self._turn.release()
        try:
            result = self._pipeline.make()
        finally:
            self._busy_since = 0.0
            if not self._turn.acquire(blocking=False):
                self._wake_up()
                self._turn.acquire()
        if not self._stopped.is_set():
            self.scheduler.take(result)

    def _serve_while_busy(self) -> None:
        """Talk to the clients while a batch takes long; end the service."""
        while not self._stopped.wait(_GLANCE):
            busy_since = self._busy_since
            if busy_since and time.monotonic() - busy_since > _GLANCE:
                try:
                    with self._turn:
                        while self._busy_since and not self._stopped.is_set():
                            self._talk(wait=True)
                except BaseException as error:  # noqa: BLE001 - as above
                    self._fail(error)
        try:
            with self._turn:
                self._close()
        except BaseException as error:  # noqa: BLE001 - as above
            self._fail(error)
        finally:
            self._ended.set()

    def _fail(self, error: BaseException) -> None:
        log.error('the server has failed', exc_info=error)
        if self._failure is None:
            self._failure = error
        self._stopped.set()
        self._wake_up()

    # Everything below is called by the thread whose turn it is.

    def _talk(self, wait: bool) -> None:
        """Read what clients sent, and do what can be done."""
        if wait:
            ready = dict(self._poller.poll(int(_PING * 1000)))
            if self._wake_up.descriptor in ready:
                self._wake_up.clear()
            if self._listener.rejected.monitor in ready:
                self._listener.rejected.read_events()
        self._receive()
        now = time.monotonic()
        if now > self._next_ping:
            self._next_ping = now + _PING
            self._ping()
            self.scheduler.expire()
            self._listener.rejected.read_events()
        self.scheduler.advance()

    def _close(self) -> None:
        try:
            self._listener.unbind()
            for connection in self._connections.values():
                self._send(connection, {'type': 'bye'})
        finally:
            self._listener.close()
            if self._admission.journal is not None:
                self._admission.journal.close()

    def _receive(self) -> None:
        for parts in receive_all(self._listener.router):
            try:
                if len(parts) != 2:
                    raise WireError(
                        f'a message has 2 parts, got {len(parts)}')
                fields = unpack_header(parts[1].bytes, CLIENT_LIMITS)
                self._handle(parts[0].bytes, fields, parts[1])
            except (WireError, TypeError, ValueError, LookupError) as error:
                # Nobody's bytes may end the service of the others.
                self._listener.rejected.reject_message(error)

    @fault_point('server receive')
    def _handle(self, identity: bytes, fields: Fields,
                frame: zmq.Frame) -> None:
        kind = get_field(fields, 'type', str)
        if kind == 'hello':
            self._greet(identity, fields, frame)
            return
        if kind == 'status':
            self._post(identity, {'type': 'status',
                                  'status': self._status()})
            return
        connection = self._connections.get(identity)
        if connection is None:
            raise WireError(f'{kind[:20]!r} before a hello')
        handler = self._handlers.get(kind)
        if handler is None:
            raise WireError(f'unknown message {kind[:20]!r}')
        handler(connection, fields)

    def _greet(self, identity: bytes, fields: Fields,
               frame: zmq.Frame) -> None:
        """Answer the first message of a client."""
        connection = ClientConnection(identity, fields, self.hwm)
        if self._listener.keys is not None:
            connection.key = str(frame.get('User-Id')).encode()
        refusal = connection.check(
            fields, self.data_stream, self.sharing, self.num_clients)
        if refusal:
            self._post(identity, {'type': 'refuse', 'error': refusal})
            return
        for other in list(self._connections.values()):
            if other.client == connection.client \
                    or other.identity == identity:
                self._lose(other)
        self._connections[identity] = connection
        self._send(connection, {
            'type': 'welcome', 'version': VERSION, 'run': self._admission.run,
            'sources': list(self.data_stream.sources),
            'examples': kind_of(self.data_stream),
            'axis_labels': _labels(self.data_stream),
            'sharing': self.sharing, 'probe': connection.make_probe()})

    def _on_ready(self, connection: ClientConnection,
                  fields: Fields) -> None:
        connection.check_proof(get_field(fields, 'proof', str, ''))

    def _on_stacks(self, connection: ClientConnection, _: Fields) -> None:
        self._send(connection, {'type': 'stacks',
                                'text': self._pipeline.stack()})

    def _on_bye(self, connection: ClientConnection, _: Fields) -> None:
        self._lose(connection, has_left=True)

    @fault_point('server send')
    def _send(self, connection: ClientConnection, fields: Fields,
              frames: Sequence[object] = ()) -> None:
        connection.is_gone = not self._post(
            connection.identity, fields, frames)

    def _post(self, identity: bytes, fields: Fields,
              frames: Sequence[object] = ()) -> bool:
        """Send a message; return whether there is somebody to get it."""
        try:
            send_now(self._listener.router,
                     [identity, pack_header(fields), *frames],
                     copy=not frames)
        except zmq.ZMQError as error:
            if error.errno not in (zmq.EHOSTUNREACH, zmq.EAGAIN):
                raise
            return bool(error.errno == zmq.EAGAIN)
        return True

    def _ping(self) -> None:
        """Find out which clients are gone: sending to them fails."""
        keys = self._listener.keys
        allowed = None if keys is None else keys.clients.current()
        for connection in list(self._connections.values()):
            if allowed is not None and connection.key not in allowed:
                self._post(connection.identity, {
                    'type': 'refuse',
                    'error': 'the server does not accept this key any more'})
                self._lose(connection)
                continue
            self._send(connection, {'type': 'ping'})
            if connection.is_gone:
                self._lose(connection)
            elif self.scheduler.is_mute(connection):
                log.warning('client %s does not answer; the others get its '
                            'batches', connection.client)
                self._send(connection, {'type': 'bye'})
                self._lose(connection, hold=False)

    def _lose(self, connection: ClientConnection, has_left: bool = False,
              hold: bool = True) -> None:
        """Forget a client; the others get what it had not delivered."""
        # First, so that nothing is sent to it any more.
        self._connections.pop(connection.identity, None)
        self.scheduler.remove(connection, has_left, hold)
        connection.close(self.scheduler.pool)

    def _status(self) -> dict[str, Any]:
        epoch = self.scheduler.epoch
        waited = self.scheduler.waited
        return {
            **self.counts, 'address': self.address, 'pid': os.getpid(),
            'clients': len(self._connections),
            'local clients': sum(connection.is_local for connection
                                 in self._connections.values()),
            'epoch': 0 if epoch is None else epoch.ledger.number,
            'queue': 0 if epoch is None else sum(
                len(member.account.pending)
                for member in epoch.members.values()),
            'seconds waiting on the pipeline': waited['pipeline'],
            'seconds waiting on clients': waited['clients']}


def _positive(name: str, value: object) -> int:
    """Return a positive integer; anything else is a ValueError."""
    try:
        return positive(name, value)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _labels(stream: StreamLike) -> list[Any] | None:
    """Return the axis labels, by place of the source."""
    labels = getattr(stream, 'axis_labels', None)
    if labels is None:
        return None
    found = [labels.get(source) for source in stream.sources]
    return [list(label) if isinstance(label, (tuple, list)) else label
            for label in found]
