"""The share that a rank takes of the order of a mixture."""
from __future__ import annotations

from typing import Any

from fuel.epochs.epoch import Epoch
from fuel.epochs.planned import ENDLESS, items_of
from fuel.epochs.pipeline import is_one_to_one
from fuel.epochs.sharding import batch_size_of, can_seek, copied_pipeline
from fuel.schemes.iteration_scheme import ShardedScheme
from fuel.schemes.shard import Shard, num_of_rank
from fuel.transformers.mixture.position import Mixture, Stop
from fuel.transformers.several import SeveralStreams


class SharedMixture(SeveralStreams):
    """Base of the mixture whose order several ranks share.

    Where all streams can be sought, any item is made from indices alone.
    Of others a rank reads the items of all, and leaves out those of others.
    """

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
        return is_one_to_one(self) and all(
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
        sizes = [batch_size_of(stream) for stream in self.data_streams]
        return None if None in sizes else min(filter(None, sizes))

    def _take_share(self, shard: Shard) -> None:
        """Take a rank's share of items that are read in order."""
        if shard.splits or shard.uneven == 'pad':
            raise ValueError(
                f'{type(self).__name__} mixes {self._read_in_order()}, of '
                'which no item is known without those before it: ranks can '
                "take every n-th item, by='batch' with uneven='uneven' or "
                f"'drop', not by={shard.by!r} with uneven={shard.uneven!r}; "
                'or mix data sets that take indices, and put the stages that '
                'depend on the data behind the mixture')
        copies: dict[int, Any] = {}
        # One stream may be mixed with itself.
        self.data_streams = tuple([
            copied_pipeline(stream, copies)
            for stream in self.data_streams])
        self.iteration_scheme = ShardedScheme(self.iteration_scheme, shard)

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
