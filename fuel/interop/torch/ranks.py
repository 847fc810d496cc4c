"""Give each process of a distributed training its part of a stream."""
from __future__ import annotations

from typing import Any, TypeAlias

import torch.distributed

from fuel.epochs.sharding import sharding_of
from fuel.schemes.shard import Shard, as_shard, checked_shard, found_rank
from fuel.typing import StreamLike

#: Rank and number of ranks, ``'auto'``, or None.
ShardLike: TypeAlias = 'tuple[int, int] | str | None'


def share_of_rank(stream: StreamLike, shard: ShardLike, by: str,
                  uneven: str | None) -> Any:
    """Return the stream of this rank, or the stream itself if it is alone.

    A stream that is sharded already stays as it is.
    """
    if sharding_of(stream) is not None:
        if shard not in (None, 'auto'):
            raise ValueError(
                f'{type(stream).__name__} is sharded already, as '
                f'{tuple(sharding_of(stream) or ())}: leave shard out')
        return stream
    rank = _rank() if shard == 'auto' else as_shard(shard)
    if rank is None or rank.num_shards == 1:
        return stream
    if uneven is None:
        _check_even(stream, rank.num_shards, by)
    sharded: Any = stream
    return sharded.shard(*rank[:2], by=by, uneven=uneven or 'uneven')


def _rank() -> Shard:
    """Return what `torch.distributed` knows, or the launcher's variables."""
    if (torch.distributed.is_available()
            and torch.distributed.is_initialized()):
        return checked_shard(torch.distributed.get_rank(),
                             torch.distributed.get_world_size())
    return checked_shard(*found_rank())


def _check_even(stream: Any, num_ranks: int, by: str) -> None:
    """Refuse to give some ranks more batches than others by chance."""
    if by != 'batch':
        return
    try:
        count = len(stream)
    except TypeError:
        reason = 'how many batches an epoch has is not known'
    else:
        if not count % num_ranks:
            return
        reason = f'{count} batches cannot be shared evenly'
    raise ValueError(
        f'{reason} by {num_ranks} ranks, and in distributed training a rank '
        'with fewer batches leaves the others waiting: pass uneven="drop" to '
        'leave out the last of them, "pad" to repeat some, "uneven" if ranks '
        'need no equal numbers, or by="example" to split each batch')
