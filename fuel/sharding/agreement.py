"""Agreement of ranks that are in one process group."""
from __future__ import annotations

import collections
import zlib
from typing import Any

from fuel.schemes.iteration_scheme import num_examples_of
from fuel.epochs.stage import stage_of
from fuel.schemes.shard import Shard
from fuel.typing import StreamLike
from fuel.utils.ranks import process_group

# How often this process has shared a pipeline, by its description.
counts: collections.Counter[str] = collections.Counter()


def check_agreement(stream: StreamLike, shard: Shard) -> None:
    """Refuse a share that does not fit those of other ranks.

    Where `torch.distributed` is initialised, its store holds what the first
    rank said of the pipeline. No rank waits for another.
    """
    store = _store()
    if store is None:
        return
    described = f'{zlib.crc32(_names(stream).encode()):08x}'
    key = f'fuel/shard/{described}/{counts[described]}'
    counts[described] += 1
    ours = f'num_shards={shard.num_shards}, by={shard.by!r}, uneven=' + repr(
        shard.uneven)
    found = store.compare_set(key, '', ours)
    theirs = found.decode() if isinstance(found, bytes) else str(found)
    if theirs != ours:
        raise ValueError(
            f'the ranks disagree: rank {shard.rank} shares the order of '
            f'{type(stream).__name__} with {ours}, but another rank of the '
            f'process group with {theirs}: pass the same to all of them')


def _store() -> Any:
    """Return the store of PyTorch's process group, None if there is none."""
    module = getattr(process_group(), 'distributed_c10d', None)
    find = getattr(module, '_get_default_store', None)
    return None if find is None else find()


def _names(stream: StreamLike) -> str:
    """Return what ranks say alike of a pipeline: the names in it."""
    stage = stage_of(stream)
    parts = [type(stream).__qualname__, repr(tuple(stream.sources))]
    if stage.dataset is not None:
        parts += [type(stage.dataset).__qualname__,
                  repr(num_examples_of(stage.dataset))]
    return '/'.join([*parts, *map(_names, stage.inputs)])
