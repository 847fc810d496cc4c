"""Rounds of an epoch: in each round, every rank gets one item."""
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.schemes.shard import Shard
from fuel.sharding.made import example_ids
from fuel.sharding.order import EpochOrder, RankOrder, RemadeOrder


class Rounds:
    """The rounds in which ranks get the items of an epoch.

    `order`: the items of all ranks.
    `shard`: the share of any rank.
    """

    def __init__(self, order: EpochOrder, shard: Shard) -> None:
        self.order = order
        self.shard = shard

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
        """The share of each rank.

        Where ranks share the items of an order below, the share lacks those
        that are repeated.
        """
        shard = self.shard
        if shard.num_shards == 1:
            return [self.order]
        if self.deals_items:
            return [RankOrder(self.order, shard._replace(rank=rank))
                    for rank in range(shard.num_shards)]
        if shard.uneven == 'pad':
            shard = shard._replace(uneven='uneven')
        return [self.order.share(shard._replace(rank=rank))
                for rank in range(shard.num_shards)]

    @functools.cached_property
    def count(self) -> int:
        """The number of rounds."""
        # Of a short round, the first or the last rank has an item.
        return max(len(self._shares[0]), len(self._shares[-1]))

    def examples(self, number: int) -> list[list[tuple[int, Any]]]:
        """Return the examples that each rank gets in a round, without those
        that are repeated."""
        return [self._examples_of(share, number) for share in self._shares]

    def _examples_of(self, share: EpochOrder, number: int,
                     ) -> list[tuple[int, Any]]:
        """Return the examples of an item of a rank; [] after the last."""
        if not isinstance(share, RankOrder):
            return example_ids(share.make(number)) if (
                number < len(share)) else []
        dealt = share.dealt(number)
        if dealt is None or dealt.repeats:
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
            first = item - item % shard.num_shards
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
