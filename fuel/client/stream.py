"""The stream that reads from a server."""
from __future__ import annotations

import os
import secrets
import weakref
from collections.abc import Sequence
from typing import Any

from fuel import config
from fuel.client.channel import Options
from fuel.client.connection import Connection
from fuel.client.session import ServerSession
from fuel.epochs.epoch import Epoch
from fuel.epochs.skipped import Skipped
from fuel.epochs.stage import stage_of
from fuel.epochs.state import RUNNING
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.typing import AxisLabels, Request, State
from fuel.utils.checks import positive
from fuel.wire.wakeup import check_platform
from fuel.workers.remote_stream import (
    RemoteStage, RemoteStream, last_session, session_of)


class ServedStage(RemoteStage):
    """The stage of a stream whose epochs a server makes."""

    __slots__ = ()

    def open_session(self) -> ServerSession:
        """Return the session of the epoch that comes next."""
        shown = vars(self.stream)
        last = last_session(self.stream) or shown.get('session')
        if last is not None and self.is_left():
            last.leave()
        pending, resume = self.pending, self.after
        if pending is not None:
            resume = pending['leftover']
            if resume is not None and pending['epoch'] != RUNNING:
                resume = {**resume, 'over': True, 'loaded': True}
        elif last is not None:
            resume = last.last_state()
        session = ServerSession(resume)
        sessions = shown.setdefault('_sessions', [])
        sessions[:] = [other for other in sessions
                       if not (other.left or other.finished)]
        sessions.append(session)
        return session

    def state_of(self, epoch: Epoch) -> State:
        """Return the state of an epoch; at its end, with the server's
        position."""
        state = super().state_of(epoch)
        if epoch.finished:
            state = {**state, 'leftover': session_of(epoch).state()}
        return state

    @property
    def skipped(self) -> Skipped:
        """The examples that the server's epoch has left out (Skipped)."""
        session = last_session(self.stream)
        saved = None if session is None else session.state()
        state = None if saved is None else saved['state']
        return Skipped() if state is None else Skipped.in_state(state)

    @property
    def queue(self) -> tuple[int, int]:
        """Number of prefetched batches, and its limit (int, int)."""
        made = vars(self.stream).get('_made', [])
        return sum(len(one.queue) for one in made), self.stream.hwm

    @property
    def is_running(self) -> bool:
        """Whether there is a connection to the server (bool)."""
        return bool(self.stream._connections())

    def time_all(self, *, is_exact: bool) -> None:
        """Request that the server times each item, or that it stops doing
        so."""
        for connection in self.stream._connections():
            connection.report_later(type='measure', is_exact=is_exact)

    def adopt(self, epoch: Epoch, iterator: EpochIterator) -> None:
        """Make an epoch the stream's latest one; the client leaves the epoch
        when its iterator is freed."""
        super().adopt(epoch, iterator)
        session = session_of(epoch)
        if session is not None:
            session.is_exact = self.meter.is_exact
            # When the iterator is freed, the client leaves the epoch, and the
            # other clients get its batches.
            weakref.finalize(iterator, session.leave).atexit = False


