"""The batches of an epoch in memory, and the choice of a client for each."""
from __future__ import annotations

from collections.abc import Callable, Iterable

from fuel.server.connections import ClientConnection, Item
from fuel.server.ledger import ALL, RANK, SPLIT, Account, Ledger
from fuel.typing import State
from fuel.wire.index_sets import IndexSet

# Seconds for which a client may keep its only undelivered batch before the
# batch can be revoked for another client.
_LAST_BATCH_SECONDS = 0.1


class Member:
    """A client that is connected and in the epoch.

    `connection`: connection over which the member is sent messages.
    `credit`: the maximum number of batches that it may have without delivering
        them.
    `reserved`: number of batches that the pipeline is making for it.
    `is_waiting`: whether its user waits for a batch.
    `has_read`: whether it has answered, which shows that it reads its
        messages.
    `first_sent`, `last_sent`: times at which its first and its last batch were
        sent; 0 if none was.
    `revoked`: time at which it was asked to return batches, because another
        member waits; 0 if it was not.
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
        """Return the number of undelivered batches that the member was sent,
        or that are being made for it."""
        return len(self.account.pending) + self.reserved


class ServedEpoch:
    """The present epoch of the served stream: its members and its batches in
    memory.

    `is_shared`: whether each batch goes to all clients.
    `cursor`: index of the batch that the pipeline makes next.
    `is_exhausted`: whether the pipeline has made the last batch.
    `free`: batches in memory that must still be sent to a client, by index.
    `under_way`: batches in memory that were sent, or are held for a successor,
        by index.
    `making`: indices of the batches that the pipeline makes now.
    `is_torn`: whether batches that were made before may have to be made again.
    `is_begun`, `is_open`: whether the pipeline was asked to open the epoch,
        and whether it has opened it.
    `is_loaded`: whether the pipeline's position is in this epoch.
    `base`, `base_index`, `why`: the state from which the pipeline opened the
        epoch, the index of the batch after that state, and the reason why
        there is no state.
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
        """Return whether a client without a position may join the epoch
        now."""
        account = self.ledger.accounts.get(client)
        if (account is not None and account.has_left) or not self.members:
            # There is no other client in it, so a new epoch begins.
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
        """Remove a client that leaves the epoch, or has reached its end."""
        self.members.pop(client, None)
        if client in self.ledger.accounts:
            self.ledger.end(client, 'left')
            self.is_torn = True
            self.drop_unneeded()

    def expire(self, now: float) -> None:
        """Release the batches of vanished clients whose successors are too
        late."""
        if any(one.deadline <= now for one in self.ledger.awaited()):
            self.ledger.expire(now)
            self.is_torn = True
            self.drop_unneeded()

    def acknowledge(self, client: str, indices: Iterable[int]) -> list[Item]:
        """Record that a client has delivered batches, and return those
        items."""
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
        """Free the items in memory that no client needs, after a client joined
        or left."""
        items = [*self.under_way.values(), *self.free.values()]
        self.under_way.clear()
        self.free.clear()
        for item in items:
            self.add(item)

    def add(self, item: Item) -> None:
        """Keep a batch if a client needs it; otherwise free its memory."""
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
        """Record that an item is sent to a member; call this before sending
        it."""
        self.ledger.send(member.client, item.index)
        member.is_waiting = False
        member.connection.end_wait()
        member.first_sent = member.first_sent or now
        member.last_sent = now
        if not self.is_shared or not self.ledger.lacking(item.index):
            self.under_way[item.index] = self.free.pop(item.index)

    def discard(self) -> None:
        """Free the memory of all items, since another epoch begins."""
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
        """Return the index of the first batch that must be made again, or of
        the first new batch if none must be made again."""
        there = IndexSet((index, index + 1)
                         for index in [*self.free, *self.under_way,
                                       *self.making])
        self.is_torn = False
        return self.ledger.missing(self.front(), there)

    def front(self) -> int:
        """Return the index of the first batch that was never made."""
        length = self.ledger.length
        return self.cursor if length is None else min(self.cursor, length)

    def receivers(self, index: int) -> list[Member] | None:
        """Return the members for which to make a batch: an empty list if no
        member needs it, None if the pipeline must wait."""
        if index in self.free or index in self.under_way:
            return []
        ledger = self.ledger
        if ledger.length is not None and index >= ledger.length:
            # The pipeline returned to an earlier batch, and reaches the end of
            # the epoch again.
            return []
        wanting = [self.members[account.client]
                   for account in ledger.lacking(index)]
        if self.is_shared:
            # Nothing is made until the vanished clients have returned or are
            # too late.
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
        # One batch more is prefetched for a single client.
        is_only = ledger.sharing == SPLIT and len(self.members) == 1
        return wanting if is_only else None

    def absent_ranks(self) -> list[int]:
        """Return the ranks without a client for which a batch is ready or is
        next."""
        ledger = self.ledger
        if ledger.sharing != RANK:
            return []
        waiting = [*self.free, *([] if self.is_exhausted else [self.cursor])]
        there = {member.account.rank for member in self.members.values()}
        return sorted({index % ledger.num_ranks for index in waiting}
                      - there - self.finished_ranks)

    def is_held(self, index: int) -> bool:
        """Return whether a batch was sent to a client, or is held for a
        successor, but is not in memory."""
        return (not self.is_shared and index not in self.under_way
                and self.ledger.is_pending(index))

    def _choose(self, wanting: list[Member]) -> Member | None:
        """Return the member that gets a batch; None if no member has
        credit."""
        return min(
            (member for member in wanting if member.load() < member.credit),
            key=lambda member: (not member.is_waiting, member.load()),
            default=None)

    def has_earlier(self) -> bool:
        """Return whether batches in memory must be sent before new ones are
        made.

        Otherwise new batches might use up the credit of a single client, which
        would not receive its batches in order.
        """
        return self.ledger.sharing == SPLIT and any(
            index < self.cursor for index in self.free)

    def next_delivery(self) -> tuple[Item, Member] | None:
        """Return an item in memory and the member to send it to now, or None.

        A single client receives the items in the order of the epoch: an item
        waits while the pipeline is making an earlier one, or must make one
        again.
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
        """Return the member that must return batches for a waiting member, or
        None.

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
        # Its user may be about to take a batch that was just sent.
        return rich if count > 1 or (
            count and now - rich.last_sent > _LAST_BATCH_SECONDS) else None

    def ended(self) -> list[Member]:
        """Return the members that have delivered all their batches of the
        epoch."""
        ledger = self.ledger
        if not self.is_exhausted or self.is_torn:
            return []
        if ledger.sharing == SPLIT and (
                self.free or ledger.pending() or any(
                    member.reserved for member in self.members.values())):
            return []
        # A client of a rank waits for the batches that the rank's former
        # client may still hold.
        held = ledger.pending() if ledger.sharing == RANK else ()
        return [member for member in self.members.values()
                if not member.load() and not any(
                    member.account in ledger.lacking(index)
                    for index in self.free) and not any(
                    ledger.is_for(member.account, index) for index in held)]
