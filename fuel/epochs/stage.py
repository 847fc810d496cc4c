"""Interface of a stage: all members of a stream that the rest of Fuel uses.

The subclass for Fuel's own streams is in :mod:`fuel.streams.stage`.
"""
from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal, final

from fuel.epochs import runtime
from fuel.epochs.epoch import Epoch
from fuel.epochs.runtime import KEPT_STAGE, Runtime
from fuel.epochs.skipped import Skipped
from fuel.epochs.state import (
    FINISHED, NOT_STARTED, RUNNING, Position, without_frames)
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.kernels.stage_reader import BoundStageReader
from fuel.schemes.iteration_scheme import ShardedScheme, shard_of
from fuel.schemes.shard import Shard, WholeShare
from fuel.typing import (
    AxisLabels, Batch, DatasetLike, EpochReader, SchemeLike, State,
    StreamLike)
from fuel.utils.arguments import is_dataset, labels_in
from fuel.utils.overrides import covers, declares, is_default, is_original
from fuel.utils.rng_state import SavedGenerator, generator_in

#: Result of a reader that has left out items, and has read none.
LEFT_OUT: Any = object()


class Stage(Runtime):
    """A stream as the rest of Fuel sees it.

    This base class serves any stream with the members of StreamLike. A
    subclass may override the members that are not final. Only stages use
    members that some streams lack, and only they check whether a stream's
    class overrides a method.
    """

    __slots__ = ()

    @property
    def is_waiting(self) -> bool | None:
        """Whether the epoch that was made last waits for another process
        (bool); None if no other process or thread makes its items."""
        return None

    @property
    def most_skipped(self) -> int:
        """Number of failing examples that an epoch may skip (int)."""
        return max([0, *[stage_of(one).most_skipped for one in self.inputs]])

    @property
    def skipped(self) -> Skipped:
        """The examples that the present epoch has left out (Skipped)."""
        return Skipped()

    @property
    def state_owner(self) -> Stage | None:
        """The stage to whose pipeline a state belongs; None if the stream
        makes and restores its state itself."""
        return None

    def num_items(self, of_all: bool = False) -> int | None:
        """Return the number of items of an epoch; None if not known.

        `of_all`: whether to count the items of all ranks, not of one rank.
        """
        return None

    def copy(self, is_sought: bool | None = False) -> Any:
        """Return a copy of the stream that has no epoch.

        `is_sought`: whether the items of the copy are read in any order; None
            if they are read in any order where that is possible.
        """
        return copy.copy(self.stream)

    def share_in_order(self, shard: Shard) -> None:
        """Shard the stage's own items, which are read in order."""
        if self.scheme is None:
            raise TypeError(
                f'{self.name} cannot be sharded: it has neither an iteration '
                'scheme nor a stream that it reads')
        self.stream.iteration_scheme = ShardedScheme(self.scheme, shard)

    def begin(self, epoch: Epoch) -> None:
        """Set the attributes of a new epoch."""

    def adopt(self, epoch: Epoch, iterator: EpochIterator) -> None:
        """Record an epoch, new or unpickled, as the one made last."""

    def open(self, epoch: Epoch) -> EpochReader:
        """Open the reader of an epoch."""
        return self.open_items(epoch)

    def fail(self, epoch: Epoch, number: int, error: Exception) -> Any:
        """Return the error to be raised for a failed item; None if the item
        is left out.

        `number`: number of the read that failed.
        """
        if epoch.count_failure(number):
            return None
        error.add_note(
            f'in stage {self.name}, item {epoch.position} of the epoch')
        return error

    def position(self, epoch: Epoch) -> Position | State | Exception:
        """Return the position of an epoch.

        After the epoch has ended, it is the position at the end, with the
        left-overs if there are any.
        """
        raise self._has_no_position()

    def state_of(self, epoch: Epoch) -> State:
        """Return the state of an epoch, without the fingerprint."""
        return self.state_between(FINISHED if epoch.finished else RUNNING)

    def state_between(self, epoch: str) -> State:
        """Return the state while no epoch is running.

        `epoch`: value of the state's field 'epoch'.
        """
        state = self.own_state()
        if state is None:
            raise self._has_no_position()
        return state

    def load(self, state: State) -> None:
        """Load a checked state."""
        self.stream.load_state_dict(state)

    def set_generators(self, state: State) -> None:
        """Restore the states of generators, except of generators that have
        drawn since, to make left-overs again."""

    # --- declarations of its class and attributes ----------------------------
    @property
    @final
    def name(self) -> str:
        """The name of the class (str)."""
        return type(self.stream).__name__

    @property
    @final
    def inputs(self) -> tuple[StreamLike, ...]:
        """The streams that are read (tuple); () for a stream of a data
        set."""
        several = getattr(self.stream, 'data_streams', None)
        if several is not None:
            return tuple(several)
        one: StreamLike | None = getattr(self.stream, 'data_stream', None)
        return () if one is None else (one,)

    @property
    @final
    def reads_several(self) -> bool:
        """Whether its class reads a tuple of streams (bool)."""
        return hasattr(self.stream, 'data_streams')

    @property
    @final
    def iterators(self) -> list[Any]:
        """The epoch iterators of its inputs that are attributes of the stream
        (list)."""
        several = getattr(self.stream, 'child_epoch_iterators', None)
        if several is not None:
            return list(several)
        one = getattr(self.stream, 'child_epoch_iterator', None)
        return [] if one is None else [one]

    @property
    @final
    def scheme(self) -> SchemeLike | None:
        """The iteration scheme, None if there is none."""
        scheme: SchemeLike | None = getattr(
            self.stream, 'iteration_scheme', None)
        return scheme

    @property
    @final
    def dataset(self) -> DatasetLike | None:
        """The data set that is read, None if there is none."""
        dataset: DatasetLike | None = getattr(self.stream, 'dataset', None)
        return dataset

    @property
    @final
    def labels(self) -> AxisLabels:
        """The axis labels of the sources; {} if none are known."""
        return labels_in(self.stream) or {}

    @property
    @final
    def generator(self) -> SavedGenerator | None:
        """The random generator that the stage draws from, None if there is
        none."""
        return generator_in(self.stream)

    @property
    @final
    def one_to_one(self) -> bool:
        """Whether item n is made from item n of the input, or from request n
        (bool)."""
        return covers(self.stream, 'one_to_one', ('get_data',)) and bool(
            self.stream.one_to_one)

    @property
    @final
    def keeps_rows(self) -> bool:
        """Whether a batch has the examples of its input's batch, in the same
        order (bool)."""
        return self.one_to_one and declares(self.stream, 'keeps_rows')

    @property
    @final
    def keeps(self) -> frozenset[str]:
        """Properties of the data that the stage keeps: a subset of 'dtype',
        'shape' and 'axes' (frozenset)."""
        keeps = frozenset() if type(self) is Stage else type(self.stream).keeps
        return keeps if isinstance(keeps, frozenset) else frozenset()

    @property
    @final
    def draws(self) -> Literal['no', 'by_seed', 'in_order']:
        """The way in which the stage draws at random: not at all, from the
        seed and the number of the item, or from a generator in order."""
        if generator_in(self.stream) is None:
            return 'no'
        return 'in_order' if type(self) is Stage or not (
            self.stream.__fuel_draws_by_seed__) else 'by_seed'

    @property
    @final
    def goes_back(self) -> bool:
        """Whether an epoch can read items again that it has passed (bool)."""
        plan = self.plan
        return plan is None or bool(plan.goes_back(self.stream))

    @property
    @final
    def depends_on_data(self) -> bool:
        """Whether the left-overs of the stage may depend on the data that it
        has read (bool)."""
        return not (self.one_to_one or self.passes_items_on)

    @property
    @final
    def passes_items_on(self) -> bool:
        """Whether the stage delivers the items of its input unchanged
        (bool)."""
        return type(self) is not Stage and bool(self.stream.__fuel_passes_on__)

    @property
    @final
    def is_foreign(self) -> bool:
        """Whether it is a stream of a class that is not Fuel's (bool)."""
        return type(self) is Stage

    @property
    @final
    def plan(self) -> Any:
        """The class of plans that make any item of the stage from its number;
        None if there is none."""
        return None if type(self) is Stage else self.stream.__fuel_plan__

    @property
    @final
    def keeps_leftovers(self) -> bool:
        """Whether it restores left-overs (bool)."""
        return not (type(self) is Stage or is_default(
            self.stream, 'set_leftover'))

    @property
    @final
    def counts_epochs(self) -> bool:
        """Whether states between two epochs have left-overs too (bool)."""
        return type(self) is not Stage and bool(self.stream.__fuel_counts__)

    @property
    @final
    def has_begun(self) -> bool:
        """Whether an epoch was made (bool)."""
        return self.epoch is not None

    @final
    def replace_inputs(self, streams: Sequence[StreamLike]) -> None:
        """Replace the streams that it reads."""
        if self.reads_several:
            self.stream.data_streams = tuple(streams)
        elif streams:
            self.stream.data_stream, = streams

    @final
    def shard_own_items(self, shard: Shard) -> None:
        """Let the stage's plan make only a rank's share of the items."""
        self.stream.sharding = shard

    @final
    def seek_own_items(self) -> None:
        """Let the stage's plan make any of its items, for the stage above."""
        if self.one_to_one:
            # A mixture, whose streams can now be sought.
            self.stream.is_sought = True
        else:
            self.shard_own_items(WholeShare(0, 1))

    @final
    def only_counts(self, epoch: Epoch) -> bool:
        """Return whether the stage's state changes only in counts within an
        epoch.

        This is so if the stage draws nothing, and its epoch has no left-overs,
        no position in the data set and no attributes of its own.
        """
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
        reader: EpochReader | None = None if type(self) is Stage else (
            type(stream).open_reader(stream, epoch))
        return BoundStageReader(epoch, stream) if reader is None else reader

    @final
    def own_state(self) -> State | None:
        """Return the result of the stream's own `state_dict()`; None if it
        has no such method."""
        if not hasattr(self.stream, 'state_dict'):
            return None
        return dict(self.stream.state_dict())

    # --- its epochs ----------------------------------------------------------

    @property
    @final
    def is_remote(self) -> bool:
        """Whether other processes or threads make its items (bool)."""
        return self.is_waiting is not None

    @property
    @final
    def own_shard(self) -> Shard | None:
        """The share that a rank takes of this stage's own items; None if it
        takes all."""
        if type(self) is Stage:
            # An attribute of that name may mean something else there.
            return None
        shard = self.stream.sharding
        return shard if isinstance(shard, Shard) else None

    @property
    @final
    def is_sought(self) -> bool:
        """Whether a plan makes any of its items, for the stage that reads it
        (bool)."""
        return isinstance(self.own_shard, WholeShare)

    @property
    @final
    def shard(self) -> Shard | None:
        """The share that the rank's pipeline takes; None if it takes all
        items."""
        return _shard_in([self])

    @property
    @final
    def shard_of_inputs(self) -> Shard | None:
        """The share that the stage's input streams take; None if they take
        all items."""
        inputs = self.inputs
        return _shard_in(list(map(stage_of, inputs))) if inputs else None

    @final
    def reader_of(self, epoch: Epoch) -> EpochReader:
        """Return the reader of an epoch, opened by the first call."""
        if epoch.reader is None:
            epoch.reader = self.open(epoch)
        reader: EpochReader = epoch.reader
        return reader

    @final
    def read(self, epoch: Epoch) -> Batch:
        """Return the next item of an epoch."""
        while not epoch.finished:
            number = epoch.requested
            try:
                data = self.reader_of(epoch).read()
                if data is LEFT_OUT:
                    continue
                if data is None and self.inputs:
                    raise self._returned_none()
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

    def _returned_none(self) -> TypeError:
        sources = tuple(self.stream.sources)
        return TypeError(
            f'the stage {self.name} returned None, where a tuple of '
            f'{len(sources)} is expected, one part for each of the sources '
            f'{sources}: end its method with return, also where it changes '
            'the data in place')

    def _finish(self, epoch: Epoch) -> None:
        try:
            end = self.position(epoch)
        except Exception as error:  # noqa: BLE001 (raised if it is wanted)
            end = without_frames(error)
        epoch.finish(end)

    @final
    def end_unread(self, epoch: Epoch) -> None:
        """End an epoch whose items are not read, as if all had been read."""
        self._finish(epoch)

    @final
    def skip(self, epoch: Epoch, count: int) -> None:
        """Skip the next items of an epoch without making them."""
        if epoch.counted is not None:
            epoch.skip(count)
            for below in epoch.counted:
                below.skip(count)
            return
        is_dealt = self.own_shard is not None
        if not is_dealt:
            epoch.skip(count)
        elif not epoch.finished:
            # Only the reader that deals them knows which items are the rank's.
            self.reader_of(epoch).skip(count)
        if self.is_sought:
            # Its plan seeks the items that it reads.
            return
        if not is_default(self.stream, 'skip'):
            with self.showing(epoch):
                self.stream.skip(count)
            return
        children = children_of(epoch)
        for child in children:
            stage_of(child.data_stream).skip(child.epoch, count)
        if not is_dealt:
            epoch.count_below(children)

    @final
    def state(self) -> State:
        """Return the state of the stage, without the fingerprint."""
        with self.lock:
            if self.pending is not None:
                return self.pending
            if self.epoch is not None:
                return self.state_of(self.epoch)
            self._check_not_started()
            return self.state_between(NOT_STARTED)

    def _check_not_started(self) -> None:
        """Raise TypeError if an epoch may have started without this stage's
        knowledge."""
        if self.state_owner is not None and not is_original(
                self.stream, 'get_epoch_iterator') and any(
                    stage_of(child).has_begun for child in self.inputs):
            raise TypeError(
                f'{self.name} overrides get_epoch_iterator() with one that '
                'makes no DataIterator, so its position is not known: let '
                'it return super().get_epoch_iterator()')

    def _has_no_position(self) -> TypeError:
        return TypeError(f'the position of the stream {self.name} cannot be '
                         'saved: derive the class from AbstractDataStream')


