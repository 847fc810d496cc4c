"""Scheduling: the choice of the next batch to make, and of its client."""
from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict

from fuel.exceptions import StateMismatchError
from fuel.server.admission import (Admission, Begin, Continue, Decision, Join,
                                   Refuse, ReportEnd, SetAside, Wait)
from fuel.server.attendance import Joiner
from fuel.server.connections import ClientConnection, Item
from fuel.server.dispatch import Member, ServedEpoch
from fuel.server.journal import Journal
from fuel.server.ledger import Ledger
from fuel.server.pipeline import (BATCH, BROKEN, END, FAILURE, OPENED,
                                  MEASURED, Pipeline, Result, describe_error)
from fuel.profiling.measurements import Path, StageMeasurements
from fuel.server.position import check_position
from fuel.transport.slots import SlotPool
from fuel.wire.header import Fields, get_field, get_numbers
from fuel.wire.index_sets import from_ranges

log = logging.getLogger(__name__)

Measured = dict[Path, StageMeasurements]

# Seconds within which a client must answer: its interpreter may be busy.
_ANSWER_SECONDS = 60.0
# Seconds within which a client must read its first batch, if other clients
# wait.
_FIRST_BATCH_SECONDS = 5.0
# Seconds between two states of the pipeline in the journal.
_CHECKPOINT_SECONDS = 0.2


