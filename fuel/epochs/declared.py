"""Declarations of a stream: what its class and attributes say of it.

Nothing else asks a stream for names that not every stream has, or whether its
class overrides a method. Nothing here is overridden.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, final

from fuel.epochs.epoch import Epoch
from fuel.epochs.read_options import Conversion
from fuel.epochs.runtime import Runtime
from fuel.schemes.iteration_scheme import batch_size_of
from fuel.schemes.shard import Shard
from fuel.kernels.stage_reader import BoundStageReader
from fuel.typing import (
    AxisLabels, DatasetLike, EpochReader, SchemeLike, State, StreamLike)
from fuel.utils.arguments import labels_in
from fuel.utils.overrides import covers, declares, is_default
from fuel.utils.rng_state import SavedGenerator, generator_in


class Declared(Runtime):
    """A stream of any class, as it is declared."""

    __slots__ = ()

    @property
    @final
    def name(self) -> str:
        """The name of the class (str)."""
        return type(self.stream).__name__

    @property
    @final
    def inputs(self) -> tuple[StreamLike, ...]:
        """The streams that are read (tuple); () for one of a data set."""
        several = getattr(self.stream, 'data_streams', None)
        if several is not None:
            return tuple(several)
        one: StreamLike | None = getattr(self.stream, 'data_stream', None)
        return () if one is None else (one,)

    @property
    @final
    def reads_several(self) -> bool:
        """Whether it reads any number of streams (bool)."""
        return hasattr(self.stream, 'data_streams')

    @property
    @final
    def iterators(self) -> list[Any]:
        """The epoch iterators of its inputs that are shown (list)."""
        several = getattr(self.stream, 'child_epoch_iterators', None)
        if several is not None:
            return list(several)
        one = getattr(self.stream, 'child_epoch_iterator', None)
        return [] if one is None else [one]

    @property
    @final
    def scheme(self) -> SchemeLike | None:
        """The iteration scheme, if there is one."""
        scheme: SchemeLike | None = getattr(
            self.stream, 'iteration_scheme', None)
        return scheme

    @property
    @final
    def dataset(self) -> DatasetLike | None:
        """The data set, if one is read."""
        dataset: DatasetLike | None = getattr(self.stream, 'dataset', None)
        return dataset

    @property
    @final
    def labels(self) -> AxisLabels:
        """The axis labels of the sources; {} where nothing is known."""
        return labels_in(self.stream) or {}

    @property
    @final
    def generator(self) -> SavedGenerator | None:
        """The random generator that is drawn from, if there is one."""
        return generator_in(self.stream)

    @property
    @final
    def one_to_one(self) -> bool:
        """Whether item n is made of item n below, or of one request (bool)."""
        return covers(self.stream, 'one_to_one', ('get_data',)) and bool(
            self.stream.one_to_one)

    @property
    @final
    def keeps_rows(self) -> bool:
        """True if no example is added, left out or moved (bool)."""
        return self.one_to_one and declares(self.stream, 'keeps_rows')

    @property
    @final
    def keeps(self) -> frozenset[str]:
        """Properties that data keep: any of 'dtype', 'shape' and 'axes'."""
        keeps = getattr(type(self.stream), 'keeps', None)
        return keeps if isinstance(keeps, frozenset) else frozenset()

    @property
    @final
    def draws(self) -> Literal['no', 'by_seed', 'in_order']:
        """The way it draws, if it does: by seed and item, or in order."""
        if generator_in(self.stream) is None:
            return 'no'
        return 'by_seed' if getattr(
            self.stream, 'draws_by_seed', False) else 'in_order'

    @property
    @final
    def goes_back(self) -> bool:
        """Whether an epoch can go back to items that it had before (bool)."""
        return bool(getattr(self.stream, 'can_go_back', True))

    @property
    @final
    def depends_on_data(self) -> bool:
        """Whether what it keeps depends on what it has read (bool)."""
        return not (self.one_to_one or self.passes_items_on)

    @property
    @final
    def passes_items_on(self) -> bool:
        """Whether its items are those of its input, as they are (bool)."""
        return bool(getattr(self.stream, 'passes_items_on', False))

    @property
    @final
    def counts_all_items(self) -> bool:
        """Whether it counts the items of all ranks (bool)."""
        return bool(getattr(self.stream, 'counts_all_items', False))

    @property
    @final
    def can_plan(self) -> bool:
        """Whether it can make any of its items from indices (bool)."""
        return bool(getattr(self.stream, 'can_plan', False) and covers(
            self.stream, 'open_plan',
            ('get_data', 'get_leftover', 'get_epoch_iterator')))

    @property
    @final
    def has_plan(self) -> bool:
        """Whether a plan makes its items where ranks share them (bool)."""
        return hasattr(self.stream, 'open_plan') and bool(
            getattr(self.stream, 'is_sought', True))

    @property
    @final
    def keeps_leftovers(self) -> bool:
        """Whether it takes up left-overs (bool)."""
        return hasattr(self.stream, 'set_leftover') and not is_default(
            self.stream, 'set_leftover')

    @property
    @final
    def has_begun(self) -> bool:
        """Whether an epoch was made (bool)."""
        return self.epoch is not None

    @final
    def replace_inputs(self, streams: Sequence[StreamLike]) -> None:
        """Let it read other streams."""
        if self.reads_several:
            self.stream.data_streams = tuple(streams)
        elif streams:
            self.stream.data_stream, = streams

    @final
    def take_share(self, shard: Shard) -> None:
        """Take a rank's share of its own items, which a plan makes."""
        self.stream.sharding = shard

    @final
    def resume_plan(self, leftover: object) -> None:
        """Give a plan what it needs of left-overs that were saved."""
        resume = getattr(self.stream, 'resume_plan', None)
        if resume is not None:
            resume(leftover)

    @final
    def split_size(self) -> int | None:
        """Return the size of the batches that ranks can split."""
        split = getattr(self.stream, 'split_size', None)
        return batch_size_of(self.scheme) if split is None else split()

    @final
    def count_items(self, epoch: Epoch) -> int | None:
        """Return how many items an epoch has, if its inputs do not tell."""
        counted = getattr(self.stream, 'count_items', None)
        return None if counted is None else int(counted(epoch))

    @final
    def request_conversions(
            self, epoch: Epoch, conversions: Mapping[str, Conversion]) -> None:
        """Ask for the data of some sources in another type, or scaled."""
        request = getattr(self.stream, 'request_conversions', None)
        if request is not None:
            request(epoch, conversions)

    @final
    def only_counts(self, epoch: Epoch) -> bool:
        """Return whether nothing but counts changes in its state."""
        kept = epoch.attributes
        return (not kept.keys() - {'child_epoch_iterator', 'data_state'}
                and kept.get('data_state') is None
                and self.generator is None
                and is_default(self.stream, 'get_leftover')
                and is_default(self.stream, 'get_child_position'))

    @final
    def open_items(self, epoch: Epoch) -> EpochReader:
        """Open the reader of all items of an epoch."""
        opener = getattr(self.stream, 'open_reader', None)
        reader: EpochReader | None = None if opener is None else opener(epoch)
        return BoundStageReader(epoch, self.stream) if reader is None else (
            reader)

    @final
    def warn_of_empty_epoch(self, attributes: Mapping[str, Any]) -> None:
        """Let the stream warn of an epoch that gave nothing."""
        warn = getattr(self.stream, 'warn_of_empty_epoch', None)
        if warn is not None:
            warn(attributes)

    @final
    def own_state(self) -> State | None:
        """Return the state that a stream says by itself, if it does."""
        if not hasattr(self.stream, 'state_dict'):
            return None
        return dict(self.stream.state_dict())
