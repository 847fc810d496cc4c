"""Measurements in Prometheus' text format, over HTTP."""
from __future__ import annotations

import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, NamedTuple, Self

from fuel.export.flat import OF_PIPELINES, OF_STAGES, place_of
from fuel.profiling.measurements import measure
from fuel.sharding.shard_pipeline import sharding_of
from fuel.typing import StreamLike
from fuel.utils.forks import Step, each_at_fork
from fuel.version import version

log = logging.getLogger(__name__)

# Most connections at a time, and most seconds of each.
_MOST_CONNECTIONS, _REQUEST_SECONDS = 8, 5.
# Most characters of a label that are exported.
_MOST_CHARACTERS = 200
_ESCAPES = str.maketrans({'\\': r'\\', '"': r'\"', '\n': r'\n'})

Labels = Mapping[str, object]


class Sample(NamedTuple):
    """The value of a metric at the time of a request.

    `name`: name such as ``'fuel.stage.work.seconds'``.
    `grows`: whether it is a sum, which never decreases.
    `help`: description in one line.
    """

    name: str
    grows: bool
    labels: Labels
    value: float
    help: str = ''


def text_of(samples: Iterable[Sample]) -> bytes:
    """Return samples in Prometheus' text format, version 0.0.4."""
    families: dict[str, dict[str, str]] = {}
    for sample in samples:
        name = sample.name.replace('.', '_')
        if sample.grows:
            name += '_total'
        labels = ','.join(
            f'{key}="{_escape(value)}"' for key, value
            in sample.labels.items() if value is not None)
        # Names that clients chose may become equal when they are cut.
        families.setdefault(name, {
            f'# HELP {name}': sample.help or sample.name,
            f'# TYPE {name}': 'counter' if sample.grows else 'gauge',
        }).setdefault(f'{name}{{{labels}}}', repr(sample.value))
    return ''.join(f'{key} {value}\n' for lines in families.values()
                   for key, value in lines.items()).encode()


def _escape(value: object) -> str:
    # Text with a lone surrogate cannot be encoded: export it with '?'.
    text = str(value)[:_MOST_CHARACTERS].encode(errors='replace').decode()
    return text.translate(_ESCAPES)


def samples_of(stream: StreamLike, labels: Labels) -> Iterable[Sample]:
    """Yield the measurements of a pipeline and of its stages as samples."""
    measured = measure(stream)
    for metric in OF_PIPELINES:
        yield Sample(metric.name, metric.grows, labels,
                     getattr(measured, metric.field), metric.help)
    for stage in measured.stages:
        here = {**labels, 'stage': stage.name, 'path': place_of(stage),
                'runs_in': stage.runs_in}
        for metric in OF_STAGES:
            yield Sample(metric.name, metric.grows, here,
                         getattr(stage, metric.field), metric.help)


def serve_metrics(streams: StreamLike | Mapping[str, StreamLike],
                  port: int, *, host: str = '127.0.0.1',
                  rank: int | None = None) -> MetricsServer:
    """Start a server of the measurements of streams, for Prometheus.

    A thread answers ``GET /metrics`` in the text format of Prometheus.  It
    reads the counters without waiting for the epochs that run.  The answer has
    names and measurements of stages, but no data.

    Parameters
    ----------
    streams : AbstractDataStream or dict of str to AbstractDataStream
        The outermost stage of a pipeline, or a dict from names to such stages.
        The name becomes the label ``stream``.
    port : int
        Port at which to listen. 0 means a free port: see `MetricsServer.port`.
    host : str, optional
        Address at which to listen.  Defaults to ``'127.0.0.1'``: only this
        host can connect.  ``''`` means every interface.  There is no
        encryption and no authentication.
    rank : int, optional
        The label ``rank``.  Defaults to None: the rank of the stream's shard,
        or no label if the stream is not sharded.

    Returns
    -------
    MetricsServer
        The server, which runs until it is closed or the process ends.

    Raises
    ------
    OSError
        If the port is taken, or the host is not an address of this machine.

    Examples
    --------
    >>> from urllib.request import urlopen
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(list(range(6))), batch_size=3)
    >>> batches = list(stream)
    >>> with serve_metrics({'train': stream}, port=0) as server:
    ...     text = urlopen(server.address).read().decode()
    >>> [line for line in text.splitlines() if 'pipeline_examples' in line]
    ['# HELP fuel_pipeline_examples_total Examples that came out ...',
     '# TYPE fuel_pipeline_examples_total counter',
     'fuel_pipeline_examples_total{stream="train"} 6']
    """
    named = dict(streams) if isinstance(streams, Mapping) else {None: streams}
    labelled: list[tuple[StreamLike, Labels]] = []
    for name, stream in named.items():
        shard = sharding_of(stream)
        number = shard.rank if rank is None and shard is not None else rank
        labelled.append((stream, {'stream': name, 'rank': number}))

    def collect() -> Iterable[Sample]:
        for stream, labels in labelled:
            yield from samples_of(stream, labels)
    return MetricsServer(collect, port, host)


