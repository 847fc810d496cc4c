"""Batches of an epoch that are in memory, and which client gets each."""
from __future__ import annotations

from collections.abc import Callable, Iterable

from fuel.server.connections import ClientConnection, Item
from fuel.server.ledger import ALL, RANK, SPLIT, Account, Ledger
from fuel.typing import State
from fuel.wire.index_sets import IndexSet

# Seconds that a client has for its only batch before others may have it.
_LAST_BATCH_SECONDS = 0.1


class Member:
    """A client that is connected and in the epoch.

    `connection`: to which it is sent messages, for as long as it is one.
    `credit`: how many batches it may have that it has not delivered.
    `reserved`: how many are being made for it.
    `is_waiting`: whether its user waits for a batch.
    `has_read`: whether it gave a sign that it reads what it is sent.
    `first_sent`, `last_sent`: when it was sent its first batch, and its last
        one; 0 before.
    `revoked`: when it was asked for batches that another one waits for; else
        0.
    """

    def __init__(self, account: Account,
                 connection: ClientConnection) -> None:
        self.account = account
        self.client = account.client
        self.connection = connection
        self.credit = connection.hwm
        self.reserved = 0
        self.is_waiting = False
        self.has_read = False
        self.first_sent = self.last_sent = 0.0
        self.revoked = 0.0

    def load(self) -> int:
        """Return the number of batches that are sent to it or being made."""
        return len(self.account.pending) + self.reserved


