"""What belongs to one epoch of one stream, and how it is saved."""
from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

from fuel.exceptions import StateMismatchError
from fuel.kernels.prefetch_buffer import Buffer
from fuel.schemes.base import scheme_state
from fuel.schemes.requests import IndexRequests, RequestIterator
from fuel.utils import rng_state
from fuel.utils.overrides import defines_together, is_own

FORMAT = 1

# What the state of a stream says of its epoch.
NOT_STARTED = 'not started'
RUNNING = 'running'
FINISHED = 'finished'


class Mark(NamedTuple):
    """A position, taken cheaply; :func:`as_state` makes plain data of it."""

    stream: Any
    position: int
    requested: int
    start: Any
    dataset_position: Any
    rng: Any
    leftover: Any
    children: list[Any]


# How many examples are read ahead at once, and how many bytes of them.
# Each is a view of its own part of one array, so somebody who keeps a single
# example keeps as much alive.
READ_AHEAD = 128
READ_AHEAD_BYTES = 2 ** 19


class Epoch(Buffer):
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
    end : Mark or Exception
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
        self.settle()
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
                    data = self._get_installed(stream)
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
            self.end = self.mark(stream)._replace(stream=None)
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

    def settle(self) -> None:
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

    def forget_ahead(self) -> None:
        """Drop what was read ahead: it will be asked for again."""
        self.settle()
        self.items = None

    def _fill(self, stream: Any) -> None:
        """Read the next examples, of the next requests if there are any."""
        self.settle()
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
            if self.ahead is _look_at_nothing and not self.is_dict:
                self.in_order = batches_in_order(
                    dataset, self.request_iterator)
        if self.ahead is not _look_at_nothing:
            self.ahead(self.requested - 1)
        try:
            return dataset.get_data(self.attributes['data_state'], request)
        except Exception as error:
            note_request(error, request)
            raise

    def _get_installed(self, stream: Any) -> Any:
        self.install(stream)
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
            self.capture(stream)

    def install(self, stream: Any) -> None:
        """Make the stream show this epoch's attributes."""
        vars(stream).update(self.attributes)

    def capture(self, stream: Any) -> None:
        """Take over what the stream shows."""
        names = getattr(stream, 'epoch_attributes', ())
        present = vars(stream)
        self.attributes = {
            name: present[name] for name in names if name in present}

    def mark(self, stream: Any) -> Any:
        """Return where the epoch stands; see :class:`Mark`.

        A stage may ask after the end: it has data left that it made of the
        last ones.
        """
        if self.finished:
            return (self.end if isinstance(self.end, Exception)
                    else self.end._replace(stream=stream))
        if not hasattr(stream, '_child_marks'):
            raise TypeError(
                f'the position of the stream {type(stream).__name__} cannot '
                'be told: derive the class from AbstractDataStream')
        self.settle()
        with lock_of(stream):
            self.install(stream)
            rng = getattr(stream, 'rng', None)
            return Mark(
                stream, self.position, self.requested, self.start,
                dataset_position(stream, self.attributes),
                copy.deepcopy(rng) if rng_state.is_generator(rng) else None,
                _leftover(stream), list(stream._child_marks()))


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


class Runtime:
    """What a stream holds while it runs, and what no pickle keeps.

    Attributes
    ----------
    lock : threading.RLock
    epoch : Epoch or None
        The one made last.
    holders : list of (weakref to DataIterator, Epoch)
        The epochs that still have a data set's state.
    pending : dict or None
        The state that the next epoch iterator takes up.

    """

    def __init__(self, pending: dict[str, Any] | None = None) -> None:
        self.lock = threading.RLock()
        self.epoch: Epoch | None = None
        self.iterator: weakref.ref[Any] | None = None
        self.start: Any = None
        self.holders: list[tuple[weakref.ref[Any], Epoch]] = []
        self.pending = pending

    def __reduce__(self) -> Any:
        return Runtime, (self.pending,)

    def is_left(self) -> bool:
        """Tell whether the epoch made last is finished or abandoned."""
        return (self.epoch is not None and (
            self.epoch.finished
            or self.iterator is None or self.iterator() is None))


def runtime_of(stream: Any) -> Runtime:
    """Return the stream's :class:`Runtime`, made on first use.

    Subclasses may have skipped every ``__init__``, so none is relied on.
    """
    try:
        runtime: Runtime = vars(stream)['_runtime']
    except KeyError:
        runtime = vars(stream).setdefault('_runtime', Runtime())
    return runtime


