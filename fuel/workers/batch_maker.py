"""Makes the batches of one epoch, encoded, and placed where they are read.

A worker process and a server have one batch maker for each epoch.  It knows
no channel: whoever calls it sends what it made.
"""
from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, Generic, NamedTuple, TypeVar

import numpy
from numpy.typing import NDArray

from fuel.epochs.pipeline import child_streams, skip
from fuel.epochs.stage import stage_of
from fuel.epochs.state import RUNNING, Unavailable
from fuel.epochs.state_delta import Changes, StateDelta, state_of
from fuel.kernels.epoch_iterator import (
    EpochIterator, StageMeter, last_wait)
from fuel.kernels.memory import address_of, empty
from fuel.kernels.outputs import Placement, placed
from fuel.profiling.measurements import Path, StageMeasurements
from fuel.profiling.meter import (
    measure_stages, stage_paths, take_spans, time_all)
from fuel.profiling.trace import StageSpans
from fuel.transport.slots import Slot, align
from fuel.typing import Batch, State, StreamLike
from fuel.utils.seams import fault_point
from fuel.workers.global_random import warn_if_drawn

Buffers = list[NDArray[numpy.uint8]]
Extent = tuple[int, int]
Sizes = tuple[int, Sequence[Extent]]
Description = TypeVar('Description')
# Seconds between two reports of what the stages took: one takes 0.2 ms.
_REPORT = 0.1


class Note(NamedTuple):
    """What a batch took, for whoever waited for it.

    `path`: to the stage that took most of the time; None if none is known.
    `seconds`: what the batch took.
    `report`: what each stage took so far; None if it was reported just now.
    `num_ahead`: how many batches before it have not reached the user.
    `spans`: when each stage made its items since the last report, if every
        item is timed.
    """

    path: Path | None
    seconds: float
    report: list[StageMeasurements] | None
    num_ahead: int
    spans: list[StageSpans]


