"""Admission: the choice of the epoch that a client joins, resumes or
begins."""
from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from fuel.exceptions import StateMismatchError
from fuel.server.attendance import Attendance, Joiner, describe_ranks
from fuel.server.connections import ClientConnection
from fuel.server.dispatch import ServedEpoch
from fuel.server.ledger import RANK, Ledger
from fuel.server.position import (
    ClientPosition, check_not_left, check_ranks)
from fuel.typing import State
from fuel.wire.header import WireError
from fuel.wire.index_sets import IndexSet

log = logging.getLogger(__name__)

# Clients that were killed together are started again together, within so many
# seconds. For that time a client without a state waits, so that the other
# clients can join first.
_RESTART_SECONDS = 2.0


class Join(NamedTuple):
    """Decision that a client becomes a member of the present epoch.

    `before`: name of the client whose position it resumes; empty if it resumes
        none.
    `claims`: the batches that the client `before` delivered.
    """

    connection: ClientConnection
    before: str = ''
    claims: IndexSet | None = None


class Begin(NamedTuple):
    """Decision that a client begins an epoch, or resumes one of another
    server.

    `run`, `number`: run and number of the epoch.
    `is_adopted`: whether the epoch resumes at the client's position.
    `start`: index of the first batch to make.
    `state`: state of the pipeline before that batch. If `after`, it is a state
        in the epoch before, or at the end of that epoch. None: the pipeline
        begins a new epoch at its present position.
    """

    first: Join
    run: str
    number: int
    is_adopted: bool
    start: int
    state: State | None
    after: bool


class Wait(NamedTuple):
    """Decision that a client waits for other clients."""

    joiner: Joiner


class Refuse(NamedTuple):
    """Decision that a client cannot join: the server sends it an error."""

    connection: ClientConnection
    error: Exception


class ReportEnd(NamedTuple):
    """Decision that a client's epoch is over: the server sends it the end."""

    connection: ClientConnection


class Continue(NamedTuple):
    """Decision that the server resumes the epoch in the journal."""

    run: str
    ledger: Ledger


class SetAside(NamedTuple):
    """Decision that the server does not resume the epoch in the journal."""


Decision = Join | Begin | Wait | Refuse | ReportEnd | Continue | SetAside


