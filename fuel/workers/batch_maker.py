"""Makes the batches of epochs, and encodes them for their consumer.

Worker processes, threads, actors and servers make their batches with this
module.  It sends nothing: its caller sends the batches.
"""
from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Generic, NamedTuple, TypeVar

import numpy

from fuel.epochs.pipeline import child_streams, skip
from fuel.epochs.stage import stage_of
from fuel.epochs.state import RUNNING, without_frames
from fuel.epochs.state_delta import Changes, StateDelta, state_of
from fuel.kernels.epoch_iterator import (
    EpochIterator, StageMeter, last_wait)
from fuel.kernels.outputs import Placement, placed
from fuel.profiling.measurements import (
    Path, StageMeasurements, StageSpans, measure_stages, stage_paths,
    take_spans, time_all)
from fuel.transport.slots import (
    Buffers, Extent, Slot, align, detach, write_into)
from fuel.typing import Batch, State, StreamLike
from fuel.workers.global_random import warn_if_drawn
from fuel.utils.remote_errors import pickle_error

Sizes = tuple[int, Sequence[Extent]]
Description = TypeVar('Description')
# Seconds between two reports of the stages' measurements: a report takes 0.2
# ms.
_REPORT_SECONDS = 0.1


class Note(NamedTuple):
    """Measurements of a batch, for the consumer that waited for it.

    `path`: path of the stage that took most of the time; None if unknown.
    `seconds`: time that the batch took.
    `report`: measurements of each stage; None if a report was sent only a
        moment ago.
    `num_ahead`: number of earlier batches that have not reached the user.
    `spans`: times of each item in each stage since the last report; empty
        unless every item is timed.
    """

    path: Path | None
    seconds: float
    report: list[StageMeasurements] | None
    num_ahead: int
    spans: list[StageSpans]


class Made(NamedTuple):
    """A batch, an error instead of one, or the end of an epoch.

    `buffers`: arrays of uint8 that are not in the slot.
    `description`: the encoder's description of a batch.
    `extents`: offset and size of each array in the slot; None unless all
        arrays are in the slot.
    `error`: the error instead of a batch.
    `changes`: changes from the first state of the epoch to the state after the
        item; see :class:`StateDelta`.
    `state`: at the end, the stream's state after the epoch, or the error that
        explains why there is none.
    `is_end`: whether this is the end of the epoch.
    `placement`: the parts of the slot that were offered to the stages.
    `note`: measurements of the batch.
    """

    buffers: Buffers
    description: Any = None
    extents: list[Extent] | None = None
    error: Exception | None = None
    changes: Changes | Exception | None = None
    state: State | Exception | None = None
    is_end: bool = False
    placement: Placement | None = None
    note: Note | None = None

    def as_received(self, *, elsewhere: bool) -> ReceivedItem:
        """Return the item without its arrays, in the form that its consumer
        receives.

        `elsewhere`: whether the consumer is in another process.
        """
        error: Any = self.error
        if elsewhere and error is not None:
            error = pickle_error(error)
        return ReceivedItem(
            self.description, error, pickle_state(self.changes),
            pickle_state(self.state) if self.is_end else None, self.note)


class ReceivedItem(NamedTuple):
    """An item in the form that its consumer receives.

    `data`: the batch, or its description while its arrays have not been
        received.
    `error`: the error instead of a batch.
    `changes`: changes from the first state of the epoch to the state after the
        item, pickled.
    `final`: at the end of the epoch, the state after it, or the error that
        explains why there is none, pickled; None before the end.
    `note`: measurements of the batch.
    """

    data: Any
    error: Any
    changes: bytes
    final: bytes | None
    note: Note | None


