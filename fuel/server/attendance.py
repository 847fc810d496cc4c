"""Attendance: the clients that an epoch waits for before it begins."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from fuel.server.connections import ClientConnection
from fuel.server.ledger import RANK, SPLIT, Ledger
from fuel.server.position import ClientPosition

# Maximum number of ranks that a message names.
_NAMED = 5


class Joiner(NamedTuple):
    """A client that wants to join an epoch.

    `number`: number of the client's request to join; a later request replaces
        it.
    `position`: the position that it resumes; None for a new epoch.
    """

    connection: ClientConnection
    number: int
    position: ClientPosition | None


class Attendance:
    """Determines which clients an epoch still waits for.

    The first epoch waits for `num_clients` clients.  A later one waits for the
    clients of the epoch before, unless they closed their streams, ended, or
    have been gone for more than `hold` seconds.  With sharing by rank, each
    epoch waits for each rank.

    `is_connected`: returns whether the client with a given name is connected.
    `clock`: returns the time in seconds.
    `hold`: seconds within which a client, or its successor, must request the
        next epoch.
    """

    def __init__(self, sharing: str, num_clients: int,
                 is_connected: Callable[[str], bool],
                 clock: Callable[[], float], hold: float) -> None:
        self._sharing = sharing
        self._num_clients = num_clients
        self._is_connected = is_connected
        self._clock = clock
        self._hold = hold
        # Time until which a vanished client, or its successor, may join.
        self._awaited: dict[str, float] = {}
        # Time until which the waiting clients must wait for the missing ones;
        # 0 if no client waits.
        self._patience = 0.0

    def lose(self, client: str) -> None:
        """Wait for a client that vanished, or its successor, for `hold`
        seconds."""
        self._awaited[client] = self._clock() + self._hold

    def dismiss(self, client: str) -> None:
        """Stop waiting for a client: it has left, or has a successor."""
        self._awaited.pop(client, None)

    def begin(self) -> None:
        """Stop waiting for clients of the former epoch: a new one begins."""
        self._awaited.clear()
        self._patience = 0.0

    def keep_waiting(self, is_somebody: bool) -> None:
        """Record whether clients wait for the next epoch because others are
        missing."""
        if not is_somebody:
            self._patience = 0.0
        elif not self._patience:
            self._patience = self._clock() + self._hold

    def describe_lack(self, former: Ledger | None,
                      joiners: Iterable[Joiner]) -> str:
        """Return a text about missing clients; empty if an epoch can begin.

        `former`: the epoch before, if there was one.
        """
        joiners = list(joiners)
        if self._sharing == RANK:
            there = {joiner.connection.rank for joiner in joiners}
            return describe_ranks(
                [rank for rank in range(self._num_clients)
                 if rank not in there], self._num_clients)
        count = len({joiner.connection.client for joiner in joiners})
        number, which = self._num_clients - count, ''
        if former is not None:
            number = min(number, len(self._expected(former, joiners)))
            which = ' of the epoch before'
        if number <= 0:
            return ''
        return (f'the server waits for {number} more client'
                f'{"s" if number > 1 else ""}{which}: num_clients='
                f'{self._num_clients}, {count} '
                f'{"is" if count == 1 else "are"} there')

    def _expected(self, former: Ledger, joiners: list[Joiner]) -> set[str]:
        """Return the clients of the former epoch that may still request the
        next one."""
        now = self._clock()
        if self._sharing == SPLIT and 0 < self._patience <= now:
            # The missing clients can still join while the epoch runs.
            return set()
        asking = {joiner.connection.client for joiner in joiners}
        asking.update(joiner.position.client for joiner in joiners
                      if joiner.position is not None)
        return {client for client in former.accounts
                if client not in asking
                and (self._is_connected(client)
                     or self._awaited.get(client, 0.0) > now)}


def describe_ranks(ranks: list[int], num_clients: int) -> str:
    """Return a text about the ranks that an epoch waits for; empty if there
    are none."""
    if not ranks:
        return ''
    named = ', '.join(map(str, ranks[:_NAMED]))
    more = f' and {len(ranks) - _NAMED} more' if ranks[_NAMED:] else ''
    return (f'the server waits for a client of each of the ranks {named}'
            f"{more}: sharing='rank', num_clients={num_clients}, and the "
            'batches of a rank are for nobody else')
