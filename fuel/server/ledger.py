"""Who gets which batch of an epoch: pure bookkeeping, no sockets."""
from __future__ import annotations

from typing import Any

from fuel.wire.index_sets import Indices

SPLIT, ALL, RANK = 'split', 'all', 'rank'
SHARINGS = (SPLIT, ALL, RANK)


class Item:
    """One batch, or the error in its place.

    Attributes
    ----------
    index : int
        Its place in the epoch.
    fields : dict
        What its header says whoever gets it.
    buffers : list
        Its arrays, as :func:`fuel.wire.encode` returned them.
    base : dict or None
        The state that its `changes` are relative to.
    slot : Slot or None
        If it lies in shared memory.
    extents : list of (int, int)
        Where in the slot its arrays are.

    """

    def __init__(self, index: int, fields: dict[str, Any],
                 buffers: list[Any]) -> None:
        self.index = index
        self.fields = fields
        self.buffers = buffers
        self.base: Any = None
        self.slot: Any = None
        self.extents: list[tuple[int, int]] = []


class Member:
    """A client in an epoch.

    Attributes
    ----------
    client : str
    rank : int or None
    room : int
        How many batches it may have that it has not handed out.
    in_flight : dict
        Those it has, by index.
    reserved : int
        Those that are being made for it.
    waiting : bool
        Whether its user waits for a batch.
    asked_back : float
        When it was asked for batches that another one waits for; else 0.
    done : Indices
        What needs no more be sent to it, where each gets every batch.

    """

    def __init__(self, client: str, room: int, rank: int | None) -> None:
        self.client = client
        self.room = room
        self.rank = rank
        self.in_flight: dict[int, Item] = {}
        self.reserved = 0
        self.waiting = False
        self.asked_back = 0.0
        self.done = Indices()

    def has_room(self) -> bool:
        """Tell whether it may get one more batch."""
        return len(self.in_flight) + self.reserved < self.room