class Admission:
    """Decides which client joins which epoch, and which epoch begins.

    It decides, and the scheduler carries the decisions out.

    `connections`: the connected clients.
    `sharing`, `num_clients`: see :class:`~fuel.server.Server`.
    `hold`: seconds within which the successor of a vanished client must join.
    `clock`: returns the time in seconds.
    `check_state`: refuses a state that the pipeline cannot load.
    `run`: identifier that the epochs of this server share with the epochs of a
        former server that it resumes.
    `epoch`: the present epoch.
    `joiners`: the clients that wait for an epoch.
    `found`: the run and the epoch in the journal of a former server, until it
        is decided whether to resume that epoch.
    """

    def __init__(self, connections: Mapping[bytes, ClientConnection],
                 sharing: str, num_clients: int, hold: float,
                 clock: Callable[[], float],
                 check_state: Callable[[State], object]) -> None:
        self._connections = connections
        self.sharing = sharing
        self.num_clients = num_clients
        self._ranks = num_clients if sharing == RANK else 0
        self._hold = hold
        self._clock = clock
        self._check_loadable = check_state
        self.run = secrets.token_hex(8)
        self.epoch: ServedEpoch | None = None
        # The run and epoch to return to if the present one cannot begin.
        self._former: tuple[str, ServedEpoch | None] = self.run, None
        self.joiners: list[Joiner] = []
        self.found: tuple[str, Ledger] | None = None
        self._attendance = Attendance(
            sharing, num_clients, self._is_connected, clock, hold)

    def decisions(self) -> Iterator[Decision]:
        """Yield decisions about the clients that wait.

        The caller must carry each decision out before it requests the next
        one, which depends on it.
        """
        # Decide first about the clients that resume the present epoch, so that
        # no other client begins the next epoch before they have joined.
        waiting = sorted(self.joiners, key=self._must_wait)
        self.joiners = []
        for place, joiner in enumerate(waiting):
            if not self._is_waiting(joiner):
                continue
            try:
                self._check_sharing(joiner.position)
                if self.found is not None:
                    yield self._decide_about_journal(
                        self.found, joiner.position)
                decision = self._decide(joiner, waiting[place:])
            except (WireError, TypeError, ValueError, LookupError) as error:
                # The state is not valid; the server still serves the other
                # clients.
                decision = Refuse(joiner.connection, error)
            if isinstance(decision, Wait):
                self.joiners.append(joiner)
            yield decision
        if not self.joiners:
            self._attendance.keep_waiting(False)

    def _must_wait(self, joiner: Joiner) -> bool:
        position = joiner.position
        if position is None:
            return True
        if self.found is not None:
            return position.run != self.found[0]
        if self.epoch is None:
            return position.is_over
        return not self.continues(joiner.connection.client, position)

    def _is_waiting(self, joiner: Joiner) -> bool:
        """Return whether a client is connected and still asks to join."""
        connection = joiner.connection
        return connection.join == joiner.number and self._connections.get(
            connection.identity) is connection

    def _is_connected(self, client: str) -> bool:
        return any(connection.client == client
                   for connection in self._connections.values())

    def continues(self, client: str,
                  position: ClientPosition | None) -> bool:
        """Return whether a client with this position resumes the present
        epoch.

        The position may be in this epoch. If this client has joined the
        present epoch, not left it and delivered nothing, the position may also
        be None, the end of the epoch before, or the end of an epoch of another
        run. The end of the epoch before also counts if the client that saved
        it has joined the present epoch.
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

    def _usable(self,
                position: ClientPosition | None) -> ClientPosition | None:
        """Return a position, or None if no epoch can resume from it.

        A position in an epoch other than the present one needs the pipeline's
        state, and some pipelines have none.
        """
        present = (None if self.epoch is None
                   else (self.run, self.epoch.ledger.number))
        if position is None or position.state is not None \
                or position.is_over \
                or (position.run, position.epoch) == present:
            return position
        return None

    def _check_sharing(self, position: ClientPosition | None) -> None:
        """Raise an error for a position in an epoch that a different number of
        ranks shared."""
        if position is None or position.is_over:
            return
        former = position.num_ranks
        if self.found is not None and self.found[0] == position.run:
            former = self.found[1].ranks()
        check_ranks(former, self._ranks)

    def _decide_about_journal(self, found: tuple[str, Ledger],
                              position: ClientPosition | None) -> Decision:
        """Decide whether to resume the epoch in the journal: it is resumed
        only if the position of the first client names the run of that
        epoch."""
        self.found = None
        run, ledger = found
        if position is None or position.run != run:
            return SetAside()
        try:
            if (ledger.sharing, ledger.ranks()) != (
                    self.sharing, self._ranks):
                raise StateMismatchError(
                    f'its clients shared by {ledger.sharing!r}, '
                    f'{ledger.num_ranks} of them')
            for state in ledger.checkpoints.states():
                self._check_loadable(state)
        except StateMismatchError as error:
            log.warning('the journal is of another server: %s', error)
            return SetAside()
        return Continue(run, ledger)

    def _decide(self, joiner: Joiner, later: list[Joiner]) -> Decision:
        """Decide which epoch one client joins.

        `later`: the waiting clients without a decision yet, this one included.
        """
        connection = joiner.connection
        position = self._usable(joiner.position)
        epoch = self.epoch
        if epoch is not None and self.continues(connection.client, position):
            return self._join(epoch, connection, position)
        wants_new = position is None or position.is_over
        has_finished = epoch is not None and position is not None and (
            position.run, position.epoch) == (self.run, epoch.ledger.number)
        if epoch is not None and has_finished:
            # The position is from a former server that had no journal.
            epoch.finished_ranks.add(connection.rank)
        elif wants_new and epoch is not None \
                and epoch.is_open_to(connection.client):
            return Join(connection)
        if epoch is not None and position is not None \
                and not position.is_over \
                and self._has_others(epoch, connection):
            return self._leave_behind(epoch, connection, position)
        if epoch is not None and (
                epoch.members or self._must_hold(epoch, joiner)):
            return Wait(joiner)
        if wants_new and self._describe_lack(later):
            self._attendance.keep_waiting(True)
            return Wait(joiner)
        return self._begin(connection, position)

    def _join(self, epoch: ServedEpoch, connection: ClientConnection,
              position: ClientPosition | None) -> Join:
        """Return the decision that a client resumes the present epoch."""
        if position is None:
            return Join(connection)
        claims = IndexSet() if position.is_over else position.done
        epoch.ledger.check_claims(position.client, claims)
        return Join(connection, position.client, claims)

    def _has_others(self, epoch: ServedEpoch,
                    connection: ClientConnection) -> bool:
        """Return whether another client of the epoch is still connected."""
        return any(client != connection.client and self._is_connected(client)
                   for client in epoch.ledger.accounts)

    def _leave_behind(self, epoch: ServedEpoch, connection: ClientConnection,
                      position: ClientPosition) -> Decision:
        """Report the end of the epoch to a client that resumes an epoch after
        the other clients have begun a later one. Raise an error for a position
        in a later epoch or in another run."""
        number = epoch.ledger.number
        check_not_left(position, self.run, number)
        log.warning(
            'a client continues epoch %d, but the others have begun epoch '
            '%d: the batches that its predecessor delivered after the state '
            'was saved are lost', position.epoch, number)
        return ReportEnd(connection)

    def _must_hold(self, epoch: ServedEpoch, joiner: Joiner) -> bool:
        """Return whether an epoch waits for the successor of a vanished
        client.

        If no other client is connected, the epoch waits for a short time only,
        since the joiner is probably that successor.
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
            > self._clock() + self._hold - _RESTART_SECONDS)

    def _begin(self, connection: ClientConnection,
               position: ClientPosition | None) -> Begin:
        """Return the decision which epoch a client begins or resumes."""
        old, run = self.epoch, self.run
        number, start = 1, 0
        state: State | None = None
        after = is_adopted = False
        first = Join(connection)
        if position is not None and (
                position.run != run or not position.is_over or (
                    old is not None and not self._has_others(old, connection)
                    and position.goes_back(old.ledger.number))):
            state, after = position.state, position.is_over
            is_adopted, number = not after, position.epoch + after
            if is_adopted:
                run, start = position.run, position.index
                first = Join(connection, position.client, position.done)
            if state is not None:
                self._check_loadable(state)
        elif old is not None:
            number = old.ledger.number + 1
            if not old.is_loaded or not old.is_exhausted or old.free:
                # The next epoch follows the delivered batches of the old one.
                state, after = old.state_when_left(), True
        return Begin(first, run, number, is_adopted, start, state, after)

    def _describe_lack(self, joiners: list[Joiner]) -> str:
        """Return a text about the clients that the next epoch waits for; empty
        if it can begin."""
        former = None if self.epoch is None else self.epoch.ledger
        return self._attendance.describe_lack(former, [
            joiner for joiner in [*joiners, *self.joiners]
            if self._is_waiting(joiner)])

    def describe_wait(self) -> str:
        """Return the reason why clients wait for other clients; '' if none
        wait."""
        epoch = self.epoch
        if epoch is not None and (awaited := epoch.ledger.awaited()):
            seconds = max(account.deadline for account in awaited) \
                - self._clock()
            return ('the server waits for the successor of each client that '
                    f'vanished, {len(awaited)} of them, for '
                    f'{max(0.0, seconds):.0f} more seconds (reconnect)')
        if epoch is not None and epoch.members:
            return describe_ranks(
                epoch.absent_ranks(), self.num_clients) or (
                self.joiners and 'the server waits for the epoch of other '
                f'clients to end: {len(epoch.members)} are in it') or ''
        return self._describe_lack([]) if self.joiners else ''

    def on_begun(self, run: str, epoch: ServedEpoch) -> None:
        """Record the epoch that has become the present one."""
        self._former = self.run, self.epoch
        self.run, self.epoch = run, epoch
        self._attendance.begin()

    def on_continued(self, run: str, epoch: ServedEpoch) -> None:
        """Record the epoch of a former server, and wait for its clients."""
        self.run, self.epoch = run, epoch
        for client in epoch.ledger.accounts:
            # The journal does not record which of them closed their streams.
            self._attendance.lose(client)

    def on_broken(self) -> None:
        """Make the former epoch the present one: the new one could not
        begin."""
        self.run, self.epoch = self._former

    def on_joined(self, before: str) -> None:
        """Stop waiting for the client `before`: its successor has joined."""
        self._attendance.dismiss(before)

    def on_lost(self, client: str, may_return: bool) -> None:
        """Record that the connection of a client has ended."""
        if not may_return:
            self._attendance.dismiss(client)
        elif self.epoch is not None and client in self.epoch.ledger.accounts:
            self._attendance.lose(client)
