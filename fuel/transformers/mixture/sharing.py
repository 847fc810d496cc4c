"""The share that a rank takes of the order of a mixture, and its plan."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fuel.epochs.epoch import Epoch
from fuel.sharding.planned import (
    ENDLESS,
    ItemPlan,
    Standing,
    items_of,
    seek,
    source_of,
)
from fuel.epochs.stage import stage_of
from fuel.sharding.pipeline import batch_size_below, can_seek, copied_pipeline
from fuel.epochs.state import position_of
from fuel.schemes.iteration_scheme import ShardedScheme
from fuel.schemes.shard import Shard, num_of_rank
from fuel.transformers.cache import join_batches
from fuel.transformers.mixture.position import Mixture, Stop
from fuel.transformers.mixture.reader import Finish, MixtureReader
from fuel.transformers.plans import RowPlan
from fuel.transformers.several import SeveralStreams
from fuel.streams.stage import StreamStage
from fuel.typing import Batch, StreamLike


class SharedStage(StreamStage):
    """A mixture whose order several ranks share."""

    __slots__ = ()

    def mark_as_sought(self) -> None:
        """Prepare a copy whose items are asked for in any order."""
        self.stream.is_sought = self.can_plan

    def share_in_order(self, shard: Shard) -> None:
        """Take a rank's share of items that are read in order."""
        stream = self.stream
        if shard.splits or shard.uneven == 'pad':
            raise ValueError(
                f'{self.name} mixes {stream._read_in_order()}, of which no '
                'item is known without those before it: ranks can '
                "take every n-th item, by='batch' with uneven='uneven' or "
                f"'drop', not by={shard.by!r} with uneven={shard.uneven!r}; "
                'or mix data sets that take indices, and put the stages that '
                'depend on the data behind the mixture')
        copies: dict[int, StreamLike] = {}
        # One stream may be mixed with itself.
        self.replace_inputs([
            copied_pipeline(child, copies) for child in self.inputs])
        stream.iteration_scheme = ShardedScheme(self.scheme, shard)


class SharedMixture(SeveralStreams):
    """Base of the mixture whose order several ranks share.

    Where all streams can be sought, any item is made from indices alone.
    Of others a rank reads the items of all, and leaves out those of others.
    """

    __fuel_stage__ = SharedStage
    epoch_attributes = (*SeveralStreams.epoch_attributes, '_mixture')
    names: tuple[str, ...]
    stop: Stop
    epoch_size: int | None
    _mixture: Mixture | None = None
    # Whether a plan reads the items, in any order.
    is_sought = False
    # With 'forever', the iterators that the next epoch goes on with.
    _carried: list[Any] | None = None

    @property
    def can_go_back(self) -> bool:
        """Whether an epoch can go back to items it had before (bool)."""
        return self.stop != 'forever'

    @property
    def can_plan(self) -> bool:
        """Whether any item can be made without those before it (bool)."""
        return stage_of(self).one_to_one and all(
            can_seek(stream, forward=True) for stream in self.data_streams)

    def count_items(self, epoch: Epoch) -> int:
        """Return how many items an epoch has, of streams that can be
        sought."""
        most = self.epoch_size or ENDLESS
        if self.stop == 'forever':
            return most
        mixture: Mixture = epoch.attributes['_mixture']
        return min(most, mixture.count_all(lambda: list(map(
            items_of, epoch.attributes['child_epoch_iterators']))))

    def resume_plan(self, leftover: dict[str, Any]) -> None:
        """Take up what a rank's :meth:`get_leftover` returned."""
        self.set_leftover(leftover)

    def split_size(self) -> int | None:
        """Return the size of the smallest batches, None if ranks cannot
        split those of each stream."""
        sizes = [batch_size_below(stream) for stream in self.data_streams]
        return None if None in sizes else min(filter(None, sizes))

    def _read_in_order(self) -> str:
        """Return the stream that is to blame, or what is, for an error."""
        for name, stream in zip(self.names, self.data_streams, strict=True):
            if not can_seek(stream, forward=True):
                return f'the stream {name!r}'
        return 'its streams by a method of its own'

    def _share_of(self, total: int | None) -> int | None:
        """Return how many of all items the rank has that reads in order."""
        scheme = self.iteration_scheme
        return total if total is None or not isinstance(
            scheme, ShardedScheme) else num_of_rank(total, scheme.sharding)


class MixturePlan(ItemPlan):
    """Items of a mixture of streams that can be sought."""

    def __init__(self, mixture: Mixture, reader: MixtureReader,
                 iterators: list[Any], finish: Finish | None,
                 num_items: int) -> None:
        self.mixture = mixture
        self.reader = reader
        self.iterators = iterators
        self.num_items = num_items
        self._finish = finish
        self._rows: dict[int, RowPlan] = {}
        # The batch found last, its stream and its number there.
        self._found = -1, -1, -1

    def _find(self, item: int) -> tuple[int, int, RowPlan]:
        """Return the stream of a batch, its number there, and the plan of
        that stream's rows."""
        if self._found[0] != item:
            place = self.reader.find(item)
            child = self.iterators[place]
            self._found = item, place, child.epoch.requested
            if place not in self._rows or (
                    self._rows[place].child is not child):
                self._rows[place] = _rows_of(child)
        _, place, number = self._found
        return place, number, self._rows[place]

    def rows(self, item: int) -> int:
        """Return how many examples an item has."""
        _, number, plan = self._find(item)
        return plan.rows(number)

    def full_size(self, item: int) -> int:
        """Return how many examples a batch of its stream has."""
        return self._find(item)[2].size

    def read(self, item: int) -> Batch:
        """Return an item."""
        return self.reader.read_at(item)

    def read_rows(self, item: int, rows: slice, padding: int) -> Batch:
        """Return rows of a batch, padded from the start of its stream."""
        place, number, plan = self._find(item)
        self.mixture.taken[place] += 1
        try:
            batch = plan.read_rows(number, rows, padding)
        finally:
            # Back from the start, if it was padded.
            seek(plan.child, number + 1)
        return batch if self._finish is None else self._finish(batch, place)

    def finish(self) -> None:
        """Go to the end of the epoch, where the next one may go on."""
        self.reader.skip_to(self.num_items)

    def standing(self, item: int) -> Standing:
        """Return where the mixture stands before an item."""
        self.reader.skip_to(item)
        return Standing(
            self.mixture.state(), list(map(position_of, self.iterators)))


def _rows_of(child: Any) -> RowPlan:
    """Return the plan of the rows of a stream's batches."""
    requests: Any = source_of(child).request_iterator
    sources = child.data_stream.sources

    def make(batches: Sequence[Batch]) -> Batch:
        # Only where it is padded, there are several.
        return batches[0] if len(batches) == 1 else join_batches(
            batches, sources)

    size = requests.batch_size
    return RowPlan(child, size, math.inf, size, 0, make)