def lock_of(stream: Any) -> Any:
    """Return the lock to hold while the stream's attributes are used."""
    if hasattr(type(stream), 'epoch_attributes'):
        return runtime_of(stream).lock
    return nullcontext()


def rows_are_examples(dataset: Any) -> bool:
    """Tell whether the rows of a batch are what single requests give."""
    return (getattr(dataset, 'rows_are_examples', False)
            and 'get_data' not in vars(dataset)
            and defines_together(
                type(dataset), 'get_data', 'rows_are_examples'))


def takes_arrays(dataset: Any) -> bool:
    """Tell whether no user's code sees the requests for a data set.

    Users expect lists of integers; Fuel's own readers want arrays.
    """
    return (getattr(dataset, 'takes_arrays', False)
            and 'get_data' not in vars(dataset)
            and defines_together(type(dataset), 'get_data', 'takes_arrays'))


def request_source(dataset: Any, requests: Any) -> Any:
    """Return what gives the next request of an epoch at each call."""
    if requests is None:
        return _no_request
    if (isinstance(requests, RequestIterator)
            and type(requests).__next__ is RequestIterator.__next__
            and takes_arrays(dataset)):
        return requests.next_compact
    return requests.__next__


def batches_in_order(dataset: Any, requests: Any) -> Any:
    """Return what makes an iterator over the data of the next requests.

    None if a data set cannot read on by itself, or what it would read is not
    what the requests say. Single examples are read ahead in another way.
    """
    if (isinstance(requests, RequestIterator) and is_own(type(requests))
            and not isinstance(requests, IndexRequests)
            and takes_arrays(dataset)
            and defines_together(
                type(dataset), 'get_data', 'batches_in_order')):
        return dataset.batches_in_order
    return None


def _no_request() -> None:
    """Return no request, which reads what comes next."""


def requests_ahead(dataset: Any, requests: Any) -> Any:
    """Return what tells a data set of the next requests of an epoch.

    That is what its hook ``read_ahead`` makes of a function from a number
    to the request of that number. It is not asked if requests are not known
    beforehand, or a subclass reads in its own way.
    """
    if (isinstance(requests, RequestIterator)
            and type(requests)._request is not RequestIterator._request
            and hasattr(dataset, 'read_ahead')
            and 'get_data' not in vars(dataset)
            and defines_together(type(dataset), 'get_data', 'read_ahead')):
        # A user's own hook sees lists too.
        upcoming = (
            requests.compact_at
            if takes_arrays(dataset)
            and defines_together(type(dataset), 'read_ahead', 'takes_arrays')
            else requests.request_at)
        return dataset.read_ahead(upcoming) or _look_at_nothing
    return _look_at_nothing


def _look_at_nothing(number: int) -> None:
    """Do nothing ahead of a request."""


def dataset_position(stream: Any, attributes: dict[str, Any]) -> Any:
    """Return the position of the data set's state, or why there is none."""
    state = attributes.get('data_state')
    if state is None:
        return None
    dataset = stream.dataset
    if not (hasattr(dataset, 'get_position')
            and defines_together(type(dataset), 'open', 'get_position')):
        return TypeError(
            f'the position within the data set {type(dataset).__name__} '
            'cannot be saved as plain data: give the class the hooks '
            'get_position(state) and open_at(position), or pickle the '
            'epoch iterator instead')
    return dataset.get_position(state)


def _leftover(stream: Any) -> Any:
    """Return what the stage keeps between batches, or why it cannot."""
    if not defines_together(type(stream), 'get_data', 'get_leftover'):
        return TypeError(
            f'the position of the stage {type(stream).__name__} cannot be '
            'saved as plain data, since its get_data may keep things from '
            'one call to the next: give the class the hooks get_leftover() '
            '(which may return None) and set_leftover(leftover), or pickle '
            'the epoch iterator instead')
    return stream.get_leftover()


def _checked(part: Any) -> Any:
    """Raise the reason why a part of a mark is missing."""
    if isinstance(part, Exception):
        raise part
    return part


def as_state(mark: Any) -> dict[str, Any]:
    """Return a mark as plain data, ready for JSON.

    Parameters
    ----------
    mark : Mark or dict
        A dict is a state already (from another process).

    Raises
    ------
    TypeError
        If a part of the pipeline cannot tell its position.

    """
    if isinstance(mark, dict):
        return mark
    _checked(mark)
    return {
        'format': FORMAT,
        'stream': fingerprint(mark.stream),
        'epoch': RUNNING,
        'position': mark.position,
        'requested': mark.requested,
        'scheme': _checked(mark.start),
        'dataset': _checked(mark.dataset_position),
        'rng': generator_state(mark.rng),
        'leftover': _checked(mark.leftover),
        'children': [as_state(child) for child in mark.children],
    }


