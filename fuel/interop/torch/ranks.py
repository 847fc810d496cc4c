"""Give each process of a distributed training its part of a stream."""
from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeAlias

from fuel.epochs.pipeline import length_of
from fuel.sharding.shard_pipeline import sharding_of
from fuel.schemes.shard import FoundShard, Shard, as_shard, found_shard
from fuel.typing import StreamLike
from fuel.utils.forks import Step, each_at_fork
from fuel.utils.ranks import find_rank

#: Rank and number of ranks, ``'auto'``, or None.
ShardLike: TypeAlias = 'tuple[int, int] | str | None'


class RankShare:
    """The part of a stream that this process reads, by its rank.

    Trainers may set the rank after the share is made.  Then the rank is found
    when the stream is first needed.  A rank that changes afterwards is an
    error.  A stream that is sharded already stays as it is.

    Parameters
    ----------
    stream : AbstractDataStream
    shard : tuple of int or 'auto', optional
    by, uneven : str, optional
        See :func:`~fuel.interop.torch.as_iterable`.

    Attributes
    ----------
    whole : AbstractDataStream
        The stream that the ranks share.
    by : str
    uneven : str or None
    shard : Shard or None
        The part of the stream; None for the whole stream, or if the rank is
        not known yet.
    """

    def __init__(self, stream: StreamLike, shard: ShardLike = 'auto',
                 by: str = 'batch', uneven: str | None = None) -> None:
        self.whole = stream
        self.by = by
        self.uneven = uneven
        self.shard: Shard | None = None
        self._stream: Any = None
        present = sharding_of(stream)
        if present is not None:
            if shard not in (None, 'auto'):
                raise ValueError(
                    f'{type(stream).__name__} is sharded already, as '
                    f'{tuple(present)}: leave shard out')
            self._stream, self.shard = stream, present
        elif shard != 'auto':
            self._take(as_shard(shard))
        else:
            self.find()
            _shares.add(self)

    def __getstate__(self) -> dict[str, Any]:
        self.find_for_worker()
        return vars(self)

    def find_for_worker(self) -> None:
        """Find the share before workers start, since they cannot find it.

        Only their parent may use the process group.
        """
        # If the rank is not valid, the iteration raises the error.
        with suppress(ValueError):
            self.find()

    def find(self) -> None:
        """Find the share of this rank, if the rank is known by now."""
        if self._stream is None and find_rank(starts_jax=False).is_known:
            self._take(found_shard())

    @property
    def stream(self) -> Any:
        """The stream of this rank (AbstractDataStream)."""
        if self._stream is None:
            self._take(found_shard())
        return self._stream

    def check_world(self) -> None:
        """Raise an error if the rank has changed since it was found."""
        if isinstance(self.shard, FoundShard):
            self.shard.check_world()

    def _take(self, shard: Shard | None) -> None:
        stream: Any = self.whole
        if shard is not None and shard.num_shards > 1:
            if self.uneven is None:
                _check_even(stream, shard.num_shards, self.by)
            stream = stream.shard(shard._replace(
                by=self.by, uneven=self.uneven or 'uneven'))
        self._stream, self.shard = stream, shard


_shares = each_at_fork(Step.OWNERSHIP, before=RankShare.find_for_worker)


def _check_even(stream: Any, num_ranks: int, by: str) -> None:
    """Raise ValueError if ranks might have unequal numbers of batches.

    The number of batches must be known, and a multiple of the number of
    ranks, unless `by` is 'example'.
    """
    if by != 'batch':
        return
    count = length_of(stream)
    if count is not None and not count % num_ranks:
        return
    reason = ('how many batches an epoch has is not known' if count is None
              else f'{count} batches cannot be shared evenly')
    raise ValueError(
        f'{reason} by {num_ranks} ranks, and in distributed training a rank '
        'with fewer batches leaves the others waiting: pass uneven="drop" to '
        'leave out the last of them, "pad" to repeat some, "uneven" if ranks '
        'need no equal numbers, or by="example" to split each batch; with '
        'shard=None each rank reads the whole stream, as for validation')
