"""Pipelines of which several ranks share the order.

A rank's pipeline is a copy, without the data, in which one stage or scheme
takes the rank's share of its own items. That is the topmost one of which the
items are known without making them; what follows it makes one item of one,
or depends on the data.
"""
from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from fuel.epochs.pipeline import child_streams, is_one_to_one
from fuel.epochs.planned import PlannedReader
from fuel.epochs.process_group import check_agreement
from fuel.epochs.share_reader import ShareReader
from fuel.kernels.stage_reader import BoundStageReader
from fuel.schemes.iteration_scheme import ShardedScheme, num_requests_of
from fuel.schemes.shard import FoundShard, Shard, num_of_rank
from fuel.typing import EpochReader
from fuel.utils import rng_state
from fuel.utils.overrides import covers, is_own

if TYPE_CHECKING:
    from fuel.epochs.epoch import Epoch


def sharding_of(stream: Any) -> Shard | None:
    """Return the share that a pipeline takes, None if it takes all."""
    found: Shard | None = vars(stream).get('sharding') or getattr(
        getattr(stream, 'iteration_scheme', None), 'sharding', None)
    return sharding_below(stream) if found is None else found


def sharding_below(stream: Any) -> Shard | None:
    """Return the share that the streams take which a stage reads."""
    for child in child_streams(stream):
        found = sharding_of(child)
        if found is not None:
            return found
    return None


def bound_shard(stream: Any) -> Shard | None:
    """Return the shard that a stage's position belongs to, if to any."""
    return sharding_below(stream) if depends_on_data(stream) else None


def depends_on_data(stream: Any) -> bool:
    """Return whether a stage's position belongs to its rank.

    That of a stage which does not make one item of one does: what it keeps,
    and how far it came, depends on what it has read.
    """
    return not (is_one_to_one(stream)
                or getattr(stream, 'passes_items_on', False))


def shard_pipeline(stream: Any, shard: Shard) -> Any:
    """Return a copy of a pipeline that takes a rank's share."""
    present = sharding_of(stream)
    if present is not None:
        raise ValueError(
            f'{type(stream).__name__} is sharded already, as '
            f'{tuple(present)}: shard it once, by the number of all ranks')
    ours = _sharded(stream, shard)
    check_agreement(stream, shard)
    return ours


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
    if can_plan(stream):
        check_split(stream, shard)
        check_padding(stream, shard)
        ours = copied_pipeline(stream)
        ours.sharding = shard
        return ours
    ours = copied(stream)
    if hasattr(stream, 'data_stream'):
        if getattr(stream, 'counts_all_items', False):
            raise ValueError(
                f'{type(stream).__name__} counts the items of all ranks, but '
                'those of the stream that it reads are not known by their '
                'numbers: put it behind the stream that is sharded')
        if shard.splits and depends_on_data(stream):
            raise ValueError(
                f'what {type(stream).__name__} makes depends on the data, so '
                "by='example' cannot split it over ranks: use by='batch'")
        ours.data_stream = _sharded(stream.data_stream, shard)
    elif hasattr(stream, 'data_streams') and not hasattr(
            stream, '_take_share'):
        raise ValueError(
            f'the items of {type(stream).__name__} come of streams in which '
            'no item is known without those before it, so ranks would put '
            'other items together: shard the streams before')
    else:
        take_share(ours, shard)
    return ours


def check_split(stream: Any, shard: Shard) -> None:
    """Refuse to split what cannot be split over ranks."""
    if not shard.splits:
        return
    name = type(stream).__name__
    if stream.produces_examples or not hasattr(stream, 'iteration_scheme'):
        raise ValueError(
            f"by='example' splits batches, but {name} gives single examples: "
            "use by='batch', which gives a rank every n-th example")
    size = (stream.split_size() if hasattr(stream, 'split_size') else
            getattr(stream.iteration_scheme, 'batch_size', None))
    if size is None:
        raise ValueError(
            f"by='example' cannot split the batches of {name}: split those "
            "that it reads, or use by='batch'")
    if size < shard.num_shards:
        raise ValueError(
            f"by='example' cannot split batches of {size} examples over "
            f'num_shards={shard.num_shards} ranks: use larger batches, fewer '
            "ranks or by='batch'")


def check_padding(stream: Any, shard: Shard) -> None:
    """Refuse to repeat items where an epoch cannot go back to them."""
    if shard.uneven != 'pad':
        return
    if not getattr(stream, 'can_go_back', True):
        raise ValueError(
            "uneven='pad' repeats items from the start of an epoch, to which "
            f"{type(stream).__name__} with stop='forever' cannot go back: "
            "use uneven='drop' or 'uneven', or stop='last'")
    for child in child_streams(stream):
        check_padding(child, shard)


def can_plan(stream: Any) -> bool:
    """Return whether a stage can make any of its items from indices."""
    return bool(hasattr(stream, 'open_plan')
                and covers(stream, 'open_plan', (
                    'get_data', 'get_leftover', 'get_epoch_iterator'))
                and stream.can_plan)


