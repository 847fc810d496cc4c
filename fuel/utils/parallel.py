"""Run a producer in another process and a consumer in this process."""
from __future__ import annotations

import logging
import multiprocessing
import os
import secrets
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing.connection import Connection
from typing import Any

import zmq

from fuel.exceptions import WorkerError
from fuel.utils.forks import use_no_threads_of_torch
from fuel.utils.remote_errors import pickle_error, unpickle_error
from fuel.wire.values import pack_value, unpack_value

__all__ = ['producer_consumer']

logger = logging.getLogger(__name__)

_DEFAULT_ADDRESS = 'tcp://127.0.0.1'
# Seconds that a producer may run after the consumer has returned: long enough
# for its last checks to fail.
_END_SECONDS = 2.
# Milliseconds to wait for the last messages of a producer that has ended.
_LINGER_MILLISECONDS = 1000
# Seconds between checks whether the producer still runs.
_POLL_SECONDS = 0.1
_FAILED = 'the producer process failed:'
# True if local sockets may have names that are not paths.
_HAS_NAMES = sys.platform == 'linux'


def producer_consumer(producer: Callable[[zmq.Socket[Any]], object],
                      consumer: Callable[[zmq.Socket[Any]], Any],
                      addr: str = _DEFAULT_ADDRESS, port: int | None = None,
                      context: zmq.Context[Any] | None = None) -> Any:
    """Run a producer in another process and a consumer in this process.

    Parameters
    ----------
    producer : callable
        Called in the other process with a ZeroMQ PUSH socket.
    consumer : callable
        Called in this process with a PULL socket, which receives what the
        producer sends.
    addr : str, optional
        The interface on which the consumer listens, for TCP. With the default
        and without `port`, the consumer listens at a local address that only
        the producer can use.
    port : int, optional
        The TCP port on which to listen. By default, and for 0, a free port.
    context : zmq.Context, optional
        The context of the consumer's socket. By default a new context, which
        is ended afterwards.

    Returns
    -------
    object
        The result of `consumer`.

    Raises
    ------
    Exception
        The exception that `producer` raised, with the traceback of the other
        process as a note. It is raised when the consumer waits for the next
        message. If the producer fails within two seconds after the consumer
        returned, it is raised then.
    WorkerError
        If the producer was killed, or ended while the consumer waits for
        more messages; or if its exception cannot be pickled.

    Notes
    -----
    When the consumer returns, the producer is ended.

    ``send_pyobj`` and ``recv_pyobj`` of the two sockets do not pickle. They
    send None, booleans, numbers, text, bytes, arrays, and tuples, lists and
    dicts of these.

    The consumer should wait with the socket's own methods. If it waits with a
    ``zmq.Poller``, it does not notice the end of the producer.

    Examples
    --------
    >>> from fuel.utils.parallel import producer_consumer
    >>> def produce(socket):
    ...     for word in ('to', 'be'):
    ...         socket.send_pyobj((word, len(word)))
    >>> def consume(socket):
    ...     return [socket.recv_pyobj() for _ in range(2)]
    >>> producer_consumer(produce, consume)
    [('to', 2), ('be', 2)]
    """
    with ExitStack() as stack:
        # The process is started before the context is made: then a fork copies
        # no thread of the context.
        other = _Producer(producer)
        stack.callback(other.end)
        if context is None:
            context = stack.enter_context(zmq.Context())
        socket = _PlainSocket(context, zmq.PULL)
        stack.callback(socket.close, linger=0)
        socket.producer = other
        other.send_address(_bind(socket, addr, port, stack))
        result = consumer(socket)
        other.finish()
        return result


def _bind(socket: _PlainSocket, addr: str, port: int | None,
          stack: ExitStack) -> str:
    """Bind the consumer's socket; return the address for the producer."""
    if addr != _DEFAULT_ADDRESS or port is not None or not zmq.has('ipc'):
        if not port:
            return f'{addr}:{socket.bind_to_random_port(addr)}'
        address = f'{addr}:{port}'
    elif _HAS_NAMES:
        # A name that is not a path leaves no file behind, even if this process
        # is killed.  It has no permissions either, so the system checks which
        # process connects.
        assert socket.producer is not None
        socket.setsockopt(
            zmq.SocketOption.IPC_FILTER_PID, socket.producer.process.pid)
        address = f'ipc://@fuel-{secrets.token_hex(16)}'
    else:
        folder = tempfile.gettempdir()
        address = 'ipc://' + os.path.join(stack.enter_context(
            tempfile.TemporaryDirectory(
                prefix='fuel-', ignore_cleanup_errors=True,
                # The path of a socket has a limit, and the folder that is
                # made there is this user's alone.
                dir=folder if len(folder) < 60 else '/tmp')),  # noqa: S108
            'socket')
    socket.bind(address)
    return address


