"""Admission: which epoch a client joins, continues or begins."""
from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fuel.exceptions import StateMismatchError
from fuel.server.attendance import Attendance, Joiner, describe_ranks
from fuel.server.connections import ClientConnection
from fuel.server.dispatch import Epoch, Member
from fuel.server.journal import Journal
from fuel.server.ledger import RANK, Ledger
from fuel.server.pipeline import describe_error
from fuel.server.position import Position, check_position, check_ranks
from fuel.typing import State
from fuel.wire.header import Fields, WireError, get_field
from fuel.wire.index_sets import IndexSet

if TYPE_CHECKING:
    from fuel.server.scheduler import Scheduler

log = logging.getLogger(__name__)

# Seconds within which clients that were killed together are started again
# together, so that one without a state does not come before the others.
_TOGETHER = 2.0


class Admission:
    """Decides which client joins which epoch, and begins epochs.

    `run`: names the epochs of this server, and of those that it continues.
    `epoch`: the present one.
    `joiners`: the clients that wait for an epoch.
    """

    def __init__(self, scheduler: Scheduler, find_dead: Callable[[], None],
                 sharing: str, num_clients: int) -> None:
        self._scheduler = scheduler
        self._find_dead = find_dead
        self.sharing = sharing
        self.num_clients = num_clients
        self._ranks = num_clients if sharing == RANK else 0
        self.journal: Journal | None = None
        self.run = secrets.token_hex(8)
        self.epoch: Epoch | None = None
        # What an epoch that cannot begin gives way to again.
        self._former: tuple[str, Epoch | None] = self.run, None
        self.joiners: list[Joiner] = []
        self._attendance = Attendance(
            sharing, num_clients, scheduler.is_connected, scheduler.clock,
            scheduler.hold)

    def on_join(self, connection: ClientConnection, fields: Fields) -> None:
        """Note that a client wants to join an epoch."""
        number = get_field(fields, 'join', int)
        resume = get_field(fields, 'resume', dict, None)
        # Whom this client follows may have died a moment ago.
        self._find_dead()
        try:
            position = check_position(resume)
        except StateMismatchError as error:
            self._scheduler.remove(connection, has_left=True)
            connection.join = number
            self._refuse(connection, error)
            return
        self._scheduler.remove(
            connection,
            has_left=not self._continues(connection.client, position))
        connection.join = number
        self.joiners.append(Joiner(connection, number, position))

    def admit(self) -> None:
        """Let clients that wait join the epoch that they can join."""
        # Those who continue first, lest the others begin the next epoch.
        waiting = sorted(self.joiners, key=self._must_wait)
        self.joiners = []
        for place, joiner in enumerate(waiting):
            if not self._is_waiting(joiner):
                continue
            try:
                if not self._try(joiner, waiting[place:]):
                    self.joiners.append(joiner)
            except (WireError, TypeError, ValueError, LookupError) as error:
                # Not a state of ours; the others go on.
                self._refuse(joiner.connection, error)
        if not self.joiners:
            self._attendance.keep_waiting(False)

    def _must_wait(self, joiner: Joiner) -> bool:
        position = joiner.position
        if position is None:
            return True
        if self.journal is not None and self.journal.found is not None:
            return position.run != self.journal.found[0]
        if self.epoch is None:
            return position.is_over
        return not self._continues(joiner.connection.client, position)

    def _is_waiting(self, joiner: Joiner) -> bool:
        """Return whether a client is connected and still asks to join."""
        connection = joiner.connection
        return connection.join == joiner.number \
            and self._scheduler.connections.get(
                connection.identity) is connection

    def _refuse(self, connection: ClientConnection,
                error: Exception) -> None:
        self._scheduler.counts['dropped messages'] += 1
        log.warning('refused a client: %s', error)
        self._turn_away(connection, {
            'type': 'broken', 'error': describe_error(error)})

    def _turn_away(self, connection: ClientConnection,
                   fields: Fields) -> None:
        """Send a client why it is in no epoch."""
        self._scheduler.reply(connection, fields)
        connection.join = 0

    def _continues(self, client: str, position: Position | None) -> bool:
        """Return whether a position is one in the present epoch.

        Or at its beginning: the epoch before is over for a client that has
        already been in this one, or it was interrupted when it joined.
        """
        if self.epoch is None:
            return False
        ledger = self.epoch.ledger
        position = self._usable(position)
        account = ledger.accounts.get(client)
        is_beginner = account is not None and not account.has_left \
            and not account.delivered
        if position is None or (
                position.is_over and position.run != self.run):
            return is_beginner
        if position.run != self.run:
            return False
        if position.is_over:
            return position.epoch + 1 == ledger.number and (
                is_beginner or position.client in ledger.accounts)
        return position.epoch == ledger.number

    def _usable(self, position: Position | None) -> Position | None:
        """Return a position; None for one that cannot be continued.

        In another epoch than the present one there is nothing to go on from
        without a state, which some pipelines do not have.
        """
        present = (None if self.epoch is None
                   else (self.run, self.epoch.ledger.number))
        if position is None or position.state is not None \
                or position.is_over \
                or (position.run, position.epoch) == present:
            return position
        return None

    def _try(self, joiner: Joiner, later: list[Joiner]) -> bool:
        """Let one client join; return whether it could."""
        connection, _, position = joiner
        self._check_sharing(position)
        self._decide_about_journal(position)
        position = self._usable(position)
        if self._continues(connection.client, position):
            self._join(connection, position)
            return True
        wants_new = position is None or position.is_over
        epoch = self.epoch
        has_finished = epoch is not None and position is not None and (
            position.run, position.epoch) == (self.run, epoch.ledger.number)
        if epoch is not None and has_finished:
            # Of a server that was killed and had no journal.
            epoch.finished_ranks.add(connection.rank)
        elif wants_new and epoch is not None \
                and epoch.is_open_to(connection.client):
            self._join(connection, None)
            return True
        if epoch is not None and not wants_new \
                and self._has_others(epoch, connection):
            self._reject_old(connection, position)
            return True
        if epoch is not None and (
                epoch.members or self._must_hold(epoch, joiner)):
            return False
        if wants_new and self._describe_lack(later):
            self._attendance.keep_waiting(True)
            return False
        self._begin(connection, position)
        return True

    def _check_sharing(self, position: Position | None) -> None:
        """Refuse to go on in an epoch that was shared by other ranks."""
        if position is None or position.is_over:
            return
        former = position.num_ranks
        found = None if self.journal is None else self.journal.found
        if found is not None and found[0] == position.run:
            former = found[1].ranks()
        check_ranks(former, self._ranks)

    def _decide_about_journal(self, position: Position | None) -> None:
        """Continue the run of the journal if the first client names it."""
        journal = self.journal
        if journal is None or journal.found is None:
            return
        run, ledger = journal.found
        if position is None or position.run != run:
            journal.set_aside()
            return
        try:
            if (ledger.sharing, ledger.ranks()) != (
                    self.sharing, self._ranks):
                raise StateMismatchError(
                    f'its clients shared by {ledger.sharing!r}, '
                    f'{ledger.num_ranks} of them')
            for checkpoint in ledger.checkpoints:
                self._scheduler.pipeline.check_state(checkpoint.state())
        except StateMismatchError as error:
            log.warning('the journal is of another server: %s', error)
            journal.set_aside()
            return
        log.info('run %s is continued in epoch %d', run, ledger.number)
        self.run = run
        self.epoch = epoch = Epoch(ledger, self._scheduler.free)
        epoch.cursor = epoch.ledger.highest()
        for account in [*ledger.accounts.values()]:
            # Which of them had closed their streams is not in the journal.
            self._attendance.lose(account.client)
            if account.is_present or account.deadline:
                ledger.lose(account.client, self._scheduler.hold_until())
        journal.begin(run, ledger)

    def _has_others(self, epoch: Epoch,
                    connection: ClientConnection) -> bool:
        """Return whether another living client took part in the epoch."""
        return any(
            client != connection.client
            and self._scheduler.is_connected(client)
            for client in epoch.ledger.accounts)

    def _reject_old(self, connection: ClientConnection,
                    position: Position | None) -> None:
        """Answer a client whose epoch the others have left behind."""
        assert position is not None
        assert self.epoch is not None
        number = self.epoch.ledger.number
        if position.run == self.run and position.epoch > number:
            raise StateMismatchError(
                f'the state is of epoch {position.epoch}, but the clients '
                f'that came back first went on from epoch {number}: load '
                'states that were saved together, or start a server of its '
                'own for it')
        if position.run != self.run:
            raise StateMismatchError(
                f'the state is of epoch {position.epoch} of run '
                f'{position.run!r}, but this server serves run {self.run!r} '
                'to other clients: start a server of its own for it')
        log.warning(
            'a client continues epoch %d, but the others have begun epoch '
            '%d: what its predecessor delivered after the state was saved '
            'is lost', position.epoch, number)
        self._turn_away(connection, {'type': 'end', 'state': None})

    def _must_hold(self, epoch: Epoch, joiner: Joiner) -> bool:
        """Return whether an epoch waits for the successor of a client.

        Not for long if nobody else is alive: then the joiner probably comes
        in its place.
        """
        _, _, position = joiner
        mine = {joiner.connection.client,
                '' if position is None else position.client}
        awaited = [account for account in epoch.ledger.awaited()
                   if account.client not in mine]
        return bool(awaited) and (
            (position is not None and not position.is_over)
            or self._has_others(epoch, joiner.connection)
            or joiner.connection.client in epoch.ledger.accounts
            or max(account.deadline for account in awaited)
            > self._scheduler.hold_until() - _TOGETHER)

    def _describe_lack(self, joiners: list[Joiner]) -> str:
        """Return for which clients the next epoch waits, if for any."""
        former = None if self.epoch is None else self.epoch.ledger
        return self._attendance.describe_lack(former, [
            joiner for joiner in [*joiners, *self.joiners]
            if self._is_waiting(joiner)])

    def describe_wait(self) -> str:
        """Return what other clients have to do, if something waits for it."""
        epoch = self.epoch
        if epoch is not None and (awaited := epoch.ledger.awaited()):
            seconds = max(account.deadline for account in awaited) \
                - self._scheduler.clock()
            return ('the server waits for the successor of each client that '
                    f'vanished, {len(awaited)} of them, for '
                    f'{max(0.0, seconds):.0f} more seconds (reconnect)')
        if epoch is not None and epoch.members:
            return describe_ranks(
                epoch.absent_ranks(), self.num_clients) or (
                self.joiners and 'the server waits for the epoch of other '
                f'clients to end: {len(epoch.members)} are in it') or ''
        return self._describe_lack([]) if self.joiners else ''

    def on_lost(self, client: str, may_return: bool) -> None:
        """Record that the connection of a client has ended."""
        if not may_return:
            self._attendance.dismiss(client)
        elif self.epoch is not None and client in self.epoch.ledger.accounts:
            self._attendance.lose(client)

    def _join(self, connection: ClientConnection,
              position: Position | None) -> None:
        """Make a client a member of the present epoch."""
        epoch = self.epoch
        assert epoch is not None
        if position is None:
            member = epoch.join(connection)
        else:
            claims = IndexSet() if position.is_over else position.done
            epoch.ledger.check_claims(position.client, claims)
            member = epoch.join(connection, position.client, claims)
            self._attendance.dismiss(position.client)
            if position.client != connection.client \
                    and position.client in epoch.members:
                # It stays, lest a forged state removes others.
                log.warning(
                    'a client has loaded the state of client %r, which is '
                    'still in the epoch: they share what is left of it',
                    position.client)
        if epoch.is_open:
            self._answer(epoch, member)

    def _answer(self, epoch: Epoch, member: Member) -> None:
        """Send a client that it has joined."""
        self._scheduler.reply(member.connection, {
            'type': 'joined',
            # Not that of the welcome: a client may have come before the one
            # whose run this server continues.
            'run': self.run, 'epoch': epoch.ledger.number,
            'num_ranks': epoch.ledger.ranks(),
            'start': epoch.base_index,
            'floor': epoch.ledger.floor(member.account),
            'done': member.account.delivered.ranges(),
            'base': epoch.base, 'why': epoch.why})

    def _begin(self, connection: ClientConnection,
               position: Position | None) -> None:
        """Begin a new epoch, or adopt one that another server served."""
        old, run = self.epoch, self.run
        number, index = 1, 0
        state: State | None = None
        after = is_adopted = False
        if position is not None and (
                position.run != run or not position.is_over):
            state, after = position.state, position.is_over
            is_adopted, number = not after, position.epoch + after
            if is_adopted:
                run, index = position.run, position.index
            if state is not None:
                self._scheduler.pipeline.check_state(state)
        elif old is not None:
            number = old.ledger.number + 1
            if not old.is_loaded or not old.is_exhausted or old.free:
                # The next comes after what was delivered of it.
                state, after = old.state_when_left(), True
        epoch = Epoch(
            Ledger(number, self.sharing, self.num_clients, is_adopted),
            self._scheduler.free)
        epoch.cursor = index
        if old is not None:
            old.discard()
        epoch.join(connection, *(
            (position.client, position.done)
            if is_adopted and position is not None else ()))
        self._former = self.run, old
        self.run, self.epoch = run, epoch
        self._attendance.begin()
        self._scheduler.counts['epochs'] += 1
        self._scheduler.open(epoch, index=index, state=state, after=after)

    def on_opened(self, epoch: Epoch) -> None:
        """Answer the clients whose epoch has begun."""
        if self.journal is not None:
            self.journal.begin(self.run, epoch.ledger)
        for member in epoch.members.values():
            self._answer(epoch, member)

    def on_broken(self, epoch: Epoch, error: dict[str, Any]) -> None:
        """Tell its clients that an epoch cannot begin."""
        for member in epoch.members.values():
            self._turn_away(
                member.connection, {'type': 'broken', 'error': error})
        self.run, self.epoch = self._former
        if self.epoch is not None:
            # The pipeline has lost its place.
            self.epoch.is_begun = self.epoch.is_loaded = False
            if self.journal is not None:
                self.journal.begin(self.run, self.epoch.ledger)
