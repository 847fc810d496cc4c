"""The share of an order that one of several ranks takes."""
from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from fuel.utils.checks import MOST, not_negative, positive
from fuel.utils.ranks import find_rank

log = logging.getLogger(__name__)

GRANULARITIES = ('batch', 'example')
POLICIES = ('uneven', 'drop', 'pad')


class BatchPart(NamedTuple):
    """The rows of a whole batch that one rank gets.

    `rows`: numbers of these rows in the whole batch.
    `total`: number of rows of the whole batch.
    `real`: rows from this number on repeat examples from the epoch's start.
    """

    rows: slice | list[int]
    total: int
    real: int

    @property
    def places(self) -> Sequence[int]:
        """The numbers of the rows in the whole batch."""
        rows = self.rows
        return range(self.total)[rows] if isinstance(rows, slice) else rows


class Shard(NamedTuple):
    """The share of an order that one of several ranks takes.

    Attributes
    ----------
    rank : int
        From 0 to below `num_shards`.
    num_shards : int
        Number of ranks that share the order.
    by : {'batch', 'example'}
        Whether a rank takes every n-th batch (or, of a stream of examples,
        every n-th example), or its part of each batch.
    uneven : {'uneven', 'drop', 'pad'}
        Handling of the end of an epoch that ranks cannot share evenly.

    Examples
    --------
    >>> Shard(1, 4)
    Shard(rank=1, num_shards=4, by='batch', uneven='uneven')
    """

    rank: int
    num_shards: int
    by: str = 'batch'
    uneven: str = 'uneven'

    @property
    def splits(self) -> bool:
        """Whether each batch is split over the ranks (bool)."""
        return self.by == 'example'

    @property
    def step(self) -> int:
        """Number of items of the order for each item of a rank (int)."""
        return 1 if self.splits else self.num_shards

    @property
    def offset(self) -> int:
        """Place of the rank's item among the items of a step (int)."""
        return 0 if self.splits else self.rank

    def check_split(self, owner: str, is_single: bool,
                    size: int | None) -> None:
        """Raise ValueError for single examples, or batches too small to split.

        `owner`: the subject and verb of the error.
        """
        if is_single:
            raise ValueError(
                f"by='example' splits batches, but {owner} single examples: "
                "use by='batch', which gives a rank every n-th example")
        if size is not None and size < self.num_shards:
            raise ValueError(
                f"by='example' cannot split batches of {size} examples over "
                f'num_shards={self.num_shards} ranks: use larger batches, '
                "fewer ranks or by='batch'")

    def part(self, size: int) -> slice:
        """Return the rank's rows of a full batch, which has `size`
        examples."""
        return _part(self.rank, self.num_shards, size)


