"""Make the pipeline of a rank.

It is a copy of the whole pipeline, which shares the data. In the copy, one
stage or scheme takes the rank's share of its items: the topmost one whose
items are known without making them. Each stage above it is one-to-one, or
depends on the data.
"""
from __future__ import annotations

import collections
import copy
import warnings
import zlib
from typing import Any, TypeVar

from fuel.epochs.pipeline import length_of
from fuel.epochs.stage import Stage, stage_of
from fuel.schemes.iteration_scheme import (
    is_scheme,
    num_examples_of, parts_of_scheme)
from fuel.schemes.shard import Shard
from fuel.sharding.planned import ItemPlan, can_make_items
from fuel.typing import SchemeLike, StreamLike
from fuel.utils import rng_state
from fuel.utils.overrides import is_original
from fuel.utils.ranks import ranks_wait, store_of_group

Stream = TypeVar('Stream', bound=StreamLike)


class WholeBatches:
    """Base of stages that draw for whole batches, which ranks cannot split.

    `whole`: two texts for the error: what the stage does, and a remedy other
        than another `by`.
    """

    whole: tuple[str, str]


def refuse_split(stream: StreamLike, shard: Shard | None) -> None:
    """Raise NotImplementedError if ranks split the batches of a stage that
    draws for whole batches."""
    if shard is not None and shard.splits and isinstance(
            stream, WholeBatches) and not stream.produces_examples:
        what, remedy = stream.whole
        raise NotImplementedError(
            f'the stage {type(stream).__name__} {what}, but the batch is '
            f"split over ranks, so each would draw something else: {remedy}"
            f"use by='batch'")


def sharding_of(stream: StreamLike) -> Shard | None:
    """Return the share that a pipeline takes; None if it takes all items."""
    return stage_of(stream).shard


def shard_pipeline(stream: Stream, shard: Shard) -> Stream:
    """Return a copy of a pipeline that takes a rank's share."""
    stage = stage_of(stream)
    present = stage.shard
    if present is not None:
        raise ValueError(
            f'{type(stream).__name__} is sharded already, as '
            f'{tuple(present)}: shard it once, by the number of all ranks')
    ours: Stream = _sharded(stage, shard)
    check_agreement(stream, shard)
    return ours


def warn_if_uneven(stream: StreamLike, shard: Shard) -> None:
    """Warn that some ranks will get more batches than others, if ranks wait
    for each other in each step.

    The warning points to the caller's caller.
    """
    if shard.splits or not ranks_wait(shard.num_shards):
        return
    count = _count_shared(stream, shard)
    if count is None or not count % shard.num_shards:
        return
    items = 'examples' if stage_of(stream).stream.produces_examples else (
        'batches')
    warnings.warn(
        f'{count} {items} cannot be shared evenly by {shard.num_shards} '
        'ranks: if they wait for each other in each step, training waits for '
        "ever at the end of the epoch. Pass stream.shard(..., uneven='drop') "
        f"to leave out the last {count % shard.num_shards}, 'pad' to repeat "
        "some, or 'uneven' if ranks do not wait", stacklevel=3)


def _count_shared(stream: StreamLike, shard: Shard) -> int | None:
    """Return the number of items that ranks share, None if not known."""
    stage = stage_of(stream)
    while len(stage.inputs) == 1:
        count: int | None = None if stage.plan is None else (
            stage.plan.count_shared(stage.stream, shard))
        if count is not None:
            return count
        stage = stage_of(stage.inputs[0])
    return length_of(stream)


def check_draws(stage: Stage) -> None:
    """Raise ValueError if a stage's draws depend on its earlier draws."""
    if stage.draws == 'in_order':
        raise _drawn_in_order(stage)


def _drawn_in_order(stage: Stage) -> ValueError:
    return ValueError(
        f'the stage {stage.name} draws from rng, so its draws depend on the '
        'batches before, which other ranks have: give it seed= instead, or '
        'use a stage that takes seed=')


def _sharded(stage: Stage, shard: Shard) -> Any:
    stream = stage.stream
    refuse_split(stream, shard)
    plan: type[ItemPlan] | None = stage.plan
    if plan is not None and can_make_items(plan, stream):
        if shard.splits:
            _check_split(stage, shard, plan)
        if shard.uneven == 'pad':
            _check_padding(stage)
        ours = copied_pipeline(stream, is_sought=True)
        if plan.seeks_below:
            for child in stage_of(ours).inputs:
                _seek_items(child)
        plan.check_share(ours, shard)
        stage_of(ours).shard_own_items(shard)
        return ours
    check_draws(stage)
    ours = copied(stage, {})
    if len(stage.inputs) == 1 and not stage.reads_several:
        if plan is not None and plan.is_needed:
            raise ValueError(
                f'{stage.name} counts the items of all ranks, but those of '
                'the stream that it reads are not known by their numbers: '
                'put it behind the stream that is sharded')
        if shard.splits and stage.depends_on_data:
            raise ValueError(
                f'the items of {stage.name} depend on the data, so '
                "by='example' cannot split them over ranks: use by='batch'")
        stage_of(ours).replace_inputs([
            _sharded(stage_of(stage.inputs[0]), shard)])
    else:
        stage_of(ours).share_in_order(shard)
    return ours


