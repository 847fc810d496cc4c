"""Which client gets which batch, and what the pipeline makes for it."""
from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from fuel.epochs.state_delta import changed
from fuel.server.connections import Session
from fuel.server.ledger import Epoch, Item, Member
from fuel.server.pipeline import (
    BATCH,
    BROKEN,
    END,
    FAILURE,
    OPENED,
    Pipeline,
    Result,
    tell,
)
from fuel.transport.slots import SlotPool
from fuel.wire import WireError
from fuel.wire.header import get_field, numbers_of
from fuel.wire.index_sets import from_ranges

log = logging.getLogger(__name__)

# Seconds that clients of a server that was started again have to come back
# before it goes on.
_RETURN = 5.0
# Seconds that a client has to answer: its interpreter may be busy.
_MUTE = 60.0


class Conductor:
    """Brings together the clients, the epoch and the pipeline.

    Everything is called by the one thread that has the server's sockets.

    Parameters
    ----------
    sessions : dict
        The connected clients, which the server keeps.
    post : callable
        Sends fields and frames to a session.
    find_dead : callable
        Looks for clients that are gone.

    Attributes
    ----------
    run : str
        Names the epochs of this server.
    counts : dict
        Numbers of what was sent, and so on.
    waited : dict
        Seconds that the pipeline and the clients were waited for.

    """

    def __init__(self, pipeline: Pipeline, sessions: dict[bytes, Session],
                 post: Callable[..., None], find_dead: Callable[[], None],
                 run: str, sharing: str, num_clients: int,
                 max_bytes: int) -> None:
        self.pipeline = pipeline
        self.sessions = sessions
        self._post = post
        self._find_dead = find_dead
        self.run = run
        self.sharing = sharing
        self.num_clients = num_clients
        self.pool = SlotPool(max_bytes)
        self.counts = dict.fromkeys(
            ('batches', 'bytes', 'errors', 'epochs', 'dropped messages',
             'dropped connections'), 0)
        self.waited = {'pipeline': 0.0, 'clients': 0.0}
        self.epoch: Epoch | None = None
        self._since = time.monotonic()
        self._joiners: list[tuple[Session, int, Any]] = []
        self._is_open = False
        self._best: tuple[int, Any, Any] | None = None
        self._why: str | None = None
        self._deadline = 0.0
        self._outstanding = 0
        self._making: set[int] = set()
        self._need = 0

    def on_join(self, session: Session, fields: dict[str, Any]) -> None:
        """Add a client to the epoch, or resume the one it continues."""
        number = get_field(fields, 'join', int)
        resume = get_field(fields, 'resume', dict, None)
        self.drop_out(session, for_good=True)
        # Whom this client follows may have died a moment ago.
        self._find_dead()
        session.join = number
        self._joiners.append((session, number, resume))

    def _member(self, session: Session, fields: dict[str, Any]) -> Any:
        """Return the epoch and member that a message is about, if any."""
        if get_field(fields, 'join', int) != session.join \
                or self.epoch is None:
            return None
        return self.epoch.members.get(session.client)

    def on_handed(self, session: Session, fields: dict[str, Any]) -> None:
        """Record batches that a client delivered and slots it released."""
        for number in numbers_of(fields, 'release'):
            session.release(number, self.pool)
        if self._member(session, fields) is None:
            return
        assert self.epoch is not None
        for index in numbers_of(fields, 'indices'):
            item = self.epoch.hand(session.client, index)
            if item is None:
                continue
            session.keep(item)
            if self._best is None or item.index > self._best[0]:
                self._best = item.index, item.base, item.fields.get('changes')

    def on_leave(self, session: Session, fields: dict[str, Any]) -> None:
        """Remove a client that leaves the epoch."""
        if get_field(fields, 'join', int) == session.join:
            self.drop_out(session, for_good=True)

    def on_give(self, session: Session, fields: dict[str, Any]) -> None:
        """Take back batches that a client prefetched and did not use."""
        if self._member(session, fields) is not None:
            assert self.epoch is not None
            for item in self.epoch.give_back(
                    session.client, from_ranges(fields.get('indices'))):
                self._free(item)

    def on_waiting(self, session: Session, fields: dict[str, Any]) -> None:
        """Record that a client waits for a batch."""
        member = self._member(session, fields)
        if member is not None:
            member.waiting = True

    def advance(self) -> None:
        """Do all that can be done now."""
        if self._joiners:
            self._admit()
        epoch = self.epoch
        if epoch is None or not self._is_open:
            self._account(bool(self._outstanding))
            return
        while (returned := epoch.take_returned(self._making)) is not None:
            self._deliver(returned[0], returned[1])
        self._ask(epoch)
        if epoch.exhausted:
            self._finish(epoch)
        self._account(self._outstanding > 0)

    def _finish(self, epoch: Epoch) -> None:
        """See to it that what is left of an epoch is handed out."""
        lender = epoch.lender()
        if lender is not None:
            lender.asked_back = time.monotonic()
            self._send_to(lender, {'type': 'revoke'})
        for member in epoch.ended():
            self._send_to(member, {'type': 'end', 'state': epoch.final})
            epoch.leave(member.client, for_good=True)

    def _account(self, is_making: bool) -> None:
        now = time.monotonic()
        self.waited['pipeline' if is_making else 'clients'] += (
            now - self._since)
        self._since = now

    def _admit(self) -> None:
        """Let clients that wait join the epoch that they can join."""
        # Those who go on first, lest the others begin the next epoch.
        waiting = sorted(self._joiners, key=lambda joiner: (
            self.epoch is None or not self._goes_on(self.epoch, joiner[2])))
        self._joiners = []
        for place, joiner in enumerate(waiting):
            session, number, _ = joiner
            if session.join != number \
                    or self.sessions.get(session.identity) is not session:
                continue
            try:
                if not self._try_to_admit(joiner, waiting[place:]):
                    self._joiners.append(joiner)
            except (WireError, TypeError, ValueError, LookupError) as error:
                # Not a state of ours; the others go on.
                self.counts['dropped messages'] += 1
                log.warning('refused a client: %s', error)
                self._post(session, {'type': 'broken', 'join': number,
                                     'error': tell(error)})
                session.join = 0

    def _try_to_admit(self, joiner: tuple[Session, int, Any],
                      later: list[tuple[Session, int, Any]]) -> bool:
        """Let one client join; return whether it could."""
        session, _, resume = joiner
        epoch = self.epoch
        if epoch is not None and epoch.is_open_to(
                session.client, self._goes_on(epoch, resume)):
            self._join(epoch, session, resume)
            return True
        if epoch is not None and epoch.members:
            return False
        # One that has come to an end wants a new epoch, as one that never
        # began.
        wants_new = resume is None or resume.get('over')
        if wants_new and self._count_waiting(
                [*later, *self._joiners]) < self.num_clients:
            return False
        self._begin(session, resume)
        return True

    def _count_waiting(
            self, joiners: list[tuple[Session, int, Any]]) -> int:
        """Return how many clients wait, each once, without those gone."""
        return len({
            joiner.client for joiner, number, _ in joiners
            if joiner.join == number
            and self.sessions.get(joiner.identity) is joiner})

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
        epoch = self.epoch
        assert epoch is not None
        self._post(session, {
            'type': 'joined', 'join': session.join,
            # Not that of the welcome: a client may have come before the one
            # whose epoch this server goes on with.
            'run': self.run, 'epoch': epoch.number,
            'members': epoch.count_members(),
            'start': epoch.start, 'floor': epoch.done.floor,
            'base': epoch.base, 'why': self._why})

    def _begin(self, session: Session, resume: Any) -> None:
        """Begin a new epoch, or go on with that of another server."""
        old, run = self.epoch, self.run
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
            run = get_field(resume, 'run', str)[:64]
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
        self.run, self.epoch = run, epoch
        self._is_open = False
        self._best = None
        self.counts['epochs'] += 1
        self.pipeline.open(epoch=epoch, state=state, after=after)
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
        wanted = epoch.lowest_wanted(self._making)
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
        self.pipeline.open(epoch=epoch, state=state, after=False)
        self._outstanding += 1

    def _ask(self, epoch: Epoch) -> None:
        """Ask the pipeline for batches that somebody has room for."""
        if epoch.waits_for and time.monotonic() < self._deadline:
            return
        # One at a time: what is asked for later gets a slot that came back
        # meanwhile, and is still in the processor's cache.
        if self._outstanding or epoch.exhausted or not self._is_open \
                or epoch.has_earlier():
            return
        targets = epoch.targets(epoch.cursor)
        ahead = epoch.sole_member() if targets is None else None
        if targets is None and ahead is None:
            return
        receivers = targets or []
        for member in receivers:
            member.reserved += 1
        slot = None
        for_whom = [ahead] if ahead is not None else receivers
        if len(for_whom) == 1 and self._need:
            session = self._session_of(for_whom[0])
            if session is not None and session.is_local:
                slot = self.pool.acquire(self._need)
        is_wanted = bool(for_whom)
        self.pipeline.produce(
            epoch=epoch, index=epoch.cursor, targets=receivers, slot=slot,
            discard=not is_wanted)
        if is_wanted:
            self._making.add(epoch.cursor)
        epoch.cursor += 1
        self._outstanding += 1

    def take(self, result: Result) -> None:
        """Take in what the pipeline has made."""
        self._outstanding -= 1
        request = result.request
        epoch: Epoch = request['epoch']
        slot = request.get('slot')
        for member in request.get('targets', ()):
            member.reserved -= 1
        if slot is not None and result.extents is None:
            self.pool.put_back(slot, result.placement)
        self._making.discard(request.get('index', -1))
        if epoch is not self.epoch:
            if slot is not None and result.extents is not None:
                self.pool.release(slot.number)
        elif result.kind == OPENED:
            self._on_opened(epoch, result.fields)
        elif result.kind == BROKEN:
            self._on_broken(epoch, result.fields['error'])
        elif result.kind == END:
            epoch.exhausted = True
            epoch.final = result.fields['state']
        elif not request['discard']:
            self._on_item(epoch, result)

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
        self.epoch = None

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
        epoch = self.epoch
        if session is None or epoch is None:
            return
        fields = {**item.fields, 'index': item.index,
                  'floor': epoch.done.floor,
                  'members': epoch.count_members()}
        frames = item.buffers
        if item.fields['type'] != FAILURE:
            fields, frames, size = session.address(
                item, fields, self.pool, is_shared=self.sharing == 'all')
            self.counts['bytes'] += size
            self._need = size if size > session.SMALL else 0
        self._send_to(member, fields, frames)

    def _session_of(self, member: Member) -> Session | None:
        for session in self.sessions.values():
            if session.client == member.client:
                return session
        return None

    def _send_to(self, member: Member, fields: dict[str, Any],
                 frames: Any = ()) -> None:
        session = self._session_of(member)
        if session is not None:
            self._post(session, {**fields, 'join': session.join}, frames)

    def is_mute(self, session: Session) -> bool:
        """Tell whether a client keeps others waiting without an answer."""
        if self.epoch is None:
            return False
        member = self.epoch.members.get(session.client)
        return (member is not None and member.asked_back > 0
                and time.monotonic() - member.asked_back > _MUTE)

    def drop_out(self, session: Session, for_good: bool) -> None:
        """Remove a client and reassign what it did not deliver."""
        session.join = 0
        epoch = self.epoch
        if epoch is not None and session.client in epoch.members:
            for item in epoch.leave(session.client, for_good):
                self._free(item)

    def _free(self, item: Item) -> None:
        if item.slot is not None:
            self.pool.release(item.slot.number)
            item.slot = None
