"""Declarations of a stream: what its class and attributes say of it.

Nothing else asks a stream for names that not every stream has, or whether its
class overrides a method. Nothing here is overridden.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, final

from fuel.epochs.epoch import Epoch
from fuel.epochs.runtime import Runtime
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
    # False of all classes that derive from AbstractDataStream.
    is_foreign = True

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
        keeps = frozenset() if self.is_foreign else type(self.stream).keeps
        return keeps if isinstance(keeps, frozenset) else frozenset()

    @property
    @final
    def draws(self) -> Literal['no', 'by_seed', 'in_order']:
        """The way it draws, if it does: by seed and item, or in order."""
        if generator_in(self.stream) is None:
            return 'no'
        return 'in_order' if self.is_foreign or not (
            self.stream.__fuel_draws_by_seed__) else 'by_seed'

    @property
    @final
    def goes_back(self) -> bool:
        """Whether an epoch can go back to items that it had before (bool)."""
        plan: Any = None if self.is_foreign else self.stream.__fuel_plan__
        return plan is None or bool(plan.goes_back(self.stream))

    @property
    @final
    def depends_on_data(self) -> bool:
        """Whether what it keeps depends on what it has read (bool)."""
        return not (self.one_to_one or self.passes_items_on)

    @property
    @final
    def passes_items_on(self) -> bool:
        """Whether its items are those of its input, as they are (bool)."""
        return not self.is_foreign and bool(self.stream.__fuel_passes_on__)

    @property
    @final
    def keeps_leftovers(self) -> bool:
        """Whether it takes up left-overs (bool)."""
        return not (self.is_foreign or is_default(
            self.stream, 'set_leftover'))

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
        stream = self.stream
        reader: EpochReader | None = None if self.is_foreign else (
            type(stream).open_reader(stream, epoch))
        return BoundStageReader(epoch, stream) if reader is None else reader

    @final
    def own_state(self) -> State | None:
        """Return the state that a stream says by itself, if it does."""
        if not hasattr(self.stream, 'state_dict'):
            return None
        return dict(self.stream.state_dict())
