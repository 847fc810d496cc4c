"""Rounds of an epoch: in each round, every rank gets one item."""
from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.epochs.stage import Stage
from fuel.schemes.iteration_scheme import shard_of
from fuel.schemes.shard import Shard, num_of_rank
from fuel.sharding.made import example_ids
from fuel.sharding.order import EpochOrder, RankOrder, RemadeOrder


def unit_of(stage: Stage) -> str:
    """Return what an epoch of a stage counts as requested.

    'item': items of all ranks; 'round': items of the rank; 'step': the same,
    times the items of a round.
    """
    scheme = stage.scheme
    if scheme is None:
        return 'step'
    is_shared = stage.own_shard is not None or shard_of(scheme) is not None
    return 'item' if is_shared else 'round'


class Rounds:
    """The rounds in which ranks get the items of an epoch.

    `order`: the items of all ranks.
    `shard`: the share of any rank.
    `begin`: number of an item with which a round begins. It is a multiple of
        the items of a round, unless another number of ranks has saved the
        state with which the epoch goes on.
    """

    def __init__(self, order: EpochOrder, shard: Shard, begin: int = 0,
                 ) -> None:
        self.order = order
        self.shard = shard
        self._begin = begin

    @functools.cached_property
    def _lacking(self) -> int:
        """The number of items that the first round lacks."""
        lacking = -self._begin % self.shard.step
        count = self.order.num_items if lacking else None
        # The last round may be short.
        return 0 if count is not None and self._begin >= count else lacking

    @functools.cached_property
    def deals_items(self) -> bool:
        """True if the ranks share the items of the order, not the items of an
        order below."""
        order = self.order
        while isinstance(order, RemadeOrder) and not order.takes_share:
            order, = order.inputs
        return order.takes_share or not order.inputs

    @functools.cached_property
    def _shares(self) -> list[EpochOrder]:
        """The share of each rank."""
        shard = self.shard
        # A single rank may drop or fill a short batch.
        if shard.num_shards == 1 and not shard.splits:
            return [self.order]
        if self.deals_items:
            return [RankOrder(self.order, shard._replace(rank=rank),
                              self._begin)
                    for rank in range(shard.num_shards)]
        return [self.order.share(shard._replace(rank=rank))
                for rank in range(shard.num_shards)]

    @functools.cached_property
    def count(self) -> int:
        """The number of rounds."""
        if self._lacking and self.deals_items:
            total = len(self.order) + self._lacking
            return max(num_of_rank(total, self.shard._replace(rank=rank))
                       for rank in (0, self.shard.num_shards - 1))
        # If they share the items, the first or the last rank has an item of a
        # short round.
        shares = self._shares
        return max(map(len, [shares[0], shares[-1]] if self.deals_items
                       else shares))

    def items(self, first: int, stop: int) -> range:
        """Return the numbers of the items of all ranks in some rounds.

        Where ranks do not share the items of the order, their own items are
        counted.
        """
        return range(*map(self._first_item, (first, min(stop, self.count))))

    def _first_item(self, number: int) -> int:
        """Return the number of the first item of a round."""
        share = self._shares[-1]
        first: int = share.first_item(number) if (
            isinstance(share, RankOrder) and share.is_uneven) else max(
                0, number * self.shard.step - self._lacking)
        return min(first, len(self.order)) if isinstance(
            share, RankOrder) else first

    def round_of(self, item: int) -> int:
        """Return the number of the round that has an item."""
        share = self._shares[-1]
        return share.step_of(item) if (
            isinstance(share, RankOrder) and share.is_uneven) else (
                (item + self._lacking) // self.shard.step)

    def touched(self, ranges: Iterable[tuple[int, int]]) -> list[range]:
        """Return the rounds that have items of some ranges."""
        return [range(self.round_of(first), self.round_of(stop - 1) + 1)
                for first, stop in ranges]

    def refuse_repeats(self, left_out: Sequence[range]) -> None:
        """Raise ValueError if padding may repeat an example that is left out.

        `left_out`: the rounds that are left out.
        """
        if self.shard.uneven != 'pad':
            return
        found = [] if self.deals_items else [*left_out[:1]]
        for number, item in self._repeated() if self.deals_items else ():
            found += [one for one in left_out if self.round_of(item) in one
                      and not any(number in other for other in left_out)]
        if found:
            # Stages may have moved the examples that are repeated below them.
            doubt = '' if self.deals_items else 'it is not known whether '
            raise ValueError(
                f'round {found[0].start} cannot be left out, since {doubt}'
                "uneven='pad' repeats its examples at the end of the epoch: "
                "shard with uneven='drop' or 'uneven', or mask the repeats "
                'by a stage MarkPadding')

    def _repeated(self) -> Iterator[tuple[int, int]]:
        """Yield the items whose examples are repeated, each behind the number
        of the round that repeats them."""
        for share in self._shares:
            if not isinstance(share, RankOrder):
                continue
            # In others, only the last round may be short.
            for number in range(0 if share.is_uneven else max(
                    0, self.count - 1), self.count):
                dealt = share.dealt(number) if share.is_uneven else share.deal(
                    self._first_item(number))
                if dealt is None:
                    continue
                if dealt.repeats:
                    yield number, dealt.item
                missing = 0 if dealt.rows is None else (
                    dealt.rows.total - dealt.rows.real)
                for item in range(len(self.order) if missing > 0 else 0):
                    if missing > 0:
                        yield number, item
                        missing -= self.order.size(item)

    def passed(self, requested: int, unit: str) -> int:
        """Return the number of rounds that a rank has read, which is the
        number of the next one.

        `requested`: value of :attr:`Epoch.requested`.
        `unit`: what it counts; see :func:`unit_of`.
        """
        if unit == 'item':
            # The last round may be short.
            return self.round_of(requested - 1) + 1 if requested else 0
        return requested if unit == 'round' else (
            (requested + self._lacking) // self.shard.step)

    def examples(self, number: int) -> list[list[tuple[int, Any]]]:
        """Return the examples that each rank gets in a round.

        Those that are repeated are left out, except where ranks share the
        items of an order below, whose repeats stages may have moved.
        """
        return [self._examples_of(share, number) for share in self._shares]

    def _examples_of(self, share: EpochOrder, number: int,
                     ) -> list[tuple[int, Any]]:
        """Return the examples of an item of a rank; [] after the last."""
        if not isinstance(share, RankOrder):
            return example_ids(share.make(number)) if (
                number < len(share)) else []
        dealt = share.dealt(number) if share.is_uneven else share.deal(
            self._first_item(number))
        if dealt is None or dealt.repeats or (
                not number and self._lacking
                and dealt.item >= self._first_item(1)):
            return []
        found = example_ids(self.order.make(dealt.item))
        if dealt.rows is None:
            return found
        return [found[place] for place in dealt.rows.places
                if place < len(found)]

    def ranks_of(self, item: int, size: int) -> NDArray[numpy.int64]:
        """Return the rank that gets each row of an item; -1 if none does.

        `size`: number of rows of the item.
        """
        shard = self.shard
        if not shard.splits:
            first = self._first_item(self.round_of(item))
            is_left_out = shard.uneven == 'drop' and (
                first + shard.num_shards > len(self.order))
            return numpy.full(
                size, -1 if is_left_out else item - first, numpy.int64)
        found = numpy.full(size, -1, numpy.int64)
        shares: Sequence[Any] = self._shares
        number = shares[-1].step_of(item)
        for rank, share in enumerate(shares):
            dealt = share.dealt(number)
            if dealt is not None and dealt.item == item and dealt.rows:
                places = numpy.asarray(dealt.rows.places)
                found[places[places < size]] = rank
        return found