def _seek_items(stream: StreamLike) -> None:
    """Let a stage above seek the items of the stages of a copied pipeline,
    where plans can make them by their numbers."""
    stage = stage_of(stream)
    for child in stage.inputs:
        _seek_items(child)
    if stage.plan is not None and can_make_items(stage.plan, stream):
        stage.seek_own_items()


def _check_split(stage: Stage, shard: Shard, plan: type[ItemPlan]) -> None:
    """Raise ValueError if ranks cannot split the batches of a stage."""
    size = plan.split_size(stage.stream)
    shard.check_split(
        f'{stage.name} gives', stage.stream.produces_examples, size)
    if size is None:
        raise ValueError(
            f"by='example' cannot split the batches of {stage.name}: split "
            "those that it reads, or use by='batch'")


def _check_padding(stage: Stage) -> None:
    """Raise ValueError if an epoch cannot go back to items that padding
    repeats."""
    if not stage.goes_back:
        raise ValueError(
            "uneven='pad' repeats items from the start of an epoch, to which "
            f"{stage.name} with stop='forever' cannot go back: "
            "use uneven='drop' or 'uneven', or stop='last'")
    for child in stage.inputs:
        _check_padding(stage_of(child))


def copied_pipeline(stream: Stream, known: dict[int, Any] | None = None,
                    may_draw: bool = False,
                    is_sought: bool | None = None) -> Stream:
    """Return a copy of a whole pipeline, in which no stage takes a share.

    A stream that is read twice is copied once. A generator from which several
    stages draw is copied once as well.

    `known`: copies that were made, by the identities of the originals.
    `may_draw`: whether stages may draw in order; otherwise they raise
        ValueError.
    `is_sought`: see :meth:`fuel.epochs.stage.Stage.copy`.
    """
    known = {} if known is None else known
    reading: list[tuple[Any, tuple[StreamLike, ...]]] = []
    waiting: list[Any] = [stream]
    while waiting:
        one = waiting.pop()
        if id(one) in known:
            continue
        stage = stage_of(one)
        if not may_draw and stage.draws == 'in_order':
            raise _drawn_in_order(stage)
        ours = known[id(one)] = copied(
            stage, known, is_sought if one is stream else None)
        inputs = stage.inputs
        if inputs:
            reading.append((ours, inputs))
            waiting += inputs
    for ours, inputs in reading:
        stage_of(ours).replace_inputs([known[id(child)] for child in inputs])
    copy_of_all: Stream = known[id(stream)]
    return copy_of_all


def copied(stage: Stage, known: dict[int, Any],
           is_sought: bool | None = False) -> Any:
    """Return a copy of a stream with the same data and generators of its own.

    `known`: copies that were made, by the identities of the originals.
    `is_sought`: see :meth:`fuel.epochs.stage.Stage.copy`.
    """
    ours = stage.copy(is_sought)
    rng_state.copy_generators(ours, known)
    scheme = stage.scheme
    if scheme is not None:
        ours.iteration_scheme = copied_scheme(scheme, known)
    return ours


def copied_scheme(scheme: SchemeLike, known: dict[int, Any],
                  is_deep: bool = False) -> SchemeLike:
    """Return a copy of a scheme, with generators of its own.

    `known`: copies that were made, by the identities of the originals, so that
        schemes which share a generator share its copy.
    `is_deep`: whether a user's scheme is copied deeply, since it may keep its
        generators anywhere.
    """
    if is_deep and not is_original(scheme, 'get_request_iterator'):
        return copy.deepcopy(scheme, known)
    if id(scheme) in known:
        ours: SchemeLike = known[id(scheme)]
        return ours
    ours = known[id(scheme)] = copy.copy(scheme)
    rng_state.copy_generators(ours, known)
    for name, value in vars(ours).items():
        # Most are numbers and the like.
        if type(value).__module__ != 'builtins' and is_scheme(value):
            # The scheme draws from the other scheme's generators.
            vars(ours)[name] = copied_scheme(value, known, is_deep)
    parts = parts_of_scheme(ours)
    if parts:
        vars(ours)['schemes'] = [
            copied_scheme(part, known, is_deep) for part in parts]
    return ours


# Number of times that this process has sharded each pipeline.
counts: collections.Counter[str] = collections.Counter()


def check_agreement(stream: StreamLike, shard: Shard) -> None:
    """Raise ValueError if a rank's share does not fit another rank's.

    If `torch.distributed` is initialised, its store holds the arguments of the
    rank that shared this pipeline first. No rank waits for another.
    """
    store = store_of_group()
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
            f'process group shares it with {theirs}: pass the same arguments '
            'on all ranks')


def _names(stream: StreamLike) -> str:
    """Return a description of a pipeline that must be equal on all ranks."""
    stage = stage_of(stream)
    parts = [type(stream).__qualname__, repr(tuple(stream.sources))]
    if stage.dataset is not None:
        parts += [type(stage.dataset).__qualname__,
                  repr(num_examples_of(stage.dataset))]
    return '/'.join([*parts, *map(_names, stage.inputs)])
