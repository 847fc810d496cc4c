"""The stage of Fuel's own streams."""
from __future__ import annotations

from typing import Any
import weakref

from fuel.epochs.omitted import omitted_in
from fuel.epochs.omitting_reader import OmittingReader
from fuel.epochs.past import with_epoch
from fuel.epochs.readers import position_in
from fuel.epochs.shared_draws import (
    NOTHING, find_shared, goes_on, set_shared, shared_states)
from fuel.epochs.state import (
    FINISHED, RUNNING, Position,
    as_state, available, position_of)
from fuel.epochs.epoch import Epoch
from fuel.epochs.skipped import Skipped
from fuel.epochs.stage import Stage, stage_of
from fuel.epochs.state_check import DAMAGE
from fuel.exceptions import BadRecordsError, StateMismatchError
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.schemes.iteration_scheme import scheme_state, shard_of
from fuel.schemes.shard import FoundShard, Shard, share_of
from fuel.sharding.shard_pipeline import check_draws
from fuel.sharding.planned import DealtItems, ItemsInOrder
from fuel.streams.skipping import recover
from fuel.typing import EpochReader, State
from fuel.utils import rng_state
from fuel.utils.overrides import (
    class_hook,
    hook_covers_method,
    is_original,
)


class StreamStage(Stage):
    """The stage of a stream that derives from AbstractDataStream."""

    __slots__ = ()

    def num_items(self, of_all: bool = False) -> int | None:
        """Return the number of items of an epoch; see :meth:`Stage.num_items`.

        `__len__` of a user's class is not called, since it may call this
        method in turn.
        """
        hook = class_hook(type(self.stream), 'num_items')
        count: int | None = None if hook is None else hook(self.stream)
        shard = self.own_shard
        if count is None or shard is None or of_all:
            return count
        return share_of(count, shard)

    @property
    def state_owner(self) -> Stage | None:
        """The stage whose pipeline a saved state describes: this one."""
        return self

    # --- the share of a rank -----------------------------------------------

    @property
    def has_plan(self) -> bool:
        """Whether the stream has a plan, for ranks that share items (bool)."""
        return self.stream.__fuel_plan__ is not None

    @property
    def _is_planned(self) -> bool:
        """Whether a plan makes the rank's items (bool)."""
        return self.own_shard is not None and self.has_plan

    def share_in_order(self, shard: Shard) -> None:
        """Shard the stage's own items, which are read in order."""
        if self.reads_several:
            raise ValueError(
                f'the items of {self.name} are made of streams that can only '
                'be read in order, so ranks would combine other items: shard '
                'those streams instead')
        if self.scheme is not None or self.dataset is None:
            super().share_in_order(shard)
            return
        source = f'the {type(self.dataset).__name__} that {self.name} reads'
        if shard.splits:
            shard.check_split(f'{source} gives', True, None)
        if shard.uneven == 'pad':
            raise ValueError(
                f"uneven='pad' repeats examples from the start of an epoch, "
                f"but {source} is read in order: use uneven='drop'")
        self.shard_own_items(shard)

    # --- an epoch ----------------------------------------------------------

    @property
    def gives_batches(self) -> bool:
        """Whether its items are batches; False if unknown (bool)."""
        try:
            return not self.stream.produces_examples
        except ValueError:
            return False

    def begin(self, epoch: Epoch) -> None:
        """Set the attributes of a new epoch."""
        with self.lock:
            resumed = None if self.pending is None else self.resumed()
            if self.pending is not None:
                epoch.past = self.pending.get('past')
                if resumed:
                    epoch.order_id = resumed.get('order_id')
            elif self.epoch is not None:
                last = self.epoch
                epoch.past = with_epoch(
                    last.past, None if last.finished else last.position)
            else:
                epoch.past = self.past
            if self.omitted:
                epoch.omitted = omitted_in(self.omitted, epoch.past)
            epoch.start, self.start = self.start, None
            if epoch.request_iterator is not None and epoch.start is None:
                # The requests were passed to DataIterator.
                epoch.has_own_requests = True
                epoch.start = TypeError(
                    'the position among requests that were passed to '
                    'DataIterator cannot be saved or restored as plain '
                    f'data: let {self.name}.get_epoch_iterator() make the '
                    'iterator, or pickle the epoch iterator')
                if resumed:
                    available(epoch.start)
            self.take_limit(epoch)
            if resumed:
                self.restore(epoch, resumed)
            elif self.pending is not None and self.pending['rng']:
                # Inputs that go on have drawn again.
                set_shared(self, self.pending)
            self.pending = None
            self.take_over(epoch)
            epoch.shard = shard = self._shard_of_epoch()
            if shard is not None:
                if isinstance(shard, FoundShard):
                    shard.check_world()
                check_draws(self)
                epoch.step = shard.step

    def _shard_of_epoch(self) -> Shard | None:
        """Return the rank's share of a new epoch, None if it is the whole."""
        scheme = self.stream.iteration_scheme
        shard = self.own_shard or (
            None if scheme is None else shard_of(scheme))
        if shard is not None:
            return shard
        shown = vars(self.stream)
        if 'data_stream' in shown:
            iterators = self.iterators
            if len(iterators) == 1 and isinstance(
                    iterators[0], EpochIterator):
                # The epoch of its input has begun.
                below: Shard | None = iterators[0].epoch.shard
                return below
        # A stream of a data set reads no other.
        return None if 'dataset' in shown else self.shard_of_inputs

    def take_limit(self, epoch: Epoch) -> None:
        """Use the limit of left-out examples of the input's epoch, and its
        count of tokens."""
        shown = vars(self.stream)
        child = shown.get('child_epoch_iterator')
        if isinstance(child, EpochIterator):
            epoch.limit = child.epoch.limit
            if child.epoch.step_count is not None:
                if self.one_to_one:
                    epoch.step_count = child.epoch.step_count
                else:
                    child.epoch.step_count.is_passed = True
            if '_step_count' in shown:
                epoch.step_count = shown['_step_count']
            if epoch.limit is not None and self.one_to_one:
                child.epoch.is_inner = True
                epoch.short = child.epoch.short

    def adopt(self, epoch: Epoch, iterator: EpochIterator) -> None:
        """Make an epoch the current one; it is new or was unpickled.

        The stream already has the attributes of a new epoch.
        """
        with self.lock:
            self.epoch = epoch
            self.iterator = weakref.ref(iterator)
            epoch.meter = self.meter
            meter = self.meter
            meter.begin_epoch()
            if not meter.is_placed:
                meter.place(self.gives_batches, tuple(
                    [stage_of(one).meter for one in self.inputs]))

    def open(self, epoch: Epoch) -> EpochReader:
        """Open the reader of an epoch, of the rank's share if it takes one."""
        shard = None if epoch.shard is None else self.own_shard
        reader: EpochReader = self.open_items(epoch) if shard is None else (
            DealtItems(epoch, self.stream, self.stream.__fuel_plan__.open(
                self.stream, epoch)
                if self.has_plan else self.open_in_order(epoch), shard))
        return OmittingReader(self, epoch, reader) if epoch.omitted else reader

    def open_in_order(self, epoch: Epoch) -> ItemsInOrder:
        """Return all items of an epoch, one after another."""
        return ItemsInOrder(self.open_items(epoch))

    def fail(self, epoch: Epoch, number: int, error: Exception) -> Any:
        """Return the rest of an item that failed, or the error to raise."""
        if epoch.limit is not None and number not in epoch.skipped:
            try:
                is_done, rest = recover(self, epoch, number, error)
            except BadRecordsError as too_many:
                super().fail(epoch, number, too_many)
                raise too_many from error
            if is_done:
                return rest
        return super().fail(epoch, number, error)

    @property
    def skipped(self) -> Skipped:
        """The examples that the present epoch has left out (Skipped)."""
        if self.pending is not None:
            own = Skipped.in_state(self.pending, below=False)
        else:
            own = Skipped() if self.epoch is None else (
                self.epoch.left_out)
        for child in self.inputs:
            own = own.with_more(stage_of(child).skipped)
        return own

    def restore(self, epoch: Epoch, state: State) -> None:
        """Move a new epoch to the position of a saved state."""
        epoch.go_to(state['position'], state['requested'], state['failed'])
        if epoch.limit is not None:
            epoch.left_out = Skipped.in_state(state, below=False)
            epoch.limit.restore(epoch.left_out)
        if state['leftover'] is not None:
            try:
                self._take_leftover(state['leftover'])
            except StateMismatchError:
                raise
            except DAMAGE as error:
                raise StateMismatchError(
                    f"the field 'leftover' of the state of stage {self.name} "
                    f'cannot be restored: {error!r:.300}') from error
        if self.scheme is not None or self.reads_several or not (
                is_original(self.stream, 'start_epoch')
                and is_original(self.stream, 'get_epoch_iterator')):
            # Another stage with the same generator may have drawn since.
            self.set_generators(state)
        else:
            self._set_generator(state)

    def _take_leftover(self, leftover: object) -> None:
        """Restore the left-overs of the stream, or those that a plan needs."""
        if self._is_planned:
            self.stream.__fuel_plan__.resume(self.stream, leftover)
        else:
            self.stream.set_leftover(leftover)

    # --- states ------------------------------------------------------------

    def position(self, epoch: Epoch) -> Position | State | Exception:
        """Return the position of an epoch; see :meth:`Stage.position`."""
        if epoch.finished:
            end = epoch.end
            assert end is not None
            return end._replace(stream=self.stream) if isinstance(
                end, Position) else end
        with self.lock:
            self.show(epoch)
            rng = rng_state.generator_in(self.stream)
            start = epoch.start
            data_state = epoch.attributes.get('data_state')
            if epoch.shard is not None and self._is_planned:
                reader: Any = self.reader_of(epoch)
                kept, children = reader.resume_point()
                epoch.is_ahead = True
            else:
                kept = self.stream.get_leftover() if hook_covers_method(
                    type(self.stream), 'get_data', 'get_leftover'
                    ) else self._without_leftover()
                children = self._positions(epoch)
            if epoch.shared is None:
                shown = vars(self.stream)
                # Most stages read one stream, and do not draw.
                epoch.shared = NOTHING if 'dataset' in shown or (
                    rng is None and 'data_stream' in shown
                    and self.stream.iteration_scheme is None
                    ) else find_shared(self)
            requested = epoch.requested
            return Position(
                self.stream, epoch.position, requested, start,
                None if data_state is None
                else self._dataset_position(data_state),
                None if rng is None else rng_state.take_snapshot(rng),
                kept, epoch.failed_after(requested) if (
                    epoch.failed or epoch.skipped) else (), children,
                epoch.left_out, epoch.attributes.get('_first_epochs'),
                () if epoch.shared is NOTHING
                else shared_states(self, epoch.shared))

    def _dataset_position(self, data_state: object) -> object:
        """Return the position in the data set, or the error that it is
        unknown."""
        found = position_in(self.dataset, data_state)
        if found is not None:
            return found
        return TypeError(
            f'get_position(state) of {type(self.dataset).__name__} returned '
            'None, which a saved state has where nothing was opened: return '
            'another value, such as 0, from which open_at(position) goes on')

    def _without_leftover(self) -> TypeError:
        """Return the error that a class has no hook for left-overs."""
        return TypeError(
            f'the position of the stage {self.name} cannot be saved as plain '
            'data, since its get_data may keep things from one call to the '
            'next: give the class the hooks get_leftover() (which may return '
            'None) and set_leftover(leftover), or pickle the epoch iterator '
            'instead')

    def _positions(self, epoch: Epoch,
                   ) -> list[Position | State | Exception]:
        """Return the positions of its inputs that a state holds.

        A stage with left-overs saves an older position of its input. Items
        that have failed since are added to that position, because their
        exceptions were delivered.
        """
        iterators = self.iterators
        position = self.stream.get_child_position()
        positions = (list(map(position_of, iterators)) if position is None
                     else [position])
        for place, (position, child) in enumerate(
                zip(positions, iterators, strict=False)):
            if not isinstance(child, EpochIterator):
                continue
            below: Epoch = child.epoch
            if isinstance(position, Position):
                epoch.is_ahead = (
                    below.requested - position.requested > below.step)
            if not (below.failed or below.skipped):
                continue
            if isinstance(position, Position):
                positions[place] = position._replace(
                    failed=below.failed_after(position.requested))
            elif isinstance(position, dict) and below.failed:
                positions[place] = _with_failures(position, child)
        return positions

    def state_of(self, epoch: Epoch) -> State:
        """Return the state of an epoch, without the fingerprint."""
        if epoch.finished:
            return self.state_between(FINISHED)
        return as_state(self.position(epoch))

    def state_between(self, epoch: str) -> State:
        """Return the state while no epoch is running."""
        scheme, rng = self.scheme, self.generator
        shown = vars(self.stream)
        children = [stage_of(child).state_between(epoch)
                    for child in self.inputs]
        if goes_on(children):
            refusal = find_shared(self).carried
            if refusal is not None:
                raise refusal
        position = (position_in(self.dataset, shown.get('data_state'))
                    if epoch == FINISHED else None)
        last = self.epoch if epoch == FINISHED else None
        return {
            'epoch': epoch,
            'position': 0,
            'requested': 0,
            'scheme': None if scheme is None else scheme_state(scheme),
            'dataset': available(position),
            'rng': None if rng is None else rng_state.get_state(rng),
            'leftover': None,
            'failed': [],
            'children': children,
            **({} if last is None else last.left_out.as_field()),
        }

    def load(self, state: State) -> None:
        """Load a checked state."""
        for child, part in zip(self.inputs, state['children'], strict=True):
            stage_of(child).load(part)
        with self.lock:
            self.pending = state
            self._set_generator(state)
            if state['epoch'] != RUNNING and state['scheme'] is not None:
                self.stream.iteration_scheme.load_state_dict(state['scheme'])

    def set_generators(self, state: State) -> None:
        """Restore the random generators of the stage and of its inputs.

        The inputs of a stage with left-overs are left out: they have made the
        left-overs again since.
        """
        if state['leftover'] is None:
            for child, part in zip(
                    self.inputs, state['children'], strict=True):
                stage_of(child).set_generators(part)
        self._set_generator(state)

    def _set_generator(self, state: State) -> None:
        """Restore the state of the stage's own random generator."""
        saved = state['rng']
        if saved is None:
            return
        if (rng := self.generator) is not None:
            rng_state.set_state(rng, saved)
        set_shared(self, state)


def _with_failures(state: State, child: EpochIterator) -> State:
    """Return a state from another process with the later failures added."""
    reads = child.get_position()['requested'] - state['requested']
    failed = child.epoch.failed_after(child.epoch.requested - reads)
    return {**state, 'failed': sorted({*state['failed'], *failed})}
