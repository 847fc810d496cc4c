"""Runs the served stream, one request after another."""
from __future__ import annotations

import sys
import threading
import traceback
from collections import deque
from typing import Any, NamedTuple

import numpy

from fuel.epochs.state_delta import Course
from fuel.kernels.memory import address_of, empty
from fuel.kernels.outputs import Placement, placed
from fuel.wire import encode
from fuel.workers.producer import lay_out, lie_at

OPENED, BATCH, FAILURE, END, BROKEN = (
    'opened', 'batch', 'failure', 'end', 'broken')


class Result(NamedTuple):
    """What came of a request.

    Attributes
    ----------
    kind : str
    request : dict
        The request itself.
    fields : dict
        For the header of the message to the client.
    buffers : list
        Arrays of a batch, unless they are in the request's slot.
    extents : list of (int, int) or None
        Where in the slot they are.
    placement : Placement or None
        What of the slot the stages were offered.

    """

    kind: str
    request: dict[str, Any]
    fields: dict[str, Any]
    buffers: list[Any]
    extents: list[tuple[int, int]] | None
    placement: Placement | None = None


class Pipeline:
    """Runs a stream, always in the thread that calls :meth:`make`."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self._requests: deque[Any] = deque()
        self._iterator: Any = None
        self._course: Any = None
        self._extents: list[tuple[int, int]] = []
        self._thread = 0

    def stack(self) -> str:
        """Return what the thread is doing (str)."""
        frame = sys._current_frames().get(self._thread)
        return '' if frame is None else ''.join(
            traceback.format_stack(frame))

    def open(self, **request: Any) -> None:
        """Ask for an epoch: `state` and `after` say from where."""
        self._requests.append((self._open, request))

    def produce(self, **request: Any) -> None:
        """Ask for the next batch: `slot` says where to put it."""
        self._requests.append((self._produce, request))

    def is_idle(self) -> bool:
        """Tell whether nothing is asked for."""
        return not self._requests

    def make(self) -> Result:
        """Do what was asked for first."""
        self._thread = threading.get_ident()
        method, request = self._requests.popleft()
        result: Result = method(request)
        return result

    def close(self) -> None:
        """Let go of the epoch."""
        self._iterator = None

    def _open(self, request: dict[str, Any]) -> Result:
        try:
            self._iterator = self._course = None
            state = request['state']
            if state is not None:
                self.stream.load_state_dict(state)
                if request['after'] and state['epoch'] == 'running':
                    # That epoch was left; this is the one that follows.
                    self.stream.get_epoch_iterator()
            self._iterator = self.stream.get_epoch_iterator()
        except Exception as error:  # noqa: BLE001 - told to the clients
            return Result(BROKEN, request, {'error': tell(error)}, [], None)
        self._course = Course(self._iterator)
        base, why = self._course.base, None
        if isinstance(base, Exception):
            base, why = None, str(base)
        return Result(OPENED, request, {'base': base, 'why': why}, [], None)

    def _produce(self, request: dict[str, Any]) -> Result:
        slot = request['slot']
        placement = None
        if slot is not None and self._extents:
            placement = Placement(slot.bytes, self._extents)
        try:
            with placed(placement):
                batch = next(self._iterator)
            if request['discard']:
                return Result(BATCH, request, {}, [], None)
            items, buffers = encode(batch)
            del batch
        except StopIteration:
            return Result(END, request, {'state': self._final()}, [], None,
                          placement)
        except Exception as error:  # noqa: BLE001 - told to the client
            return Result(FAILURE, request, {
                'error': tell(error), 'changes': self._changes()}, [], None,
                placement)
        fields = {'items': items, 'changes': self._changes()}
        extents = None
        if slot is not None:
            extents = self._fill(slot, placement, buffers)
        else:
            own(buffers)
        if extents is not None:
            buffers = []
        return Result(BATCH, request, fields, buffers, extents, placement)

    def _fill(self, slot: Any, placement: Placement | None,
              buffers: list[Any]) -> list[tuple[int, int]] | None:
        """Put the arrays of a batch into its slot, if they go there."""
        arrays = [as_bytes(buffer) for buffer in buffers]
        extents: Any = self._extents
        if placement is None or not lie_at(slot, arrays, extents):
            extents = lay_out(slot, arrays, 0, placement)
            if extents is None:
                # The arrays may lie in the slot in part.
                buffers[:] = [array.copy() for array in arrays]
                return None
            copy_into(slot, arrays, extents)
            self._extents = extents
        arrays.clear()
        buffers.clear()
        if placement is not None and not placement.is_free():
            # A stage goes on looking at what it returned.
            memory = slot.bytes
            buffers[:] = [memory[offset:offset + size].copy()
                          for offset, size in extents]
            return None
        return list(extents)

    def _changes(self) -> Any:
        if self._course is None:
            return None
        steps = self._course.changes(self._iterator)
        return None if isinstance(steps, Exception) else steps

    def _final(self) -> Any:
        try:
            return self.stream.state_dict()
        except Exception:  # noqa: BLE001 - a stream without states is fine
            return None


def own(buffers: list[Any]) -> None:
    """Copy the arrays that a stage goes on looking at, and may overwrite.

    They wait for being sent, and may be sent once more.
    """
    for place in range(len(buffers)):
        root = buffers[place]
        while isinstance(getattr(root, 'base', None), numpy.ndarray):
            root = root.base
        # Ours are: the list or the array over it, `root`, and the call's.
        if isinstance(root, numpy.ndarray) and sys.getrefcount(root) > 3:
            # Into memory that earlier batches had: new pages cost more.
            copy = empty(buffers[place].shape, numpy.uint8)
            copy[...] = buffers[place]
            buffers[place] = copy


def as_bytes(buffer: Any) -> Any:
    """Return a buffer as an array of uint8."""
    if isinstance(buffer, numpy.ndarray):
        return buffer
    return numpy.frombuffer(buffer, numpy.uint8)


def copy_into(slot: Any, arrays: list[Any],
              extents: list[tuple[int, int]]) -> None:
    """Copy arrays to their places in a slot, unless they are there."""
    memory = slot.bytes
    start = address_of(memory)
    for (offset, size), array in zip(extents, arrays, strict=True):
        if size and address_of(array) != start + offset:
            memory[offset:offset + size] = array


def _text_of(error: BaseException) -> str:
    """Return what makes the same exception on the other side.

    The text of a KeyError is its argument in quotes, which the client's
    would be put in quotes once more.
    """
    if isinstance(error, KeyError) and len(error.args) == 1 \
            and isinstance(error.args[0], str):
        return error.args[0]
    return str(error)


def tell(error: BaseException) -> dict[str, Any]:
    """Return an exception in words, ready for JSON."""
    cls = type(error)
    return {'kind': cls.__name__ if cls.__module__ == 'builtins' else None,
            'summary': traceback.format_exception_only(error)[0].strip(),
            'text': _text_of(error),
            'notes': [str(note) for note in getattr(
                error, '__notes__', [])],
            'traceback': ''.join(traceback.format_exception(error))}