class Scheduler:
    """Requests batches of the pipeline, and sends them to the clients.

    Only the thread that holds the server's sockets may call its methods.

    `connections`: the connected clients; the service adds and removes them.
    `find_dead`: function that finds out which clients are gone.
    `sharing`, `num_clients`: see :class:`~fuel.server.Server`.
    `post`: function that sends fields and frames to a client.
    `hold`: seconds within which the successor of a vanished client must join.
    `max_bytes`: bytes of shared memory for clients on this host.
    `clock`: returns the time in seconds.
    `admission`: decides which client joins which epoch.
    `journal`: file that records the epochs; None for no journal.
    `counts`: numbers of batches, bytes, errors and so on, by name.
    `measuring`: the clients for which the pipeline times each item.
    `waited`: seconds that the server waited for the pipeline, and for clients.
    """

    def __init__(self, pipeline: Pipeline,
                 connections: dict[bytes, ClientConnection],
                 post: Callable[..., None], find_dead: Callable[[], None],
                 sharing: str, num_clients: int, hold: float, max_bytes: int,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.pipeline = pipeline
        self.connections = connections
        self.post = post
        self._find_dead = find_dead
        self.hold = hold
        self.clock = clock
        self.pool = SlotPool(max_bytes)
        self.counts = dict.fromkeys(
            ('batches', 'bytes', 'errors', 'epochs', 'dropped messages',
             'dropped connections'), 0)
        self.waited = {'pipeline': 0.0, 'clients': 0.0}
        self._since = clock()
        self._next_checkpoint = 0.0
        # Number of requests that the pipeline has not answered.
        self._outstanding = 0
        self.measuring: set[ClientConnection] = set()
        # Clients that wait for the measurements of the stages, and the
        # measurements at the first request of each client.
        self._awaiting: set[ClientConnection] = set()
        self._taken_before: dict[ClientConnection, Measured] = {}
        self._is_measure_asked = False
        # Bytes of the last batch; the next batch probably needs about as many.
        self._need = 0
        self.admission = Admission(
            connections, sharing, num_clients, hold, clock,
            pipeline.check_state)
        self.journal: Journal | None = None

    def use_journal(self, journal: Journal) -> None:
        """Record epochs in a journal, and offer to resume the epoch in it."""
        self.journal = journal
        self.admission.found = journal.found

    def on_join(self, connection: ClientConnection, fields: Fields) -> None:
        """Handle a client's request to join an epoch."""
        number = get_field(fields, 'join', int)
        resume = get_field(fields, 'resume', dict, None)
        # The client whose state this one resumes may have died a moment ago.
        self._find_dead()
        try:
            position = check_position(resume)
        except StateMismatchError as error:
            self.remove(connection, has_left=True)
            connection.join = number
            self._refuse(connection, error)
            return
        self.remove(connection, has_left=not self.admission.continues(
            connection.client, position))
        connection.join = number
        self.admission.joiners.append(Joiner(connection, number, position))

    def _carry_out(self, decision: Decision) -> None:
        """Carry out a decision about a client that waits, or the journal."""
        match decision:
            case Join():
                self._join(decision)
            case Begin():
                self._begin(decision)
            case Refuse(connection, error):
                self._refuse(connection, error)
            case ReportEnd(connection):
                self._end_membership(
                    connection, {'type': 'end', 'state': None})
            case Continue(run, ledger):
                self._continue(run, ledger)
            case SetAside():
                assert self.journal is not None
                self.journal.set_aside()
            case Wait():
                pass

    def _refuse(self, connection: ClientConnection,
                error: Exception) -> None:
        self.counts['dropped messages'] += 1
        log.warning('refused a client: %s', error)
        self._end_membership(connection, {
            'type': 'broken', 'error': describe_error(error)})

    def _end_membership(self, connection: ClientConnection,
                        fields: Fields) -> None:
        """Send a client the reason why it is in no epoch, and end its
        membership."""
        self.reply(connection, fields)
        connection.join = 0

    def _continue(self, run: str, ledger: Ledger) -> None:
        """Resume the epoch of a former server."""
        assert self.journal is not None
        log.info('run %s is continued in epoch %d', run, ledger.number)
        epoch = ServedEpoch(ledger, self.free)
        epoch.cursor = ledger.highest()
        self.admission.on_continued(run, epoch)
        for account in [*ledger.accounts.values()]:
            if account.is_present or account.deadline:
                ledger.lose(account.client, self.hold_deadline())
        self.journal.begin(run, ledger)

    def _join(self, decision: Join) -> None:
        """Make a client a member of the present epoch."""
        connection, before, claims = decision
        epoch = self.admission.epoch
        assert epoch is not None
        member = epoch.join(connection, before, claims)
        if claims is not None:
            self.admission.on_joined(before)
            if before != connection.client and before in epoch.members:
                # That client stays: a forged state must not remove other
                # clients.
                log.warning(
                    'a client has loaded the state of client %r, which is '
                    'still in the epoch: they share what is left of it',
                    before)
        if epoch.is_open:
            self._answer(epoch, member)

    def _answer(self, epoch: ServedEpoch, member: Member) -> None:
        """Send a client the message that it has joined the epoch."""
        self.reply(member.connection, {
            'type': 'joined',
            # The run may differ from that in the welcome: this client may have
            # connected before the one whose run this server resumes.
            'run': self.admission.run, 'epoch': epoch.ledger.number,
            'num_ranks': epoch.ledger.ranks(),
            'start': epoch.base_index,
            'floor': epoch.ledger.floor(member.account),
            'done': member.account.delivered.ranges(),
            'base': epoch.base, 'why': epoch.why})

    def _begin(self, decision: Begin) -> None:
        """Begin an epoch, which replaces the present one."""
        old = self.admission.epoch
        epoch = ServedEpoch(
            Ledger(decision.number, self.admission.sharing,
                   self.admission.num_clients, decision.is_adopted),
            self.free)
        epoch.cursor = decision.start
        if old is not None:
            old.discard()
        epoch.join(*decision.first)
        self.admission.on_begun(decision.run, epoch)
        self.counts['epochs'] += 1
        self.open(epoch, index=decision.start, state=decision.state,
                  after=decision.after)

    def _answer_all(self, epoch: ServedEpoch) -> None:
        """Record an epoch that has begun, and send its clients the message
        that they have joined."""
        self._record(epoch)
        for member in epoch.members.values():
            self._answer(epoch, member)

    def _record(self, epoch: ServedEpoch) -> None:
        if self.journal is not None:
            self.journal.begin(self.admission.run, epoch.ledger)

    def _on_broken(self, epoch: ServedEpoch, error: Fields) -> None:
        """Send an epoch's clients the error that kept it from beginning."""
        self.counts['errors'] += 1
        for member in epoch.members.values():
            self._end_membership(
                member.connection, {'type': 'broken', 'error': error})
        self.admission.on_broken()
        former = self.admission.epoch
        if former is not None:
            # The pipeline has lost its position.
            former.is_begun = former.is_loaded = False
            self._record(former)

    def _epoch_of(self, connection: ClientConnection,
                  fields: Fields) -> ServedEpoch | None:
        """Return the epoch that a message is about; None if it is about a
        former membership."""
        epoch = self.admission.epoch
        is_about = get_field(fields, 'join', int) == connection.join \
            and epoch is not None and connection.client in epoch.members
        return epoch if is_about else None

    def on_delivered(self, connection: ClientConnection,
                     fields: Fields) -> None:
        """Record the batches that a client delivered, and the slots that it
        released."""
        for number in get_numbers(fields, 'release'):
            connection.release(number, self.pool)
        epoch = self._epoch_of(connection, fields)
        if epoch is not None:
            for item in epoch.acknowledge(
                    connection.client, get_numbers(fields, 'indices')):
                connection.keep(item)

    def on_leave(self, connection: ClientConnection, fields: Fields) -> None:
        """Remove a client that leaves the epoch."""
        if get_field(fields, 'join', int) == connection.join:
            self.remove(connection, has_left=True)

    def on_returned(self, connection: ClientConnection,
                    fields: Fields) -> None:
        """Take back batches that a client prefetched and did not use."""
        epoch = self._epoch_of(connection, fields)
        if epoch is not None:
            epoch.take_back(
                connection.client, from_ranges(fields.get('indices')))

    def on_waiting(self, connection: ClientConnection,
                   fields: Fields) -> None:
        """Record that a client waits for a batch."""
        epoch = self._epoch_of(connection, fields)
        if epoch is not None:
            member = epoch.members[connection.client]
            member.is_waiting = member.has_read = True
            connection.begin_wait()

    def on_measure(self, connection: ClientConnection,
                   fields: Fields) -> None:
        """Request the pipeline's measurements for a client."""
        is_exact = get_field(fields, 'is_exact', bool)
        (self.measuring.add if is_exact else self.measuring.discard)(
            connection)
        self._awaiting.add(connection)
        self._ask_measures()

    def forget_measures(self, connection: ClientConnection) -> None:
        """Drop the requests of a client that is gone."""
        self._awaiting.discard(connection)
        self._taken_before.pop(connection, None)
        if connection in self.measuring:
            self.measuring.remove(connection)
            self._ask_measures()

    def _ask_measures(self) -> None:
        # One request at a time, however often clients ask.
        if not self._is_measure_asked:
            self._is_measure_asked = True
            self.pipeline.measure(is_exact=bool(self.measuring))
            self._outstanding += 1

    def _on_measured(self, result: Result) -> None:
        self._is_measure_asked = False
        if result.request['is_exact'] != bool(self.measuring):
            self._ask_measures()
            return
        while self._awaiting:
            self._post_measures(self._awaiting.pop(), result.fields['stages'])

    def _post_measures(self, client: ClientConnection,
                       measured: Measured) -> None:
        """Send the measurements of the stages since a client's first
        request."""
        before = self._taken_before.setdefault(client, measured)
        self.post(client, {'type': MEASURED, 'stages': [
            asdict(stage - before[path] if path in before else stage)
            for path, stage in measured.items()]})

    def advance(self) -> None:
        """Decide about waiting clients, send batches, and request the next
        batch."""
        if self.admission.joiners:
            for decision in self.admission.decisions():
                self._carry_out(decision)
        epoch = self.admission.epoch
        if epoch is not None and epoch.members:
            if epoch.is_torn or not epoch.is_begun:
                self._go_back(epoch)
            if epoch.is_open:
                self._deliver(epoch)
                self._make_next(epoch)
                if epoch.is_exhausted:
                    self._finish(epoch)
        now = self.clock()
        self.waited['pipeline' if self._outstanding else 'clients'] += (
            now - self._since)
        self._since = now

    def _finish(self, epoch: ServedEpoch) -> None:
        """Revoke a member's batches if another member waits for them, and send
        the end of the epoch to members that have delivered all their
        batches."""
        member_to_revoke = epoch.member_to_revoke(self.clock())
        if member_to_revoke is not None:
            member_to_revoke.revoked = self.clock()
            self.reply(member_to_revoke.connection, {'type': 'revoke'})
        for member in epoch.ended():
            member.connection.end_wait()
            self.reply(member.connection, {'type': 'end',
                                           'state': epoch.ledger.final})
            epoch.leave(member.client)

    def open(self, epoch: ServedEpoch, **options: object) -> None:
        """Request that the pipeline opens an epoch, at its start or at a saved
        state."""
        epoch.is_open, epoch.is_begun, epoch.is_loaded = False, True, True
        self.pipeline.open(epoch=epoch, **options)
        self._outstanding += 1

    def _go_back(self, epoch: ServedEpoch) -> None:
        """Open the epoch again before the first lost batch, if one was lost
        or if the pipeline has lost its position in the epoch."""
        wanted = epoch.lowest_missing()
        if wanted >= epoch.front() and epoch.is_begun:
            return
        found = epoch.ledger.checkpoints.before(wanted)
        if found is None:
            epoch.is_begun = True
            return
        index, state = found
        if wanted == epoch.ledger.length:
            # The resumed epoch has all its batches: the pipeline is not
            # needed.
            epoch.base, epoch.base_index = state, index
            epoch.is_begun = epoch.is_open = epoch.is_exhausted = True
            self._answer_all(epoch)
            return
        epoch.cursor, epoch.is_exhausted = index, False
        self.open(epoch, index=index, state=state, after=False)

    def _make_next(self, epoch: ServedEpoch) -> None:
        """Request the next batch of the pipeline if a client has credit for
        it."""
        # One batch at a time: a later one gets a slot that was released
        # meanwhile and is still in the processor's cache.
        if self._outstanding or epoch.is_exhausted or epoch.has_earlier():
            return
        index = epoch.cursor
        is_held = epoch.is_held(index)
        receivers = [] if is_held else epoch.receivers(index)
        if receivers is None:
            return
        for member in receivers:
            member.reserved += 1
        slot = None
        if len(receivers) == 1 and self._need and not epoch.is_shared \
                and receivers[0].connection.is_local:
            slot = self.pool.acquire(self._need)
        is_wanted = bool(receivers) or is_held
        self.pipeline.produce(
            epoch=epoch, index=index, members=receivers, slot=slot,
            discard=not is_wanted)
        if is_wanted:
            epoch.making.add(index)
        epoch.cursor += 1
        self._outstanding += 1

    def take(self, result: Result) -> None:
        """Handle a result of the pipeline."""
        self._outstanding -= 1
        if result.kind == MEASURED:
            self._on_measured(result)
            return
        request = result.request
        epoch: ServedEpoch = request['epoch']
        slot = request.get('slot')
        for member in request.get('members', ()):
            member.reserved -= 1
        if slot is not None and result.extents is None:
            self.pool.put_back(slot, result.placement)
        epoch.making.discard(request.get('index', -1))
        if epoch is not self.admission.epoch:
            if slot is not None and result.extents is not None:
                self.pool.release(slot.number)
        elif result.kind == OPENED:
            self._on_opened(epoch, result)
        elif result.kind == BROKEN:
            self._on_broken(epoch, result.fields['error'])
        elif result.kind == END:
            epoch.is_exhausted = True
            epoch.ledger.end_pipeline(
                request['index'], result.fields['state'])
            for client in self._taken_before:
                self._post_measures(client, result.fields['stages'])
        else:
            if result.fields.get('changes') is not None:
                self._add_checkpoint(epoch, result)
            if not request['discard']:
                self._on_item(epoch, result)

    def _on_opened(self, epoch: ServedEpoch, result: Result) -> None:
        epoch.is_open, epoch.is_exhausted = True, False
        epoch.base, epoch.why = result.fields['base'], result.fields['why']
        epoch.base_index = result.request['index']
        epoch.ledger.begin_at(epoch.base_index, epoch.base)
        if epoch.why is not None and self.counts['epochs'] == 1:
            log.warning('a server that is killed will restart its epoch: %s',
                        epoch.why)
        self._answer_all(epoch)

    def _add_checkpoint(self, epoch: ServedEpoch, result: Result) -> None:
        now = self.clock()
        is_recorded = now >= self._next_checkpoint
        if is_recorded:
            self._next_checkpoint = now + _CHECKPOINT_SECONDS
        epoch.ledger.add_checkpoint(
            result.request['index'] + 1, result.fields['changes'],
            is_recorded)

    def _on_item(self, epoch: ServedEpoch, result: Result) -> None:
        item = Item(result.request['index'], result.fields, result.buffers)
        item.fields['type'] = result.kind
        if result.extents is not None:
            item.slot = result.request['slot']
            item.extents = result.extents
        self.counts['batches' if result.kind == BATCH else 'errors'] += 1
        epoch.add(item)
        self._deliver(epoch)

    def _deliver(self, epoch: ServedEpoch) -> None:
        """Send the batches in memory to members that have credit."""
        while (delivery := epoch.next_delivery()) is not None:
            item, member = delivery
            # Record the batch before it is sent.
            epoch.deliver(item, member, self.clock())
            connection = member.connection
            fields = {**item.fields, 'index': item.index,
                      'floor': epoch.ledger.floor(member.account)}
            frames = item.buffers
            if item.fields['type'] != FAILURE:
                fields, frames, size = connection.address(
                    item, fields, self.pool, epoch.is_shared)
                self.counts['bytes'] += size
                self._need = size if size > connection.SMALL else 0
            self.reply(connection, fields, frames)

    def reply(self, connection: ClientConnection, fields: Fields,
              frames: Sequence[object] = ()) -> None:
        """Send a client a message about its present membership."""
        self.post(connection, {**fields, 'join': connection.join}, frames)

    def is_unresponsive(self, connection: ClientConnection) -> bool:
        """Return whether a client does not answer while others wait for it."""
        epoch = self.admission.epoch
        member = epoch and epoch.members.get(connection.client)
        if not epoch or not member:
            return False
        now = self.clock()
        if member.revoked and now - member.revoked > _ANSWER_SECONDS:
            return True
        return (member.first_sent > 0 and not member.has_read
                and (len(epoch.members) > 1 or bool(self.admission.joiners))
                and now - member.first_sent > _FIRST_BATCH_SECONDS)

    def expire(self) -> None:
        """Release the batches of vanished clients whose successors are too
        late."""
        if self.admission.epoch is not None:
            self.admission.epoch.expire(self.clock())

    def remove(self, connection: ClientConnection, has_left: bool,
               hold: bool = True) -> None:
        """Remove a client from its epoch; other clients get its undelivered
        batches."""
        connection.end_wait()
        connection.join = 0
        epoch = self.admission.epoch
        if epoch is None:
            return
        if connection.identity not in self.connections:
            self.admission.on_lost(
                connection.client, may_return=hold and not has_left)
        if has_left:
            epoch.leave(connection.client)
        elif connection.client in epoch.members:
            epoch.lose(connection.client, self.hold_deadline()
                       if hold else self.clock())
            self.expire()

    def hold_deadline(self) -> float:
        """Return the time until which the successor of a client that vanishes
        now may join."""
        return self.clock() + self.hold

    def free(self, item: Item) -> None:
        """Release the slot of an item that no client needs."""
        if item.slot is not None:
            self.pool.release(item.slot.number)
            item.slot = None
