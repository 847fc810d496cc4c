"""Messages between a consumer and its producer on the same host."""
from __future__ import annotations

import array
import errno
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import NamedTuple

from fuel.utils.forks import Step, each_at_fork
from fuel.utils.seams import fault_point

_HEADER = struct.Struct('<IIQQQQ')
_MOST_DESCRIPTORS = 16
_DESCRIPTOR = array.array('i').itemsize
_CHUNK = 1 << 16
# Seconds before another attempt to send if the socket's buffer was full.
_RETRY_SECONDS = 0.05


def check_shared_memory(user: str) -> None:
    """Raise an error on a system whose processes cannot share memory by file
    descriptors."""
    if not (hasattr(socket, 'send_fds') and hasattr(select, 'poll')):
        raise NotImplementedError(
            f'{user} needs Unix sockets that pass file descriptors between '
            f'processes, which {sys.platform} does not have: read the data '
            'stream itself, or run the program on Linux or macOS')


class ChannelClosed(ConnectionError):  # noqa: N818 - a state
    """The process at the other end has ended or closed the connection."""


class Message(NamedTuple):
    """A message: a few numbers, some bytes, and at most one file
    descriptor."""

    kind: int
    epoch: int
    first: int = 0
    second: int = 0
    third: int = 0
    payload: bytes = b''
    descriptor: int | None = None


class Peer:
    """The process at the other end of a channel: reports whether it has ended.

    The connection alone does not show that, since a child of the process may
    hold the connection open.

    `pid`: identifier of a process that is running now.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.descriptor: int | None = None
        if hasattr(os, 'pidfd_open'):
            with suppress(OSError):
                self.descriptor = os.pidfd_open(pid)

    def is_gone(self) -> bool:
        """Return whether the process has ended."""
        if self.descriptor is not None:
            return _is_readable(self.descriptor, 0)
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def end(self, patience: float) -> None:
        """Wait until the process has ended; kill it if that takes too long.

        Without descriptors of processes (pidfd), it does nothing.

        `patience`: seconds to wait.
        """
        if self.descriptor is not None and not _is_readable(
                self.descriptor, patience):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)

    def close(self) -> None:
        """Close the descriptor of the process."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def _is_readable(descriptor: int, seconds: float) -> bool:
    # Not select.select, which fails for descriptors of 1024 and above.
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(int(1000 * seconds)))


