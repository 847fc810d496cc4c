"""A client's connection to a server: one socket for all its threads."""
from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from fuel.client.channel import Delivery, LostError, Options, ServerChannel
from fuel.exceptions import ServerError
from fuel.typing import State
from fuel.utils.threads import end_thread_at_exit
from fuel.wire.header import Fields

log = logging.getLogger(__name__)

# Seconds after which a warning says what the client waits for.
_WARNING_SECONDS = 2.0
# Seconds to wait for a batch before reporting a stall to the server.
_MISSED_SECONDS = 0.01
# Seconds between reads of the socket while no thread waits for it.
_POLL_SECONDS = 0.05
# If the socket was not read for so many seconds, read it before using a
# message that was read earlier.
_STALE_SECONDS = 1.0
# Seconds after which a waiting thread checks for errors and timeouts.
_RECHECK_SECONDS = 0.25
# Text about the wait to join an epoch. Other clients may prolong this wait.
_PLACE = 'a place in an epoch'
# Seconds between requests for the measurements of the stages.
_MEASURES_SECONDS = 1.0


class Connection(ServerChannel):
    """The connection of a client to a server.

    A thread that waits for the server uses the socket itself: to pass each
    message to another thread would take longer than to handle most messages.
    While no thread waits, a thread of the connection answers the server.  A
    lock guards the socket and all attributes.  The user's threads acquire the
    lock by `with` alone: otherwise Ctrl-C might leave it locked for ever.
    """

    def __init__(self, options: Options, client: str) -> None:
        super().__init__(options, client)
        self.owner = os.getpid()
        self._next_ask, self._asks_exactly = 0.0, False
        # Closes the connection when its stream dies.
        self.finalizer: weakref.finalize[..., object] | None = None
        self._turn = threading.RLock()
        self._thread = threading.Thread(
            target=self._run, name='fuel-client', daemon=True)
        try:
            self._thread.start()
        except BaseException:
            # After Ctrl-C the thread may run; nothing else would end it.
            self.closing.set()
            raise

    def is_usable(self) -> bool:
        """Return whether the connection is open and was made in this
        process."""
        return not self.closing.is_set() and self.owner == os.getpid()

    def report(self, **fields: object) -> None:
        """Send a message to the server, at once."""
        self.outgoing.append(fields)
        with self._turn:
            self.flush()

    def report_later(self, **fields: object) -> None:
        """Queue a message for the connection's thread; finalizers may call
        this."""
        self.outgoing.append(fields)
        self.wake_up()

    def close(self) -> None:
        """Close the connection: socket and thread."""
        if not self.is_usable():
            return
        self.closing.set()
        self.wake_up()
        # The garbage collector may call this while this thread uses the
        # socket.
        is_mine: bool = self._turn._is_owned()  # type: ignore[attr-defined]
        if not is_mine and threading.current_thread() is not self._thread:
            self._thread.join(_WARNING_SECONDS)

    def wait_for_server(self) -> Fields:
        """Wait until a server answers, and return its welcome message."""
        patience = time.monotonic() + _WARNING_SECONDS
        while (welcome := self.welcome) is None:
            if self.refusal is not None:
                raise self.refusal
            self._check_open()
            now = time.monotonic()
            allowed = (self.options.reconnect if self.was_there
                       else self.options.timeout)
            if now - self.since >= allowed:
                raise ServerError(self._describe_absence(allowed))
            if now > patience:
                patience = float('inf')
                log.warning('waiting for a server at %s',
                            self.options.address)
            self._talk(lambda: self.welcome or self.refusal, 0.1)
        return welcome

    def _check_open(self) -> None:
        if self.closing.is_set():
            end_thread_at_exit()
            raise ServerError('the stream was closed')

    def _describe_absence(self, allowed: float) -> str:
        if self.was_there:
            return (f'the server at {self.options.address} has vanished, and '
                    f'no other came within {allowed} seconds (reconnect)')
        return (f'no server answers at {self.options.address} after '
                f'{allowed} seconds (timeout): is it running there, and on '
                'this port?')

    def join(self, resume: State | None) -> Fields:
        """Send a request to join an epoch, and return the server's answer."""
        self.wait_for_server()
        with self._turn:
            if self.welcome is None:
                raise LostError
            generation = self.generation
            self.join_number += 1
            self.joined = None
            self.queue.clear()
            self.outgoing.append({'type': 'join', 'join': self.join_number,
                                   'resume': resume})

        def answer() -> Any:
            self._check_generation(generation)
            return self.joined or self.queue
        self._wait(answer, _PLACE)
        return {**(self.joined or {}), 'generation': generation}

    def take(self, generation: int) -> Delivery:
        """Wait for the next message about the epoch, and return it."""
        def next_delivery() -> Any:
            self._check_generation(generation)
            return self.queue.popleft() if self.queue else None
        delivery: Delivery | None = self._talk(next_delivery, _MISSED_SECONDS)
        if delivery is None:
            self.report(type='waiting', join=self.join_number)
            delivery = self._wait(next_delivery, 'a batch')
        return delivery

    def ask_measures(self, *, is_exact: bool) -> None:
        """Request the measurements of the served stages, unless it was done
        recently.

        `is_exact`: whether the server times each item.  Then each call sends a
            request.
        """
        now = time.monotonic()
        if is_exact or self._asks_exactly or now >= self._next_ask:
            self._next_ask = now + _MEASURES_SECONDS
            self._asks_exactly = is_exact
            self.report(type='measure', is_exact=is_exact)

    def _check_generation(self, generation: int) -> None:
        if self.refusal is not None:
            raise self.refusal
        if self.welcome is None or generation != self.generation:
            raise LostError

    def _wait(self, find: Callable[[], Any], what: str) -> Any:
        """Wait until `find` returns a true value, and return that value."""
        start = time.monotonic()
        patience = start + 30 * _WARNING_SECONDS
        while not (found := self._talk(find, _RECHECK_SECONDS)):
            self._check_open()
            now = time.monotonic()
            if now - start > self.options.stalled:
                raise ServerError(self._describe_stall(what))
            if now > patience:
                patience = float('inf')
                self._request_stacks()
                log.warning('waiting for %s from %s%s', what,
                            self.options.address, self._because())
        return found

    def _request_stacks(self) -> None:
        """Request the stack of the server's pipeline and the reason why the
        server waits; wait a few seconds for the answer."""
        self.stacks, self.obstacle = None, ''
        self.report(type='stacks')
        deadline = time.monotonic() + _WARNING_SECONDS
        while self.stacks is None and time.monotonic() < deadline:
            self._talk(lambda: self.stacks, 0.1)

    def _because(self) -> str:
        return f': {self.obstacle}' if self.obstacle else ''

    def _describe_stall(self, what: str) -> str:
        self._request_stacks()
        said = (f'the server at {self.options.address} is there, but waiting '
                f'for {what} took more than {self.options.stalled} seconds '
                f'(stalled){self._because()}')
        if what == _PLACE and self.obstacle:
            return said
        return (f'{said}. Its pipeline is at:\n'
                f'{self.stacks or "unknown, since it does not answer"}')

    def _talk(self, find: Callable[[], Any], timeout: float) -> Any:
        """Call `find`; if it finds nothing, exchange messages once, for at
        most `timeout` seconds, and call it again."""
        with self._turn:
            self.is_waiting = False
            if time.monotonic() - self.last_look > _STALE_SECONDS:
                # The server may have sent this client's batches to other
                # clients.
                self.exchange(0)
            found = find()
            if not found:
                self.exchange(timeout)
                found = find()
            return found

    def _run(self) -> None:
        """Answer the server while no thread waits for it."""
        try:
            while not self.closing.wait(_POLL_SECONDS):
                if self._turn.acquire(blocking=False):
                    try:
                        self.exchange(0)
                    finally:
                        self._turn.release()
        finally:
            with self._turn:
                self.say_goodbye()
            self.end()