def can_seek(stream: Any, forward: bool = False) -> bool:
    """Return whether an epoch can go to any of its items at once; if
    `forward`, whether it can to those that follow."""
    if hasattr(stream, 'dataset'):
        return bool(is_one_to_one(stream)
                    and _is_known(stream.iteration_scheme))
    children = child_streams(stream)
    return bool(children and is_one_to_one(stream)
                and (forward or getattr(stream, 'can_go_back', True))
                and all(can_seek(child, forward) for child in children))


def can_seek_rows(stream: Any) -> bool:
    """Return whether an epoch can give some rows of any of its batches."""
    if stream.produces_examples or not can_seek(stream) or hasattr(
            stream, 'data_streams'):
        return False
    if hasattr(stream, 'dataset'):
        return isinstance(getattr(
            stream.iteration_scheme, 'batch_size', None), int)
    return bool(stream.keeps_rows) and can_seek_rows(stream.data_stream)


def batch_size_of(stream: Any) -> int | None:
    """Return the size of the batches of a stream some rows of which can be
    read, None of any other."""
    if not can_seek_rows(stream):
        return None
    while hasattr(stream, 'data_stream'):
        stream = stream.data_stream
    size: int = stream.iteration_scheme.batch_size
    return size


def _is_known(scheme: Any) -> bool:
    """Return whether any request of a scheme is known by its number."""
    return bool(
        is_own(type(scheme)) and not isinstance(scheme, ShardedScheme)
        and not hasattr(scheme, 'schemes')
        and num_requests_of(scheme) is not None
        and getattr(scheme, 'chooses_examples', True))


def shares_items(stream: Any) -> bool:
    """Return whether a rank's share is taken of a stream's own items."""
    return vars(stream).get('sharding') is not None


def open_share(stream: Any, epoch: Epoch) -> EpochReader:
    """Return the reader of a rank's share of a stream's own items."""
    if hasattr(stream, 'open_plan'):
        return PlannedReader(epoch, stream, stream.open_plan(epoch),
                             stream.sharding)
    return ShareReader(open_items(stream, epoch), stream.sharding)


def open_items(stream: Any, epoch: Epoch) -> EpochReader:
    """Return the reader of all items of a stream."""
    reader: EpochReader | None = (
        stream.open_reader(epoch) if hasattr(stream, 'open_reader') else None)
    return BoundStageReader(epoch, stream) if reader is None else reader


def length_of(stream: Any) -> int | None:
    """Return the length of an epoch of a rank, or None if it is not known."""
    length: int | None = stream._length()
    if length is None or not shares_items(stream):
        return length
    shard: Shard = stream.sharding
    if not shard.splits:
        return num_of_rank(length, shard)
    # A last batch that is short may be left out.
    return length if shard.uneven == 'pad' else None


def take_share(stream: Any, shard: Shard) -> None:
    """Let a stream take a rank's share of its own items."""
    name = type(stream).__name__
    if hasattr(stream, '_take_share'):
        # A stage of several streams, which knows how.
        stream._take_share(shard)
        return
    if getattr(stream, 'iteration_scheme', None) is not None:
        stream.iteration_scheme = ShardedScheme(
            stream.iteration_scheme, shard)
        return
    if not hasattr(stream, 'dataset'):
        raise TypeError(
            f'{name} cannot be sharded: it has neither an iteration scheme '
            'nor a stream that it reads')
    source = f'the {type(stream.dataset).__name__} that {name} reads'
    if shard.splits:
        raise ValueError(
            f"by='example' splits batches, but {source} gives single "
            "examples: use by='batch', which gives a rank every n-th example")
    if shard.uneven == 'pad':
        raise ValueError(
            f"uneven='pad' repeats examples from the start of an epoch, but "
            f"{source} is read in order: use uneven='drop'")
    stream.sharding = shard


def copied_pipeline(stream: Any, known: dict[int, Any] | None = None,
                    may_draw: bool = False) -> Any:
    """Return a copy of a whole pipeline, which takes no share.

    A stream that is read twice is copied once.
    """
    known = {} if known is None else known
    if id(stream) in known:
        return known[id(stream)]
    if not may_draw:
        check_draws(stream)
    ours = known[id(stream)] = copied(stream)
    if hasattr(stream, 'is_sought'):
        ours.is_sought = can_plan(stream)
    if hasattr(stream, 'data_stream'):
        ours.data_stream = copied_pipeline(
            stream.data_stream, known, may_draw)
    elif hasattr(stream, 'data_streams'):
        ours.data_streams = tuple([
            copied_pipeline(child, known, may_draw)
            for child in stream.data_streams])
    return ours


def copied(stream: Any) -> Any:
    """Return a copy of a stream, with the data but own generators."""
    ours = copy.copy(stream)
    # The epochs that a mixture would go on with are not its own.
    vars(ours).pop('_carried', None)
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


def begin_sharded(stream: Any, epoch: Epoch) -> None:
    """Prepare an epoch of a stream whose order ranks share, if they do."""
    shard = sharding_of(stream)
    if shard is not None:
        if isinstance(shard, FoundShard):
            shard.check_world()
        check_draws(stream)
        epoch.step = shard.step


def take_leftover(stream: Any, leftover: object) -> None:
    """Give a stage its left-overs, of which a plan needs less."""
    if not (shares_items(stream) and hasattr(stream, 'open_plan')):
        stream.set_leftover(leftover)
    elif hasattr(stream, 'resume_plan'):
        stream.resume_plan(leftover)