class Channel:
    """One end of a connection that carries :class:`Message`.

    Several threads may send at the same time; only one at a time may receive.

    `connection`: socket of the Unix family, which can pass file descriptors.
    `peer`: the process at the other end: when it has ended, the channel is
        closed. None if no process is watched.
    `is_waiting`: whether the channel waits for messages. An exception that is
        raised during the wait, by Ctrl-C for example, loses no message.
    """

    def __init__(self, connection: socket.socket,
                 peer: Peer | None = None) -> None:
        self.connection = connection
        self.connection.setblocking(False)
        self.peer: Peer | None = None
        self._send_lock = threading.Lock()
        # Posted messages that the socket had no room for yet.
        self._unsent = bytearray()
        self._received = bytearray()
        self._descriptors: deque[int] = deque()
        self._messages: deque[Message] = deque()
        self._ended = False
        self.is_waiting = False
        close_in_children(connection)
        self._poll = select.poll()
        self._poll.register(connection, select.POLLIN)
        if peer is not None:
            self.watch(peer)

    def watch(self, peer: Peer) -> None:
        """Set the process at the other end: when it has ended, the channel is
        closed."""
        self.peer = peer
        if peer.descriptor is not None:
            self._poll.register(peer.descriptor, select.POLLIN)

    @staticmethod
    def pair() -> tuple[socket.socket, socket.socket]:
        """Return the two ends of a new connection."""
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)

    @fault_point('channel send')
    def send(self, *messages: Message) -> None:
        """Send messages; wait only while the connection's buffer is full."""
        data: bytes | bytearray = b''.join(map(_pack, messages))
        descriptors = [message.descriptor for message in messages
                       if message.descriptor is not None]
        with self._send_lock:
            if self._unsent:
                data, self._unsent = self._unsent + data, bytearray()
            sent = self._send_part(data, descriptors)
            while sent < len(data):
                sent += self._send_part(memoryview(data)[sent:], [])

    def post(self, *messages: Message) -> None:
        """Send messages without descriptors, without waiting.

        If the connection's buffer is full, the rest is sent when this side
        receives or sends next.
        """
        with self._send_lock:
            self._unsent += b''.join(map(_pack, messages))
            self._send_unsent()

    def _send_unsent(self) -> None:
        try:
            while self._unsent:
                del self._unsent[:self.connection.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def _send_part(self, data: bytes | bytearray | memoryview,
                   descriptors: list[int]) -> int:
        while True:
            try:
                if not descriptors:
                    return self.connection.send(data)
                return socket.send_fds(self.connection, [data], descriptors)
            except BlockingIOError:
                self._wait_to_send()
            except OSError as error:
                raise ChannelClosed(str(error)) from error

    def _wait_to_send(self) -> None:
        poll = select.poll()
        poll.register(self.connection, select.POLLOUT)
        while not poll.poll(1000):
            if self.peer is not None and self.peer.is_gone():
                raise ChannelClosed('the other process is gone')

    def receive(self, timeout: float | None = None) -> Message | None:
        """Wait for the next message and return it; None after `timeout`
        seconds."""
        if self._messages:
            return self._messages.popleft()
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._messages:
            if self._ended:
                raise ChannelClosed('the other side is gone')
            remaining = (1.0 if deadline is None
                         else deadline - time.monotonic())
            if remaining <= 0:
                return None
            longest = 1.0
            if self._unsent:
                with self._send_lock, suppress(ChannelClosed):
                    self._send_unsent()
                longest = _RETRY_SECONDS
            # Waiting first is cheaper than the exception of an empty read.
            if self._wait(min(remaining, longest)):
                self._read()
        return self._messages.popleft()

    def drain(self) -> list[Message]:
        """Return the messages that have arrived, without waiting."""
        if self._poll.poll(0):
            self._read()
        if self._ended and not self._messages:
            raise ChannelClosed('the other side is gone')
        messages = list(self._messages)
        self._messages.clear()
        return messages

    def wait(self, timeout: float) -> None:
        """Wait until a message arrives, or the other side is gone, for at most
        `timeout` seconds."""
        if not self._messages and not self._ended:
            self._wait(timeout)

    def is_cut(self, timeout: float) -> bool:
        """Wait until the other side is gone, for at most `timeout` seconds;
        return whether it is.

        Messages that arrive do not end the wait.
        """
        poll = select.poll()
        poll.register(self.connection, getattr(select, 'POLLRDHUP', 0))
        if self.peer is not None and self.peer.descriptor is not None:
            poll.register(self.peer.descriptor, select.POLLIN)
        if poll.poll(int(timeout * 1000)):
            return True
        return (self.peer is not None and self.peer.descriptor is None
                and self.peer.is_gone())

    def _wait(self, timeout: float) -> bool:
        self.is_waiting = True
        ready = self._poll.poll(max(1, int(timeout * 1000)))
        self.is_waiting = False
        if self.peer is None:
            return bool(ready)
        if self.peer.descriptor is None:
            gone = not ready and self.peer.is_gone()
        else:
            gone = any(descriptor == self.peer.descriptor
                       for descriptor, _ in ready)
        if gone:
            # Read the messages that it sent before it ended.
            while self._read():
                pass
            self._ended = True
        return bool(ready)

    @fault_point('channel receive')
    def _read(self) -> bool:
        """Read the bytes that have arrived; return whether there were any."""
        try:
            data, ancillary, flags, _ = self.connection.recvmsg(
                _CHUNK, socket.CMSG_LEN(_MOST_DESCRIPTORS * _DESCRIPTOR))
        except BlockingIOError:
            return False
        except OSError:
            self._ended = True
            return False
        if not data:
            self._ended = True
            return False
        for _, _, sent in ancillary:
            self._descriptors.extend(array.array(
                'i', sent[:len(sent) - len(sent) % _DESCRIPTOR]))
        if flags & socket.MSG_CTRUNC:
            self._ended = True
            # Some descriptors are missing, so the received ones are of no use.
            self._close_descriptors()
            raise OSError(
                errno.EMFILE, 'shared memory of another process cannot be '
                'received, since this one has as many files open as it may: '
                'open fewer, or raise the limit (ulimit -n)')
        self._received += data
        self._split()
        return True

    def _split(self) -> None:
        """Split the received bytes into messages."""
        start = 0
        while len(self._received) - start >= _HEADER.size:
            kind, epoch, first, second, third, length = _HEADER.unpack_from(
                self._received, start)
            end = start + _HEADER.size + length
            if end > len(self._received):
                break
            payload = bytes(
                memoryview(self._received)[start + _HEADER.size:end])
            descriptor = self._descriptors.popleft() if kind >> 31 else None
            self._messages.append(Message(
                kind & 0x7fffffff, epoch, first, second, third, payload,
                descriptor))
            start = end
        del self._received[:start]

    def cut(self) -> None:
        """End the connection, even while another thread waits for it."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close this end; closing twice is harmless."""
        self._ended = True
        self.connection.close()
        if self.peer is not None:
            self.peer.close()
        self._close_descriptors()
        for message in self._messages:
            if message.descriptor is not None:
                os.close(message.descriptor)
        self._messages.clear()

    def _close_descriptors(self) -> None:
        """Close the descriptors of incomplete messages."""
        while self._descriptors:
            os.close(self._descriptors.popleft())


def _pack(message: Message) -> bytes:
    has_descriptor = message.descriptor is not None
    return _HEADER.pack(
        message.kind | (has_descriptor << 31), message.epoch,
        message.first, message.second, message.third,
        len(message.payload)) + message.payload


def close_in_children(connection: socket.socket) -> None:
    """Close a connection in each child that this process forks from now on.

    A child must not send messages for its parent, or keep the connection open.
    """
    _connections.add(connection)


_connections = each_at_fork(Step.OWNERSHIP, in_child=socket.socket.close)
