"""One epoch of a stream: its position and the attributes it owns."""
from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from fuel.epochs.readers import (
    batches_in_order,
    look_at_nothing,
    request_source,
    requests_ahead,
)
from fuel.epochs.runtime import lock_of
from fuel.epochs.state import Position, dataset_position, leftover
from fuel.kernels.prefetch_buffer import PrefetchBuffer
from fuel.utils import rng_state

# How many examples are read ahead at once, and how many bytes of them.
# Each is a view of its own part of one array, so somebody who keeps a single
# example keeps as much alive.
READ_AHEAD = 128
READ_AHEAD_BYTES = 2 ** 19


class Epoch(PrefetchBuffer):
    """One epoch: how far it has come, and what the stream keeps for it.

    Attributes
    ----------
    position : int
        How many batches or examples were handed out.
    requested : int
        How many requests were taken from the request iterator: more than
        `position` if one of them failed.
    finished : bool
        Whether :class:`StopIteration` was raised.
    end : Position or Exception
        Where the epoch stood when it finished, or why that is not known.
    start : object
        State of the iteration scheme when the epoch began, or the
        exception that says why there is none.
    attributes : dict
        The values of the stream's `epoch_attributes`.
    direct : bool
        Whether the stream only hands requests to its data set, so that
        nothing needs to be installed.
    read_ahead : int
        How many examples to read at a time, as the rows of a batch: 0 where
        they have to be asked for singly, 1 until their size is known.
    is_dict : bool
        Whether the data are handed out as dicts, made of tuples.
    in_order : callable or None
        Returns an iterator over the data of the next requests of the
        request iterator, if the data set can read on by itself.
    ahead : callable or None
        Called with the number of each request, it tells the data set of the
        next ones. None before the first.
    take_request : callable or None
        Returns the next request in the form that the data set is fastest
        with. None before the first.

    """

    def __init__(self, request_iterator: Iterator[Any] | None) -> None:
        self.request_iterator = request_iterator
        self.position = 0
        self.requested = 0
        self.finished = False
        self.end: Any = None
        self.start: Any = None
        self.attributes: dict[str, Any] = {}
        self.direct = False
        self.read_ahead = 0
        self.is_dict = False
        self.in_order: Any = None
        self.ahead: Any = None
        self.take_request: Any = None
        self.taken = 0

    def __reduce__(self) -> Any:
        self.commit_taken()
        return new_object, (type(self),), {
            **vars(self), 'direct': False, 'read_ahead': 0,
            'in_order': None, 'ahead': None, 'take_request': None}

    def advance(self, stream: Any) -> Any:
        """Return the next data of the epoch."""
        if self.finished:
            raise StopIteration
        if self.read_ahead > 1 or self.in_order is not None:
            self._fill(stream)
            if self.items is not None:
                for item in self.items:
                    self.taken += 1
                    return item
                self.items = None
        try:
            if self.direct:
                data = self._get_direct(stream)
            else:
                with lock_of(stream):
                    data = self._get_bound(stream)
        except StopIteration:
            self._finish(stream)
            raise
        except Exception as error:
            error.add_note(f'in stage {type(stream).__name__}, '
                           f'item {self.position} of the epoch')
            raise
        self.position += 1
        if self.read_ahead == 1:
            self.read_ahead = how_many_ahead(data)
        return data

    def _finish(self, stream: Any) -> None:
        try:
            # Without the stream, which holds this epoch: no cycle.
            self.end = self.get_position(stream)._replace(stream=None)
        except Exception as error:  # noqa: BLE001 (raised if it is wanted)
            self.end = error.with_traceback(None)
        self.finished = True
        # They may keep a file open.
        self.ahead = self.in_order = self.take_request = None
        # The stream goes on showing the last values.  Let go of the child's
        # iterator here, so that its epoch counts as left; the data set's
        # state is wanted by the next epoch.
        self.attributes = {name: value
                           for name, value in self.attributes.items()
                           if name == 'data_state'}

    def commit_taken(self) -> None:
        """Count what was handed out of the buffer."""
        taken, self.taken = self.taken, 0
        if taken:
            self.position += taken
            if self.request_iterator is None:
                self.attributes['data_state'].advance(taken)
                return
            self.requested += taken
            requests: Any = self.request_iterator
            requests.advance(taken)

    def drop_prefetched(self) -> None:
        """Drop what was read ahead: it will be asked for again."""
        self.commit_taken()
        self.items = None

    def _fill(self, stream: Any) -> None:
        """Read the next examples, of the next requests if there are any."""
        self.commit_taken()
        requests: Any = self.request_iterator
        if self.in_order is not None:
            self.items = self.in_order(requests)
            return
        state = self.attributes['data_state']
        if requests is None:
            self._fill_in_order(state)
            return
        indices = requests.peek(self.read_ahead)
        try:
            batch = indices and stream.dataset.get_data(state, indices)
        except Exception:  # noqa: BLE001 (asked again, it raises)
            # One of these requests is bad.  Asked for one at a time, those
            # before it are answered and the bad one raises.
            batch = None
        if batch:
            self.items = zip(*batch, strict=True)
        else:
            self.read_ahead = 0

    def _fill_in_order(self, state: Any) -> None:
        """Read the examples that follow where a data set's state stands."""
        try:
            examples = state.peek(self.read_ahead)
        except Exception:  # noqa: BLE001 (asked again, it raises)
            examples = None
        if examples:
            self.items = iter(examples)
        else:
            self.read_ahead = 0

    def _next_request(self) -> Any:
        if self.request_iterator is None:
            return None
        request = next(self.request_iterator)
        self.requested += 1
        return request

    def _get_direct(self, stream: Any) -> Any:
        dataset = stream.dataset
        if self.take_request is None:
            self.take_request = request_source(dataset, self.request_iterator)
        request = self.take_request()
        self.requested += self.request_iterator is not None
        if self.ahead is None:
            # Not before, since it may open a file.
            self.ahead = requests_ahead(dataset, self.request_iterator)
            if self.ahead is look_at_nothing and not self.is_dict:
                self.in_order = batches_in_order(
                    dataset, self.request_iterator)
        if self.ahead is not look_at_nothing:
            self.ahead(self.requested - 1)
        try:
            return dataset.get_data(self.attributes['data_state'], request)
        except Exception as error:
            note_request(error, request)
            raise

    def _get_bound(self, stream: Any) -> Any:
        self.bind(stream)
        request = None
        try:
            if self.request_iterator is None:
                return stream.get_data()
            request = self._next_request()
            return stream.get_data(request)
        except Exception as error:
            note_request(error, request)
            raise
        finally:
            self.unbind(stream)

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
        if self.finished:
            return (self.end if isinstance(self.end, Exception)
                    else self.end._replace(stream=stream))
        if not hasattr(stream, '_child_positions'):
            raise TypeError(
                f'the position of the stream {type(stream).__name__} cannot '
                'be told: derive the class from AbstractDataStream')
        self.commit_taken()
        with lock_of(stream):
            self.bind(stream)
            rng = getattr(stream, 'rng', None)
            return Position(
                stream, self.position, self.requested, self.start,
                dataset_position(stream, self.attributes),
                copy.deepcopy(rng) if rng_state.is_generator(rng) else None,
                leftover(stream), list(stream._child_positions()))


def new_object(cls: Any) -> Any:
    """Return an instance without attributes, for any pickle protocol."""
    return cls.__new__(cls)


def note_request(error: Exception, request: Any) -> None:
    """Add to an error which request it came from, if from any."""
    if request is not None and not isinstance(error, StopIteration):
        if hasattr(request, 'tolist'):
            request = request.tolist()
        error.add_note(f'for the request {request!r:.500}')


def how_many_ahead(example: Any) -> int:
    """Return how many examples like this one to read at a time."""
    size = sum(getattr(part, 'nbytes', 0) for part in example)
    return max(0, min(READ_AHEAD, READ_AHEAD_BYTES // max(1, size)))
