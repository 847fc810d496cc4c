"""States of a pipeline, told by what changed since the first."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from fuel.utils import rng_state

if TYPE_CHECKING:
    from fuel.epochs.epoch import Epoch
    from fuel.epochs.state import Position

# A path and the new value there.
Changes = list[tuple[list[Any], Any]]


def changes(old: Any, new: Any) -> Changes:
    """Return what to change in `old` to have `new`.

    Parameters
    ----------
    old, new : object
        Dicts, lists, numbers, texts: what a state is made of.

    Returns
    -------
    list of (list, object)
        Keys and indices that lead to a value, and the new value.

    """
    found: Changes = []
    _compare(old, new, [], found)
    return found


def _compare(old: Any, new: Any, path: list[Any], found: Changes) -> None:
    if type(old) is type(new) and old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict) \
            and old.keys() == new.keys():
        for key in old:
            _compare(old[key], new[key], [*path, key], found)
    elif isinstance(old, list) and isinstance(new, list) \
            and len(old) == len(new) and _hold_dicts(old, new):
        for place, (before, after) in enumerate(
                zip(old, new, strict=True)):
            _compare(before, after, [*path, place], found)
    else:
        found.append((path, new))


def _hold_dicts(*lists: list[Any]) -> bool:
    return all(isinstance(element, dict)
               for elements in lists for element in elements)


class StateDelta:
    """How the state of an epoch iterator changes from its first.

    Attributes
    ----------
    base : dict or Exception
        The first state, or why there is none.

    """

    def __init__(self, iterator: Any) -> None:
        self.base = _state_of(iterator)
        self._position = None
        self._counters: list[_Counter] | None = None
        if isinstance(self.base, dict) and hasattr(iterator, 'get_position'):
            self._position = iterator.get_position()
            self._counters = _find_counters(iterator)

    def changes(self, iterator: Any) -> Changes | Exception | None:
        """Return what has changed since the first state.

        Returns
        -------
        list, Exception or None
            None if there is no first state; an exception says why there is
            none now.

        """
        if isinstance(self.base, Exception):
            return None
        if self._counters is not None:
            counted = _count(self._counters)
            if counted is not None:
                return counted
        if self._position is not None:
            found: Changes = []
            position = iterator.get_position()
            if _compare_positions(
                    self.base, self._position, position, [], found):
                return found
        state = _state_of(iterator)
        return (state if isinstance(state, Exception)
                else changes(self.base, state))


def _state_of(iterator: Any) -> Any:
    try:
        return iterator.state_dict()
    except Exception as error:  # noqa: BLE001 - told to who wants a state
        return error


class _Counter(NamedTuple):
    """A stage of whose state nothing but two numbers changes."""

    epoch: Epoch
    child: Any
    position: list[Any]
    requested: list[Any] | None


def _find_counters(iterator: Any) -> list[_Counter] | None:
    """Return the stages of a pipeline that only counts, None of any other.

    Most pipelines do: no stage keeps something from one batch to the next,
    or draws at random.  Then two numbers a stage say it all.
    """
    from fuel.iterator import DataIterator
    from fuel.streams import AbstractDataStream

    counters: list[_Counter] = []
    path: list[Any] = []
    while True:
        if type(iterator) is not DataIterator:
            return None
        epoch, stream = iterator.epoch, iterator.data_stream
        if epoch.attributes.keys() - {'child_epoch_iterator', 'data_state'} \
                or epoch.attributes.get('data_state') is not None \
                or rng_state.is_generator(getattr(stream, 'rng', None)) \
                or any(getattr(type(stream), hook)
                       is not getattr(AbstractDataStream, hook)
                       for hook in ('get_leftover', 'get_child_position',
                                    '_child_positions', '_state_of')):
            return None
        child = epoch.attributes.get('child_epoch_iterator')
        counters.append(_Counter(
            epoch, child, [*path, 'position'],
            None if epoch.request_iterator is None
            else [*path, 'requested']))
        if child is None:
            return counters
        path = [*path, 'children', 0]
        iterator = child


def _count(counters: list[_Counter]) -> Changes | None:
    """Return where the stages are now; None if one has another child."""
    found: Changes = []
    for epoch, child, position, requested in counters:
        if epoch.taken:
            epoch.commit_taken()
        if not epoch.finished \
                and epoch.attributes.get('child_epoch_iterator') is not child:
            return None
        found.append((position, epoch.position))
        if requested is not None:
            found.append((requested, epoch.requested))
    return found


def _compare_positions(base: Any, first: Position, position: Position,
                       path: list[Any], found: Changes) -> bool:
    """Find what changed in a state without making all of the new one."""
    if isinstance(position, (dict, Exception)) or isinstance(first, dict) \
            or position.stream is not first.stream \
            or position.start is not base['scheme'] \
            or position.rng is not None or first.rng is not None \
            or len(position.children) != len(first.children):
        return False
    for key, value in (('position', position.position),
                       ('requested', position.requested),
                       ('dataset', position.dataset_position),
                       ('leftover', position.leftover)):
        if isinstance(value, Exception):
            return False
        if value is not base[key]:
            _compare(base[key], value, [*path, key], found)
    return all(
        _compare_positions(
            state, before, now, [*path, 'children', place], found)
        for place, (state, before, now) in enumerate(
            zip(base['children'], first.children, position.children,
                strict=True)))


def changed(old: Any, steps: Changes) -> Any:
    """Return a copy of `old` with the changes made; `old` stays."""
    for path, value in steps:
        old = _replaced(old, path, value)
    return old


def _replaced(old: Any, path: list[Any], value: Any) -> Any:
    if not path:
        return value
    copy = old.copy()
    copy[path[0]] = _replaced(old[path[0]], path[1:], value)
    return copy