class Made(NamedTuple):
    """A batch, an error in the place of one, or the end of an epoch.

    `buffers`: arrays of uint8 that are not in the slot.
    `description`: the encoder's description of a batch.
    `extents`: offset and size in the slot of each array, if they all are
        there.
    `error`: what was raised in the place of a batch.
    `changes`: difference of the state from the first; see :class:`StateDelta`.
    `state`: at the end: the stream's state after the epoch, or why it has
        none.
    `is_end`: whether this is the end.
    `placement`: the parts of the slot that the stages were offered.
    `note`: of what it took.
    """

    buffers: Buffers
    description: Any = None
    extents: list[Extent] | None = None
    error: Exception | None = None
    changes: Changes | Unavailable | None = None
    state: State | Unavailable | None = None
    is_end: bool = False
    placement: Placement | None = None
    note: Note | None = None


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
    `expected`: what `sizes` was for another epoch of the stream.
    `prepare`: called with the epoch iterator before the first batch is read.
    `is_exact`: whether each item of each stage is timed, and each batch brings
        a report.
    `base`: state before the first batch, or why there is none.
    `number`: how many batches and errors were made.
    `num_ahead`: how many of them have not reached the user, if that is known.
    `sizes`: bytes of the slot that the next batch will probably take, 0 if
        none, and where in it the arrays of the last were.
    """

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
        self.number = self.num_ahead = 0
        self.ended = False
        self.sizes = expected

    def next(self, slot: Slot | None = None) -> Made:
        """Make the next batch, in a slot if it can be."""
        placement = None
        if slot is not None and self.sizes[1]:
            placement = Placement(
                slot.bytes, self.sizes[1], self._reads_rows)
        try:
            with nullcontext() if placement is None else placed(placement):
                batch = self._next_batch()
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
        self.number += 1
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
            _detach(buffers, placement)
            return made
        self.sizes = need, extents
        buffers.clear()
        if placement is not None and not placement.is_free():
            # A stage keeps what it returned, so nobody may write there.
            buffers.extend(slot.bytes[offset:offset + size].copy()
                           for offset, size in extents)
            return made
        return made._replace(extents=extents)

    def discard(self) -> Made:
        """Make the next batch for nobody."""
        try:
            self._next_batch()
        except StopIteration:
            return self._end()
        except Exception as error:  # noqa: BLE001 - raised by the reader
            return self._fail(error)
        self.number += 1
        return Made([])

    def _fail(self, error: Exception,
              placement: Placement | None = None) -> Made:
        self.number += 1
        return Made([], error=error,
                    changes=self._delta.changes(self._iterator),
                    placement=placement)

    def _is_last(self) -> bool:
        """Return whether the stream has made no epoch since."""
        return not isinstance(self._opened, EpochIterator) or (
            stage_of(self.stream).epoch is self._opened.epoch)

    def _note(self, *, is_last: bool = False) -> Note:
        """Return what the batch took that was made last in this thread."""
        if self._paths is None:
            self._paths = stage_paths(self.stream)
        slowest, seconds = last_wait()
        path = None if slowest is None else self._paths.get(slowest)
        if slowest is not None and path is not None:
            path += slowest.cause or ()
        report, now = None, time.monotonic()
        spans: list[StageSpans] = []
        if self._is_exact or is_last or now >= self._next_report:
            self._next_report = now + _REPORT
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
                 self._step - 1 if self.number else self._first)
        # One batch of one worker is enough to see.
        is_watched = self._first == 1 and not self.number
        with warn_if_drawn() if is_watched else nullcontext():
            batch: Batch = next(self._iterator)
        return batch

    def _end(self, placement: Placement | None = None) -> Made:
        self.ended = True
        state: State | Unavailable
        try:
            # The stream's own state is that of the epoch made last.
            state = (stage_of(self.stream).state()
                     if self._is_last() else state_of(self._opened))
        except Exception as error:  # noqa: BLE001 - raised if it is wanted
            state = Unavailable(error)
        return Made([], state=state, is_end=True, placement=placement,
                    note=self._note(is_last=True))


@fault_point('slot copy')
def write_into(slot: Slot, buffers: Buffers,
               placement: Placement | None = None,
               expected: Sequence[Extent] = ()) -> list[Extent] | None:
    """Write arrays into a slot, unless they are there."""
    start = address_of(slot.bytes)
    offsets = [address_of(buffer) - start for buffer in buffers]
    extents = [(offset, buffer.nbytes) for offset, buffer
               in zip(offsets, buffers, strict=True)]
    # Nearly always they are where those of the batch before were.
    if placement is not None and extents == expected:
        return extents
    found = _find_places(slot, extents, placement)
    if found is not None:
        for offset, (place, size), buffer in zip(
                offsets, found, buffers, strict=True):
            if offset != place:
                slot.bytes[place:place + size] = buffer
    return found


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
        reason = state.reason if isinstance(state, Unavailable) else state
        return pickle.dumps(Unavailable(TypeError(str(reason))))


def _find_places(slot: Slot, extents: list[Extent],
                 placement: Placement | None) -> list[Extent] | None:
    """Return where in a slot each array goes, None if there is no room.

    Arrays that are in the slot already stay there.  So does what the stages
    made there on the way, for as long as somebody holds it.
    """
    is_inside = [0 <= offset < slot.capacity for offset, _ in extents]
    taken = [] if placement is None else placement.get_kept()
    taken += [(offset, offset + size) for (offset, size), inside
              in zip(extents, is_inside, strict=True) if inside]
    taken.sort()
    found = []
    for (offset, size), inside in zip(extents, is_inside, strict=True):
        place = offset
        if not inside:
            place = _first_gap(taken, size)
            taken.append((place, place + size))
            taken.sort()
        found.append((place, size))
    end = max((stop for _, stop in taken), default=0)
    return found if end <= slot.capacity else None


def _first_gap(taken: list[Extent], size: int) -> int:
    """Return the first aligned place with `size` free bytes."""
    place = 0
    for start, stop in taken:
        if place + size <= start:
            break
        place = max(place, align(stop))
    return place


def _detach(buffers: Buffers, placement: Placement | None) -> None:
    """Copy arrays that lie in a slot, or that a stage may overwrite."""
    is_placed = placement is not None and bool(placement.references)
    for place in range(len(buffers)):
        if is_placed or _num_references(buffers, place) > _OURS:
            # Into memory that earlier batches had: new pages cost more.
            copy = empty(buffers[place].shape, numpy.uint8)
            copy[...] = buffers[place]
            buffers[place] = copy


def _num_references(buffers: Buffers, place: int) -> int:
    """Return how many references the memory of an array has."""
    root: Any = buffers[place]
    while isinstance(root, numpy.ndarray) and isinstance(
            root.base, numpy.ndarray):
        root = root.base
    return sys.getrefcount(root) if isinstance(root, numpy.ndarray) else 0


# How many of them are ours; versions of Python count differently.
_OURS = _num_references([numpy.empty(1, numpy.uint8)], 0)
