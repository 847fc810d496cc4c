"""The server: sockets at the edge, one thread for them."""
from __future__ import annotations

import errno
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any, Self

import zmq

from fuel import config
from fuel.server.connections import Session, kind_of
from fuel.server.ledger import RANK, SHARINGS
from fuel.server.pipeline import Pipeline
from fuel.server.rejected import Strangers
from fuel.server.scheduler import Conductor
from fuel.utils.checks import positive
from fuel.wire import Limits, WireError, pack_header, unpack_header
from fuel.wire.header import VERSION, get_field
from fuel.wire.messages import receive_all, send_now
from fuel.wire.wakeup import WakeUp

log = logging.getLogger(__name__)

# A client has little to say.
CLIENT_LIMITS = Limits(header=1 << 22, frames=0, total=0)
# Seconds between looks at whether clients are still there.
_PING = 0.3
# Milliseconds without a sign of life after which a connection is cut.
HEARTBEAT = 200, 800
# Seconds that the pipeline may take before another thread sees to clients.
_GLANCE = 0.05
# Seconds that a port may be busy.
_BUSY = 2.0


class Server:
    """Serves the batches of a stream to other processes.

    Parameters
    ----------
    data_stream : AbstractDataStream
    port : int, optional
        Defaults to 5557; 0 takes a free one, see :attr:`address`.
    hwm : int, optional
        How many batches each client may have and not have handed out.  The
        smaller of this and the client's own counts.  Defaults to 10.  For
        a single client one more is made and waits here.
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

    def __init__(self, data_stream: Any, port: int = 5557, hwm: int = 10, *,
                 host: str = '127.0.0.1', sharing: str = 'split',
                 num_clients: int | None = None,
                 max_bytes: int | None = None, curve: Any = None) -> None:
        if sharing not in SHARINGS:
            raise ValueError(f'sharing must be one of {SHARINGS}, got '
                             f'{sharing!r}')
        if sharing == RANK and num_clients is None:
            raise ValueError("sharing='rank' needs num_clients")
        self.data_stream = data_stream
        self.hwm = positive('hwm', hwm)
        self.sharing = sharing
        self.num_clients = 1 if num_clients is None else num_clients
        self.address = ''
        self._host, self._wanted_port = host, port
        self._curve = curve
        self._sessions: dict[bytes, Session] = {}
        self._wake_up = WakeUp()
        self._pipeline = Pipeline(data_stream)
        self.conductor = Conductor(
            self._pipeline, self._sessions, self._send, self._ping,
            secrets.token_hex(8), sharing, self.num_clients,
            config.shared_memory_bytes if max_bytes is None else max_bytes)
        self._handlers: dict[str, Callable[[Session, Any], None]] = {
            'ready': self._on_ready, 'join': self.conductor.on_join,
            'handed': self.conductor.on_handed,
            'leave': self.conductor.on_leave,
            'give': self.conductor.on_give,
            'waiting': self.conductor.on_waiting,
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

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of batches, bytes, errors and so on (dict)."""
        return self.conductor.counts

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

        """
        self._context = zmq.Context()
        self._router: Any = self._context.socket(zmq.ROUTER)
        self._strangers = Strangers(self._router, self.counts)
        try:
            self._configure(self._router)
            self._bind()
            self._poller = zmq.Poller()
            self._poller.register(self._router, zmq.POLLIN)
            self._poller.register(self._strangers.monitor, zmq.POLLIN)
            self._poller.register(self._wake_up.descriptor, zmq.POLLIN)
        except BaseException:
            self._strangers.close()
            self._router.close(0)
            self._context.term()
            raise
        self._thread = threading.Thread(
            target=self._serve, name='fuel-server', daemon=True)
        self._thread.start()
        self._stand_in = threading.Thread(
            target=self._serve_while_busy, name='fuel-stand-in', daemon=True)
        self._stand_in.start()

    def _configure(self, router: Any) -> None:
        router.linger = 1000
        router.router_mandatory = 1
        # What is under way is bounded by what clients ask for.
        router.sndhwm = router.rcvhwm = 0
        router.maxmsgsize = CLIENT_LIMITS.header
        router.heartbeat_ivl, router.heartbeat_timeout = HEARTBEAT
        router.heartbeat_ttl = HEARTBEAT[1]
        if self._curve is not None:
            from fuel.wire.curve import protect_server
            self._authenticator = protect_server(
                self._context, router, self._curve)

    def _bind(self) -> None:
        port = self._wanted_port or '*'
        deadline = time.monotonic() + _BUSY
        while True:
            try:
                self._router.bind(f'tcp://{self._host}:{port}')
                break
            except zmq.ZMQError as error:
                if error.errno != errno.EADDRINUSE \
                        or time.monotonic() > deadline:
                    error.add_note(
                        f'while binding tcp://{self._host}:{port}')
                    raise
                time.sleep(0.05)
        endpoint = self._router.get_string(zmq.LAST_ENDPOINT)
        self._endpoint = endpoint
        self.address = endpoint.replace('//0.0.0.0:', '//*:')

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
            self._context.term()
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
    # handing each message over to another would cost more than it takes.
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
            self.conductor.take(result)

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
        self._failure = error
        self._stopped.set()
        self._wake_up()

    # Everything below is called by the thread whose turn it is.

    def _talk(self, wait: bool) -> None:
        """Take in what clients say, and do what can be done."""
        if wait:
            ready = dict(self._poller.poll(int(_PING * 1000)))
            if self._wake_up.descriptor in ready:
                self._wake_up.clear()
            if self._strangers.monitor in ready:
                self._strangers.look()
        self._receive()
        now = time.monotonic()
        if now > self._next_ping:
            self._next_ping = now + _PING
            self._ping()
            self._strangers.look()
        self.conductor.advance()

    def _close(self) -> None:
        try:
            self._router.unbind(self._endpoint)
            for session in self._sessions.values():
                self._send(session, {'type': 'bye'})
        finally:
            self._strangers.close()
            self._router.close()
            authenticator = getattr(self, '_authenticator', None)
            if authenticator is not None:
                authenticator.stop()

    def _receive(self) -> None:
        for parts in receive_all(self._router):
            try:
                if len(parts) != 2:
                    raise WireError(
                        f'a message has 2 parts, got {len(parts)}')
                fields = unpack_header(parts[1].bytes, CLIENT_LIMITS)
                self._handle(parts[0].bytes, fields)
            except (WireError, TypeError, ValueError, LookupError) as error:
                # Nobody's bytes may end the service of the others.
                self._strangers.drop_message(error)

    def _handle(self, identity: bytes, fields: dict[str, Any]) -> None:
        kind = get_field(fields, 'type', str)
        if kind == 'hello':
            self._greet(identity, fields)
            return
        if kind == 'status':
            self._post(identity, {'type': 'status',
                                  'status': self._status()})
            return
        session = self._sessions.get(identity)
        if session is None:
            raise WireError(f'{kind[:20]!r} before a hello')
        handler = self._handlers.get(kind)
        if handler is None:
            raise WireError(f'unknown message {kind[:20]!r}')
        handler(session, fields)

    def _greet(self, identity: bytes, fields: dict[str, Any]) -> None:
        """Answer the first message of a client."""
        session = Session(identity, fields, self.hwm)
        refusal = session.check(
            fields, self.data_stream, self.sharing, self.num_clients)
        if refusal:
            self._post(identity, {'type': 'refuse', 'error': refusal})
            return
        for other in list(self._sessions.values()):
            if other.client == session.client or other.identity == identity:
                self._lose(other)
        self._sessions[identity] = session
        self._send(session, {
            'type': 'welcome', 'version': VERSION, 'run': self.conductor.run,
            'sources': list(self.data_stream.sources),
            'examples': kind_of(self.data_stream),
            'axis_labels': _labels(self.data_stream),
            'sharing': self.sharing, 'probe': session.make_probe()})

    def _on_ready(self, session: Session, fields: dict[str, Any]) -> None:
        session.check_proof(get_field(fields, 'proof', str, ''))

    def _on_stacks(self, session: Session, _: dict[str, Any]) -> None:
        self._send(session, {'type': 'stacks',
                             'text': self._pipeline.stack()})

    def _on_bye(self, session: Session, _: dict[str, Any]) -> None:
        self._lose(session, for_good=True)

    def _send(self, session: Session, fields: dict[str, Any],
              frames: Any = ()) -> None:
        session.is_gone = not self._post(session.identity, fields, frames)

    def _post(self, identity: bytes, fields: dict[str, Any],
              frames: Any = ()) -> bool:
        """Send a message; return whether there is somebody to get it."""
        try:
            send_now(self._router, [identity, pack_header(fields), *frames],
                     copy=not frames)
        except zmq.ZMQError as error:
            if error.errno not in (errno.EHOSTUNREACH, errno.EAGAIN):
                raise
            return error.errno == errno.EAGAIN
        return True

    def _ping(self) -> None:
        """Find out who is gone: sending to them fails."""
        for session in list(self._sessions.values()):
            self._send(session, {'type': 'ping'})
            if not session.is_gone and self.conductor.is_mute(session):
                log.warning('client %s does not answer; the others get its '
                            'batches', session.client)
                session.is_gone = True
            if session.is_gone:
                self._lose(session)

    def _lose(self, session: Session, for_good: bool = False) -> None:
        """Forget a client; the others get what it had not handed out."""
        self.conductor.drop_out(session, for_good)
        self._sessions.pop(session.identity, None)
        session.close(self.conductor.pool)

    def _status(self) -> dict[str, Any]:
        epoch = self.conductor.epoch
        waited = self.conductor.waited
        return {
            **self.counts, 'address': self.address, 'pid': os.getpid(),
            'clients': len(self._sessions),
            'local clients': sum(
                session.is_local for session in self._sessions.values()),
            'epoch': 0 if epoch is None else epoch.number,
            'queue': 0 if epoch is None else sum(
                len(member.in_flight) for member in epoch.members.values()),
            'seconds waiting on the pipeline': waited['pipeline'],
            'seconds waiting on clients': waited['clients']}


def _labels(stream: Any) -> Any:
    """Return the axis labels, by place of the source."""
    labels = stream.axis_labels
    if labels is None:
        return None
    found = [labels.get(source) for source in stream.sources]
    return [list(label) if isinstance(label, (tuple, list)) else label
            for label in found]
