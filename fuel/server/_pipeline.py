"""The thread that runs the served stream, one request after another."""
from __future__ import annotations

import queue
import sys
import threading
import traceback
from collections import deque
from typing import Any, NamedTuple

import numpy

from fuel.transport._changes import changes
from fuel.transport._producer import lay_out
from fuel.utils._outputs import Placement, placed
from fuel.wire import encode

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
    """Runs a stream in a thread of its own.

    Parameters
    ----------
    stream : AbstractDataStream
    wake_up : callable
        Called when there is a result.

    """

    def __init__(self, stream: Any, wake_up: Any) -> None:
        self.stream = stream
        self.results: deque[Result] = deque()
        self._wake_up = wake_up
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._iterator: Any = None
        self._base: Any = None
        self._extents: list[tuple[int, int]] = []
        self._thread = threading.Thread(
            target=self._run, name='fuel-pipeline', daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """End the thread, if it comes to an end in time."""
        self._requests.put(None)
        self._thread.join(timeout)

    def stack(self) -> str:
        """Return what the thread is doing (str)."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return '' if frame is None else ''.join(
            traceback.format_stack(frame))

    def open(self, **request: Any) -> None:
        """Ask for an epoch: `state` and `after` say from where."""
        self._requests.put((self._open, request))

    def produce(self, **request: Any) -> None:
        """Ask for the next batch: `slot` says where to put it."""
        self._requests.put((self._produce, request))

    def _run(self) -> None:
        while True:
            work = self._requests.get()
            if work is None:
                break
            method, request = work
            self.results.append(method(request))
            del work, method, request
            self._wake_up()
        self._iterator = None

    def _open(self, request: dict[str, Any]) -> Result:
        try:
            self._iterator = None
            state = request['state']
            if state is not None:
                self.stream.load_state_dict(state)
                if request['after'] and state['epoch'] == 'running':
                    # That epoch was left; this is the one that follows.
                    self.stream.get_epoch_iterator()
            self._iterator = self.stream.get_epoch_iterator()
        except Exception as error:  # noqa: BLE001 - told to the clients
            return Result(BROKEN, request, {'error': tell(error)}, [], None)
        self._base, why = _state_of(self._iterator)
        return Result(OPENED, request, {'base': self._base, 'why': why}, [],
                      None)

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
        if extents is not None:
            buffers = []
        return Result(BATCH, request, fields, buffers, extents, placement)

    def _fill(self, slot: Any, placement: Placement | None,
              buffers: list[Any]) -> list[tuple[int, int]] | None:
        """Put the arrays of a batch into its slot, if they go there."""
        arrays = [as_bytes(buffer) for buffer in buffers]
        extents = lay_out(slot, arrays, 0)
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
        return extents

    def _changes(self) -> Any:
        if self._base is None:
            return None
        state, _ = _state_of(self._iterator)
        return None if state is None else changes(self._base, state)

    def _final(self) -> Any:
        try:
            return self.stream.state_dict()
        except Exception:  # noqa: BLE001 - a stream without states is fine
            return None


def as_bytes(buffer: Any) -> Any:
    """Return a buffer as an array of uint8."""
    if isinstance(buffer, numpy.ndarray):
        return buffer
    return numpy.frombuffer(buffer, numpy.uint8)


def copy_into(slot: Any, arrays: list[Any],
              extents: list[tuple[int, int]]) -> None:
    """Copy arrays to their places in a slot, unless they are there."""
    memory = slot.bytes
    start = memory.__array_interface__['data'][0]
    for (offset, size), array in zip(extents, arrays, strict=True):
        if size and array.__array_interface__['data'][0] != start + offset:
            memory[offset:offset + size] = array


def _state_of(iterator: Any) -> tuple[Any, str | None]:
    """Return the state of an epoch iterator, or why there is none."""
    try:
        return iterator.state_dict(), None
    except Exception as error:  # noqa: BLE001 - the text is handed on
        return None, str(error)


def tell(error: BaseException) -> dict[str, Any]:
    """Return an exception in words, ready for JSON.

    Parameters
    ----------
    error : BaseException

    Returns
    -------
    dict

    """
    cls = type(error)
    return {'kind': cls.__name__ if cls.__module__ == 'builtins' else None,
            'summary': traceback.format_exception_only(error)[0].strip(),
            'text': str(error),
            'notes': [str(note) for note in getattr(
                error, '__notes__', [])],
            'traceback': ''.join(traceback.format_exception(error))}
