"""Ledger of an epoch: the batches that each client was sent and delivered.

A ledger has no sockets, no clock and no data.  It reports each change as an
event, a list ready for JSON.  Applying the events again makes an equal ledger.
If a server is killed, the next server resumes from this ledger.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from fuel.epochs.state import available
from fuel.epochs.state_delta import Changes, Receipt
from fuel.exceptions import StateMismatchError
from fuel.typing import State
from fuel.wire.index_sets import IndexSet

SPLIT, ALL, RANK = 'split', 'all', 'rank'
SHARINGS = (SPLIT, ALL, RANK)

Event = list[object]
Recorder = Callable[[Event], object]

# If more than twice as many states are kept for delivered batches, every
# second one is dropped.
_MOST_OLD = 64


class Checkpoints:
    """States from which the pipeline can make batches again, each with the
    index of the batch that follows it.

    It keeps each state after the first undelivered batch, and some of the
    earlier states: the older the states, the fewer of them are kept.

    `lowest`: lowest index of a batch that the pipeline can make again.
    """

    def __init__(self) -> None:
        # Sorted by index.
        self._old: list[tuple[int, Receipt]] = []
        self._new: list[tuple[int, Receipt]] = []
        self._base: State | None = None
        self.lowest = 0

    def __iter__(self) -> Iterator[tuple[int, Receipt]]:
        return iter([*self._old, *self._new])

    def __bool__(self) -> bool:
        return bool(self._new)

    def begin(self, index: int, state: State) -> None:
        """Add a full state, to which the next changes are relative; drop the
        states at this index and at later ones."""
        self._base = state
        self._new = [one for one in self._new if one[0] < index]
        self._old = [one for one in self._old if one[0] < index]
        self._new.append((index, Receipt(state, [])))
        self.lowest = (self._old or self._new)[0][0]

    def rebase(self, state: State) -> None:
        """Set the state to which the next changes are relative."""
        self._base = state

    def add(self, index: int, changes: Changes) -> bool:
        """Add the state before a batch, as changes of the full state; return
        whether it was added."""
        if self._base is None or index <= self._new[-1][0]:
            return False
        self._new.append((index, Receipt(self._base, changes)))
        return True

    def thin_out(self, floor: int) -> None:
        """Drop some of the states of batches below `floor`."""
        while len(self._new) > 1 and self._new[1][0] <= floor:
            self._old.append(self._new.pop(0))
        if len(self._old) > 2 * _MOST_OLD:
            # The first state is kept: it is where the epoch began.
            self._old = self._old[::2]

    def before(self, index: int) -> tuple[int, State] | None:
        """Return the index and the state of the last checkpoint at or before
        an index; None if there is none."""
        for kept in (self._new, self._old):
            for found, receipt in reversed(kept):
                if found <= index:
                    return found, available(receipt.state())
        return None

    def states(self) -> Iterator[State]:
        """Yield the state of each checkpoint."""
        for _, receipt in self:
            yield available(receipt.state())

    def events(self) -> Iterator[list[object]]:
        """Yield the events from which equal checkpoints can be made."""
        base: object = None
        for index, receipt in self:
            if receipt.base is not base:
                base = None if receipt.changes else receipt.base
                yield ['base', index, receipt.state()]
            else:
                yield ['checkpoint', index, receipt.changes]
        if self._base is not None and base is not self._base:
            yield ['rebase', self._base]


@dataclass(eq=False)
class Account:
    """The record of one client in an epoch.

    `client`, `before`: name of the client, and name of the client whose saved
        state it resumed.
    `sent`: batches that the client was ever sent, or that its position claims.
    `delivered`: batches that the client acknowledged, or that its position
        claims.
    `pending`: batches that it was sent and has neither acknowledged nor
        returned.
    `is_present`: whether it is connected and in the epoch.
    `has_left`: whether it left the epoch, or reached its end.
    `deadline`: time until which `pending` is held for its successor; 0 if it
        is not held.
    """

    client: str
    rank: int | None = None
    before: str = ''
    sent: IndexSet = field(default_factory=IndexSet)
    delivered: IndexSet = field(default_factory=IndexSet)
    pending: IndexSet = field(default_factory=IndexSet)
    is_present: bool = False
    has_left: bool = False
    deadline: float = 0.0


class Ledger:
    """Records the batches of an epoch that each client was sent and delivered.

    `number`: number of the epoch.
    `sharing`: ``'split'``, ``'all'`` or ``'rank'``.
    `num_ranks`: number of clients that share by rank.
    `is_adopted`: whether the epoch began from the saved state of a client.
        Then the batches that another server sent before are unknown.
    `record`: function that is called with each event after its change.
    `accounts`: accounts of the clients, by the client's name.
    `delivered`: the batches that clients have acknowledged to this server.
    `checkpoints`: states of the pipeline.
    `length`: number of batches of the epoch; None until it is known.
    `final`: the state of the pipeline after the epoch.
    """

    def __init__(self, number: int, sharing: str = SPLIT, num_ranks: int = 1,
                 is_adopted: bool = False,
                 record: Recorder = lambda event: None) -> None:
        self.number = number
        self.sharing = sharing
        self.num_ranks = num_ranks
        self.is_adopted = is_adopted
        self.record = record
        self.accounts: dict[str, Account] = {}
        self.delivered = IndexSet()
        self.checkpoints = Checkpoints()
        self.length: int | None = None
        self.final: State | None = None

    def ranks(self) -> int:
        """Return the number of clients that share by rank; 0 if they do
        not."""
        return self.num_ranks if self.sharing == RANK else 0

    # Clients join and leave.

    def check_claims(self, before: str, claims: IndexSet) -> None:
        """Raise an error if a position claims batches that were never sent."""
        known = self.accounts.get(before)
        if known is None and self.is_adopted:
            return
        beyond = claims - known.sent if known is not None else claims
        if beyond:
            raise StateMismatchError(
                f"the field 'done' of the position names batch "
                f'{next(iter(beyond))} of epoch {self.number}, which was '
                'never sent to the client that saved it: the state is '
                'damaged, or of another epoch')

    def join(self, client: str, rank: int | None = None, before: str = '',
             claims: IndexSet | None = None) -> Account:
        """Add a client, and return its account.

        `before`: name of the client whose position it resumes, which may be
            its own.
        `claims`: batches that were delivered before that position; see
            :meth:`check_claims`.  Batches that `before` and its successors
            delivered after that position are made again, if the pipeline can
            make them again.
        """
        claims = IndexSet() if claims is None else claims
        account = Account(client, rank, before)
        ended = [one for one in self._successors(before, client)
                 if not one.is_present]
        if before in self.accounts:
            # The claimed batches were sent and delivered, even if the
            # acknowledgement is lost.
            self.delivered.update(claims)
        if self.checkpoints and self.sharing != ALL:
            self.delivered.difference_update(
                self._forgotten(ended, claims))
        for one in ended:
            one.delivered, one.pending = IndexSet(), IndexSet()
            one.deadline = 0.0
        old = self.accounts.get(client)
        account.sent = (claims if old is None else claims | old.sent).copy()
        if old is not None and before == client:
            # The client came back: keep the client whose state it resumed.
            account.before = old.before
        account.delivered = claims.copy()
        account.is_present = True
        self.accounts[client] = account
        self.record(['join', client, rank, before, claims.ranges()])
        return account

    def _successors(self, before: str, client: str) -> Iterator[Account]:
        """Yield the accounts of the clients `before` and `client`, and of all
        clients that resumed the state of `before`."""
        for account in self.accounts.values():
            ancestor, steps = account.client, len(self.accounts) + 1
            while ancestor not in ('', before) and steps:
                steps -= 1
                ancestor = (self.accounts[ancestor].before
                            if ancestor in self.accounts else '')
            if account.client == client or (before and ancestor == before):
                yield account

    def _forgotten(self, ended: list[Account],
                   claims: IndexSet) -> IndexSet:
        """Return the batches that only ended clients delivered, and that the
        claims do not contain."""
        forgotten = IndexSet()
        for one in ended:
            forgotten.update(one.delivered - claims)
        for other in self.accounts.values():
            if not any(other is one for one in ended):
                forgotten.difference_update(other.delivered)
        return forgotten

    def lose(self, client: str, deadline: float) -> None:
        """Record that a client vanished, and hold its pending batches."""
        account = self.accounts[client]
        account.is_present = False
        account.deadline = deadline
        self.record(['lost', client])

    def expire(self, now: float) -> None:
        """Release the batches of vanished clients whose successors are too
        late."""
        for account in self.awaited():
            if account.deadline <= now:
                self.end(account.client, 'gone')

    def end(self, client: str, how: str) -> None:
        """Release the undelivered batches of a client; `how` is 'left' or
        'gone'."""
        account = self.accounts[client]
        account.pending = IndexSet()
        account.is_present, account.deadline = False, 0.0
        account.has_left = account.has_left or how == 'left'
        self.record([how, client])

    # Batches.

    def send(self, client: str, index: int) -> None:
        """Record that a batch is sent to a client; call this before sending
        it."""
        account = self.accounts[client]
        account.sent.add(index)
        account.pending.add(index)
        self.record(['sent', client, index])

    def acknowledge(self, client: str, indices: Iterable[int]) -> list[int]:
        """Record batches that a client delivered; return those that were
        pending."""
        account = self.accounts[client]
        taken = [index for index in indices if index in account.pending]
        for index in taken:
            account.pending.remove(index)
            account.delivered.add(index)
            self.delivered.add(index)
        if taken:
            self.record(['delivered', client, taken])
            self.checkpoints.thin_out(self.floor())
        return taken

    def take_back(self, client: str, indices: IndexSet) -> IndexSet:
        """Release pending batches that a client returns; return those
        batches."""
        account = self.accounts[client]
        freed = account.pending & indices
        if freed:
            account.pending.difference_update(freed)
            account.sent.difference_update(freed)
            self.record(['returned', client, freed.ranges()])
        return freed

    def end_pipeline(self, length: int, state: State | None) -> None:
        """Record the end of the epoch, and the pipeline's state after it."""
        self.length, self.final = length, state
        self.record(['end', length, state])

    def begin_at(self, index: int, state: State | None) -> None:
        """Record the state from which the pipeline makes the batch with the
        number `index`."""
        if state is not None:
            self.checkpoints.begin(index, state)
            self.record(['base', index, state])

    def add_checkpoint(self, index: int, changes: Changes,
                       is_recorded: bool) -> None:
        """Add the pipeline's state before a batch, as changes; report it as an
        event if `is_recorded`."""
        if self.checkpoints.add(index, changes) and is_recorded:
            self.record(['checkpoint', index, changes])

    # Questions.

    def floor(self, account: Account | None = None) -> int:
        """Return the index of the first batch that may be undelivered."""
        delivered = self.delivered
        if account is not None and self.sharing == ALL:
            delivered = account.delivered
        return delivered.first_missing(self.checkpoints.lowest)

    def highest(self) -> int:
        """Return the index after the highest index of a batch that any client
        was sent."""
        return max((account.sent.end()
                    for account in self.accounts.values()), default=0)

    def is_pending(self, index: int) -> bool:
        """Return whether a client has been sent a batch and has not delivered
        it."""
        return any(index in account.pending
                   for account in self.accounts.values())

    def pending(self) -> IndexSet:
        """Return the batches that are sent and undelivered, or held for a
        successor."""
        found = IndexSet()
        for account in self.accounts.values():
            found.update(account.pending)
        return found

    def awaited(self) -> list[Account]:
        """Return the accounts of vanished clients whose batches are held."""
        return [account for account in self.accounts.values()
                if account.deadline]

    def lacking(self, index: int) -> list[Account]:
        """Return the accounts of the present clients to which a batch may be
        sent."""
        if self.sharing != ALL and (
                index in self.delivered or self.is_pending(index)):
            return []
        return [account for account in self.accounts.values()
                if account.is_present and index not in account.delivered
                and index not in account.pending
                and self.is_for(account, index)]

    def is_for(self, account: Account, index: int) -> bool:
        """Return whether a client may get a batch; with sharing 'rank', it
        gets only the batches of its own rank."""
        return self.sharing != RANK or (
            account.rank == index % self.num_ranks)

    def missing(self, stop: int, there: IndexSet) -> int:
        """Return the index of the first batch that must be made again, or
        `stop` if there is none."""
        lowest = self.checkpoints.lowest
        if not self.checkpoints or stop <= lowest:
            return stop
        needed = IndexSet([(lowest, stop)]) - there
        if self.sharing != ALL:
            needed.difference_update(self.delivered)
            needed.difference_update(self.pending())
        return min([stop, *(
            next((index for index in needed - account.delivered
                  - account.pending if self.is_for(account, index)), stop)
            for account in self.accounts.values() if account.is_present)])

    def snapshot(self) -> Iterator[Event]:
        """Yield the events from which an equal ledger can be made."""
        yield ['epoch', self.number, self.sharing, self.num_ranks,
               self.is_adopted]
        yield from self.checkpoints.events()
        for account in self.accounts.values():
            yield ['account', account.client, account.rank, account.before,
                   account.sent.ranges(), account.delivered.ranges(),
                   account.pending.ranges(), account.is_present,
                   account.has_left]
            if account.deadline:
                # Without this event, it would count as a client that has a
                # successor.
                yield ['lost', account.client]
        yield ['proven', self.delivered.ranges()]
        if self.length is not None:
            yield ['end', self.length, self.final]
