"""The server as a program: it runs until a signal ends it."""
from __future__ import annotations

import logging
import signal
import sys
import threading
from typing import Any

from fuel.kernels import termination
from fuel.server.server import Server
from fuel.typing import StreamLike

log = logging.getLogger(__name__)

# Seconds that a stage may hold the interpreter after SIGTERM.
_GRACE = 5


def start_server(data_stream: StreamLike, port: int = 5557, hwm: int = 10,
                 **kwargs: Any) -> None:
    """Serve a stream until a signal ends the process.

    One line on standard error says where the server listens.  Ctrl-C and
    SIGTERM end it: the port is free at once.  A stage that does not let go of
    the interpreter for five seconds after SIGTERM is killed with the process.

    Parameters
    ----------
    port : int, optional
        Defaults to 5557.
    hwm : int, optional
        How many batches may be under way to each client.  Defaults to 10.
    **kwargs
        `host`, `sharing`, `num_clients`, `journal` and others; see
        :class:`Server`.

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
        termination.disarm()
        close = getattr(data_stream, 'close', None)
        if close is not None:
            close()


def _wait(server: Server) -> None:
    """Wait for a signal, or for the server to fail."""
    if threading.current_thread() is not threading.main_thread():
        server.wait()
        return
    ended = threading.Event()

    previous = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        termination.arm(signal.SIGTERM, _GRACE)
        while not ended.wait(0.1) and not server.wait(0):
            pass
    except KeyboardInterrupt:
        log.info('interrupted')
    finally:
        signal.signal(signal.SIGTERM, previous)