class BatchMaker(Generic[Description]):
    """Makes the batches of one epoch of a stream.

    `encode`: function that returns the description of a batch, and its large
        arrays and bytes.
    `state`: checked state from which to resume.  Defaults to None: the
        stream's present state.
    `after`: whether to make the epoch that follows the epoch of `state`.
        Defaults to False.
    `calls`: names of the stream's methods to call before the epoch: reset,
        next_epoch.
    `share`: ``(place, step)``: of every `step` batches, make the one at
        `place`.  Defaults to all batches.
    `expected`: attribute `sizes` of another epoch of the stream.
    `prepare`: function that is called with the epoch iterator before the first
        batch is read.
    `is_exact`: whether to time each item of each stage, and to add a report to
        each batch.
    `base`: state before the first batch, or the error that explains why there
        is none.
    `num_made`: number of batches and errors made.
    `delivered`: number of batches and errors that reached the user; None if
        unknown.
    `waiting`: the last item made, if no slot had room for it: :meth:`next`
        returns it.  None otherwise.
    `sizes`: a tuple of the bytes of a slot that the next batch will probably
        need (0 if it needs no slot), and the offset and size of each array in
        the slot of the last batch.
    `reader`: the consumer's side of the epoch, if it is in this process.
    """

    reader: Any = None

    def __init__(self, stream: Any,
                 encode: Callable[[Batch], tuple[Description, Sequence[Any]]],
                 *, state: State | None = None, after: bool = False,
                 calls: Sequence[str] = (), share: tuple[int, int] = (0, 1),
                 expected: Sizes = (0, ()),
                 prepare: Callable[[Any], None] | None = None,
                 is_exact: bool = False) -> None:
        self.stream = stream
        self._is_exact = is_exact
        time_all(stream, is_exact=is_exact)
        self._paths: dict[StageMeter, Path] | None = None
        self._next_report = 0.
        self._encode = encode
        self._reads_rows = not child_streams(stream)
        self._iterator: Any = open_epoch(stream, state, after, calls)
        self._opened = self._iterator
        self._delta = StateDelta(self._iterator)
        self.base = self._delta.base
        self._first, self._step = share
        self._prepare = prepare
        self.num_made = 0
        self.delivered: int | None = None
        self.waiting: Made | None = None
        self.sizes = expected

    @property
    def num_ahead(self) -> int:
        """Number of items that were sent and have not reached the user; 0 if
        unknown (int)."""
        if self.delivered is None:
            return 0
        return self.num_made - self.delivered - (self.waiting is not None)

    def next(self, slot: Slot | None = None, *,
             is_wanted: bool = True) -> Made:
        """Make the next batch, in `slot` if it is given and has room.

        `is_wanted`: False if nobody will read the batch.  Defaults to True.
        """
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            return waiting if slot is None else self.place(waiting, slot)
        placement = None
        if slot is not None and self.sizes[1]:
            placement = Placement(
                slot.bytes, self.sizes[1], self._reads_rows)
        try:
            with nullcontext() if placement is None else placed(placement):
                batch = self._next_batch()
            if not is_wanted:
                self.num_made += 1
                return Made([])
            description, encoded = self._encode(batch)
            del batch
        except StopIteration:
            return self._end(placement)
        except Exception as error:  # noqa: BLE001 - raised by the reader
            return self._fail(error, placement)
        buffers = [part if isinstance(part, numpy.ndarray)
                   else numpy.frombuffer(part, numpy.uint8)
                   for part in encoded]
        del encoded
        made = Made(buffers, description,
                    changes=self._delta.changes(self._iterator),
                    placement=placement, note=self._note())
        self.num_made += 1
        if not made.buffers:
            self.sizes = 0, self.sizes[1]
            return made
        return self._place_in(slot, made)

    def place(self, made: Made, slot: Slot) -> Made:
        """Move a batch that is not in a slot into `slot`, if that has room for
        it."""
        return self._place_in(slot, made._replace(placement=None))

    def _place_in(self, slot: Slot | None, made: Made) -> Made:
        buffers, placement = made.buffers, made.placement
        need = sum(align(buffer.nbytes) for buffer in buffers)
        extents = None
        if slot is not None:
            extents = write_into(slot, buffers, placement, self.sizes[1])
        if slot is None or extents is None:
            self.sizes = need, self.sizes[1]
            detach(buffers, placement)
            return made
        self.sizes = need, extents
        buffers.clear()
        if placement is not None and not placement.is_free():
            # A stage keeps an array that it returned, so the slot must not
            # change.
            buffers.extend(slot.bytes[offset:offset + size].copy()
                           for offset, size in extents)
            return made
        return made._replace(extents=extents)

    def _fail(self, error: Exception, placement: Placement | None) -> Made:
        self.num_made += 1
        return Made([], error=error,
                    changes=self._delta.changes(self._iterator),
                    placement=placement)

    def _is_last(self) -> bool:
        """Return whether this epoch is the latest that the stream has
        begun."""
        return not isinstance(self._opened, EpochIterator) or (
            stage_of(self.stream).epoch is self._opened.epoch)

    def _note(self, *, is_last: bool = False) -> Note:
        """Return the measurements of the batch that this thread made last."""
        if self._paths is None:
            self._paths = stage_paths(self.stream)
        slowest, seconds = last_wait()
        path = None if slowest is None else self._paths.get(slowest)
        if slowest is not None and path is not None:
            path += slowest.cause or ()
        report, now = None, time.monotonic()
        spans: list[StageSpans] = []
        if self._is_exact or is_last or now >= self._next_report:
            self._next_report = now + _REPORT_SECONDS
            report = measure_stages(self.stream)
            # Take the spans only while this epoch is timed: the stream may
            # have spans of other epochs.
            spans = take_spans(self.stream) if self._is_exact else []
        return Note(path, seconds, report, self.num_ahead, spans)

    def _next_batch(self) -> Batch:
        prepare, self._prepare = self._prepare, None
        if prepare is not None:
            prepare(self._iterator)
        if self._step > 1:
            skip(self._iterator,
                 self._step - 1 if self.num_made else self._first)
        # Watching one batch of one worker is enough.
        is_watched = self._first == 1 and not self.num_made
        with warn_if_drawn() if is_watched else nullcontext():
            batch: Batch = next(self._iterator)
        return batch

    def _end(self, placement: Placement | None) -> Made:
        state: State | Exception
        try:
            # The stream's own state is the state of its latest epoch.
            state = (stage_of(self.stream).state()
                     if self._is_last() else state_of(self._opened))
        except Exception as error:  # noqa: BLE001 - raised if it is wanted
            state = without_frames(error)
        return Made([], state=state, is_end=True, placement=placement,
                    note=self._note(is_last=True))


