"""The server as a program: runs until it is told to stop."""
from __future__ import annotations

import logging
import signal
import sys
import threading
from typing import Any

from fuel.server.server import Server

log = logging.getLogger(__name__)


def start_server(data_stream: Any, port: int = 5557, hwm: int = 10,
                 **kwargs: Any) -> None:
    """Serve a stream until the process is told to end.

    One line on standard error says where the server listens.  Ctrl-C and
    SIGTERM end it: the port is free at once.

    Parameters
    ----------
    data_stream : AbstractDataStream
    port : int, optional
        Defaults to 5557.
    hwm : int, optional
        How many batches may be under way to each client.  Defaults to 10.
    **kwargs
        `host`, `sharing` and others; see :class:`Server`.

    Examples
    --------
    In a program of its own::

        start_server(DataStream(dataset, iteration_scheme=scheme))

    """
    server = Server(data_stream, port, hwm, **kwargs)
    server.start()
    sys.stderr.write(f'Fuel server: {server.address}\n')
    sys.stderr.flush()
    try:
        _wait(server)
    finally:
        server.stop()
        data_stream.close()


def _wait(server: Server) -> None:
    """Wait for a signal, or for the server to fail."""
    if threading.current_thread() is not threading.main_thread():
        server.wait()
        return
    told = threading.Event()
    previous = signal.signal(signal.SIGTERM, lambda *_: told.set())
    try:
        while not told.wait(0.1) and not server.wait(0):
            pass
    except KeyboardInterrupt:
        log.info('interrupted')
    finally:
        signal.signal(signal.SIGTERM, previous)