class MetricsServer:
    """Answers ``GET /metrics`` until it is closed.

    :func:`serve_metrics` returns it.  As a context manager, the server closes
    at the end of the block.

    Attributes
    ----------
    address : str
        Address of the metrics, such as ``'http://127.0.0.1:9464/metrics'``.
    port : int
        Number of the port at which the server listens.
    """

    def __init__(self, collect: Callable[[], Iterable[Sample]], port: int,
                 host: str) -> None:
        try:
            self._server = _Server(host, port, collect)
        except OSError as error:
            raise OSError(
                error.errno, f'cannot serve metrics at port {port} of '
                f'{host or "all interfaces"} ({os.strerror(error.errno or 0)}'
                '): choose another port, 0 for a free one, and a host of '
                'this machine') from error
        self.port: int = self._server.server_address[1]
        shown = f'[{host}]' if ':' in host else host or '0.0.0.0'  # noqa: S104
        self.address = f'http://{shown}:{self.port}/metrics'
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(.1,),
            name='fuel-metrics', daemon=True)
        self._thread.start()
        _all.add(self)

    def close(self) -> None:
        """Close the port, unless it is closed already."""
        if self in _all:
            _all.discard(self)
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def leave_to_parent(self) -> None:
        """Close the port in a forked child, which has no thread that
        answers."""
        _all.discard(self)
        self._server.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_all = each_at_fork(Step.OWNERSHIP, in_child=MetricsServer.leave_to_parent)


class _Server(ThreadingMixIn, TCPServer):
    """Serves a few connections at a time, each for a few seconds."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, host: str, port: int,
                 collect: Callable[[], Iterable[Sample]]) -> None:
        self.collect = collect
        self._open: dict[socket.socket, float] = {}
        if ':' in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Return whether another connection is allowed."""
        self._open[request] = time.monotonic() + _REQUEST_SECONDS
        return len(self._open) <= _MOST_CONNECTIONS

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Cut connections that take too long."""
        now = time.monotonic()
        for request, deadline in list(self._open.items()):
            if now > deadline:
                # The thread that waits for the connection then closes it.
                with suppress(OSError):
                    request.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log a failed connection at level debug, and raise nothing."""
        log.debug('a connection for metrics failed: %s', sys.exception())


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = f'Fuel/{version}', ''
    timeout = _REQUEST_SECONDS

    def do_GET(self) -> None:
        """Answer a request with the metrics."""
        if self.path.partition('?')[0] != '/metrics':
            self.send_error(404, explain='metrics are at /metrics')
            return
        try:
            text = text_of(self.server.collect())
        except Exception:
            log.exception('the metrics cannot be read')
            self.send_error(500, explain='the log says why')
            return
        self.send_response(200)
        self.send_header('Content-Type',
                         'text/plain; version=0.0.4; charset=utf-8')
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log each request at level debug only."""
        log.debug(format, *args)