class RunningEpochs(Generic[Description]):
    """The unfinished epochs of one stream, by their numbers.

    `stream`: the stream, which only one thread may read at a time.
    `encode`: see :class:`BatchMaker`.
    """

    def __init__(self, stream: StreamLike,
                 encode: Callable[[Batch], tuple[Description, Sequence[Any]]],
                 ) -> None:
        self.stream = stream
        self._encode = encode
        self._makers: dict[int, BatchMaker[Description]] = {}
        self._newest = 0
        # Attribute `sizes` of the latest epoch that is over or left.
        self._sizes: Sizes = 0, ()
        # Number of the epoch that the stream ended last, and number of the
        # items of that epoch. None if the latest epoch has not ended.
        self._stands_after: tuple[int, int] | None = None

    def open(self, number: int, *, state: State | None = None,
             after: bool = False, follows: tuple[int, int] | None = None,
             **options: Any) -> BatchMaker[Description]:
        """Begin an epoch, and return its maker; `options` are those of
        :class:`BatchMaker`.

        `follows`: number of the epoch of `state`, and number of its items that
            were delivered.
        """
        newest = self.get(self._newest)
        if after and follows is not None and follows == self._stands_after:
            # The stream is at that state already.
            state = None
        self._newest, self._stands_after = number, None
        # The sizes of its batches will probably be those of the epoch before.
        maker = self._makers[number] = BatchMaker(
            self.stream, self._encode, state=state, after=after,
            expected=self._sizes if newest is None else newest.sizes,
            **options)
        return maker

    def open_for_another(self, number: int, options: bytes,
                         ) -> tuple[bool, bytes]:
        """Begin an epoch for a reader in another process.

        Returns: whether the epoch failed to begin, and its first state or the
        error, pickled.
        """
        try:
            maker = self.open(number, **pickle.loads(options))
        except Exception as error:  # noqa: BLE001 - raised by the consumer
            return True, pickle_error(error)
        return False, pickle_state(maker.base)

    def get(self, number: int) -> BatchMaker[Description] | None:
        """Return the maker of an epoch, None if it is over or left."""
        return self._makers.get(number)

    def in_turn(self) -> list[tuple[int, BatchMaker[Description]]]:
        """Return the numbers and the makers of the epochs, in the order of
        their turns."""
        return list(self._makers.items())

    def make(self, number: int, slot: Slot | None = None, *,
             is_wanted: bool = True) -> Made:
        """Make the next item of an epoch; remove the epoch at its end."""
        maker = self._makers[number]
        made = maker.next(slot, is_wanted=is_wanted)
        if made.is_end:
            self.leave(number)
            if number == self._newest:
                self._stands_after = number, maker.num_made
        return made

    def with_room(self, most: int,
                  ) -> list[tuple[int, BatchMaker[Description]]]:
        """Return the numbers and the makers of the epochs that have fewer than
        `most` items ahead of the user."""
        return [(number, maker) for number, maker in self.in_turn()
                if maker.num_ahead < most]

    def postpone(self, number: int) -> None:
        """Move an epoch behind the other epochs, so that their items are made
        first."""
        if len(self._makers) > 1:
            self._makers[number] = self._makers.pop(number)

    def count_delivered(self, number: int, count: int) -> None:
        """Record how many items of an epoch have reached the user."""
        maker = self._makers.get(number)
        if maker is not None:
            maker.delivered = count

    def leave(self, number: int) -> None:
        """Remove an epoch, so that no more of its items are made."""
        maker = self._makers.pop(number, None)
        if maker is not None:
            self._sizes = maker.sizes


def open_epoch(stream: StreamLike, state: State | None = None,
               after: bool = False, calls: Sequence[str] = ()) -> Any:
    """Load a state, call the methods `calls` of a stream, and return an
    iterator of its next epoch.

    `after`: whether to skip the rest of the epoch that `state` is in.
    Defaults to False.
    """
    if state is not None:
        stage_of(stream).load(state)
        if after and state['epoch'] == RUNNING:
            # The epoch of the state was left: begin it, and make the next one.
            stream.get_epoch_iterator()
    for name in calls:
        getattr(stream, name)()
    return stream.get_epoch_iterator()


def pickle_state(state: object) -> bytes:
    """Return a state, or the error that explains why there is none,
    pickled."""
    try:
        return pickle.dumps(state)
    except Exception:  # noqa: BLE001 - pickling runs any code
        return pickle.dumps(TypeError(str(state)))