class Epoch:
    """One epoch of the served stream.

    Parameters
    ----------
    sharing : str
        ``'split'``, ``'all'`` or ``'rank'``.
    num_ranks : int, optional
        How many clients share by rank.

    Attributes
    ----------
    start : int
        Index of the first batch that the pipeline makes.
    cursor : int
        Index of the next one it makes.
    exhausted : bool
        Whether it has made the last.
    done : Indices
        What was handed to users.
    returned : dict
        Batches made for clients that are gone, by index.
    handed_by : dict
        What each client has handed out, gone or not.
    past : set of str
        Clients that have ended or left the epoch.
    waits_for : int
        How many members must be there before batches are made.

    """

    def __init__(self, number: int, sharing: str = SPLIT,
                 num_ranks: int = 1) -> None:
        self.number = number
        self.sharing = sharing
        self.num_ranks = num_ranks
        self.base: Any = None
        self.start = 0
        self.cursor = 0
        self.exhausted = False
        self.final: Any = None
        self.members: dict[str, Member] = {}
        self.done = Indices()
        self.returned: dict[int, Item] = {}
        self.handed_by: dict[str, set[int]] = {}
        self._came_after: dict[str, str] = {}
        self.past: set[str] = set()
        self.waits_for = 0

    def is_open_to(self, client: str, again: bool) -> bool:
        """Tell whether a client may join now."""
        if again:
            return True
        if client in self.past or not self.members:
            # Nobody is there to share with: a clean epoch is wanted.
            return False
        return self.sharing != ALL or self.cursor == self.start

    def join(self, client: str, room: int, rank: int | None = None,
             handed: set[int] | None = None, floor: int = 0,
             before: str = '') -> Member:
        """Take a client in.

        Parameters
        ----------
        handed : set of int, optional
            What it has handed out, as it says itself.
        floor : int, optional
            Below which everything is handed out, as it knows.
        before : str, optional
            The client that it goes on for: what that one handed out and
            this one does not know of is to be made once more.

        """
        member = Member(client, room, rank)
        known = set(handed or ())
        if handed is not None:
            forgotten = {
                index for index in self._take_over(before)
                if index >= floor and index not in known}
            self._came_after[client] = before
            if self.sharing == ALL:
                member.done = Indices(floor, known)
            else:
                self.done.discard(forgotten)
                self.done.raise_floor(
                    min([floor, *forgotten]) if forgotten else floor)
                for index in known:
                    self.done.add(index)
        # One that joins again is not another that was waited for.
        if client not in self.handed_by:
            self.waits_for = max(0, self.waits_for - 1)
        self.handed_by.setdefault(client, set()).update(known)
        self.past.discard(client)
        self.members[client] = member
        return member

    def count_members(self) -> int:
        """Return how many clients share, with those not back yet.

        If this server is killed too, its successor waits for them.
        """
        return len(self.members) + self.waits_for

    def _take_over(self, before: str) -> set[int]:
        """Return what was handed out by a client and those after it.

        Each of them went on from a state of the one before; what they did
        since is not in the state that is taken up now.
        """
        taken: set[int] = set()
        for client in list(self.handed_by):
            ancestor: str | None = client
            steps = len(self._came_after) + 1
            while ancestor not in (None, before) and steps:
                ancestor = self._came_after.get(ancestor or '')
                steps -= 1
            if ancestor == before and client not in self.members:
                taken |= self.handed_by.pop(client)
        return taken

    def lowest_wanted(self, making: set[int]) -> int:
        """Return the first batch below the cursor that has to be remade."""
        if self.sharing == ALL:
            return min([self.cursor, *(
                self._first_missing(member)
                for member in self.members.values())])
        there = self._on_the_way() | making
        index = self.done.floor
        while index < self.cursor and (index in self.done or index in there):
            index += 1
        return min(index, self.cursor)

    def _first_missing(self, member: Member) -> int:
        index = member.done.floor
        while index in member.done or index in member.in_flight:
            index += 1
        return index

    def _on_the_way(self) -> set[int]:
        there = set(self.returned)
        for member in self.members.values():
            there.update(member.in_flight)
        return there

    def targets(self, index: int) -> list[Member] | None:
        """Return who gets a batch that is yet to be made.

        Returns
        -------
        list of Member or None
            Empty: nobody needs it.  None: somebody does, but not now.

        """
        if self.sharing == ALL:
            wanting = [member for member in self.members.values()
                       if index not in member.done
                       and index not in member.in_flight]
            if not all(member.has_room() for member in wanting):
                return None
            return wanting
        if index in self.done or any(
                index in member.in_flight
                for member in self.members.values()) \
                or index in self.returned:
            return []
        chosen = self._choose(index)
        return None if chosen is None else [chosen]

    def _choose(self, index: int) -> Member | None:
        """Return the one member that an item goes to, if it has room."""
        having = [member for member in self.members.values()
                  if member.has_room() and (
                      self.sharing != RANK
                      or member.rank == index % self.num_ranks)]
        if not having:
            return None
        return min(having, key=lambda member: (
            not member.waiting, len(member.in_flight) + member.reserved))

    def sole_member(self) -> Member | None:
        """Return the only client, for whom a batch may be made ahead.

        It is kept here like one that came back, until there is room.
        """
        if self.sharing != SPLIT or len(self.members) != 1:
            return None
        return next(iter(self.members.values()))

    def deliver(self, item: Item, targets: list[Member]) -> list[Member]:
        """Note that a batch was made; return those who get it now.

        If an earlier one came back and is still here, it goes out first.
        """
        there = [member for member in targets
                 if self.members.get(member.client) is member
                 and not self._has_before(item.index, member)]
        for member in there:
            member.in_flight[item.index] = item
            member.waiting = False
        if not there and self.sharing != ALL:
            self.returned[item.index] = item
        return there

    def _has_before(self, index: int, member: Member) -> bool:
        """Tell whether an earlier batch came back that a member may get."""
        return self.sharing != ALL and any(
            earlier < index and (self.sharing == SPLIT
                                 or earlier % self.num_ranks == member.rank)
            for earlier in self.returned)

    def take_returned(
            self, making: set[int]) -> tuple[Item, Member] | None:
        """Return a batch that came back, and who gets it now.

        Parameters
        ----------
        making : set of int
            The batches that the pipeline is making.  Those that come before
            go out before, so that one client alone sees them in order.

        """
        for index in sorted(self.returned):
            if index > self.cursor or any(one < index for one in making):
                return None
            member = self._choose(index)
            if member is not None:
                item = self.returned.pop(index)
                member.in_flight[index] = item
                member.waiting = False
                return item, member
        return None

    def has_earlier(self) -> bool:
        """Tell whether batches that came back go out before new ones.

        They need the room, or one client alone would not see them in order.
        """
        return self.sharing == SPLIT and any(
            index < self.cursor for index in self.returned)

    def hand(self, client: str, index: int) -> Item | None:
        """Note that a client handed a batch to its user."""
        member = self.members[client]
        item = member.in_flight.pop(index, None)
        if item is None:
            return None
        self.handed_by[client].add(index)
        member.done.add(index)
        if self.sharing != ALL:
            self.done.add(index)
        return item

    def give_back(self, client: str, indices: set[int]) -> list[Item]:
        """Note that a client will not hand out some batches after all."""
        member = self.members[client]
        member.asked_back = 0.0
        items = [member.in_flight.pop(index) for index in sorted(indices)
                 if index in member.in_flight]
        self.returned.update((item.index, item) for item in items)
        return self.drop_needless()

    def drop_needless(self) -> list[Item]:
        """Return the batches that came back and that nobody is to get.

        They were handed out after all, or each client gets its own.
        """
        needless = [item for index, item in self.returned.items()
                    if self.sharing == ALL or index in self.done]
        for item in needless:
            del self.returned[item.index]
        return needless

    def leave(self, client: str, for_good: bool) -> list[Item]:
        """Take a client out.

        Parameters
        ----------
        for_good : bool
            Whether it left or ended the epoch, as opposed to vanished.

        """
        dropped = self.give_back(client, set(self.members[client].in_flight))
        del self.members[client]
        if for_good:
            self.past.add(client)
        return dropped

    def lender(self) -> Member | None:
        """Return whom to ask for batches that another one waits for.

        A client that does not ask for its batches (its user does something
        else) must not keep the others from the end of the epoch.
        """
        if not self.exhausted or self.returned or self.sharing != SPLIT:
            return None
        if not any(member.waiting and not member.in_flight
                   for member in self.members.values()):
            return None
        if any(member.asked_back for member in self.members.values()):
            return None
        rich = max(self.members.values(),
                   key=lambda member: len(member.in_flight))
        return rich if rich.in_flight else None

    def ended(self) -> list[Member]:
        """Return the members for whom the epoch is over."""
        if not self.exhausted:
            return []
        if self.sharing == SPLIT and (self.returned or any(
                member.in_flight or member.reserved
                for member in self.members.values())):
            return []
        return [member for member in self.members.values()
                if not member.in_flight and not member.reserved
                and not any(index % self.num_ranks == member.rank
                            for index in self.returned)]
