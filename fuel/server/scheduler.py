"""Scheduling: which client gets which batch, and what the pipeline makes."""
from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from fuel.server.admission import Admission
from fuel.server.connections import ClientConnection
from fuel.server.dispatch import Epoch, Item
from fuel.server.pipeline import (BATCH, BROKEN, END, FAILURE, OPENED,
                                  MEASURED, Pipeline, Result)
from fuel.transport.slots import SlotPool
from fuel.wire.header import Fields, get_field, numbers_of
from fuel.wire.index_sets import from_ranges

log = logging.getLogger(__name__)

# Seconds that a client has to answer: its interpreter may be busy.
_MUTE = 60.0
# Seconds that it has to read the first batch, if others wait.
_FIRST_READ = 5.0
# Seconds between two states of the pipeline in the journal.
_CHECKPOINT = 0.2


class Scheduler:
    """Brings together the clients, the epoch and the pipeline.

    Everything is called by the one thread that has the server's sockets.

    `connections`: the connected clients, which the server keeps.
    `find_dead`: finds out which of them are gone.
    `sharing`, `num_clients`: see :class:`~fuel.server.Server`.
    `post`: sends fields and frames to a client.
    `hold`: seconds that the successor of a client that vanished has to come.
    `max_bytes`: shared memory for clients on this host.
    `clock`: returns the time in seconds.
    `admission`: decides which client joins which epoch.
    `counts`: numbers of what was sent, and so on.
    `measuring`: the clients for whom the stages are measured.
    `waited`: seconds that the pipeline and the clients were waited for.
    """

    def __init__(self, pipeline: Pipeline,
                 connections: dict[bytes, ClientConnection],
                 post: Callable[..., None], find_dead: Callable[[], None],
                 sharing: str, num_clients: int, hold: float, max_bytes: int,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.pipeline = pipeline
        self.connections = connections
        self.post = post
        self.hold = hold
        self.clock = clock
        self.pool = SlotPool(max_bytes)
        self.counts = dict.fromkeys(
            ('batches', 'bytes', 'errors', 'epochs', 'dropped messages',
             'dropped connections'), 0)
        self.waited = {'pipeline': 0.0, 'clients': 0.0}
        self._since = clock()
        self._next_checkpoint = 0.0
        # Requests that the pipeline has not answered.
        self._outstanding = 0
        self.measuring: set[ClientConnection] = set()
        # Those of them that wait for what the stages took.
        self._awaiting: set[ClientConnection] = set()
        self._is_measure_asked = False
        # Bytes of the last batch, which the next one needs about as well.
        self._need = 0
        self.admission = Admission(self, find_dead, sharing, num_clients)

    def _epoch_of(self, connection: ClientConnection,
                  fields: Fields) -> Epoch | None:
        """Return the epoch that a message of a member is about, if any."""
        epoch = self.admission.epoch
        is_about = get_field(fields, 'join', int) == connection.join \
            and epoch is not None and connection.client in epoch.members
        return epoch if is_about else None

    def on_delivered(self, connection: ClientConnection,
                     fields: Fields) -> None:
        """Record batches that a client delivered and slots it released."""
        for number in numbers_of(fields, 'release'):
            connection.release(number, self.pool)
        epoch = self._epoch_of(connection, fields)
        if epoch is not None:
            for item in epoch.acknowledge(
                    connection.client, numbers_of(fields, 'indices')):
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

    def on_measure(self, connection: ClientConnection,
                   fields: Fields) -> None:
        """Ask the pipeline what its stages took, for a client."""
        is_wanted = get_field(fields, 'go_on', bool)
        for clients in self.measuring, self._awaiting:
            (clients.add if is_wanted else clients.discard)(connection)
        self._ask_measures()

    def forget_measures(self, connection: ClientConnection) -> None:
        """Measure no more for a client that is gone."""
        self._awaiting.discard(connection)
        if connection in self.measuring:
            self.measuring.remove(connection)
            self._ask_measures()

    def _ask_measures(self) -> None:
        # One at a time, however often clients ask.
        if not self._is_measure_asked:
            self._is_measure_asked = True
            self.pipeline.measure(go_on=bool(self.measuring))
            self._outstanding += 1

    def _on_measured(self, result: Result) -> None:
        self._is_measure_asked = False
        if result.request['go_on'] != bool(self.measuring):
            self._ask_measures()
            return
        while self._awaiting:
            self.post(self._awaiting.pop(),
                      {'type': MEASURED, **result.fields})

    def advance(self) -> None:
        """Do all that can be done now."""
        if self.admission.joiners:
            self.admission.admit()
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

    def _finish(self, epoch: Epoch) -> None:
        """End the epoch of the members for whom nothing is left."""
        lender = epoch.lender(self.clock())
        if lender is not None:
            lender.revoked = self.clock()
            self.reply(lender.connection, {'type': 'revoke'})
        for member in epoch.ended():
            self.reply(member.connection, {'type': 'end',
                                           'state': epoch.ledger.final})
            epoch.leave(member.client)

    def open(self, epoch: Epoch, **options: object) -> None:
        """Let the pipeline begin an epoch, or go to a place in it."""
        epoch.is_open, epoch.is_begun, epoch.is_loaded = False, True, True
        self.pipeline.open(epoch=epoch, **options)
        self._outstanding += 1

    def _go_back(self, epoch: Epoch) -> None:
        """Go back to what was lost and has to be made again."""
        wanted = epoch.lowest_missing()
        if wanted >= epoch.front() and epoch.is_begun:
            return
        checkpoint = epoch.ledger.checkpoints.before(wanted)
        if checkpoint is None:
            epoch.is_begun = True
            return
        if wanted == epoch.ledger.length:
            # Continued, and all was made: the pipeline is not needed.
            epoch.base, epoch.base_index = (
                checkpoint.state(), checkpoint.index)
            epoch.is_begun = epoch.is_open = epoch.is_exhausted = True
            self.admission.on_opened(epoch)
            return
        epoch.cursor, epoch.is_exhausted = checkpoint.index, False
        self.open(epoch, index=checkpoint.index, state=checkpoint.state(),
                  after=False)

    def _make_next(self, epoch: Epoch) -> None:
        """Ask the pipeline for a batch that somebody has credit for."""
        # One at a time: what is asked for later gets a slot that came back
        # meanwhile, and is still in the processor's cache.
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
        """Take what the pipeline has made."""
        self._outstanding -= 1
        if result.kind == MEASURED:
            self._on_measured(result)
            return
        request = result.request
        epoch: Epoch = request['epoch']
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
            self.counts['errors'] += 1
            self.admission.on_broken(epoch, result.fields['error'])
        elif result.kind == END:
            epoch.is_exhausted = True
            epoch.ledger.end_pipeline(
                request['index'], result.fields['state'])
        else:
            if result.fields.get('changes') is not None:
                self._add_checkpoint(epoch, result)
            if not request['discard']:
                self._on_item(epoch, result)

    def _on_opened(self, epoch: Epoch, result: Result) -> None:
        epoch.is_open, epoch.is_exhausted = True, False
        epoch.base, epoch.why = result.fields['base'], result.fields['why']
        epoch.base_index = result.request['index']
        epoch.ledger.begin_at(epoch.base_index, epoch.base)
        if epoch.why is not None and self.counts['epochs'] == 1:
            log.warning('a server that is killed will restart its epoch: %s',
                        epoch.why)
        self.admission.on_opened(epoch)

    def _add_checkpoint(self, epoch: Epoch, result: Result) -> None:
        now = self.clock()
        is_recorded = now >= self._next_checkpoint
        if is_recorded:
            self._next_checkpoint = now + _CHECKPOINT
        epoch.ledger.add_checkpoint(
            result.request['index'] + 1, result.fields['changes'],
            is_recorded)

    def _on_item(self, epoch: Epoch, result: Result) -> None:
        item = Item(result.request['index'], result.fields, result.buffers)
        item.fields['type'] = result.kind
        if result.extents is not None:
            item.slot = result.request['slot']
            item.extents = result.extents
        self.counts['batches' if result.kind == BATCH else 'errors'] += 1
        epoch.add(item)
        self._deliver(epoch)

    def _deliver(self, epoch: Epoch) -> None:
        """Send the batches in memory to members that have credit."""
        while (delivery := epoch.next_delivery()) is not None:
            item, member = delivery
            # On record before it is under way.
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

    def is_connected(self, client: str) -> bool:
        """Return whether a client has a connection."""
        return any(connection.client == client
                   for connection in self.connections.values())

    def is_mute(self, connection: ClientConnection) -> bool:
        """Return whether a client makes others wait without an answer."""
        epoch = self.admission.epoch
        member = epoch and epoch.members.get(connection.client)
        if not epoch or not member:
            return False
        now = self.clock()
        if member.revoked and now - member.revoked > _MUTE:
            return True
        return (member.first_sent > 0 and not member.has_read
                and (len(epoch.members) > 1 or bool(self.admission.joiners))
                and now - member.first_sent > _FIRST_READ)

    def expire(self) -> None:
        """Release the batches whose client has no successor in time."""
        if self.admission.epoch is not None:
            self.admission.epoch.expire(self.clock())

    def remove(self, connection: ClientConnection, has_left: bool,
               hold: bool = True) -> None:
        """Remove a client; others get what it did not deliver."""
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
            epoch.lose(connection.client, self.hold_until()
                       if hold else self.clock())
            self.expire()

    def hold_until(self) -> float:
        """Return until when the successor of a client may come."""
        return self.clock() + self.hold

    def free(self, item: Item) -> None:
        """Free the memory of an item that nobody needs."""
        if item.slot is not None:
            self.pool.release(item.slot.number)
            item.slot = None
