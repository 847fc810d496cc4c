"""The server: sockets at the edge, one thread for them."""
from __future__ import annotations

import errno
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any, Self

import zmq

from fuel.server._clients import Session, kind_of
from fuel.server._epoch import RANK, SHARINGS, Epoch, Item, Member
from fuel.server._pipeline import (
    BATCH,
    BROKEN,
    END,
    FAILURE,
    OPENED,
    Pipeline,
    Result,
)
from fuel.transport._background import MAX_BYTES
from fuel.transport._changes import changed
from fuel.transport._pool import SlotPool
from fuel.wire import Limits, WireError, pack_header, unpack_header
from fuel.wire._header import VERSION, get_field, numbers_of
from fuel.wire._indices import from_ranges
from fuel.wire._wake import WakeUp

log = logging.getLogger(__name__)

# A client has little to say.
CLIENT_LIMITS = Limits(header=1 << 22, frames=0, total=0)
# Seconds between looks at whether clients are still there.
_PING = 0.3
# Milliseconds without a sign of life after which a connection is cut.
HEARTBEAT = 200, 800
# Seconds that a port may be busy, and that clients of a server that was
# started again have to come back before it goes on.
_BUSY, _RETURN = 2.0, 5.0
# Seconds that a client has to answer: its interpreter may be busy.
_MUTE = 60.0
# Batches that are asked of the pipeline at once.
_AHEAD = 2