def state_between_epochs(stream: Any, epoch: str) -> dict[str, Any]:
    """Return the state of a stream none of whose epochs is running."""
    scheme = getattr(stream, 'iteration_scheme', None)
    position = (dataset_position(stream, vars(stream))
                if epoch == FINISHED else None)
    return {
        'format': FORMAT,
        'stream': fingerprint(stream),
        'epoch': epoch,
        'position': 0,
        'requested': 0,
        'scheme': None if scheme is None else scheme_state(scheme),
        'dataset': _checked(position),
        'rng': generator_state(getattr(stream, 'rng', None)),
        'leftover': None,
        'children': [child._state_between_epochs(epoch)
                     if hasattr(child, '_state_between_epochs')
                     else state_between_epochs(child, epoch)
                     for child in child_streams(stream)],
    }


def generator_state(rng: Any) -> Any:
    """Return the state of a stage's generator; None if it has none."""
    if not rng_state.is_generator(rng):
        return None
    return rng_state.get_state(rng)


def child_streams(stream: Any) -> list[Any]:
    """Return the streams that a stream reads."""
    if hasattr(stream, 'data_streams'):
        return list(stream.data_streams)
    return [stream.data_stream] if hasattr(stream, 'data_stream') else []


def child_iterators(stream: Any) -> list[Any]:
    """Return the epoch iterators that a stream shows at present."""
    if hasattr(stream, 'child_epoch_iterators'):
        return list(stream.child_epoch_iterators)
    iterator = getattr(stream, 'child_epoch_iterator', None)
    return [] if iterator is None else [iterator]


def mark_of(iterator: Any) -> Any:
    """Return the mark of an epoch iterator, or why it has none."""
    if hasattr(iterator, 'mark'):
        try:
            return iterator.mark()
        except Exception as error:  # noqa: BLE001 (raised if it is wanted)
            return error.with_traceback(None)
    return TypeError(
        f'an epoch iterator of type {type(iterator).__name__} cannot tell '
        'its position: let get_epoch_iterator() return a DataIterator')


def fingerprint(stream: Any) -> dict[str, Any]:
    """Return what must be equal where a state is taken up."""
    scheme = getattr(stream, 'iteration_scheme', None)
    dataset = getattr(stream, 'dataset', None)
    described: dict[str, Any] = {
        'class': _name(stream), 'sources': list(stream.sources)}
    _describe_rng(described, 'rng', stream)
    if scheme is not None:
        described['scheme'] = _name(scheme)
        for attribute in ('batch_size', 'num_examples', 'times',
                          'sorted_indices'):
            _describe(described, f'scheme {attribute}',
                      getattr(scheme, attribute, None))
        _describe_rng(described, 'scheme rng', scheme)
    if dataset is not None:
        described['data set'] = _name(dataset)
        _describe(described, 'data set num_examples',
                  getattr(dataset, 'num_examples', None))
    return described


def _name(instance: object) -> str:
    cls = type(instance)
    return f'{cls.__module__}.{cls.__qualname__}'


def _describe(described: dict[str, Any], key: str, value: Any) -> None:
    # Only numbers: NaN, for an unknown length, is not equal to itself.
    if isinstance(value, int) or hasattr(value, '__index__'):
        described[key] = int(value)


def _describe_rng(described: dict[str, Any], key: str, owner: Any) -> None:
    kind = rng_state.kind_of(getattr(owner, 'rng', None))
    if kind is not None:
        described[key] = kind


def check_fingerprint(stream: Any, state: dict[str, Any]) -> None:
    """Refuse a state that another kind of stream made."""
    if not isinstance(state, dict) or 'format' not in state:
        raise StateMismatchError(
            'a state must be what state_dict() returned, got '
            f'{type(state).__name__}')
    if state['format'] != FORMAT:
        raise StateMismatchError(
            f'the state has format {state["format"]!r}, but this version of '
            f'Fuel reads format {FORMAT}')
    saved, present = state['stream'], fingerprint(stream)
    for key in sorted(saved.keys() | present.keys()):
        if saved.get(key) != present.get(key):
            raise StateMismatchError(
                f'the state was saved by another pipeline: {key} was '
                f'{saved.get(key)!r}, but here it is {present.get(key)!r} '
                f'(stage {type(stream).__name__}): build the stream as it '
                'was when the state was saved')