def _part(place: int, ranks: int, size: int) -> slice:
    """Return the rows of a batch that go to one of several ranks."""
    return slice(place * size // ranks, (place + 1) * size // ranks)


class FoundShard(Shard):
    """A share whose rank was detected, not given by the user."""

    def check_world(self) -> None:
        """Raise ValueError if this process has another rank by now, or there
        is another number of ranks."""
        found = find_rank()
        if found.is_known and found[:2] != self[:2]:
            raise ValueError(
                f'the share was taken as rank {self.rank} of '
                f'{self.num_shards}, but now this is rank {found.rank} of '
                f'{found.num_ranks}, as {found.source} says: take the share '
                'in each process after its ranks are known, such as where '
                'the trainer asks for its loaders')


class WholeShare(Shard):
    """The share of all items of a stage, which are sought by their numbers.

    In the pipeline of a rank, a stage has it if the stage above shares its own
    items. So it is not a share of a rank.
    """


def checked_shard(rank: object, num_shards: object = None, by: str = 'batch',
                  uneven: str = 'uneven') -> Shard:
    """Check the fields of a shard, and return it."""
    if num_shards is None:
        raise TypeError(
            'num_shards is missing: pass the number of ranks that share the '
            "order, or shard='auto' to find it in the environment")
    num_shards = positive('num_shards', num_shards)
    rank = not_negative('rank', rank)
    if rank >= num_shards:
        raise ValueError(
            f'rank must be from 0 to {num_shards - 1}, since num_shards is '
            f'{num_shards}; got {rank}')
    for name, value, known in (('by', by, GRANULARITIES),
                               ('uneven', uneven, POLICIES)):
        if value not in known:
            raise ValueError(f'{name} must be one of {known}, got {value!r}')
    return Shard(rank, num_shards, by, uneven)


def is_layout(value: object) -> bool:
    """Return whether a value of a state says how ranks shared an order."""
    return isinstance(value, list) and len(value) == 3 and (
        type(value[0]) is int and 0 < value[0] < MOST
        and value[1] in GRANULARITIES and value[2] in POLICIES)


def found_shard(by: str = 'batch', uneven: str = 'uneven') -> FoundShard:
    """Detect the rank of this process, log it, and return its share."""
    found = find_rank()
    log.info('rank %d of %d, as %s says', *found)
    return FoundShard(*checked_shard(
        found.rank, found.num_ranks, by, uneven))


def as_shard(shard: object) -> Shard | None:
    """Return the checked shard that a stream's argument `shard` means."""
    if shard is None:
        return None
    if shard == 'auto':
        return found_shard()
    if not isinstance(shard, Sequence) or isinstance(shard, str) or (
            not 2 <= len(shard) <= len(Shard._fields)):
        raise TypeError(
            "shard must be (rank, num_shards), a Shard or 'auto', got "
            f'{shard!r}')
    return checked_shard(*shard)


def place_of_rank(first: int, total: float, shard: Shard) -> int | None:
    """Return the rank's item of the round that begins with item `first`.

    `total`: number of items of the epoch.
    Returns: number of the item; None if the rank has no item in this round.
    """
    place = first + shard.rank
    if first + shard.num_shards <= total:
        return place
    if first >= total or shard.uneven == 'drop':
        return None
    if place < total:
        return place
    return place % int(total) if shard.uneven == 'pad' else None


class Round:
    """Deals the batches of one step to the ranks that split them.

    A batch is split over all ranks that have no rows yet. If it has fewer rows
    than there are such ranks, it is split over some of them, and the next
    batch over the others. So all ranks make the same steps, and each step of a
    rank has rows of one batch.

    `left`: number of ranks that have no rows yet.
    """

    def __init__(self, shard: Shard) -> None:
        self.shard = shard
        self.left = shard.num_shards

    def deal(self, real: int, full: int, is_last: bool) -> BatchPart | None:
        """Return the rank's rows of the next batch, None if it gets none.

        `real`: number of examples of the batch.
        `full`: number of examples of a full batch.
        `is_last`: whether this is the last batch of the epoch.
        """
        uneven = self.shard.uneven
        if is_last and real < full and uneven == 'drop':
            return None
        total = max(real, full) if uneven == 'pad' else real
        place = self.shard.rank - self.shard.num_shards + self.left
        ranks = self.left
        if total < ranks and not is_last:
            # The batch's portion of the ranks, if the next batch is full.
            ranks = min(total, max(1, ranks * total // (total + full)))
        self.left -= ranks
        if not 0 <= place < ranks:
            return None
        rows = _part(place, ranks, total)
        return BatchPart(rows, total, real) if rows.start < rows.stop else None


def num_of_rank(total: int, shard: Shard) -> int:
    """Return the number of batches of a rank that gets every n-th batch."""
    rounds, rest = divmod(total, shard.num_shards)
    return rounds + (place_of_rank(0, rest, shard) is not None)


def share_of(total: int, shard: Shard, last: int | None = None,
             size: int = 0) -> int | None:
    """Return the number of items of a rank, None if it is not known.

    `last`: number of examples of the last batch, if known.
    `size`: number of examples of each batch before the last.
    """
    if not shard.splits:
        return num_of_rank(total, shard)
    if shard.uneven == 'pad':
        return total
    if last is None:
        # A last batch that is short may be left out.
        return None
    return total - bool(total and last < size and Round(shard).deal(
        last, size, True) is None)
