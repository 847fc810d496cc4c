"""Positions of epochs, and states: the positions as plain data.

Only a saved state has the fingerprint of its pipeline (see
:mod:`fuel.epochs.state_check`). A state that stays with its pipeline does not
need one.
"""
from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from fuel.epochs.skipped import Skipped
from fuel.exceptions import StateMismatchError
from fuel.typing import State, StreamLike
from fuel.utils import rng_state

# Values of the field 'epoch' in the state of a stream.
NOT_STARTED = 'not started'
RUNNING = 'running'
FINISHED = 'finished'


_encoder = json.JSONEncoder(sort_keys=True, separators=(',', ':'))


def as_text(value: object) -> str:
    """Return plain data as compact JSON, with sorted keys."""
    return _encoder.encode(value)


#: Constant plain data: the JSON text, and a function that returns a new copy
#: of the decoded text.
TextAndCopy: TypeAlias = 'tuple[str, Callable[[], Any]]'


def encoded(value: object) -> TextAndCopy:
    """Return the JSON text of plain data and a function that copies them."""
    text = as_text(value)
    return text, copier_of(json.loads(text))


class SchemeStart:
    """The state that a scheme had when an epoch began.

    `data`: the state. If a generator is the whole state of the scheme, it is a
        snapshot of this generator, which becomes plain data when the state is
        needed.
    """

    def __init__(self, data: Any) -> None:
        self._data = data
        if not isinstance(data, rng_state.Snapshot):
            self.source = data

    @functools.cached_property
    def source(self) -> Any:
        """The state as plain data; every read returns the same object."""
        return {'rng': rng_state.as_plain(self._data)}

    @functools.cached_property
    def encoded(self) -> TextAndCopy:
        """The state as `TextAndCopy`, encoded at the first read."""
        return encoded(self.source)

    def __reduce__(self) -> Any:
        return type(self), (self._data,)


class Position(NamedTuple):
    """Position of a stage in its epoch, in a form that is quick to get.

    :func:`as_state` returns it as plain data.
    """

    stream: StreamLike | None
    position: int
    requested: int
    start: SchemeStart | Exception | None
    dataset_position: object
    rng: rng_state.Snapshot | None
    leftover: object
    failed: tuple[int, ...]
    children: list[Position | State | Exception]
    skipped: Skipped = Skipped()
    # For a stage that restarts its inputs: how their first epochs began.
    first_epochs: Any = None
    # States of the generators and schemes that inputs share.
    shared: tuple[Any, ...] = ()


def without_frames(error: Exception) -> Exception:
    """Return an error without its traceback, to keep in place of a part of a
    state.

    The frames of a traceback would keep their local variables alive.
    """
    return error.with_traceback(None)


def available(part: object) -> Any:
    """Return a part of a state; raise it if it is an error."""
    if isinstance(part, SchemeStart):
        return part.source
    if isinstance(part, Exception):
        raise part
    return part


def as_state(position: Position | State | Exception) -> State:
    """Return a position as plain data, ready for JSON."""
    if not isinstance(position, Position):
        state: State = available(position)
        return state
    state = {**position_fields(position), 'epoch': RUNNING,
             'children': list(map(as_state, position.children))}
    if position.skipped.count:
        state.update(position.skipped.as_field())
    return state


def shallow_state(position: Position | State | Exception) -> State:
    """Return a position as plain data, except for the inputs' positions.

    The result has the inputs' first epochs, which a saved state leaves out.
    """
    if not isinstance(position, Position):
        state: State = available(position)
        return state
    return {**position_fields(position), 'children': position.children,
            '_first_epochs': position.first_epochs}