def _shard_in(stages: list[Stage]) -> Shard | None:
    """Return the first share that a stage of these pipelines takes; None if
    all items are taken."""
    waiting = stages[::-1]
    while waiting:
        stage = waiting.pop()
        scheme = stage.scheme
        shard = stage.own_shard or (
            None if scheme is None else shard_of(scheme))
        if shard is not None and not isinstance(shard, WholeShare):
            return shard
        waiting += map(stage_of, reversed(stage.inputs))
    return None


def children_of(epoch: Epoch) -> Sequence[Any]:
    """Return the iterators that an epoch reads."""
    kept = epoch.attributes
    if 'child_epoch_iterators' in kept:
        found: Sequence[Any] = kept['child_epoch_iterators']
        return found
    child = kept.get('child_epoch_iterator')
    return [] if child is None else [child]


def stage_of(stream: object) -> Stage:
    """Return the stage of a stream; the stream keeps it.

    It works without any ``__init__``, which a subclass may not have called.
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
    kind: Any = type(stream)
    try:
        stage: Stage = kind.__fuel_stage__(stream)
    except AttributeError:
        # A foreign stream.
        stage = Stage(stream)
    try:
        shown = vars(stream)
    except TypeError:
        return stage
    if type(stage) is Stage and is_dataset(stream):
        # A data set may be described in the same way as a stream.
        return stage
    with runtime.lock_of_sources:
        kept = shown.get(KEPT_STAGE)
        if isinstance(kept, Stage) and kept.stream is stream:
            return kept
        # A copy has the stage of another stream, a pickle the state alone, or
        # the epochs that were begun.
        if isinstance(kept, tuple):
            # Older pickles have less.
            kept, stage.omitted, *more = kept
            stage.accepted, *built = more or [()]
            stage.built_omitted, = built or [stage.omitted]
            if kept is None:
                # It is not known which epochs were begun.
                stage.past = None
        if isinstance(kept, Stage):
            stage.pending, stage.accepted = kept.pending, kept.accepted
            stage.omitted = kept.omitted
            stage.built_omitted = kept.built_omitted
            stage.past = kept.past if kept.epoch is None else (
                kept.past_epochs())
        elif isinstance(kept, str):
            stage.past = kept
        else:
            stage.pending = kept
        shown[KEPT_STAGE] = stage
    return stage
