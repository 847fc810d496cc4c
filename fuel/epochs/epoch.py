"""One epoch of a stream: its position and the attributes it owns."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fuel.epochs.counters import Counter
from fuel.epochs.pipeline import child_iterators
from fuel.epochs.read_options import ReadOptions
from fuel.epochs.runtime import lock_of
from fuel.epochs.sharding import open_items, open_share, shares_items
from fuel.epochs.state import Position, dataset_position, leftover
from fuel.kernels.epoch_iterator import EpochPosition
from fuel.kernels.epoch_reader import new_object
from fuel.schemes.iterator_requests import as_requests
from fuel.typing import EpochReader, State
from fuel.utils import rng_state


# What an epoch holds where compiled code finds it.
_COMPILED = 'position', 'step', 'attributes', 'skipped'


class Epoch(EpochPosition):
    """One epoch: how far it has come, and what the stream keeps for it.

    `position`: how many batches or examples were delivered.
    `reader`: what reads the data, opened at the first read.
    `request_iterator`: the requests; their `position` says how many were made.
    `finished`: whether :class:`StopIteration` was raised.
    `end`: where the epoch stood when it finished, or why that is not known.
    `start`: state of the iteration scheme when the epoch began, or the
        exception that says why there is none.
    `options`: wishes of the stages above.
    `failed`: numbers of the reads whose exceptions were delivered.
    `counters`: the stages below, if nothing of their states changes but
        counts; found when a state is saved.
    """

    # Whether the requests are not those of the stream's scheme.
    has_own_requests = False

    def __init__(self, request_iterator: Iterator[Any] | None) -> None:
        self.request_iterator = (
            None if request_iterator is None
            else as_requests(request_iterator))
        self.finished = False
        self.end: Any = None
        self.start: Any = None
        self.options = ReadOptions()
        self.failed: list[int] = []
        self._num_failed = 0
        self.counters: list[Counter] | None = None

    def __reduce__(self) -> Any:
        return new_object, (type(self),), {
            **vars(self), **{name: getattr(self, name) for name in _COMPILED},
            'counters': None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    @property
    def requested(self) -> int:
        """How many reads were made, with those that failed (int)."""
        if self.request_iterator is not None:
            return self.request_iterator.position
        return self.position + self._num_failed

    @property
    def converted(self) -> frozenset[str]:
        """The sources that the reader converts, as `options` ask."""
        converted: frozenset[str] = getattr(
            self.reader, 'converted', frozenset())
        return converted

    def go_to(self, position: int, requested: int, failed: list[int]) -> None:
        """Take up a saved position; the requests are there already."""
        self.position = position
        self._num_failed = requested - position
        self.skipped = {requested + offset for offset in failed}

    def skip(self, stream: Any, count: int) -> None:
        """Count items as delivered that are left out."""
        if shares_items(stream) and hasattr(stream, 'open_plan'):
            # Only the plan knows which items are the rank's.
            self.open_reader(stream).skip(count)
            return
        self.position += count * self.step
        if self.request_iterator is not None:
            self.request_iterator.skip(count)

    def advance(self, stream: Any) -> Any:
        """Return the next data of the epoch."""
        if self.finished:
            raise StopIteration
        while True:
            number = self.requested
            try:
                data = self.open_reader(stream).read()
            except StopIteration:
                attributes = self.attributes
                self._finish(stream)
                if not self.position and hasattr(
                        stream, 'warn_of_empty_epoch'):
                    stream.warn_of_empty_epoch(attributes)
                raise
            except Exception as error:
                if self._count_failure(number):
                    continue
                error.add_note(f'in stage {type(stream).__name__}, '
                               f'item {self.position} of the epoch')
                raise
            if number in self.skipped:
                self._count_failure(number)
                continue
            self.position += self.step
            return data

    def open_reader(self, stream: Any) -> EpochReader:
        """Return the reader of the epoch, opened by the first call."""
        if self.reader is None:
            self.reader = (open_share if shares_items(stream)
                           else open_items)(stream, self)
        return self.reader

    def _count_failure(self, number: int) -> bool:
        """Record a read whose exception is delivered, or was before."""
        if self.request_iterator is None:
            self._num_failed += self.step
        elif self.request_iterator.position == number:
            # The scheme failed: there was no request.
            return False
        self.failed.append(number)
        was_delivered = number in self.skipped
        self.skipped.discard(number)
        return was_delivered

    def _finish(self, stream: Any) -> None:
        try:
            # Without the stream, which holds this epoch: no cycle.
            self.end = self.get_position(stream)._replace(stream=None)
        except Exception as error:  # noqa: BLE001 (raised if it is wanted)
            self.end = error.with_traceback(None)
        self.finished, self.counters = True, None
        self.drop_prefetched()
        # The stream goes on showing the last values.  Let go of the child's
        # iterator here, so that its epoch counts as left; the data set's
        # state is wanted by the next epoch.
        self.attributes = {name: value
                           for name, value in self.attributes.items()
                           if name == 'data_state'}

    def drop_prefetched(self) -> None:
        """Close the reader, which may hold a file or prefetched data."""
        reader, self.reader = self.reader, None
        if reader is not None:
            reader.close()

    def bind(self, stream: Any) -> None:
        """Make the stream show this epoch's attributes."""
        vars(stream).update(self.attributes)

    def unbind(self, stream: Any) -> None:
        """Take over what the stream shows."""
        names = getattr(stream, 'epoch_attributes', ())
        present = vars(stream)
        self.attributes = {
            name: present[name] for name in names if name in present}

    def get_position(self, stream: Any) -> Any:
        """Return where the epoch stands; see :class:`Position`.

        A stage may ask after the end: it has data left that it made of the
        last ones.
        """
        if hasattr(stream, '_epoch_position'):
            # The epoch is made in another process.
            return stream._epoch_position(self)
        if self.finished:
            return (self.end if isinstance(self.end, Exception)
                    else self.end._replace(stream=stream))
        if not hasattr(stream, '_child_positions'):
            raise TypeError(
                f'the position of the stream {type(stream).__name__} cannot '
                'be saved: derive the class from AbstractDataStream')
        with lock_of(stream):
            self.bind(stream)
            rng = getattr(stream, 'rng', None)
            kept, children = self._standing(stream)
            return Position(
                stream, self.position, self.requested, self.start,
                dataset_position(stream, self.attributes),
                rng_state.take_snapshot(rng) if rng_state.is_generator(rng)
                else None,
                kept, self._failed_after(self.requested), children)

    def _standing(self, stream: Any) -> tuple[Any, list[Any]]:
        """Return the stage's left-overs, and where its children stand."""
        if hasattr(stream, 'open_plan') and shares_items(stream):
            reader: Any = self.open_reader(stream)
            standing: tuple[Any, list[Any]] = reader.standing()
            return standing
        return leftover(stream), _positions_of_children(stream)

    def _failed_after(self, requested: int) -> tuple[int, ...]:
        """Return the failed reads from a number on, counted from there."""
        if not self.failed and not self.skipped:
            return ()
        return tuple([number - requested
                      for number in {*self.failed, *self.skipped}
                      if number >= requested])


def _positions_of_children(stream: Any) -> list[Any]:
    """Return the positions of a stage's children that a state holds.

    A stage with left-overs has an older one of its child.  What failed since
    is added to it: its exception was delivered.
    """
    positions = list(stream._child_positions())
    for place, (position, child) in enumerate(
            zip(positions, child_iterators(stream), strict=False)):
        epoch = getattr(child, 'epoch', None)
        if not isinstance(epoch, Epoch) or not (
                epoch.failed or epoch.skipped):
            continue
        if isinstance(position, Position):
            positions[place] = position._replace(
                failed=epoch._failed_after(position.requested))
        elif isinstance(position, dict) and epoch.failed:
            positions[place] = _with_failures(position, child)
    return positions


def _with_failures(state: State, child: Any) -> State:
    """Add what failed since then to a state from another process."""
    reads = child.get_position()['requested'] - state['requested']
    failed = child.epoch._failed_after(child.epoch.requested - reads)
    return {**state, 'failed': sorted({*state['failed'], *failed})}
