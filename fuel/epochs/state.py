"""Positions of epochs, and states: the positions as plain data.

A state that stays with its pipeline does not say which one it is of; a saved
one does (see :mod:`fuel.epochs.state_check`).
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

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


class Position(NamedTuple):
    """A position, taken cheaply; :func:`as_state` makes plain data of it."""

    stream: StreamLike | None
    position: int
    requested: int
    start: State | Unavailable | None
    dataset_position: object
    rng: rng_state.Snapshot | None
    leftover: object
    failed: tuple[int, ...]
    children: list[Position | State | Unavailable]


def available(part: object) -> Any:
    """Return a part of a state; raise the reason if it cannot be had."""
    if isinstance(part, Unavailable):
        raise part.reason
    return part


def as_state(position: Position | State | Unavailable) -> State:
    """Return a position as plain data, ready for JSON."""
    if not isinstance(position, Position):
        state: State = available(position)
        return state
    state = dict(position_fields(position))
    state['epoch'] = RUNNING
    state['children'] = [as_state(child) for child in position.children]
    return state


def position_fields(position: Position) -> list[tuple[str, Any]]:
    """Return the parts of a stage's state that change within an epoch."""
    return [
        ('position', position.position),
        ('requested', position.requested),
        ('scheme', available(position.start)),
        ('dataset', available(position.dataset_position)),
        ('rng', None if position.rng is None
         else rng_state.as_plain(position.rng)),
        ('leftover', available(position.leftover)),
        ('failed', sorted(position.failed))]


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
