"""Count the items that are left of an epoch, which ranks may share."""
from __future__ import annotations

from fuel.epochs.epoch import Epoch
from fuel.epochs.stage import Stage, stage_of
from fuel.schemes.iteration_scheme import ShardedScheme, num_requests_of
from fuel.schemes.shard import num_of_rank


def num_left(stream: object, epoch: Epoch) -> int | None:
    """Return how many items are left of an epoch, None if not known."""
    stage = stage_of(stream)
    if epoch.finished:
        return 0
    length, shard = stage.num_items(), stage.shard
    if length is None or epoch.has_own_requests:
        return None
    used, step = epoch.requested, epoch.step
    if epoch.request_iterator is not None and shard == stage.shard_of_inputs:
        # Its own requests are the rank's alone.
        step = 1
    total = _length_of_all(stage) if shard and used % step else None
    if total is None or shard is None:
        # The last round of the ranks may be short.
        return max(0, length - -(-used // step))
    # Ranks of another number have read to here.
    return num_of_rank(max(0, total - used), shard)


def _length_of_all(stage: Stage) -> int | None:
    """Return how many items all ranks share, None if that is not known."""
    if stage.own_shard is not None:
        return stage.num_items(of_all=True)
    if isinstance(stage.scheme, ShardedScheme):
        return num_requests_of(stage.scheme.scheme)
    counts = [_length_of_all(stage_of(one)) for one in stage.inputs]
    known = [count for count in counts if count is not None]
    return min(known) if stage.one_to_one and (
        len(known) == len(counts) > 0) else None
