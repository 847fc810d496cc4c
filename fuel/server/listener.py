"""The socket on which a server listens."""
from __future__ import annotations

import errno
import os
import time
from typing import Any

import zmq

from fuel.server.rejected import RejectedPeers
from fuel.wire.messages import HEARTBEAT
from fuel.wire.wakeup import WakeUp

# Seconds that a port may be busy.
_BUSY = 2.0
# Messages, besides batches, that may wait for a peer, or for the server.
_MOST_WAITING = 200


class Listener:
    """A bound ROUTER socket, with encryption and a count of rejected peers.

    `address`: such as ``'tcp://127.0.0.1:5557'``.
    """

    def __init__(self, host: str, port: int,
                 curve: str | os.PathLike[str] | None,
                 counts: dict[str, int], largest: int, hwm: int) -> None:
        self.keys = None
        if curve is not None:
            from fuel.wire.curve import ServerKeys
            self.keys = ServerKeys(curve)
        self._context: zmq.Context[Any] = zmq.Context()
        self.router: zmq.Socket[bytes] = self._context.socket(zmq.ROUTER)
        self.rejected = RejectedPeers(self.router, counts)
        try:
            self._configure(largest, hwm)
            self._bind(host, port)
        except BaseException:
            self.close(linger=0)
            self._context.term()
            raise

    def _configure(self, largest: int, hwm: int) -> None:
        router = self.router
        router.linger = 1000
        router.router_mandatory = 1
        # Messages to, and from, one peer: far more than a client leaves
        # unread, of which `hwm` are batches.
        router.sndhwm = router.rcvhwm = _MOST_WAITING + 2 * hwm
        router.maxmsgsize = largest
        router.heartbeat_ivl, router.heartbeat_timeout = HEARTBEAT
        router.heartbeat_ttl = HEARTBEAT[1]
        if self.keys is not None:
            self.keys.protect(self._context, router)

    def _bind(self, host: str, port: int) -> None:
        deadline = time.monotonic() + _BUSY
        while True:
            try:
                self.router.bind(f'tcp://{host}:{port or "*"}')
                break
            except zmq.ZMQError as error:
                if error.errno == errno.EADDRINUSE \
                        and time.monotonic() <= deadline:
                    time.sleep(0.05)
                    continue
                why = ('' if error.errno != errno.EADDRINUSE else
                       ': another program listens there, perhaps another '
                       'server')
                raise zmq.ZMQError(
                    error.errno, f'cannot listen at tcp://{host}:'
                    f'{port or "*"}: {error.strerror}{why}') from None
        self.endpoint = self.router.getsockopt_string(zmq.LAST_ENDPOINT)
        self.address = self.endpoint.replace('//0.0.0.0:', '//*:')

    def make_poller(self, wake_up: WakeUp) -> zmq.Poller:
        """Return a poller of the socket, its events and a wake-up."""
        poller = zmq.Poller()
        for source in (self.router, self.rejected.monitor,
                       wake_up.descriptor):
            poller.register(source, zmq.POLLIN)
        return poller

    def unbind(self) -> None:
        """Free the port; clients that are connected stay so."""
        self.router.unbind(self.endpoint)

    def close(self, linger: int | None = None) -> None:
        """Close the socket; closing again does nothing."""
        if not self.router.closed:
            self.rejected.close()
            self.router.close(linger)
            if self.keys is not None:
                self.keys.stop()

    def end(self) -> None:
        """Wait until all is sent, and free the rest."""
        self._context.term()
