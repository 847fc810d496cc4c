"""Positions of epochs, and states: the positions as plain data.

A state that stays with its pipeline does not say which one it is of; a saved
one does (see :mod:`fuel.epochs.state_check`).
"""
from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from fuel.epochs.skipped import Skipped
from fuel.typing import State, StreamLike
from fuel.utils import rng_state

# What the state of a stream says of its epoch.
NOT_STARTED = 'not started'
RUNNING = 'running'
FINISHED = 'finished'


class Unavailable:
    """A part of a state that cannot be had, and why not.

    `reason`: raised if it is wanted.
    """

    __slots__ = ('reason',)

    def __init__(self, reason: Exception) -> None:
        # Its frames would keep what they work with alive.
        self.reason = reason.with_traceback(None)


class SchemeStart:
    """The state of a scheme that keeps a generator alone, made when it is
    wanted.

    `before`: the state of the generator when the epoch began.
    """

    def __init__(self, before: rng_state.Snapshot) -> None:
        self._before = before
        self._state: State | None = None

    def state(self) -> State:
        """Return the state, the same object each time."""
        if self._state is None:
            self._state = {'rng': rng_state.as_plain(self._before)}
        return self._state


class Position(NamedTuple):
    """A position, taken cheaply; :func:`as_state` makes plain data of it."""

    stream: StreamLike | None
    position: int
    requested: int
    start: State | SchemeStart | Unavailable | None
    dataset_position: object
    rng: rng_state.Snapshot | None
    leftover: object
    failed: tuple[int, ...]
    children: list[Position | State | Unavailable]
    skipped: Skipped = Skipped()
    # Of a stage that begins its inputs anew: how their first epochs began.
    first_epochs: Any = None


def available(part: object) -> Any:
    """Return a part of a state; raise the reason if it cannot be had."""
    if isinstance(part, SchemeStart):
        return part.state()
    if isinstance(part, Unavailable):
        raise part.reason
    return part


def as_state(position: Position | State | Unavailable) -> State:
    """Return a position as plain data, ready for JSON."""
    if not isinstance(position, Position):
        state: State = available(position)
        return state
    state = {**position_fields(position), 'epoch': RUNNING,
             'children': [as_state(child) for child in position.children]}
    if position.skipped.count:
        state.update(position.skipped.as_field())
    return state


def shallow_state(position: Position | State | Unavailable) -> State:
    """Return a position as plain data, but for those of the inputs; with
    how their first epochs began, which no saved state says."""
    if not isinstance(position, Position):
        state: State = available(position)
        return state
    return {**position_fields(position), 'children': position.children,
            '_first_epochs': position.first_epochs}


def position_fields(position: Position) -> State:
    """Return the parts of a stage's state that change within an epoch."""
    fields = {
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
    return fields


def position_of(iterator: Iterator[object]
                ) -> Position | State | Unavailable:
    """Return the position of an epoch iterator, or why it has none."""
    get_position: Callable[[], Position | State | Unavailable] | None = (
        getattr(iterator, 'get_position', None))
    if get_position is None:
        return Unavailable(TypeError(
            f'an epoch iterator of type {type(iterator).__name__} cannot tell '
            'its position: let get_epoch_iterator() return a DataIterator'))
    try:
        return get_position()
    except Exception as error:  # noqa: BLE001 (raised if it is wanted)
        return Unavailable(error)


_encoder = json.JSONEncoder(sort_keys=True, separators=(',', ':'))


def as_text(value: object) -> str:
    """Return plain data as JSON: short, with the keys in order."""
    return _encoder.encode(value)


class Encoded:
    """Plain data that stay as they are: encoded once, copied often.

    `source`: what was encoded.
    `text`: the same as JSON.
    `copy`: returns what JSON gives back, in lists and dicts of its own.
    """

    __slots__ = ('copy', 'source', 'text')

    def __init__(self, source: object) -> None:
        self.source = source
        self.text = as_text(source)
        self.copy = copier_of(json.loads(self.text))


def copier_of(value: Any) -> Callable[[], Any]:
    """Return a function that copies some plain data."""
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
    """Return a copy of what may differ from batch to batch, and its text."""
    text = as_text(value)
    return json.loads(text), text
