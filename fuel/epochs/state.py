"""Positions of epochs, and states: the positions as plain data.

A state that stays with its pipeline does not say which one it is of; a saved
one does (see :mod:`fuel.epochs.state_check`).
"""
from __future__ import annotations

from typing import Any, NamedTuple

from fuel.epochs.pipeline import child_streams
from fuel.schemes.iteration_scheme import scheme_state
from fuel.utils import rng_state
from fuel.utils.overrides import defines_together

# What the state of a stream says of its epoch.
NOT_STARTED = 'not started'
RUNNING = 'running'
FINISHED = 'finished'


class Position(NamedTuple):
    """A position, taken cheaply; :func:`as_state` makes plain data of it."""

    stream: Any
    position: int
    requested: int
    start: Any
    dataset_position: Any
    rng: Any
    leftover: Any
    failed: tuple[int, ...]
    children: list[Any]


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


def leftover(stream: Any) -> Any:
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
    """Raise the reason why a part of a position is missing."""
    if isinstance(part, Exception):
        raise part
    return part


def as_state(position: Any) -> dict[str, Any]:
    """Return a position as plain data, ready for JSON."""
    if isinstance(position, dict):
        return position
    _checked(position)
    state = dict(position_fields(position))
    state['epoch'] = RUNNING
    state['children'] = [as_state(child) for child in position.children]
    return state


def position_fields(position: Position) -> list[tuple[str, Any]]:
    """Return the parts of a stage's state that change within an epoch."""
    return [
        ('position', position.position),
        ('requested', position.requested),
        ('scheme', _checked(position.start)),
        ('dataset', _checked(position.dataset_position)),
        ('rng', None if position.rng is None
         else rng_state.as_plain(position.rng)),
        ('leftover', _checked(position.leftover)),
        ('failed', sorted(position.failed))]


def state_between_epochs(stream: Any, epoch: str) -> dict[str, Any]:
    """Return the state of a stream none of whose epochs is running."""
    scheme = getattr(stream, 'iteration_scheme', None)
    position = (dataset_position(stream, vars(stream))
                if epoch == FINISHED else None)
    return {
        'epoch': epoch,
        'position': 0,
        'requested': 0,
        'scheme': None if scheme is None else scheme_state(scheme),
        'dataset': _checked(position),
        'rng': (rng_state.get_state(stream.rng) if rng_state.is_generator(
            getattr(stream, 'rng', None)) else None),
        'leftover': None,
        'failed': [],
        'children': [state_between(child, epoch)
                     for child in child_streams(stream)],
    }


def state_between(stream: Any, epoch: str) -> dict[str, Any]:
    """Return the state between epochs that a stream tells itself."""
    if hasattr(stream, '_state_between_epochs'):
        state: dict[str, Any] = stream._state_between_epochs(epoch)
        return state
    return state_between_epochs(stream, epoch)


def present_state(owner: Any) -> dict[str, Any]:
    """Return the state of a stream or an epoch iterator, without what it is
    a state of."""
    state: dict[str, Any] = (
        owner._state() if hasattr(owner, '_state') else owner.state_dict())
    return state


def position_of(iterator: Any) -> Any:
    """Return the position of an epoch iterator, or why it has none."""
    if hasattr(iterator, 'get_position'):
        try:
            return iterator.get_position()
        except Exception as error:  # noqa: BLE001 (raised if it is wanted)
            return error.with_traceback(None)
    return TypeError(
        f'an epoch iterator of type {type(iterator).__name__} cannot tell '
        'its position: let get_epoch_iterator() return a DataIterator')
