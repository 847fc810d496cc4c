"""Makes the batches of epochs, encoded, and placed where they are read.

Processes, threads, actors and servers make their epochs here. None of it
knows a channel: whoever calls it sends what was made.
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
# Seconds between two reports of what the stages took: one takes 0.2 ms.
_REPORT_SECONDS = 0.1


class Note(NamedTuple):
    """Measurements of a batch, for the consumer that waited for it.

    `path`: to the stage that took most of the time; None if unknown.
    `seconds`: time that the batch took.
    `report`: measurements of each stage; None if they were sent just now.
    `num_ahead`: number of earlier batches that have not reached the user.
    `spans`: times of each item in each stage since the last report, if every
        item is timed.
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
    `extents`: offset and size in the slot of each array, if they all are
        there.
    `error`: the error instead of a batch.
    `changes`: difference of the state from the first; see :class:`StateDelta`.
    `state`: at the end: the stream's state after the epoch, or why it has
        none.
    `is_end`: whether this is the end.
    `placement`: the parts of the slot that the stages were offered.
    `note`: its measurements.
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
        """Return all but the arrays.

        `elsewhere`: whether the consumer is in another process.
        """
        error: Any = self.error
        if elsewhere and error is not None:
            error = pickle_error(error)
        return ReceivedItem(
            self.description, error, pickle_state(self.changes),
            pickle_state(self.state) if self.is_end else None, self.note)


class ReceivedItem(NamedTuple):
    """An item that was made, as its consumer receives it.

    `data`: a batch; its description alone until the arrays have come.
    `error`: the error instead of a batch.
    `changes`: difference of the state from the first, pickled.
    `final`: at the end, and only there: the state after it, or why there is
        none, pickled.
    `note`: its measurements.
    """

    data: Any
    error: Any
    changes: bytes
    final: bytes | None
    note: Note | None