class Server:
    """Serves the batches of a stream to other processes.

    Parameters
    ----------
    data_stream : AbstractDataStream
    port : int, optional
        Defaults to 5557; 0 takes a free one, see :attr:`address`.
    hwm : int, optional
        How many batches each client may have and not have handed out.  The
        smaller of this and the client's own counts.  Defaults to 10.
    host : str, optional
        Where to listen.  Defaults to ``'127.0.0.1'``: only processes of
        this host can connect.  ``'*'`` means every interface.
    sharing : str, optional
        What several clients get: ``'split'``, each batch goes to exactly
        one of them (the default); ``'all'``, each gets every batch;
        ``'rank'``, batch `i` goes to the client whose rank is ``i %
        num_clients``.
    num_clients : int, optional
        How many clients an epoch waits for before it begins.  Defaults to
        one; required with ``'rank'``.
    max_bytes : int, optional
        Shared memory for clients on this host.  Defaults to 1 GiB.
    curve : str or path, optional
        Directory of keys made by ``fuel-server keys``: then clients must
        have one, and everything is encrypted.

    Attributes
    ----------
    address : str
        Such as ``'tcp://127.0.0.1:5557'``.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream, ServerDataStream
    >>> stream = DataStream(IndexableDataset([1, 2, 3]),
    ...                     iteration_scheme=SequentialScheme(3, 2))
    >>> with Server(stream, port=0) as server:
    ...     with ServerDataStream(('data',), port=server.port) as client:
    ...         for batch, in client.get_epoch_iterator():
    ...             print(batch.tolist())
    [1, 2]
    [3]

    """

    def __init__(self, data_stream: Any, port: int = 5557, hwm: int = 10, *,
                 host: str = '127.0.0.1', sharing: str = 'split',
                 num_clients: int | None = None,
                 max_bytes: int = MAX_BYTES, curve: Any = None) -> None:
        if sharing not in SHARINGS:
            raise ValueError(f'sharing must be one of {SHARINGS}, got '
                             f'{sharing!r}')
        if sharing == RANK and num_clients is None:
            raise ValueError("sharing='rank' needs num_clients")
        if not isinstance(hwm, int) or isinstance(hwm, bool) or hwm < 1:
            raise ValueError(f'hwm must be a positive integer, got {hwm!r}')
        self.data_stream = data_stream
        self.hwm = hwm
        self.sharing = sharing
        self.num_clients = 1 if num_clients is None else num_clients
        self.address = ''
        self.run = secrets.token_hex(8)
        self.pool = SlotPool(max_bytes)
        self.counts = dict.fromkeys(
            ('batches', 'bytes', 'errors', 'epochs', 'dropped messages'), 0)
        self.waited = {'pipeline': 0.0, 'clients': 0.0}
        self._since = time.monotonic()
        self._host, self._wanted_port = host, port
        self._curve = curve
        self._sessions: dict[bytes, Session] = {}
        self._joiners: list[tuple[Session, int, Any]] = []
        self._epoch: Epoch | None = None
        self._is_open = False
        self._best: tuple[int, Any, Any] | None = None
        self._why: str | None = None
        self._deadline = 0.0
        self._outstanding = 0
        self._making: set[int] = set()
        self._need = 0
        self._wake_up = WakeUp()
        self._pipeline = Pipeline(data_stream, self._wake_up)
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port on which the server listens (int)."""
        return int(self.address.rpartition(':')[2])

    def start(self) -> None:
        """Bind the socket and serve in the background.

        Raises
        ------
        zmq.ZMQError
            If the port stays busy for two seconds, or the host is not one
            of this machine's.

        """
        self._context = zmq.Context()
        self._router = self._context.socket(zmq.ROUTER)
        try:
            self._configure(self._router)
            self._bind()
        except BaseException:
            self._router.close(0)
            self._context.term()
            raise
        self._pipeline.start()
        self._thread = threading.Thread(
            target=self._serve, name='fuel-server', daemon=True)
        self._thread.start()

    def _configure(self, router: Any) -> None:
        router.linger = 1000
        router.router_mandatory = 1
        # What is under way is bounded by what clients ask for.
        router.sndhwm = router.rcvhwm = 0
        router.maxmsgsize = CLIENT_LIMITS.header
        router.heartbeat_ivl, router.heartbeat_timeout = HEARTBEAT
        router.heartbeat_ttl = HEARTBEAT[1]
        if self._curve is not None:
            from fuel.wire._curve import protect_server
            self._authenticator = protect_server(
                self._context, router, self._curve)

    def _bind(self) -> None:
        port = self._wanted_port or '*'
        deadline = time.monotonic() + _BUSY
        while True:
            try:
                self._router.bind(f'tcp://{self._host}:{port}')
                break
            except zmq.ZMQError as error:
                if error.errno != errno.EADDRINUSE \
                        or time.monotonic() > deadline:
                    error.add_note(
                        f'while binding tcp://{self._host}:{port}')
                    raise
                time.sleep(0.05)
        endpoint = self._router.get_string(zmq.LAST_ENDPOINT)
        self._endpoint = endpoint
        self.address = endpoint.replace('//0.0.0.0:', '//*:')

    def stop(self, timeout: float = 2.0) -> None:
        """Stop listening at once, and end; harmless if stopped before.

        Parameters
        ----------
        timeout : float, optional
            Seconds that the pipeline has for the batch it is making.

        """
        self._stopped.set()
        self._wake_up()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._pipeline.stop(timeout)
            self._context.term()
            self._wake_up.close()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the server ends.

        Parameters
        ----------
        timeout : float, optional
            Seconds.  Defaults to None: without limit.

        Returns
        -------
        bool
            Whether it has ended.

        """
        ended = self._ended.wait(timeout)
        if self._failure is not None:
            raise self._failure
        return ended

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # Everything below runs in the server's thread.

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._router, zmq.POLLIN)
        poller.register(self._wake_up.descriptor, zmq.POLLIN)
        next_ping = time.monotonic()
        try:
            while not self._stopped.is_set():
                poller.poll(int(_PING * 1000))
                self._wake_up.clear()
                self._receive()
                while self._pipeline.results:
                    self._take(self._pipeline.results.popleft())
                if time.monotonic() > next_ping:
                    next_ping = time.monotonic() + _PING
                    self._ping()
                self._advance()
        except BaseException as error:
            log.exception('the server has failed')
            self._failure = error
        finally:
            self._router.unbind(self._endpoint)
            for session in self._sessions.values():
                self._send(session, {'type': 'bye'})
            self._router.close()
            authenticator = getattr(self, '_authenticator', None)
            if authenticator is not None:
                authenticator.stop()
            self._ended.set()

    def _receive(self) -> None:
        while True:
            try:
                parts = self._router.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            except zmq.ZMQError as error:
                if error.errno == errno.EINTR:
                    return
                raise
            try:
                if len(parts) != 2:
                    raise WireError(
                        f'a message has 2 parts, got {len(parts)}')
                fields = unpack_header(parts[1], CLIENT_LIMITS)
                self._handle(parts[0], fields)
            except (WireError, TypeError, ValueError, LookupError) as error:
                # Nobody's bytes may end the service of the others.
                self.counts['dropped messages'] += 1
                log.warning('dropped a message: %s', error)

    def _handle(self, identity: bytes, fields: dict[str, Any]) -> None:
        kind = get_field(fields, 'type', str)
        if kind == 'hello':
            self._greet(identity, fields)
            return
        if kind == 'status':
            self._router.send_multipart([identity, pack_header(
                {'type': 'status', 'status': self._status()})])
            return
        session = self._sessions.get(identity)
        if session is None:
            raise WireError(f'{kind[:20]!r} before a hello')
        handler: Callable[[Session, Any], None] | None = {
            'ready': self._on_ready, 'join': self._on_join,
            'handed': self._on_handed, 'leave': self._on_leave,
            'give': self._on_give, 'waiting': self._on_waiting,
            'stacks': self._on_stacks, 'bye': self._on_bye,
        }.get(kind)
        if handler is None:
            raise WireError(f'unknown message {kind[:20]!r}')
        handler(session, fields)

    def _greet(self, identity: bytes, fields: dict[str, Any]) -> None:
        """Answer the first message of a client."""
        session = Session(identity, fields, self.hwm)
        refusal = session.check(
            fields, self.data_stream, self.sharing, self.num_clients)
        if refusal:
            self._router.send_multipart([identity, pack_header(
                {'type': 'refuse', 'error': refusal})])
            return
        for other in list(self._sessions.values()):
            if other.client == session.client:
                self._lose(other)
        self._sessions[identity] = session
        self._send(session, {
            'type': 'welcome', 'version': VERSION, 'run': self.run,
            'sources': list(self.data_stream.sources),
            'examples': kind_of(self.data_stream),
            'axis_labels': _labels(self.data_stream),
            'sharing': self.sharing, 'probe': session.make_probe()})

    def _on_ready(self, session: Session, fields: dict[str, Any]) -> None:
        session.check_proof(get_field(fields, 'proof', str, ''))

    def _on_join(self, session: Session, fields: dict[str, Any]) -> None:
        number = get_field(fields, 'join', int)
        resume = get_field(fields, 'resume', dict, None)
        self._drop_out(session, for_good=True)
        # Whom this client follows may have died a moment ago.
        self._ping()
        session.join = number
        self._joiners.append((session, number, resume))

    def _member(self, session: Session, fields: dict[str, Any]) -> Any:
        """Return the epoch and member that a message is about, if any."""
        if get_field(fields, 'join', int) != session.join \
                or self._epoch is None:
            return None
        return self._epoch.members.get(session.client)

    def _on_handed(self, session: Session, fields: dict[str, Any]) -> None:
        for number in numbers_of(fields, 'release'):
            session.release(number, self.pool)
        if self._member(session, fields) is None:
            return
        assert self._epoch is not None
        for index in numbers_of(fields, 'indices'):
            item = self._epoch.hand(session.client, index)
            if item is None:
                continue
            session.keep(item)
            if self._best is None or item.index > self._best[0]:
                self._best = item.index, item.base, item.fields.get('changes')

    def _on_leave(self, session: Session, fields: dict[str, Any]) -> None:
        if get_field(fields, 'join', int) == session.join:
            self._drop_out(session, for_good=True)

    def _on_give(self, session: Session, fields: dict[str, Any]) -> None:
        if self._member(session, fields) is not None:
            assert self._epoch is not None
            for item in self._epoch.give_back(
                    session.client, from_ranges(fields.get('indices'))):
                self._free(item)

    def _on_waiting(self, session: Session, fields: dict[str, Any]) -> None:
        member = self._member(session, fields)
        if member is not None:
            member.waiting = True

    def _on_stacks(self, session: Session, _: dict[str, Any]) -> None:
        self._send(session, {'type': 'stacks',
                             'text': self._pipeline.stack()})

    def _on_bye(self, session: Session, _: dict[str, Any]) -> None:
        self._lose(session, for_good=True)

    # Epochs.

    def _advance(self) -> None:
        """Do all that can be done now."""
        self._admit()
        epoch = self._epoch
        if epoch is None or not self._is_open:
            self._account(bool(self._outstanding))
            return
        self._ask(epoch)
        while (returned := epoch.take_returned(self._making)) is not None:
            self._deliver(returned[0], returned[1])
            self._ask(epoch)
        lender = epoch.lender()
        if lender is not None:
            lender.asked_back = time.monotonic()
            self._send_to(lender, {'type': 'revoke'})
        for member in epoch.ended():
            self._send_to(member, {'type': 'end', 'state': epoch.final})
            epoch.leave(member.client, for_good=True)
        self._account(self._outstanding > 0)

    def _account(self, is_making: bool) -> None:
        now = time.monotonic()
        self.waited['pipeline' if is_making else 'clients'] += (
            now - self._since)
        self._since = now

    def _admit(self) -> None:
        """Let clients that wait join the epoch that they can join."""
        waiting, self._joiners = self._joiners, []
        for place, joiner in enumerate(waiting):
            session, number, resume = joiner
            if session.join != number \
                    or self._sessions.get(session.identity) is not session:
                continue
            epoch = self._epoch
            if epoch is not None and epoch.is_open_to(
                    session.client, self._goes_on(epoch, resume)):
                self._join(epoch, session, resume)
            elif epoch is None or not epoch.members:
                # One that has come to an end wants a new epoch, as one
                # that never began.
                wants_new = resume is None or resume.get('over')
                if wants_new and self._count_waiting(
                        [*waiting[place:], *self._joiners]
                        ) < self.num_clients:
                    self._joiners.append(joiner)
                    continue
                try:
                    self._begin(session, resume)
                except WireError:
                    # Not a state of ours: the client gets no epoch.
                    session.join = 0
                    raise
            else:
                self._joiners.append(joiner)

    def _count_waiting(self, joiners: list[Any]) -> int:
        """Return how many clients wait, each once, without those gone."""
        return len({
            session.client for session, number, _ in joiners
            if session.join == number
            and self._sessions.get(session.identity) is session})

    def _goes_on(self, epoch: Epoch, resume: Any) -> bool:
        return (resume is not None and resume.get('run') == self.run
                and resume.get('epoch') == epoch.number
                and not resume.get('over'))

    def _join(self, epoch: Epoch, session: Session, resume: Any) -> None:
        """Make a client a member of the present epoch."""
        if self._goes_on(epoch, resume):
            epoch.join(
                session.client, session.hwm, session.rank,
                from_ranges(resume.get('done', [])),
                get_field(resume, 'floor', int, 0),
                get_field(resume, 'client', str, ''))
            for item in epoch.drop_needless():
                self._free(item)
            self._seek(epoch, resume)
        else:
            member = epoch.join(session.client, session.hwm, session.rank)
            member.done.raise_floor(epoch.start)
        if self._is_open:
            self._say_joined(session)

    def _say_joined(self, session: Session) -> None:
        epoch = self._epoch
        assert epoch is not None
        self._send(session, {
            'type': 'joined', 'join': session.join, 'epoch': epoch.number,
            'start': epoch.start, 'floor': epoch.done.floor,
            'base': epoch.base, 'why': self._why})

    def _begin(self, session: Session, resume: Any) -> None:
        """Begin a new epoch, or go on with that of another server."""
        old = self._epoch
        if resume is not None and resume.get('over') \
                and resume.get('run') == self.run:
            resume = None
        if resume is None:
            number, state, after = 1, None, False
            if old is not None:
                number = old.number + 1
                if not old.exhausted or old.returned:
                    # The next comes after what was handed out of it.
                    state, after = self._state_when_left(old), True
        else:
            self.run = get_field(resume, 'run', str)[:64]
            state = get_field(resume, 'state', dict, None)
            after = bool(resume.get('over'))
            number = get_field(resume, 'epoch', int) + after
        epoch = Epoch(number, self.sharing, self.num_clients)
        handed: set[int] | None = None
        if resume is not None and not after and state is not None:
            handed = from_ranges(resume.get('done', []))
            epoch.start = epoch.cursor = get_field(resume, 'index', int)
            epoch.waits_for = get_field(resume, 'members', int, 1)
            self._deadline = time.monotonic() + _RETURN
        if old is not None:
            for item in old.returned.values():
                self._free(item)
        epoch.done.raise_floor(epoch.start)
        member = epoch.join(
            session.client, session.hwm, session.rank, handed, epoch.start)
        member.done.raise_floor(epoch.start)
        self._epoch = epoch
        self._is_open = False
        self._best = None
        self.counts['epochs'] += 1
        self._pipeline.open(epoch=epoch, state=state, after=after)
        self._outstanding += 1

    def _state_when_left(self, epoch: Epoch) -> Any:
        if self._best is None:
            return epoch.base
        _, base, steps = self._best
        if base is None or steps is None:
            return None
        return changed(base, steps)

    def _seek(self, epoch: Epoch, resume: Any) -> None:
        """Go back to what a client that came back has to get once more."""
        wanted = epoch.lowest_wanted()
        if wanted >= epoch.cursor:
            return
        state, start = epoch.base, epoch.start
        index = resume.get('index')
        if isinstance(resume.get('state'), dict) and type(index) is int \
                and 0 <= index <= wanted:
            state, start = resume['state'], index
        if state is None or start > wanted:
            return
        epoch.start, epoch.cursor, epoch.exhausted = start, start, False
        self._is_open = False
        self._pipeline.open(epoch=epoch, state=state, after=False)
        self._outstanding += 1

    def _ask(self, epoch: Epoch) -> None:
        """Ask the pipeline for batches that somebody has room for."""
        if epoch.waits_for and time.monotonic() < self._deadline:
            return
        while (self._outstanding < _AHEAD and not epoch.exhausted
                and self._is_open):
            targets = epoch.targets(epoch.cursor)
            if targets is None:
                return
            for member in targets:
                member.reserved += 1
            slot = None
            if len(targets) == 1 and self._need:
                session = self._session_of(targets[0])
                if session is not None and session.is_local:
                    slot = self.pool.acquire(self._need)
            self._pipeline.produce(
                epoch=epoch, index=epoch.cursor, targets=targets, slot=slot,
                discard=not targets)
            self._making.add(epoch.cursor)
            epoch.cursor += 1
            self._outstanding += 1

    def _take(self, result: Result) -> None:
        """Take in what the pipeline has made."""
        self._outstanding -= 1
        request = result.request
        epoch: Epoch = request['epoch']
        slot = request.get('slot')
        for member in request.get('targets', ()):
            member.reserved -= 1
        if slot is not None and result.extents is None:
            self._put_back(slot, result.placement)
        self._making.discard(request.get('index', -1))
        if epoch is not self._epoch:
            if slot is not None and result.extents is not None:
                self.pool.release(slot.number)
        elif result.kind == OPENED:
            self._on_opened(epoch, result.fields)
        elif result.kind == BROKEN:
            self._on_broken(epoch, result.fields['error'])
        elif result.kind == END:
            epoch.exhausted = True
            epoch.final = result.fields['state']
        elif request['targets']:
            self._on_item(epoch, result)

    def _put_back(self, slot: Any, placement: Any) -> None:
        """Take back a slot in which nothing was sent."""
        if placement is None or placement.is_free():
            self.pool.release(slot.number)
        else:
            self.pool.hold(slot.number, placement.references)

    def _on_opened(self, epoch: Epoch, fields: dict[str, Any]) -> None:
        self._is_open = True
        epoch.exhausted = False
        epoch.base, self._why = fields['base'], fields['why']
        if self._why is not None and self.counts['epochs'] == 1:
            log.warning('a server that is killed will restart its epoch: %s',
                        self._why)
        for member in epoch.members.values():
            session = self._session_of(member)
            if session is not None:
                self._say_joined(session)

    def _on_broken(self, epoch: Epoch, error: dict[str, Any]) -> None:
        self.counts['errors'] += 1
        for member in list(epoch.members.values()):
            self._send_to(member, {'type': 'broken', 'error': error})
        self._epoch = None

    def _on_item(self, epoch: Epoch, result: Result) -> None:
        item = Item(result.request['index'], result.fields, result.buffers)
        item.fields['type'] = result.kind
        item.base = epoch.base
        if result.extents is not None:
            item.slot = result.request['slot']
            item.extents = result.extents
        self.counts['batches' if result.kind == BATCH else 'errors'] += 1
        for member in epoch.deliver(item, result.request['targets']):
            self._deliver(item, member)

    def _deliver(self, item: Item, member: Member) -> None:
        """Send a batch to a member."""
        session = self._session_of(member)
        epoch = self._epoch
        if session is None or epoch is None:
            return
        fields = {**item.fields, 'index': item.index,
                  'floor': epoch.done.floor, 'members': len(epoch.members)}
        frames = item.buffers
        if item.fields['type'] != FAILURE:
            fields, frames, size = session.address(
                item, fields, self.pool, is_shared=self.sharing == 'all')
            self.counts['bytes'] += size
            self._need = size if size > session.SMALL else 0
        self._send_to(member, fields, frames)

    def _session_of(self, member: Member) -> Session | None:
        for session in self._sessions.values():
            if session.client == member.client:
                return session
        return None

    def _send_to(self, member: Member, fields: dict[str, Any],
                 frames: Any = ()) -> None:
        session = self._session_of(member)
        if session is not None:
            self._send(session, {**fields, 'join': session.join}, frames)

    def _send(self, session: Session, fields: dict[str, Any],
              frames: Any = ()) -> None:
        try:
            self._router.send_multipart(
                [session.identity, pack_header(fields), *frames],
                zmq.NOBLOCK, copy=not frames)
        except zmq.ZMQError as error:
            if error.errno not in (errno.EHOSTUNREACH, errno.EAGAIN):
                raise
            session.is_gone = error.errno == errno.EHOSTUNREACH

    def _ping(self) -> None:
        """Find out who is gone: sending to them fails."""
        for session in list(self._sessions.values()):
            self._send(session, {'type': 'ping'})
            if not session.is_gone and self._is_mute(session):
                log.warning('client %s does not answer; the others get its '
                            'batches', session.client)
                session.is_gone = True
            if session.is_gone:
                self._lose(session)

    def _is_mute(self, session: Session) -> bool:
        """Tell whether a client keeps others waiting without an answer."""
        if self._epoch is None:
            return False
        member = self._epoch.members.get(session.client)
        return (member is not None and member.asked_back > 0
                and time.monotonic() - member.asked_back > _MUTE)

    def _lose(self, session: Session, for_good: bool = False) -> None:
        """Forget a client; the others get what it had not handed out."""
        self._drop_out(session, for_good)
        self._sessions.pop(session.identity, None)
        session.close(self.pool)

    def _drop_out(self, session: Session, for_good: bool) -> None:
        session.join = 0
        epoch = self._epoch
        if epoch is not None and session.client in epoch.members:
            for item in epoch.leave(session.client, for_good):
                self._free(item)

    def _free(self, item: Item) -> None:
        if item.slot is not None:
            self.pool.release(item.slot.number)
            item.slot = None

    def _status(self) -> dict[str, Any]:
        epoch = self._epoch
        return {
            **self.counts, 'address': self.address, 'pid': os.getpid(),
            'clients': len(self._sessions),
            'local clients': sum(
                session.is_local for session in self._sessions.values()),
            'epoch': 0 if epoch is None else epoch.number,
            'queue': 0 if epoch is None else sum(
                len(member.in_flight) for member in epoch.members.values()),
            'seconds waiting on the pipeline': self.waited['pipeline'],
            'seconds waiting on clients': self.waited['clients']}


def _labels(stream: Any) -> Any:
    """Return the axis labels, by place of the source."""
    labels = stream.axis_labels
    if labels is None:
        return None
    found = [labels.get(source) for source in stream.sources]
    return [list(label) if isinstance(label, (tuple, list)) else label
            for label in found]