class _Producer:
    """The producer's process, and the pipe on which it reports its end.

    An empty message means that the producer returned. Any other message is the
    error that it raised. If the pipe ends without a message, the producer was
    killed.
    """

    def __init__(self, producer: Callable[[zmq.Socket[Any]], object]) -> None:
        methods = multiprocessing.get_all_start_methods()
        # A fork can run any callable; the other start methods need one that
        # can be pickled.
        context: Any = multiprocessing.get_context(
            'fork' if 'fork' in methods else None)
        self.pipe, theirs = context.Pipe()
        self.returned = False
        self.checked = 0.
        self.process = context.Process(
            target=_produce, args=(producer, theirs, self.pipe), daemon=True)
        try:
            self.process.start()
        except BaseException:
            self.pipe.close()
            raise
        finally:
            theirs.close()

    def send_address(self, address: str) -> None:
        """Send the address, which starts the producer."""
        try:
            self.pipe.send_bytes(address.encode())
        except OSError:
            self.check()

    def check(self) -> None:
        """Raise the error of the producer, if there is one."""
        self.checked = time.monotonic()
        if self.returned:
            return
        # Check the process before the pipe, since the process may send its
        # last message just before it ends.
        ended = not self.process.is_alive()
        try:
            if not self.pipe.poll():
                if ended:
                    raise EOFError
                return
            report = self.pipe.recv_bytes()
        except (EOFError, OSError):
            self.process.join()
            raise WorkerError(
                'the producer process ended before its work, '
                f'{self._cause()}') from None
        if report:
            # Its traceback is in a note.
            raise unpickle_error(report, WorkerError, f'{_FAILED} ') from None
        self.returned = True

    def _cause(self) -> str:
        code = self.process.exitcode
        if code is not None and code < 0:
            return (f'killed by signal {-code}; if that is 9, the system '
                    'may have run out of memory')
        return f'with exit code {code}'

    def finish(self) -> None:
        """Wait up to two seconds for the producer to return or to fail."""
        deadline = time.monotonic() + _END_SECONDS
        self.check()
        while not self.returned:
            if not self.pipe.poll(max(0., deadline - time.monotonic())):
                logger.debug('The producer is ended before it returned')
                return
            self.check()

    def end(self) -> None:
        """End the process, whether the producer has returned or not."""
        self.process.terminate()
        self.process.join(_END_SECONDS)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        self.process.close()
        self.pipe.close()


def _produce(producer: Callable[[zmq.Socket[Any]], object],
             pipe: Connection, not_mine: Connection) -> None:
    """Run the producer, in the other process."""
    # Otherwise this process would keep the parent's end of the pipe open, and
    # would not notice the end of the parent.
    not_mine.close()
    use_no_threads_of_torch()
    try:
        address = pipe.recv_bytes().decode()
    except EOFError:
        return
    threading.Thread(
        target=_end_with_parent, args=(pipe,), daemon=True).start()
    with (zmq.Context() as context,
          _PlainSocket(context, zmq.PUSH) as socket):
        try:
            socket.connect(address)
            producer(socket)
        except BaseException as error:  # noqa: BLE001 - it is reported
            socket.linger = 0
            text = traceback.format_exc()
            # sys.exit in the other process does not end this one.
            failure: Exception = WorkerError(f'{_FAILED}\n{text}')
            if isinstance(error, Exception):
                error.add_note(f'In the producer process:\n{text}')
                failure = error
            report = pickle_error(failure)
        else:
            report = b''
        pipe.send_bytes(report)
        # Leaving the context waits until all messages are delivered. If the
        # consumer does not read them, its process ends this one.


def _end_with_parent(pipe: Connection) -> None:
    # The parent sends nothing more, so the pipe becomes readable only when the
    # parent has ended.
    pipe.poll(None)
    os._exit(1)


class _PlainSocket(zmq.Socket[Any]):
    """A socket that does not pickle, and does not wait for an ended
    producer."""

    # Set for the consumer's socket alone. (pyzmq allows no undeclared names.)
    producer: _Producer | None = None

    def send_pyobj(self, obj: object, flags: int = 0, protocol: int = -1,
                   **kwargs: Any) -> Any:
        """Send a plain value; `protocol` has no effect."""
        return self.send(pack_value(obj), flags, **kwargs)

    def recv_pyobj(self, flags: int = 0) -> Any:
        """Receive a plain value."""
        return unpack_value(self.recv(flags))

    def recv(self, flags: int = 0, *args: Any, **kwargs: Any) -> Any:
        """Receive a message, or raise the error that ended the producer."""
        self._wait(flags)
        return super().recv(flags, *args, **kwargs)

    def recv_into(self, *args: Any, flags: int = 0, **kwargs: Any) -> int:
        """Receive a message, or raise the error that ended the producer."""
        self._wait(flags)
        size: int = super().recv_into(*args, flags=flags, **kwargs)
        return size

    def poll(self, timeout: int | None = None,
             flags: int = zmq.POLLIN) -> int:
        """Wait for a message, or raise the error that ended the producer."""
        for_ever = flags & zmq.POLLIN and (timeout is None or timeout < 0)
        self._wait(0 if for_ever else zmq.NOBLOCK)
        return super().poll(timeout, flags)

    def _wait(self, flags: int) -> None:
        """Wait for a message; raise an error if no more can come."""
        producer = self.producer
        if producer is None:
            return
        if time.monotonic() - producer.checked > _POLL_SECONDS:
            producer.check()
        has_limit = int(self.getsockopt(zmq.RCVTIMEO)) >= 0
        if flags & zmq.NOBLOCK or has_limit:
            return
        while not super().poll(int(_POLL_SECONDS * 1000)):
            producer.check()
            if producer.returned and not producer.process.is_alive() \
                    and not super().poll(_LINGER_MILLISECONDS):
                raise WorkerError(
                    'the producer has returned and all it sent is '
                    'received, but the consumer waits for more')
