"""Pipelines of which several ranks share the order.

A rank's pipeline is a copy, without the data, in which one stage or scheme
takes the rank's share of its own items. That is the topmost one of which the
items are known without making them; what follows it makes one item of one,
or depends on the data.
"""
from __future__ import annotations

import copy
from typing import Any

from fuel.epochs.pipeline import child_streams
from fuel.schemes.iteration_scheme import ShardedScheme
from fuel.schemes.shard import Shard
from fuel.utils import rng_state
from fuel.utils.overrides import covers


def sharding_of(stream: Any) -> Shard | None:
    """Return the share that a pipeline takes, None if it takes all."""
    found: Shard | None = vars(stream).get('sharding') or getattr(
        getattr(stream, 'iteration_scheme', None), 'sharding', None)
    if found is not None:
        return found
    for child in child_streams(stream):
        found = sharding_of(child)
        if found is not None:
            return found
    return None


def is_one_to_one(stream: Any) -> bool:
    """Return whether a stage makes each item of one of its stream."""
    return bool(covers(stream, 'one_to_one', ('get_data',))
                and stream.one_to_one)


def bound_shard(stream: Any) -> Shard | None:
    """Return the shard that a stage's position belongs to, if to any.

    That of a stage which does not make one item of one belongs to its rank:
    what it keeps, and how far it came, depends on what it has read.
    """
    if is_one_to_one(stream) or getattr(stream, 'passes_items_on', False):
        return None
    for child in child_streams(stream):
        found = sharding_of(child)
        if found is not None:
            return found
    return None


def shard_pipeline(stream: Any, shard: Shard) -> Any:
    """Return a copy of a pipeline that takes a rank's share."""
    present = sharding_of(stream)
    if present is not None:
        raise ValueError(
            f'{type(stream).__name__} is sharded already, as '
            f'{tuple(present)}: shard it once, by the number of all ranks')
    return _sharded(stream, shard)


def check_draws(stream: Any) -> None:
    """Refuse stages that draw from what was drawn before."""
    if rng_state.is_generator(getattr(stream, 'rng', None)) \
            and not getattr(stream, 'draws_by_seed', False):
        raise ValueError(
            f'the stage {type(stream).__name__} draws from rng, so what it '
            'draws depends on the batches before, which other ranks have: '
            'give it seed= instead, or use a stage that takes seed=')


def _sharded(stream: Any, shard: Shard) -> Any:
    check_draws(stream)
    ours = copied(stream)
    if hasattr(stream, 'data_stream'):
        ours.data_stream = _sharded(stream.data_stream, shard)
    else:
        take_share(ours, shard)
    return ours


def take_share(stream: Any, shard: Shard) -> None:
    """Let a stream take a rank's share of its own items."""
    if hasattr(stream, '_take_share'):
        # A stage of several streams, which knows how.
        stream._take_share(shard)
    elif getattr(stream, 'iteration_scheme', None) is not None:
        stream.iteration_scheme = ShardedScheme(
            stream.iteration_scheme, shard)
    else:
        raise TypeError(
            f'{type(stream).__name__} cannot be sharded: it has neither an '
            'iteration scheme nor a stream that it reads')


def copied_pipeline(stream: Any) -> Any:
    """Return a copy of a whole pipeline, which takes no share."""
    check_draws(stream)
    ours = copied(stream)
    if hasattr(stream, 'data_stream'):
        ours.data_stream = copied_pipeline(stream.data_stream)
    elif hasattr(stream, 'data_streams'):
        ours.data_streams = tuple(map(copied_pipeline, stream.data_streams))
    return ours


def copied(stream: Any) -> Any:
    """Return a copy of a stream, with the data but own generators."""
    ours = copy.copy(stream)
    _copy_generators(ours)
    if getattr(ours, 'iteration_scheme', None) is not None:
        ours.iteration_scheme = _copied_scheme(ours.iteration_scheme)
    return ours


def _copied_scheme(scheme: Any) -> Any:
    ours = copy.copy(scheme)
    _copy_generators(ours)
    if isinstance(getattr(ours, 'schemes', None), list):
        ours.schemes = [_copied_scheme(part) for part in ours.schemes]
    return ours


def _copy_generators(owner: Any) -> None:
    for name, value in vars(owner).items():
        if rng_state.is_generator(value):
            vars(owner)[name] = copy.deepcopy(value)


def begin_sharded(stream: Any, epoch: Any) -> None:
    """Prepare an epoch of a stream whose order ranks share, if they do."""
    shard = sharding_of(stream)
    if shard is not None:
        check_draws(stream)
        epoch.step = shard.step
