"""The server: its arguments, its threads, its start and its end."""
from __future__ import annotations

import logging
import os
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from fuel import config
from fuel.epochs.stage import stage_of
from fuel.export.prometheus import MetricsServer
from fuel.server.journal import Journal, default_path
from fuel.server.ledger import RANK, SHARINGS
from fuel.server.listener import Listener
from fuel.server.service import CLIENT_LIMITS, PING, Service
from fuel.typing import StreamLike
from fuel.utils.checks import positive
from fuel.wire.wakeup import WakeUp, check_platform
from fuel.workers.global_random import sets_generators

log = logging.getLogger(__name__)

# Seconds that a batch may take before another thread answers the clients.
_BUSY_SECONDS = 0.05


class Server:
    """Serves the batches of a stream to other processes.

    Parameters
    ----------
    port : int, optional
        Defaults to 5557; 0 selects a free port, which `address` contains.
    hwm : int, optional
        Number of batches that each client may prefetch.  The client's own
        `hwm` applies if it is smaller.  Defaults to 10.  For a single client
        the server prefetches one batch more.
    host : str, optional
        The address to listen at.  Defaults to ``'127.0.0.1'``: only processes
        of this host can connect.  ``'*'`` means every interface.
    sharing : str, optional
        The batches that clients get: ``'split'``, each batch goes to exactly
        one of them (the default); ``'all'``, each gets every batch;
        ``'rank'``, batch `i` goes to the client whose rank is ``i %
        num_clients``.
    num_clients : int, optional
        Number of clients that the first epoch waits for.  A later epoch waits
        for the clients of the epoch before: for `reconnect` seconds if they
        vanished, and not at all if they closed their streams.  With ``'rank'``
        each epoch waits for each rank.  Defaults to one; required with
        ``'rank'``.
    max_bytes : int, optional
        Bytes of shared memory for clients on this host.  Defaults to
        ``config.shared_memory_bytes``, 1 GiB.
    curve : str or path, optional
        Directory with the keys that ``fuel-server keys`` made.  With it, only
        clients with a known key can connect, and connections are encrypted.
    journal : str, path or bool, optional
        File in which the server records the batches that each client was sent
        and delivered.  From it the next server at this port resumes if this
        one is killed.  False means no journal.  Defaults to None: a file named
        after host and port in the directory ``config.server_journal``, or no
        journal with port 0.
    reconnect : float, optional
        Seconds for which the server holds the batches of a vanished client for
        its successor.  After that, other clients get the batches, and begin
        the next epoch without that client.  Defaults to
        ``config.reconnect_timeout``, 30.
    metrics_port : int, optional
        Port at which Prometheus reads metrics of the clients and the stages;
        see :func:`fuel.export.serve_metrics`. 0 selects a free port, which
        `metrics_address` contains.  Defaults to None: no metrics.
    metrics_host : str, optional
        Address at which the server listens for Prometheus.  Defaults to
        ``'127.0.0.1'``, to which only this host can connect.  ``''`` means
        every interface.  `curve` does not protect this port.

    Attributes
    ----------
    address : str
        Address at which the server listens, such as
        ``'tcp://127.0.0.1:5557'``.
    metrics_address : str
        Address of the metrics, such as ``'http://127.0.0.1:9464/metrics'``;
        empty if there are none.

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
                 reconnect: float | None = None,
                 metrics_port: int | None = None,
                 metrics_host: str = '127.0.0.1') -> None:
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
        self.metrics_address = ''
        self._metrics_port, self._metrics_host = metrics_port, metrics_host
        self._metrics: MetricsServer | None = None
        self._wake_up = WakeUp()
        self.service = Service(
            data_stream, self.hwm, sharing, self.num_clients,
            config.reconnect_timeout if reconnect is None else reconnect,
            config.shared_memory_bytes if max_bytes is None else max_bytes)
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        # Guards the sockets and all other state, except the pipeline.
        self._turn = threading.Lock()
        self._busy_since = 0.0
        self._thread: threading.Thread | None = None
        self._stand_in: threading.Thread | None = None

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of batches, bytes, errors and so on (dict)."""
        return self.service.counts

    @property
    def port(self) -> int:
        """The port on which the server listens (int)."""
        if not self.address:
            raise RuntimeError(
                'the server has no port before it listens: call start(), or '
                'use it in a with statement')
        return int(self.address.rpartition(':')[2])

    def start(self) -> None:
        """Bind the socket and serve in the background.

        Raises
        ------
        zmq.ZMQError
            If the port stays busy for two seconds, or the host is not an
            address of this machine.
        OSError
            If there are no keys in the directory `curve`, or `metrics_port`
            is taken.
        fuel.exceptions.ServerError
            If the journal cannot be written.

        Warns
        -----
        UserWarning
            If a stage sets the global random generators, as :class:`Mapping
            <fuel.transformers.Mapping>` with a seed does: other threads of the
            program may draw from them meanwhile.
        """
        if sets_generators(stage_of(self.data_stream)):
            warnings.warn(
                'Mapping with a seed sets the global generators while its '
                'function runs, which the server shares with the rest of '
                'your program: where both draw, no draw can be repeated. '
                'Serve it from a process of its own, with '
                'start_server, or make the batches in workers, '
                'Server(MultiProcessing(stream))', stacklevel=2)
        self._listen()

    def _listen(self) -> None:
        """Bind the sockets and start the threads, without a warning."""
        listener = Listener(
            self._host, self._wanted_port, self._curve, self.counts,
            CLIENT_LIMITS.header, self.hwm)
        try:
            if self._metrics_port is not None:
                self._metrics = MetricsServer(
                    self.service.samples, self._metrics_port,
                    self._metrics_host)
                self.metrics_address = self._metrics.address
            self.service.open(listener, self._open_journal())
        except BaseException:
            listener.close(linger=0)
            listener.end()
            self._end_metrics()
            raise
        self.address = listener.address
        self._poller = listener.make_poller(self._wake_up)
        self._thread = threading.Thread(
            target=self._serve, name='fuel-server', daemon=True)
        self._thread.start()
        self._stand_in = threading.Thread(
            target=self._serve_while_busy, name='fuel-stand-in', daemon=True)
        self._stand_in.start()

    def _end_metrics(self) -> None:
        if self._metrics is not None:
            self._metrics.close()

    def _open_journal(self) -> Journal | None:
        path = self._journal
        if path is None:
            path = default_path(
                config.server_journal, self._host, self._wanted_port)
        return None if path is None or isinstance(path, bool) else (
            Journal(path))

    def stop(self, timeout: float = 1.0) -> None:
        """Stop listening at once, and end the server; does nothing if it was
        stopped before.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait for the batch that the pipeline is making.
        """
        self._stopped.set()
        self._wake_up()
        if self._thread is not None and self._stand_in is not None:
            self._stand_in.join()
            self._thread.join(timeout)
            self._end_metrics()
            self._thread = self._stand_in = None
            self.service.listener.end()
            self._wake_up.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the server has ended; raise its error if it failed.

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

    # One thread makes the batches and, between batches, handles the clients'
    # messages: to pass each message to another thread would take longer than
    # to handle it. While a batch takes long, a second thread handles the
    # messages.

    def _serve(self) -> None:
        """Make batches and handle the clients' messages until stopped."""
        with self._stopped_by_errors(), self._turn:
            while not self._stopped.is_set():
                self.service.handle_messages()
                if self.service.pipeline.requests:
                    self._make()
                else:
                    self._wait_and_handle()
        self.service.pipeline.close()

    def _make(self) -> None:
        """Let the pipeline carry out a request; another thread may use the
        sockets meanwhile."""
        self._busy_since = time.monotonic()
        self._turn.release()
        try:
            result = self.service.pipeline.make()
        finally:
            self._busy_since = 0.0
            if not self._turn.acquire(blocking=False):
                self._wake_up()
                self._turn.acquire()
        if not self._stopped.is_set():
            self.service.scheduler.take(result)

    def _serve_while_busy(self) -> None:
        """Answer the clients while a batch takes long; at the end, close the
        service."""
        while not self._stopped.wait(_BUSY_SECONDS):
            busy_since = self._busy_since
            if busy_since and time.monotonic() - busy_since > _BUSY_SECONDS:
                with self._stopped_by_errors(), self._turn:
                    while self._busy_since and not self._stopped.is_set():
                        self._wait_and_handle()
        with self._stopped_by_errors(), self._turn:
            self.service.close()
        self._ended.set()

    @contextmanager
    def _stopped_by_errors(self) -> Iterator[None]:
        """At an exception, stop both threads and keep the exception for
        :meth:`wait`."""
        try:
            yield
        except BaseException as error:
            log.error('the server has failed', exc_info=error)
            if self._failure is None:
                self._failure = error
            self._stopped.set()
            self._wake_up()

    def _wait_and_handle(self) -> None:
        """Wait for messages, and handle them."""
        ready = dict(self._poller.poll(int(PING * 1000)))
        if self._wake_up.descriptor in ready:
            self._wake_up.clear()
        rejected = self.service.listener.rejected
        if rejected.monitor in ready:
            rejected.read_events()
        self.service.handle_messages()


def _positive(name: str, value: object) -> int:
    """Return a positive integer; raise ValueError for another value."""
    try:
        return positive(name, value)
    except TypeError as error:
        raise ValueError(str(error)) from None
