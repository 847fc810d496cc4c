"""The contract of a stage: what the rest of Fuel asks of a stream.

Nothing else asks a stream for names that not every stream has, or whether its
class overrides a method. What Fuel's own classes answer is in
:mod:`fuel.streams.stage`.
"""
from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fuel.epochs.skipped import Skipped
from fuel.epochs.state import (
    Identified, Position, Unavailable, copied_with_text)
from fuel.epochs import runtime
from fuel.epochs.epoch import Epoch
from fuel.epochs.read_options import Conversion
from fuel.epochs.runtime import KEPT_STAGE, Runtime
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.kernels.stage_reader import BoundStageReader
from fuel.schemes.iteration_scheme import (
    ShardedScheme, batch_size_of, shard_of)
from fuel.schemes.shard import Shard
from fuel.typing import (
    AxisLabels, Batch, DatasetLike, EpochReader, SchemeLike, State, StreamLike)
from fuel.utils.arguments import is_dataset, labels_in
from fuel.utils.overrides import covers, declares
from fuel.utils.rng_state import SavedGenerator, generator_in


class Stage(Runtime):
    """A stream as Fuel sees it; here any that has StreamLike's members."""

    __slots__ = ()
    is_remote = is_waiting = False

    @property
    def name(self) -> str:
        """The name of the class (str)."""
        return type(self.stream).__name__

    @property
    def inputs(self) -> tuple[StreamLike, ...]:
        """The streams that are read (tuple); () for one of a data set."""
        several = getattr(self.stream, 'data_streams', None)
        if several is not None:
            return tuple(several)
        one: StreamLike | None = getattr(self.stream, 'data_stream', None)
        return () if one is None else (one,)

    @property
    def reads_several(self) -> bool:
        """Whether it reads any number of streams (bool)."""
        return hasattr(self.stream, 'data_streams')

    @property
    def iterators(self) -> list[Any]:
        """The epoch iterators of its inputs that are shown (list)."""
        several = getattr(self.stream, 'child_epoch_iterators', None)
        if several is not None:
            return list(several)
        one = getattr(self.stream, 'child_epoch_iterator', None)
        return [] if one is None else [one]

    @property
    def scheme(self) -> SchemeLike | None:
        """The iteration scheme, if there is one."""
        scheme: SchemeLike | None = getattr(
            self.stream, 'iteration_scheme', None)
        return scheme

    @property
    def dataset(self) -> DatasetLike | None:
        """The data set, if one is read."""
        dataset: DatasetLike | None = getattr(self.stream, 'dataset', None)
        return dataset

    @property
    def labels(self) -> AxisLabels:
        """The axis labels of the sources; {} where nothing is known."""
        return labels_in(self.stream) or {}

    @property
    def generator(self) -> SavedGenerator | None:
        """The random generator that is drawn from, if there is one."""
        return generator_in(self.stream)

    @property
    def one_to_one(self) -> bool:
        """Whether item n is made of item n below, or of one request (bool)."""
        return covers(self.stream, 'one_to_one', ('get_data',)) and bool(
            self.stream.one_to_one)

    @property
    def keeps_rows(self) -> bool:
        """Whether no example is added, left out or moved within a batch."""
        return self.one_to_one and declares(self.stream, 'keeps_rows')

    @property
    def keeps(self) -> frozenset[str]:
        """What data keep: any of ``'dtype'``, ``'shape'`` and ``'axes'``."""
        keeps = getattr(type(self.stream), 'keeps', None)
        return keeps if isinstance(keeps, frozenset) else frozenset()

    @property
    def draws(self) -> Literal['no', 'by_seed', 'in_order']:
        """Whether it draws, and if by seed and item or by earlier draws."""
        if self.generator is None:
            return 'no'
        return 'by_seed' if getattr(
            self.stream, 'draws_by_seed', False) else 'in_order'

    @property
    def goes_back(self) -> bool:
        """Whether an epoch can go back to items that it had before (bool)."""
        return bool(getattr(self.stream, 'can_go_back', True))

    @property
    def depends_on_data(self) -> bool:
        """Whether what it keeps depends on what it has read (bool)."""
        return not (self.one_to_one or self.passes_items_on)

    @property
    def passes_items_on(self) -> bool:
        """Whether its items are those of its input, as they are (bool)."""
        return bool(getattr(self.stream, 'passes_items_on', False))

    @property
    def most_skipped(self) -> int:
        """How many examples that fail an epoch may leave out; 0 for none."""
        return max([0, *[stage_of(one).most_skipped for one in self.inputs]])

    @property
    def skipped(self) -> Skipped:
        """The examples that the present epoch has left out (Skipped)."""
        return Skipped()

    @property
    def counts_all_items(self) -> bool:
        """Whether it counts the items of all ranks (bool)."""
        return bool(getattr(self.stream, 'counts_all_items', False))

    @property
    def own_shard(self) -> Shard | None:
        """The share that is taken of its own items, if one is."""
        return None

    @property
    def shard(self) -> Shard | None:
        """The share that the pipeline takes, None if it takes all."""
        return self.own_shard or shard_of(self.scheme) or self.shard_of_inputs

    @property
    def shard_of_inputs(self) -> Shard | None:
        """The share that the streams take which it reads, if they do."""
        for stage in map(stage_of, self.inputs):
            if shard := stage.shard:
                return shard
        return None

    @property
    def can_plan(self) -> bool:
        """Whether it can make any of its items from indices (bool)."""
        return bool(getattr(self.stream, 'can_plan', False) and covers(
            self.stream, 'open_plan',
            ('get_data', 'get_leftover', 'get_epoch_iterator')))

    def copy(self) -> Any:
        """Return a copy of the stream, which has no epoch."""
        return copy.copy(self.stream)

    def replace_inputs(self, streams: Sequence[StreamLike]) -> None:
        """Let it read other streams."""
        if self.reads_several:
            self.stream.data_streams = tuple(streams)
        elif streams:
            self.stream.data_stream, = streams

    def mark_as_sought(self) -> None:
        """Prepare a copy whose items are asked for in any order."""

    def take_share(self, shard: Shard) -> None:
        """Take a rank's share of its own items, of which it has a plan."""
        self.stream.sharding = shard

    def share_in_order(self, shard: Shard) -> None:
        """Take a rank's share of its own items, which are read in order."""
        if self.scheme is None:
            raise TypeError(
                f'{self.name} cannot be sharded: it has neither an iteration '
                'scheme nor a stream that it reads')
        self.stream.iteration_scheme = ShardedScheme(self.scheme, shard)

    @property
    def has_plan(self) -> bool:
        """Whether a plan makes its items where ranks share them (bool)."""
        return hasattr(self.stream, 'open_plan')

    def resume_plan(self, leftover: object) -> None:
        """Give a plan what it needs of left-overs that were saved."""
        resume = getattr(self.stream, 'resume_plan', None)
        if resume is not None:
            resume(leftover)

    def split_size(self) -> int | None:
        """Return the size of the batches that ranks can split."""
        split = getattr(self.stream, 'split_size', None)
        return batch_size_of(self.scheme) if split is None else split()

    def num_items(self, of_all: bool = False) -> int | None:
        """Return how many items an epoch of a rank (or all) has, if known."""
        return None

    def length(self) -> int | None:
        """Return how many items a stage above reads, None if not known."""
        return self.num_items()

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""

    def begin(self, epoch: Epoch) -> None:
        """Give a new epoch what belongs to it."""

    def adopt(self, epoch: Epoch, iterator: EpochIterator) -> None:
        """Take an epoch, new or unpickled, for the one made last."""

    def request_conversions(
            self, epoch: Epoch, conversions: Mapping[str, Conversion]) -> None:
        """Ask for the data of some sources in another type, or scaled."""
        request = getattr(self.stream, 'request_conversions', None)
        if request is not None:
            request(epoch, conversions)

    def reader_of(self, epoch: Epoch) -> EpochReader:
        """Return the reader of an epoch, opened by the first call."""
        if epoch.reader is None:
            epoch.reader = self.open(epoch)
        reader: EpochReader = epoch.reader
        return reader

    def open(self, epoch: Epoch) -> EpochReader:
        """Open the reader of an epoch."""
        return self.open_items(epoch)

    def open_items(self, epoch: Epoch) -> EpochReader:
        """Open the reader of all items of an epoch."""
        opener = getattr(self.stream, 'open_reader', None)
        reader: EpochReader | None = None if opener is None else opener(epoch)
        return BoundStageReader(epoch, self.stream) if reader is None else (
            reader)

    def read(self, epoch: Epoch) -> Batch:
        """Return the next item of an epoch."""
        while not epoch.finished:
            number = epoch.requested
            try:
                data = self.reader_of(epoch).read()
            except StopIteration:
                self._finish(epoch)
                raise
            except Exception as error:
                data = self.fail(epoch, number, error)
                if data is error:
                    # It would hold itself, by its traceback.
                    del data
                    raise
                if data is None:
                    continue
            if number in epoch.skipped:
                epoch.count_failure(number)
                continue
            epoch.position += epoch.step
            return data
        raise StopIteration

    def fail(self, epoch: Epoch, number: int, error: Exception) -> Any:
        """Return the error, to be raised; None if the item is left out."""
        if epoch.count_failure(number):
            return None
        error.add_note(
            f'in stage {self.name}, item {epoch.position} of the epoch')
        return error

    def _finish(self, epoch: Epoch) -> None:
        attributes = epoch.attributes
        try:
            end = self.position(epoch)
        except Exception as error:  # noqa: BLE001 (raised if it is wanted)
            end = Unavailable(error)
        epoch.finish(end)
        warn = getattr(self.stream, 'warn_of_empty_epoch', None)
        if warn is not None and not epoch.position:
            warn(attributes)

    def skip(self, epoch: Epoch, count: int) -> None:
        """Skip the next items of an epoch without making them."""
        self.leave_out(epoch, count)
        with self.showing(epoch):
            self.stream.skip(count)

    def leave_out(self, epoch: Epoch, count: int) -> None:
        """Count items of an epoch as delivered."""
        epoch.skip(count)

    def count_items(self, epoch: Epoch) -> int | None:
        """Return how many items an epoch has, if its inputs do not tell."""
        counted = getattr(self.stream, 'count_items', None)
        return None if counted is None else int(counted(epoch))

    def position(self, epoch: Epoch) -> Position | State | Unavailable:
        """Return where an epoch stands, after its end too if data are left."""
        raise self._has_no_position()

    def _has_no_position(self) -> TypeError:
        return TypeError(f'the position of the stream {self.name} cannot be '
                         'saved: derive the class from AbstractDataStream')

    def only_counts(self, epoch: Epoch) -> bool:
        """Return whether nothing but counts changes in its state."""
        return False

    def state(self) -> State:
        """Return its state, without what it is a state of."""
        if not hasattr(self.stream, 'state_dict'):
            raise self._has_no_position()
        return dict(self.stream.state_dict())

    def state_of(self, epoch: Epoch) -> State:
        """Return the state of an epoch, without what it is a state of."""
        return self.state()

    def state_between(self, epoch: str) -> State:
        """Return the state while no epoch is running."""
        return self.state()

    def identify(self, state: State) -> Identified:
        """Return a copy of a state, with what it is a state of."""
        return Identified(*copied_with_text(state))

    def check(self, state: State) -> State:
        """Return a checked copy of the state of the whole pipeline."""
        return state

    def load(self, state: State) -> None:
        """Take up a state that was checked."""
        self.stream.load_state_dict(state)

    def set_generators(self, state: State) -> None:
        """Put generators back, but for those that made left-overs anew."""

    @property
    def has_begun(self) -> bool:
        """Whether an epoch was made (bool)."""
        return False

    @property
    def checks_states(self) -> bool:
        """Whether it checks the states of its whole pipeline (bool)."""
        return False

    @property
    def keeps_leftovers(self) -> bool:
        """Whether it takes up left-overs (bool)."""
        return hasattr(self.stream, 'set_leftover')


def stage_of(stream: object) -> Stage:
    """Return what there is to ask of a stream, which keeps it.

    Subclasses may have skipped every ``__init__``, so none is relied on.
    """
    try:
        stage: Stage = stream.__dict__[KEPT_STAGE]
        if stage.stream is stream:
            return stage
    except (AttributeError, KeyError):
        pass
    return _keep_stage(stream)


def _keep_stage(stream: object) -> Stage:
    """Return a new stage of a stream."""
    stage: Stage = getattr(type(stream), '__fuel_stage__', Stage)(stream)
    try:
        shown = vars(stream)
    except TypeError:
        return stage
    if type(stage) is Stage and is_dataset(stream):
        # It is described as a stream is.
        return stage
    with runtime.lock_of_sources:
        kept = shown.get(KEPT_STAGE)
        if isinstance(kept, Stage) and kept.stream is stream:
            return kept
        # A copy has the stage of another stream, a pickle the state alone.
        stage.pending = kept.pending if isinstance(kept, Stage) else kept
        shown[KEPT_STAGE] = stage
    return stage
