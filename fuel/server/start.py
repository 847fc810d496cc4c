"""Run a server as a program, until a signal ends it."""
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
# Signals of a process that crashed. SIGKILL is not one of them: its sender,
# such as a system without memory, wants the process to end.
_CRASHES = ('SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGILL', 'SIGSEGV')
# A server that crashes more than `_MOST_CRASHES` times in `_CRASH_SECONDS`
# seconds is not started again.
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

    The server prints its address in one line on standard error.  Ctrl-C and
    SIGTERM end it, and free the port at once.  If a stage holds the
    interpreter for five seconds after SIGTERM, the process is killed.

    Parameters
    ----------
    port : int, optional
        Defaults to 5557.
    hwm : int, optional
        Number of batches that each client may prefetch.  Defaults to 10.
    metrics_port : int, optional
        Port at which Prometheus reads the metrics of this server.  Defaults to
        None: no metrics.
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
    """Print the server's address; wait for a signal, or for an error of the
    server."""
    if threading.current_thread() is not threading.main_thread():
        _announce(server)
        server.wait()
        return
    ended = threading.Event()

    previous = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        termination.arm(signal.SIGTERM, _STOP_SECONDS)
        # Arm first: the program that reads the printed line may send SIGTERM
        # at once.
        _announce(server)
        while not ended.wait(0.1) and not server.wait(0):
            pass
    except KeyboardInterrupt:
        log.info('interrupted')
    finally:
        signal.signal(signal.SIGTERM, previous)


def serve_again(command: Sequence[str]) -> int:
    """Run a server in a process of its own, and restart it if it crashes.

    A server with a journal resumes its epoch, and its clients continue.
    SIGTERM and Ctrl-C are passed on to the server.

    Parameters
    ----------
    command : sequence of str
        Command that starts the server.  The number of a file descriptor is
        appended as its last argument; the process must pass it to
        :func:`end_with_supervisor`.

    Returns
    -------
    int
        The exit status of the server, or 128 plus the number of the signal
        that ended it.
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
    """Wait for a process, and pass SIGINT and SIGTERM on to it.

    Returns: the process's status, and whether one of these signals came.
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
    """Send this process SIGTERM when its supervisor has ended.

    `descriptor`: the reading end of the pipe that :func:`serve_again` made.
    """
    def wait() -> None:
        os.read(descriptor, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(
        target=wait, name='fuel-supervised', daemon=True).start()