class ServerDataStream(RemoteStream):
    """A stream whose batches come from a server in another process.

    Parameters
    ----------
    sources : tuple of str
        Names of the sources that the server sends, in the server's order.
        They may differ from the server's names.  A warning is logged if the
        server uses one of these names for another source.
    produces_examples : bool, optional
        Whether the server must send examples (True) or batches (False); the
        other kind is an error.  Defaults to None: the kind that the server
        reports.
    host : str, optional
        Defaults to ``'localhost'``.
    port : int, optional
        Defaults to 5557.
    hwm : int, optional
        Number of batches that the client prefetches: batches that the server
        has sent and that the iterator has not returned.  The server's own
        `hwm` applies if it is smaller.  Defaults to 10.
    axis_labels : dict, optional
        Maps source names to tuples of strings.  Defaults to None: the labels
        of the served stream.
    rank : int, optional
        Rank of this client, for servers with ``sharing='rank'``.
    timeout : float, optional
        Seconds to wait for a server before the first connection.  Defaults to
        ``config.connect_timeout``, 60.
    reconnect : float, optional
        Seconds to wait for the successor of a server that has vanished.
        Defaults to ``config.reconnect_timeout``, 30; 0 raises at once.
    stalled : float, optional
        Seconds without a batch after which a pipeline counts as stalled.
        Defaults to ``config.stall_timeout``, 600.
    shared_memory : bool, optional
        Whether a server on the same host may send arrays through shared
        memory.  Defaults to True.
    curve : str or path, optional
        Directory with this client's keys, for encrypted connections.

    Raises
    ------
    fuel.exceptions.ServerError
        By the epoch iterator, if no server answers, or the server refuses the
        client.

    Notes
    -----
    The stream connects when it first needs data, or an attribute that only the
    server knows.  `close`, `reset`, `next_epoch` and pickling never connect.

    With several clients, each batch goes to exactly one of them, unless the
    server has another `sharing`.  An epoch ends for all clients when all its
    batches were delivered.  A client that leaves an epoch joins the next one.

    Examples
    --------
    In one program ``start_server(stream)``, in another::

        stream = ServerDataStream(('features', 'targets'))
        for features, targets in stream.get_epoch_iterator():
            ...
    """

    __fuel_stage__ = ServedStage
    unsaved_arguments = (
        'curve', 'host', 'hwm', 'port', 'rank', 'reconnect', 'timeout')

    def __init__(self, sources: Sequence[str],
                 produces_examples: bool | None = None,
                 host: str = 'localhost', port: int = 5557, hwm: int = 10,
                 axis_labels: AxisLabels | None = None, *,
                 rank: int | None = None,
                 timeout: float | None = None,
                 reconnect: float | None = None,
                 stalled: float | None = None, shared_memory: bool = True,
                 curve: str | os.PathLike[str] | None = None) -> None:
        check_platform('ServerDataStream')
        if isinstance(sources, str):
            raise ValueError('sources is a tuple of names, got '
                             f'{sources!r}: write ({sources!r},)')
        super().__init__(axis_labels=axis_labels)
        self.sources = sources
        self.host, self.port = host, port
        self.hwm = positive('hwm', hwm)
        self.rank = rank
        self._set_deadlines(timeout, reconnect, stalled)
        self.shared_memory = shared_memory
        self.curve = curve
        if produces_examples is not None:
            self._produces_examples = bool(produces_examples)

    def _set_deadlines(self, timeout: float | None, reconnect: float | None,
                       stalled: float | None) -> None:
        """Set the time limits in seconds; None means the value of the
        setting."""
        self.timeout: float = (
            config.connect_timeout if timeout is None else timeout)
        self.reconnect: float = (
            config.reconnect_timeout if reconnect is None else reconnect)
        self.stalled: float = (
            config.stall_timeout if stalled is None else stalled)

    # Attributes that may need a request to the server.
    remote_attributes = ('produces_examples', 'axis_labels')

    @property
    def runs_in(self) -> str:
        """``'server '``, then the server's host and port (str)."""
        return f'server {self.host}:{self.port}'

    @property
    def produces_examples(self) -> bool:
        """Whether the server sends examples, as opposed to batches (bool)."""
        if self._produces_examples is None:
            examples = self._greet().get('examples')
            if not isinstance(examples, bool):
                raise ValueError(
                    'the served stream does not know whether it produces '
                    'examples: pass produces_examples here')
            return examples
        return self._produces_examples

    @produces_examples.setter
    def produces_examples(self, value: bool) -> None:
        self._produces_examples = value

    @property
    def axis_labels(self) -> Any:
        """Maps source names to tuples of strings (dict), or None."""
        if self._axis_labels is not None:
            return self._axis_labels
        labels = self._greet().get('axis_labels')
        if not isinstance(labels, list):
            return None
        return {source: tuple(label) if isinstance(label, list) else label
                for source, label in zip(self.sources, labels, strict=False)}

    @axis_labels.setter
    def axis_labels(self, value: AxisLabels | None) -> None:
        self._axis_labels = value

    @property
    def connected(self) -> bool:
        """Whether the client is connected to a server now (bool)."""
        return any(connection.welcome is not None
                   for connection in self._connections())

    def connect(self) -> None:
        """Connect to the server now, before the first batch is requested."""
        self._greet()

    def _greet(self) -> dict[str, Any]:
        connections = self._connections()
        if not connections:
            self._add_connection()
        return self._connections()[0].wait_for_server()

    def _connections(self) -> list[Connection]:
        """Return the open connections that this process has made."""
        with stage_of(self).lock:
            mine = [connection for connection
                    in vars(self).setdefault('_made', [])
                    if connection.is_usable()]
            self._made = mine
            return mine

    def _add_connection(self) -> Connection:
        host = f'[{self.host}]' if ':' in self.host else self.host
        if host == 'localhost':
            # By default servers listen at this address; the name 'localhost'
            # may stand for another one.
            host = '127.0.0.1'
        connection = Connection(Options(
            f'tcp://{host}:{self.port}', self.sources,
            self._produces_examples, self.hwm, self.rank, self.timeout,
            self.reconnect, self.stalled, self.shared_memory, self.curve),
            secrets.token_hex(8))
        connection.finalizer = weakref.finalize(self, connection.close)
        self._made.append(connection)
        return connection

    def _connection_for(self, session: ServerSession) -> Connection:
        """Return a connection that no other running epoch uses."""
        with stage_of(self).lock:
            used = [other.connection
                    for other in vars(self).setdefault('_sessions', [])
                    if other is not session
                    and not (other.left or other.finished)]
            for connection in self._connections():
                if connection not in used:
                    return connection
            return self._add_connection()

    def _refuse(self, request: Request) -> None:
        if request is not None:
            raise ValueError('the server decides what comes next, so there '
                             f'are no requests; got {request!r}')

    def get_leftover(self) -> Any:
        """Return the state of the server after the last delivered batch.

        See :meth:`AbstractDataStream.get_leftover`.
        """
        return self.session.state() if 'session' in vars(self) else None

    def set_leftover(self, leftover: object) -> None:
        """Do nothing: the epoch has begun from the left-over already."""

    def reset(self) -> None:
        """Leave the present epoch; the next iterator begins another one."""
        if 'session' in vars(self):
            self.session.leave()

    def next_epoch(self) -> None:
        """Leave the present epoch; the next iterator begins another one."""
        self.reset()

    def close(self) -> None:
        """Leave the epoch and disconnect; a new epoch iterator connects again.

        A thread that waits for a batch gets an error.
        """
        self._disconnect()
        # Another thread that has the lock may have connected meanwhile.
        stage: Any = stage_of(self)
        if stage.lock_to_close(self._disconnect):
            self._made = []
            stage.lock.release()

    def _disconnect(self) -> None:
        for session in list(vars(self).get('_sessions', [])):
            session.leave()
        for connection in list(vars(self).get('_made', [])):
            connection.close()
            if connection.finalizer is not None:
                # The finalizer would keep the connection and its memory alive.
                connection.finalizer.detach()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        for name in ('_made', '_sessions'):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if '_axis_labels' not in state:
            # In Fuel 0.2.0, streams had no deadlines, and the labels were an
            # ordinary attribute.
            self._set_deadlines(self.timeout, self.reconnect, self.stalled)
            vars(self).pop('connected', None)
            self._axis_labels = vars(self).pop('axis_labels', None)


# Pickles and error texts name the public path.
ServerDataStream.__module__ = 'fuel.streams'
