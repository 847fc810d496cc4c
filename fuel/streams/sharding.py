"""The share of a stream's order that one of several ranks takes."""
from __future__ import annotations

from typing import Any

from fuel.epochs.sharding import shard_pipeline
from fuel.schemes.shard import Shard, checked_shard, found_shard


class Shardable:
    """Base of the streams whose order several ranks can share.

    Attributes
    ----------
    sharding : Shard or None
        The rank's share, where it is taken of this stream's own items.
    """

    sharding: Shard | None = None

    def shard(self, rank: int | str | Shard, num_shards: int | None = None,
              by: str = 'batch', uneven: str = 'uneven') -> Any:
        """Return the stream of one of several ranks that share the order.

        The order is that of this stream: together, the ranks get its items,
        each once. A state that one of them saves is a state of the whole
        order, so any number of ranks, or a stream that is not sharded, can
        take it up.

        Parameters
        ----------
        rank : int, Shard or str
            From 0 to below `num_shards`. With ``'auto'``, rank and number
            are those of `torch.distributed` if it is initialised, or of the
            launcher: torchrun, MPI, SLURM, Ray Train or JAX. An epoch that
            begins where they are others is an error.
        num_shards : int, optional
            How many ranks share the order. It must be given with a rank.
        by : {'batch', 'example'}, optional
            Whether a rank takes every n-th batch (of a stream of examples,
            every n-th example), the default, or its part of each batch, so
            that the batches of all ranks together are the same for any
            number of them. A batch of fewer examples than ranks, if it is
            not the last, goes to some, and the next one to the others.
        uneven : {'uneven', 'drop', 'pad'}, optional
            What happens at the end of an epoch that cannot be shared evenly.
            ``'uneven'``, the default, gives some ranks one batch less, or
            less of the last batch; ``'drop'`` leaves out the batches of the
            last round if there are too few for all, or the last batch if it
            is short; ``'pad'`` repeats batches, or examples, from the start
            of the epoch in their place.

        Returns
        -------
        AbstractDataStream
            Of the same class, over the same data set. This stream stays as
            it is, and its generators are copied.

        Raises
        ------
        ValueError
            If `rank` is outside the range, the stream is sharded already, or
            a stage draws from an `rng`, which depends on the batches before.
        TypeError
            If the stream cannot be sharded.

        Notes
        -----
        Of stages whose order depends on the data, such as
        :class:`~fuel.transformers.Filter`, what they read is shared. Then
        the state of each rank is its own, and only that rank of as many can
        take it up.

        Examples
        --------
        >>> from fuel.datasets import IndexableDataset
        >>> from fuel.schemes import ShuffledScheme
        >>> from fuel.streams import DataStream
        >>> stream = DataStream(IndexableDataset(list(range(8))),
        ...                     iteration_scheme=ShuffledScheme(8, 2))
        >>> [batch for batch, in stream.shard(0, 2).get_epoch_iterator()]
        [[7, 2], [0, 4]]
        >>> [batch for batch, in stream.shard(1, 2).get_epoch_iterator()]
        [[1, 6], [3, 5]]
        """
        if isinstance(rank, Shard):
            checked_shard(*rank)
            return shard_pipeline(self, rank)
        if rank == 'auto':
            return shard_pipeline(self, found_shard(by, uneven))
        return shard_pipeline(
            self, checked_shard(rank, num_shards, by, uneven))