class BatchMaker(Generic[Description]):
    """Makes the batches of one epoch of a stream.

    `encode`: returns the description of a batch, and its large arrays and
        bytes.
    `state`: state to go on from, checked.  Defaults to None: the stream's
        present one.
    `after`: whether that is the state of the epoch before, so that the one
        that follows is made.  Defaults to False.
    `calls`: methods of the stream to call before: reset, next_epoch.
    `share`: ``(place, step)``: of every `step` batches the one at `place` is
        made.  Defaults to all of them.
    `expected`: the `sizes` of another epoch of the stream.
    `prepare`: called with the epoch iterator before the first batch is read.
    `is_exact`: whether each item of each stage is timed, and each batch brings
        a report.
    `base`: state before the first batch, or why there is none.
    `num_made`: number of batches and errors made.
    `delivered`: number of them that reached the user; None if unknown.
    `waiting`: the last of them, if there was no room for it: it comes next.
    `sizes`: bytes of the slot that the next batch will probably take, 0 if
        none, and where in it the arrays of the last were.
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
        that is not known (int)."""
        if self.delivered is None:
            return 0
        return self.num_made - self.delivered - (self.waiting is not None)

    def next(self, slot: Slot | None = None, *,
             is_wanted: bool = True) -> Made:
        """Make the next batch, in a slot if it can be.

        `is_wanted`: False if nobody is to have it. Defaults to True.
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
        """Put a batch that is in no slot into one that has room for it."""
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
            # A stage keeps what it returned, so nobody may write there.
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
        """Return whether the stream has made no epoch since."""
        return not isinstance(self._opened, EpochIterator) or (
            stage_of(self.stream).epoch is self._opened.epoch)

    def _note(self, *, is_last: bool = False) -> Note:
        """Return the measurements of the batch made last in this thread."""
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
            # Another epoch of the same stream may be in no profile.
            spans = take_spans(self.stream) if self._is_exact else []
        return Note(path, seconds, report, self.num_ahead, spans)

    def _next_batch(self) -> Batch:
        prepare, self._prepare = self._prepare, None
        if prepare is not None:
            prepare(self._iterator)
        if self._step > 1:
            skip(self._iterator,
                 self._step - 1 if self.num_made else self._first)
        # One batch of one worker is enough to see.
        is_watched = self._first == 1 and not self.num_made
        with warn_if_drawn() if is_watched else nullcontext():
            batch: Batch = next(self._iterator)
        return batch

    def _end(self, placement: Placement | None) -> Made:
        state: State | Exception
        try:
            # The stream's own state is that of the epoch made last.
            state = (stage_of(self.stream).state()
                     if self._is_last() else state_of(self._opened))
        except Exception as error:  # noqa: BLE001 - raised if it is wanted
            state = without_frames(error)
        return Made([], state=state, is_end=True, placement=placement,
                    note=self._note(is_last=True))


class RunningEpochs(Generic[Description]):
    """The epochs of one stream that are being made, by their numbers.

    `stream`: is read by one thread at a time.
    `encode`: see :class:`BatchMaker`.
    """

    def __init__(self, stream: StreamLike,
                 encode: Callable[[Batch], tuple[Description, Sequence[Any]]],
                 ) -> None:
        self.stream = stream
        self._encode = encode
        self._makers: dict[int, BatchMaker[Description]] = {}
        self._newest = 0
        # Sizes of an epoch that is over or left.
        self._sizes: Sizes = 0, ()
        # The epoch after which the stream stands, and how many items it had.
        self._stands_after: tuple[int, int] | None = None

    def open(self, number: int, *, state: State | None = None,
             after: bool = False, follows: tuple[int, int] | None = None,
             **options: Any) -> BatchMaker[Description]:
        """Begin an epoch, with the options of :class:`BatchMaker`.

        `follows`: number of the epoch that `state` is of, and how many of its
            items were delivered.
        """
        newest = self.get(self._newest)
        if after and follows is not None and follows == self._stands_after:
            # Nothing was made beyond it.
            state = None
        self._newest, self._stands_after = number, None
        # Its batches will be like those of the epoch before.
        maker = self._makers[number] = BatchMaker(
            self.stream, self._encode, state=state, after=after,
            expected=self._sizes if newest is None else newest.sizes,
            **options)
        return maker

    def open_for_another(self, number: int, options: bytes,
                         ) -> tuple[bool, bytes]:
        """Begin an epoch for a reader in another process.

        Returns: whether that failed, and the first state or the error.
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
        """Return the epochs; the one that was made last is the last."""
        return list(self._makers.items())

    def make(self, number: int, slot: Slot | None = None, *,
             is_wanted: bool = True) -> Made:
        """Make the next item of an epoch, which its end removes."""
        maker = self._makers[number]
        made = maker.next(slot, is_wanted=is_wanted)
        if made.is_end:
            self.leave(number)
            if number == self._newest:
                self._stands_after = number, maker.num_made
        return made

    def with_room(self, most: int,
                  ) -> list[tuple[int, BatchMaker[Description]]]:
        """Return the epochs with fewer than `most` items ahead."""
        return [(number, maker) for number, maker in self.in_turn()
                if maker.num_ahead < most]

    def postpone(self, number: int) -> None:
        """Make items of the other epochs first."""
        if len(self._makers) > 1:
            self._makers[number] = self._makers.pop(number)

    def count_delivered(self, number: int, count: int) -> None:
        """Record how many items of an epoch have reached the user."""
        maker = self._makers.get(number)
        if maker is not None:
            maker.delivered = count

    def leave(self, number: int) -> None:
        """Make nothing more of an epoch."""
        maker = self._makers.pop(number, None)
        if maker is not None:
            self._sizes = maker.sizes


def open_epoch(stream: StreamLike, state: State | None = None,
               after: bool = False, calls: Sequence[str] = ()) -> Any:
    """Return an iterator of the epoch that begins at, or after, a state."""
    if state is not None:
        stage_of(stream).load(state)
        if after and state['epoch'] == RUNNING:
            # That epoch was left; the one that follows is wanted.
            stream.get_epoch_iterator()
    for name in calls:
        getattr(stream, name)()
    return stream.get_epoch_iterator()


def pickle_state(state: object) -> bytes:
    """Return a state, or why there is none, pickled."""
    try:
        return pickle.dumps(state)
    except Exception:  # noqa: BLE001 - pickling runs any code
        return pickle.dumps(TypeError(str(state)))