class ServedEpoch:
    """One epoch of the served stream, as far as it is in memory.

    `is_shared`: whether each batch goes to all clients.
    `cursor`: index of the batch that the pipeline makes next.
    `is_exhausted`: whether it has made the last.
    `free`: batches in memory that somebody is to be sent, by index.
    `under_way`: those that were sent, or are held for a successor, by index.
    `making`: those that the pipeline makes now.
    `is_torn`: whether batches may be missing that were made before.
    `is_begun`, `is_open`: whether the pipeline was asked for it, and has
        opened it.
    `is_loaded`: whether the pipeline is in this epoch.
    `base`, `base_index`, `why`: the state with which the pipeline opened it,
        the index there, and why there is no state.
    """

    def __init__(self, ledger: Ledger, free: Callable[[Item], None]) -> None:
        self.ledger = ledger
        self.is_shared = ledger.sharing == ALL
        self._free = free
        self.cursor = 0
        self.is_exhausted = False
        self.is_torn = False
        self.members: dict[str, Member] = {}
        self.free: dict[int, Item] = {}
        self.under_way: dict[int, Item] = {}
        self.making: set[int] = set()
        self.finished_ranks: set[int | None] = set()
        self.is_begun = self.is_open = self.is_loaded = False
        self.base: State | None = None
        self.base_index = 0
        self.why: str | None = None

    def is_open_to(self, client: str) -> bool:
        """Return whether a client that continues nothing may join now."""
        account = self.ledger.accounts.get(client)
        if (account is not None and account.has_left) or not self.members:
            # Nobody is there to share with: a new epoch is wanted.
            return False
        return not self.is_shared or (
            not self.ledger.is_adopted and self.cursor == 0)

    def join(self, connection: ClientConnection, before: str = '',
             claims: IndexSet | None = None) -> Member:
        """Add a client; see :meth:`Ledger.join`."""
        account = self.ledger.join(
            connection.client, connection.rank, before, claims)
        member = self.members[account.client] = Member(account, connection)
        self.is_torn = True
        self.drop_unneeded()
        return member

    def lose(self, client: str, deadline: float) -> None:
        """Remove a client that vanished; see :meth:`Ledger.lose`."""
        del self.members[client]
        self.ledger.lose(client, deadline)

    def leave(self, client: str) -> None:
        """Remove a client that leaves, or has come to the end."""
        self.members.pop(client, None)
        if client in self.ledger.accounts:
            self.ledger.end(client, 'left')
            self.is_torn = True
            self.drop_unneeded()

    def expire(self, now: float) -> None:
        """Release the batches whose client has no successor in time."""
        if any(one.deadline <= now for one in self.ledger.awaited()):
            self.ledger.expire(now)
            self.is_torn = True
            self.drop_unneeded()

    def acknowledge(self, client: str, indices: Iterable[int]) -> list[Item]:
        """Return the items that a client has now delivered."""
        member = self.members[client]
        member.has_read = True
        taken = self.ledger.acknowledge(client, indices)
        member.connection.num_delivered += len(taken)
        items = [self.under_way[index] for index in taken
                 if index in self.under_way]
        for item in items:
            if not self.ledger.is_pending(item.index):
                del self.under_way[item.index]
        return items

    def take_back(self, client: str, indices: IndexSet) -> None:
        """Record that a client will not deliver some of its batches."""
        member = self.members[client]
        member.revoked = 0.0
        member.has_read = True
        self.ledger.take_back(client, indices)
        self.drop_unneeded()

    def drop_unneeded(self) -> None:
        """Sort the items in memory anew, after clients came or went."""
        items = [*self.under_way.values(), *self.free.values()]
        self.under_way.clear()
        self.free.clear()
        for item in items:
            self.add(item)

    def add(self, item: Item) -> None:
        """Keep a batch while a client needs it, or free its memory."""
        index, ledger = item.index, self.ledger
        is_pending = ledger.is_pending(index)
        if self.is_shared:
            is_free = bool(ledger.lacking(index))
        else:
            is_free = not is_pending and index not in ledger.delivered
        if is_free:
            self.free[index] = item
        elif is_pending:
            self.under_way[index] = item
        else:
            self._free(item)

    def deliver(self, item: Item, member: Member, now: float) -> None:
        """Record that a member is sent an item; call this before."""
        self.ledger.send(member.client, item.index)
        member.is_waiting = False
        member.connection.end_wait()
        member.first_sent = member.first_sent or now
        member.last_sent = now
        if not self.is_shared or not self.ledger.lacking(item.index):
            self.under_way[item.index] = self.free.pop(item.index)

    def discard(self) -> None:
        """Free all items: another epoch begins."""
        for items in self.under_way, self.free:
            for item in items.values():
                self._free(item)
            items.clear()

    def state_when_left(self) -> State | None:
        """Return the state after the delivered batches; None if unknown."""
        ledger = self.ledger
        if ledger.final is not None and not self.free:
            return ledger.final
        found = ledger.checkpoints.before(
            max(ledger.checkpoints.lowest, ledger.delivered.end()))
        return None if found is None else found[1]

    def lowest_missing(self) -> int:
        """Return the first batch below the cursor that must be remade."""
        there = IndexSet((index, index + 1)
                         for index in [*self.free, *self.under_way,
                                       *self.making])
        self.is_torn = False
        return self.ledger.missing(self.front(), there)

    def front(self) -> int:
        """Return the first batch that was not made before."""
        length = self.ledger.length
        return self.cursor if length is None else min(self.cursor, length)

    def receivers(self, index: int) -> list[Member] | None:
        """Return the members to make a batch for; None to make none yet."""
        if index in self.free or index in self.under_way:
            return []
        ledger = self.ledger
        if ledger.length is not None and index >= ledger.length:
            # The pipeline went back, and comes to its end again.
            return []
        wanting = [self.members[account.client]
                   for account in ledger.lacking(index)]
        if self.is_shared:
            # Those who are awaited go on with the others.
            return wanting if not ledger.awaited() and all(
                member.load() < member.credit for member in wanting) else None
        if not wanting:
            is_settled = index in ledger.delivered or any(
                index in member.account.delivered
                for member in self.members.values()) or (
                ledger.sharing == RANK
                and index % ledger.num_ranks in self.finished_ranks)
            return [] if is_settled else None
        chosen = self._choose(wanting)
        if chosen is not None:
            return [chosen]
        # For the only client one batch more is prefetched.
        is_only = ledger.sharing == SPLIT and len(self.members) == 1
        return wanting if is_only else None

    def absent_ranks(self) -> list[int]:
        """Return the ranks whose batches wait for a client of theirs."""
        ledger = self.ledger
        if ledger.sharing != RANK:
            return []
        waiting = [*self.free, *([] if self.is_exhausted else [self.cursor])]
        there = {member.account.rank for member in self.members.values()}
        return sorted({index % ledger.num_ranks for index in waiting}
                      - there - self.finished_ranks)

    def is_held(self, index: int) -> bool:
        """Return whether a batch is held that is not in memory."""
        return (not self.is_shared and index not in self.under_way
                and self.ledger.is_pending(index))

    def _choose(self, wanting: list[Member]) -> Member | None:
        """Return the one member that gets a batch, if it has credit."""
        return min(
            (member for member in wanting if member.load() < member.credit),
            key=lambda member: (not member.is_waiting, member.load()),
            default=None)

    def has_earlier(self) -> bool:
        """Return whether batches in memory are sent before new ones.

        They need the credit, or one client alone would not see them in
        order.
        """
        return self.ledger.sharing == SPLIT and any(
            index < self.cursor for index in self.free)

    def next_delivery(self) -> tuple[Item, Member] | None:
        """Return an item in memory, and the member that gets it now.

        In the order of the epoch, so that one client alone sees them so:
        those wait that follow one which is made now or must be made again.
        """
        limit = min([self.cursor, *self.making])
        for index in sorted(self.free):
            if index > limit:
                return None
            wanting = [self.members[account.client]
                       for account in self.ledger.lacking(index)]
            member = self._choose(wanting)
            if member is not None:
                return self.free[index], member
        return None

    def member_to_revoke(self, now: float) -> Member | None:
        """Return the member whose batches to revoke for a waiting one.

        A client that does not read its batches must not keep the others from
        the end of the epoch.
        """
        members = self.members.values()
        if not self.is_exhausted or self.ledger.sharing != SPLIT \
                or self.free or any(member.revoked for member in members):
            return None
        waiting = [member.account.delivered for member in members
                   if member.is_waiting and not member.load()]
        rich = max(
            (member for member in members
             if any(member.account.pending - delivered
                    for delivered in waiting)),
            key=lambda member: len(member.account.pending), default=None)
        if rich is None:
            return None
        count = len(rich.account.pending)
        # Its user may be about to take one that was just sent.
        return rich if count > 1 or (
            count and now - rich.last_sent > _LAST_BATCH_SECONDS) else None

    def ended(self) -> list[Member]:
        """Return the members that are at the end of the epoch."""
        ledger = self.ledger
        if not self.is_exhausted or self.is_torn:
            return []
        if ledger.sharing == SPLIT and (
                self.free or ledger.pending() or any(
                    member.reserved for member in self.members.values())):
            return []
        # The rank waits for batches that its former client may still hold.
        held = ledger.pending() if ledger.sharing == RANK else ()
        return [member for member in self.members.values()
                if not member.load() and not any(
                    member.account in ledger.lacking(index)
                    for index in self.free) and not any(
                    ledger.is_for(member.account, index) for index in held)]
