"""The contract of a stage: what the rest of Fuel asks of a stream.

What Fuel's own classes answer is in :mod:`fuel.streams.stage`.
"""
from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, final

from fuel.epochs import runtime
from fuel.epochs.declared import Declared
from fuel.epochs.epoch import Epoch
from fuel.epochs.runtime import KEPT_STAGE
from fuel.epochs.skipped import Skipped
from fuel.epochs.state import (
    FINISHED, NOT_STARTED, RUNNING, Position, without_frames)
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.schemes.iteration_scheme import ShardedScheme, shard_of
from fuel.schemes.shard import Shard
from fuel.typing import Batch, EpochReader, State
from fuel.utils.arguments import is_dataset
from fuel.utils.overrides import is_default, is_original


class Stage(Declared):
    """A stream as Fuel sees it; here any that has StreamLike's members.

    A subclass may override what is not final.
    """

    __slots__ = ()

    @property
    def is_waiting(self) -> bool | None:
        """Whether the epoch made last waits for another process (bool); None
        if no other process or thread makes its items."""
        return None

    @property
    def most_skipped(self) -> int:
        """How many examples that fail an epoch may leave out; 0 for none."""
        return max([0, *[stage_of(one).most_skipped for one in self.inputs]])

    @property
    def skipped(self) -> Skipped:
        """The examples that the present epoch has left out (Skipped)."""
        return Skipped()

    @property
    def state_owner(self) -> Stage | None:
        """The stage whose pipeline a state is of; None if the stream alone
        knows what its state is."""
        return None

    def num_items(self, of_all: bool = False) -> int | None:
        """Return how many items an epoch of a rank (or all) has, if known."""
        return None

    def copy(self, is_sought: bool | None = False) -> Any:
        """Return a copy of the stream, which has no epoch.

        `is_sought`: whether its items are asked for in any order; None if
            they are where that is possible.
        """
        return copy.copy(self.stream)

    def share_in_order(self, shard: Shard) -> None:
        """Take a rank's share of its own items, which are read in order."""
        if self.scheme is None:
            raise TypeError(
                f'{self.name} cannot be sharded: it has neither an iteration '
                'scheme nor a stream that it reads')
        self.stream.iteration_scheme = ShardedScheme(self.scheme, shard)

    def begin(self, epoch: Epoch) -> None:
        """Give a new epoch what belongs to it."""

    def adopt(self, epoch: Epoch, iterator: EpochIterator) -> None:
        """Take an epoch, new or unpickled, for the one made last."""

    def open(self, epoch: Epoch) -> EpochReader:
        """Open the reader of an epoch."""
        return self.open_items(epoch)

    def fail(self, epoch: Epoch, number: int, error: Exception) -> Any:
        """Return the error, to be raised; None if the item is left out."""
        if epoch.count_failure(number):
            return None
        error.add_note(
            f'in stage {self.name}, item {epoch.position} of the epoch')
        return error

    def position(self, epoch: Epoch) -> Position | State | Exception:
        """Return where an epoch stands, after its end too if data are left."""
        raise self._has_no_position()

    def state_of(self, epoch: Epoch) -> State:
        """Return the state of an epoch, without what it is a state of."""
        return self.state_between(FINISHED if epoch.finished else RUNNING)

    def state_between(self, epoch: str) -> State:
        """Return the state while no epoch is running."""
        state = self.own_state()
        if state is None:
            raise self._has_no_position()
        return state

    def load(self, state: State) -> None:
        """Take up a state that was checked."""
        self.stream.load_state_dict(state)

    def set_generators(self, state: State) -> None:
        """Put generators back, but for those that made left-overs anew."""

    @property
    @final
    def is_remote(self) -> bool:
        """Whether other processes or threads make its items (bool)."""
        return self.is_waiting is not None

    @property
    @final
    def own_shard(self) -> Shard | None:
        """The share that is taken of its own items, if one is."""
        if self.is_foreign:
            # Its attributes have meanings of their own.
            return None
        shard = self.stream.sharding
        return shard if isinstance(shard, Shard) else None

    @property
    @final
    def shard(self) -> Shard | None:
        """The share that the pipeline takes, None if it takes all."""
        return _shard_in([self])

    @property
    @final
    def shard_of_inputs(self) -> Shard | None:
        """The share that the streams take which it reads, if they do."""
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
            # Only what deals them knows which items are the rank's.
            self.reader_of(epoch).skip(count)
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
        """Return its state, without what it is a state of."""
        with self.lock:
            if self.pending is not None:
                return self.pending
            if self.epoch is not None:
                return self.state_of(self.epoch)
            self._check_not_started()
            return self.state_between(NOT_STARTED)

    def _check_not_started(self) -> None:
        """Refuse to call an epoch not started that nothing is known of."""
        if self.state_owner is not None and not is_original(
                self.stream, 'get_epoch_iterator') and any(
                    stage_of(child).has_begun for child in self.inputs):
            raise TypeError(
                f'{self.name} overrides get_epoch_iterator() with one that '
                'makes no DataIterator, so its position cannot be told: let '
                'it return super().get_epoch_iterator()')

    def _has_no_position(self) -> TypeError:
        return TypeError(f'the position of the stream {self.name} cannot be '
                         'saved: derive the class from AbstractDataStream')


def _shard_in(stages: list[Stage]) -> Shard | None:
    """Return the first share that is taken in some pipelines, if one is."""
    waiting = stages[::-1]
    while waiting:
        stage = waiting.pop()
        scheme = stage.scheme
        shard = stage.own_shard or (
            None if scheme is None else shard_of(scheme))
        if shard is not None:
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
