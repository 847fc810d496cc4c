"""The server as a program: it runs until a signal ends it."""
from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType

from fuel.kernels import termination
from fuel.server.server import Server
from fuel.typing import StreamLike
from fuel.utils.remote_errors import signal_name

log = logging.getLogger(__name__)

# Seconds that a stage may hold the interpreter after SIGTERM.
_STOP_SECONDS = 5
# Signals of a process that crashed. SIGKILL is none: whoever sent it, such as
# a system without memory, wants the process gone.
_CRASHES = ('SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV')
# A server that crashes more often in so many seconds is not started again.
_MOST_CRASHES = 5
_CRASH_SECONDS = 60.0


def start_server(data_stream: StreamLike, port: int = 5557, hwm: int = 10, *,
                 host: str = '127.0.0.1', sharing: str = 'split',
                 num_clients: int | None = None,
                 max_bytes: int | None = None,
                 curve: str | os.PathLike[str] | None = None,
                 journal: str | os.PathLike[str] | bool | None = None,
                 reconnect: float | None = None,
                 metrics_port: int | None = None,
                 metrics_host: str = '127.0.0.1') -> None:
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
    metrics_port : int, optional
        Where Prometheus gets the numbers of this server.  Defaults to None:
        nowhere.
    host, sharing, num_clients, max_bytes, curve, journal, reconnect, \
    metrics_host
        See :class:`Server`.

    Examples
    --------
    In a program of its own::

        start_server(DataStream(dataset, iteration_scheme=scheme))
    """
    server = Server(
        data_stream, port, hwm, host=host, sharing=sharing,
        num_clients=num_clients, max_bytes=max_bytes, curve=curve,
        journal=journal, reconnect=reconnect, metrics_port=metrics_port,
        metrics_host=metrics_host)
    server._listen()
    try:
        _announce_and_wait(server)
    finally:
        server.stop()
        termination.disarm()
        close = getattr(data_stream, 'close', None)
        if close is not None:
            close()


def _announce(server: Server) -> None:
    sys.stderr.write(f'Fuel server: {server.address}\n')
    if server.metrics_address:
        sys.stderr.write(f'Fuel server: {server.metrics_address}\n')
    sys.stderr.flush()


def _announce_and_wait(server: Server) -> None:
    """Say where the server listens; wait for a signal, or for it to fail."""
    if threading.current_thread() is not threading.main_thread():
        _announce(server)
        server.wait()
        return
    ended = threading.Event()

    previous = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        termination.arm(signal.SIGTERM, _STOP_SECONDS)
        # Whoever reads the line may end the process at once.
        _announce(server)
        while not ended.wait(0.1) and not server.wait(0):
            pass
    except KeyboardInterrupt:
        log.info('interrupted')
    finally:
        signal.signal(signal.SIGTERM, previous)


def serve_again(command: Sequence[str]) -> int:
    """Run a server in a process of its own, and again when it crashed.

    A server that keeps a journal goes on where it was, and its clients with
    it.  SIGTERM and Ctrl-C are passed on.

    Parameters
    ----------
    command : sequence of str
        What starts the server.  The number of a descriptor is appended; the
        process is to pass it to :func:`end_with_supervisor`.

    Returns
    -------
    int
        The exit status: that of the server, or 128 and the number of the
        signal that ended it.
    """
    crashes: list[float] = []
    reading, writing = os.pipe()
    try:
        while True:
            with subprocess.Popen(  # noqa: S603 (the command's own)
                    [*command, str(reading)], pass_fds=[reading],
                    process_group=0) as server:
                status, is_asked = _wait_for(server)
            crash = signal_name(-status)
            if is_asked or crash not in _CRASHES:
                if not is_asked and status < 0:
                    sys.stderr.write(
                        f'Fuel server: {crash} ended it, which is not a '
                        'crash, so it is not started again; a server with '
                        'the same journal goes on from it\n')
                return status if status >= 0 else 128 - status
            now = time.monotonic()
            crashes = [then for then in crashes
                       if now - then < _CRASH_SECONDS] + [now]
            if len(crashes) > _MOST_CRASHES:
                sys.stderr.write(
                    f'Fuel server: {crash} ended it {len(crashes)} times in '
                    f'{_CRASH_SECONDS:.0f} seconds, so it is not started '
                    'again\n')
                return 128 - status
            sys.stderr.write(f'Fuel server: {crash} ended it; it is started '
                             'again, and goes on from its journal\n')
            sys.stderr.flush()
    finally:
        os.close(reading)
        os.close(writing)


def _wait_for(server: subprocess.Popen[bytes]) -> tuple[int, bool]:
    """Wait for a process, which gets the signals that end this one.

    Returns: its status, and whether a signal asked it to end.
    """
    asked = []

    def forward(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        server.send_signal(number)

    numbers = (signal.SIGINT, signal.SIGTERM)
    previous = [signal.signal(number, forward) for number in numbers]
    try:
        status = server.wait()
    finally:
        for number, handler in zip(numbers, previous, strict=True):
            signal.signal(number, handler)
    return status, bool(asked)


def end_with_supervisor(descriptor: int) -> None:
    """Let this process get SIGTERM when its supervisor is gone.

    `descriptor`: the reading end of a pipe of :func:`serve_again`.
    """
    def wait() -> None:
        os.read(descriptor, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(
        target=wait, name='fuel-supervised', daemon=True).start()
