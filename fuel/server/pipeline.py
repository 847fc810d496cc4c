"""Runs the served stream, one request after another."""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from fuel.epochs.sealing import identified
from fuel.epochs.stage import stage_of
from fuel.epochs.state_check import checked_state
from fuel.kernels.outputs import Placement
from fuel.transport.slots import Buffers, Extent, Slot
from fuel.typing import Batch, State, StreamLike
from fuel.utils.arguments import try_call
from fuel.utils.threads import stack_of
from fuel.wire import encode
from fuel.profiling.measurements import (
    Path, StageMeasurements, measure_stages, take_spans, time_all)
from fuel.workers.batch_maker import Note, RunningEpochs
from fuel.utils.remote_errors import ErrorReport

OPENED, BATCH, FAILURE, END, BROKEN, MEASURED = (
    'opened', 'batch', 'failure', 'end', 'broken', 'measure')
# The number of the epoch: there is one at a time.
_ONLY = 1


class Result(NamedTuple):
    """The result of a request.

    `request`: the request itself.
    `fields`: fields for the header of the message to the client.
    `buffers`: arrays of a batch, unless they are in the request's slot.
    `extents`: offset and size of each array in the slot.
    `placement`: the parts of the slot that were offered to the stages.
    """

    kind: str
    request: dict[str, Any]
    fields: dict[str, Any]
    buffers: Buffers
    extents: list[Extent] | None = None
    placement: Placement | None = None


class Pipeline:
    """Runs a stream, always in the thread that calls :meth:`make`.

    `requests`: queue of methods for :meth:`make` to call, with their
        arguments.
    """

    def __init__(self, stream: StreamLike) -> None:
        self.stream = stream
        self.requests: deque[
            tuple[Callable[[dict[str, Any]], Result], dict[str, Any]]
        ] = deque()
        self._epochs = RunningEpochs(stream, self._encode)
        self._sources: tuple[str, ...] = ()
        self._thread = 0
        self._is_exact = False

    def stack(self) -> str:
        """Return the stack of the thread that runs the stream (str)."""
        return stack_of(self._thread)

    def open(self, **request: object) -> None:
        """Queue a request to open an epoch, from `state` and `after`."""
        self.requests.append((self._open, request))

    def produce(self, **request: object) -> None:
        """Queue a request for the next batch, to be placed in `slot`."""
        self.requests.append((self._produce, request))

    def measure(self, **request: object) -> None:
        """Queue a request for the stages' measurements; `is_exact`: whether to
        time each item from now on."""
        self.requests.append((self._measure, request))

    def make(self) -> Result:
        """Carry out the oldest request, and return its result."""
        self._thread = threading.get_ident()
        method, request = self.requests.popleft()
        return method(request)

    def check_state(self, state: State) -> None:
        """Raise an error if the stream checks states and cannot load this
        one."""
        checked_state(self.stream, state)

    def close(self) -> None:
        """Leave the epoch."""
        self._epochs.leave(_ONLY)

    def _open(self, request: dict[str, Any]) -> Result:
        # The iterator of the former epoch must be freed before the next one is
        # made.
        self._epochs.leave(_ONLY)
        try:
            state = request['state']
            if state is not None:
                state = checked_state(self.stream, state)
            base = self._epochs.open(
                _ONLY, state=state, after=request['after'],
                is_exact=self._is_exact).base
            self._sources = tuple(self.stream.sources)
        except Exception as error:  # noqa: BLE001 - sent to the clients
            return Result(
                BROKEN, request, {'error': describe_error(error)}, [])
        why = str(base) if isinstance(base, Exception) else None
        return Result(
            OPENED, request, {'base': self._saved(base), 'why': why}, [])

    def _saved(self, state: State | Exception | None) -> State | None:
        """Return a state in the form that clients save; None if there is
        none."""
        if state is None or isinstance(state, Exception):
            return None
        return identified(stage_of(self.stream), state)[0]

    def _encode(self, batch: Batch) -> tuple[list[Any], Buffers]:
        """Encode a batch; raise ValueError unless it has data for each
        source."""
        if len(batch) != len(self._sources):
            raise ValueError(
                f'the pipeline returned {len(batch)} items for its '
                f'{len(self._sources)} sources {self._sources}')
        return encode(batch)

    def _measure(self, request: dict[str, Any]) -> Result:
        if request['is_exact'] != self._is_exact:
            self._is_exact = request['is_exact']
            time_all(self.stream, is_exact=self._is_exact)
        # Clients get no spans, since they may be on other machines.
        take_spans(self.stream)
        return Result(MEASURED, request, {'stages': self._measured()}, [])

    def stages(self) -> list[StageMeasurements]:
        """Return the measurements of the stages. Any thread may call this."""
        # A user's stages may raise any error when they are measured.
        found: list[StageMeasurements] = try_call(
            [], measure_stages, self.stream)
        return found

    def _measured(self) -> dict[Path, StageMeasurements]:
        """Return the measurements of the stages, by their paths."""
        return {stage.path: stage for stage in measure_stages(self.stream)}

    def _produce(self, request: dict[str, Any]) -> Result:
        slot: Slot | None = request['slot']
        made = self._epochs.make(
            _ONLY, slot, is_wanted=not request['discard'])
        changes = (None if isinstance(made.changes, Exception)
                   else made.changes)
        if made.is_end:
            return Result(
                END, request, {'state': self._saved(made.state),
                               'stages': self._measured()}, [],
                placement=made.placement)
        if made.error is not None:
            return Result(
                FAILURE, request,
                {'error': describe_error(made.error), 'changes': changes}, [],
                placement=made.placement)
        return Result(
            BATCH, request, {'items': made.description, 'changes': changes,
                             'took': _took(made.note)},
            made.buffers, made.extents, made.placement)


def _took(note: Note | None) -> list[Any] | None:
    """Return the path of the stage that took most of a batch's time, and the
    batch's seconds; None if unknown."""
    if note is None or note.path is None:
        return None
    return [list(note.path), note.seconds]


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return the description of an exception, ready for JSON."""
    return ErrorReport.of(error)._asdict()