def position_fields(position: Position) -> State:
    """Return the parts of a stage's state that change within an epoch."""
    fields: State = {
        'position': position.position,
        'requested': position.requested,
        'scheme': position.start,
        'dataset': position.dataset_position,
        'rng': None if position.rng is None
        else rng_state.as_plain(position.rng),
        'leftover': position.leftover,
        'failed': sorted(position.failed)}
    for name in ('scheme', 'dataset', 'leftover'):
        if fields[name] is not None:
            fields[name] = available(fields[name])
    if position.shared:
        fields['rng'] = {**(fields['rng'] or {}),
                         'shared': list(position.shared)}
    return fields


def position_of(iterator: Iterator[object]
                ) -> Position | State | Exception:
    """Return the position of an epoch iterator, or the error that explains why
    there is none."""
    get_position: Callable[[], Position | State | Exception] | None = (
        getattr(iterator, 'get_position', None))
    if get_position is None:
        return TypeError(
            f'an epoch iterator of type {type(iterator).__name__} has no '
            'position: let get_epoch_iterator() return a DataIterator')
    try:
        return get_position()
    except Exception as error:  # noqa: BLE001 (raised if it is wanted)
        return without_frames(error)


def copier_of(value: Any) -> Callable[[], Any]:
    """Return a function that returns a deep copy of plain data."""
    if not isinstance(value, (dict, list)):
        return lambda: value
    parts = value.values() if isinstance(value, dict) else value
    if {dict, list}.isdisjoint(map(type, parts)):
        return value.copy
    items: Iterable[tuple[Any, Any]] = (
        value.items() if isinstance(value, dict) else enumerate(value))
    nested = [(key, copier_of(part)) for key, part in items
              if isinstance(part, (dict, list))]

    def copy() -> Any:
        copied = value.copy()
        for key, copy_part in nested:
            copied[key] = copy_part()
        return copied

    return copy


def copied_with_text(value: object) -> tuple[Any, str]:
    """Return a copy of plain data, and their JSON text.

    It is meant for values that may change from batch to batch.
    """
    text = as_text(value)
    return json.loads(text), text


# Format and fields of the state of one worker of a loader.
_SHARE_FORMAT = 1
_SHARE_FIELDS = {'fuel', 'worker', 'num_workers', 'taken', 'stream'}


def share_state(worker: int, num_workers: int, taken: int,
                stream: State) -> State:
    """Return the state of a loader's worker as plain data.

    The stream's state is a string in it, since torchdata compares each number
    of a state after each batch.

    `worker`: number of the worker, 0 in the process of the loader.
    `num_workers`: number of workers, 0 in the process of the loader.
    `taken`: number of items that the worker has read.
    `stream`: state of the stream after these items.
    """
    return {'fuel': _SHARE_FORMAT, 'worker': worker,
            'num_workers': num_workers, 'taken': taken,
            'stream': json.dumps(stream)}


def of_stream(state: State) -> State:
    """Return the state of a whole stream in the form that loaders use."""
    return share_state(0, 0, 0, state)


def is_share_state(state: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a state has the form that loaders use."""
    return isinstance(state, Mapping) and 'fuel' in state


def read_share_state(state: Mapping[str, Any]) -> State:
    """Return a worker's state with the stream's state decoded.

    The stream's state is not checked.
    """
    counts = [state.get(name) for name in ('worker', 'num_workers', 'taken')]
    if (set(state) != _SHARE_FIELDS or state['fuel'] != _SHARE_FORMAT
            or not isinstance(state['stream'], str)
            or not all(type(count) is int and count >= 0
                       for count in counts)):
        raise StateMismatchError(
            'the state of a worker has not the fields that as_iterable() '
            f'saves, {sorted(_SHARE_FIELDS)} in format {_SHARE_FORMAT}, but '
            f'{sorted(map(str, state))}: it is damaged, or of another '
            'version of Fuel')
    try:
        stream = json.loads(state['stream'])
    except (ValueError, RecursionError) as error:
        raise StateMismatchError(
            "the field 'stream' of the state of a worker is not valid JSON "
            f'({error}): the state is damaged') from None
    return {**state, 'stream': stream}
