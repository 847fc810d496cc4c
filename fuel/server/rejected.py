"""Count and log connections and messages that are rejected."""
from __future__ import annotations

import logging
import time

import zmq
from zmq.utils.monitor import recv_monitor_message

log = logging.getLogger(__name__)

# Seconds between two lines of the log, however much comes.
_QUIET = 1.0


class RejectedPeers:
    """Counts messages and connections that are not of the protocol.

    `monitor`: readable when there is something for :meth:`read_events`.
    """

    def __init__(self, router: zmq.Socket[bytes],
                 counts: dict[str, int]) -> None:
        self._router = router
        self._counts = counts
        self.monitor = router.get_monitor_socket(
            zmq.EVENT_ACCEPTED | zmq.EVENT_HANDSHAKE_SUCCEEDED
            | zmq.EVENT_DISCONNECTED)
        # Connections that have not shaken hands.  A success does not say
        # whose it is, so this may hold one in the place of another.
        self._pending: list[int] = []
        self._next_line = 0.0
        self._unlogged = 0

    def read_events(self) -> None:
        """Read which connections were made and cut."""
        while self.monitor.poll(0):
            event = recv_monitor_message(self.monitor)
            if event['event'] == zmq.EVENT_ACCEPTED:
                self._pending.append(event['value'])
            elif event['event'] == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                del self._pending[-1:]
            elif event['value'] in self._pending:
                self._pending.remove(event['value'])
                self._drop('connections', 'it does not speak ZeroMQ as '
                           'clients of this Fuel do')

    def reject_message(self, error: Exception) -> None:
        """Count a message that is not of the protocol."""
        self._drop('messages', error)

    def _drop(self, what: str, why: object) -> None:
        self._counts[f'dropped {what}'] += 1
        now = time.monotonic()
        if now < self._next_line:
            self._unlogged += 1
            return
        self._next_line = now + _QUIET
        log.warning('dropped a %s: %s (%d others since the last line)',
                    what[:-1], why, self._unlogged)
        self._unlogged = 0

    def close(self) -> None:
        """Close the monitor, before the socket itself is closed."""
        self._router.disable_monitor()
        self.monitor.close()
