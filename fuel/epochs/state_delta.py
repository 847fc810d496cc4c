"""Differences between a pipeline's state and its first state."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from fuel.epochs.epoch import Counter
from fuel.epochs.sealing import count, find_counters
from fuel.epochs.stage import stage_of
from fuel.epochs.state import (
    Position,
    as_state,
    available,
    position_fields,
    without_frames,
)
from fuel.epochs.state_check import DAMAGE, is_same
from fuel.exceptions import StateMismatchError
from fuel.kernels.epoch_iterator import EpochIterator
from fuel.typing import State
from fuel.utils.seams import fault_point

if TYPE_CHECKING:
    from fuel.iterator import DataIterator

# The field that states have only if examples were skipped.
_SKIPPED = 'skipped'

# A path has the keys and indices that lead to a value. A change is a path and
# the new value there.
Path = list[Any]
Changes = list[tuple[Path, Any]]


def changes(old: object, new: object) -> Changes:
    """Return the changes that turn `old` into `new`."""
    found: Changes = []
    _compare(old, new, [], found)
    return found


def _compare(old: object, new: object, path: Path, found: Changes) -> None:
    if old is new:
        return
    available(new)
    if isinstance(new, Position):
        _compare_position(old, new, path, found)
    elif isinstance(old, dict) and isinstance(new, dict) \
            and old.keys() == new.keys():
        for key in old:
            _compare(old[key], new[key], [*path, key], found)
    elif isinstance(old, list) and isinstance(new, list) \
            and len(old) == len(new) and all(
                isinstance(part, (dict, Position)) for part in new):
        for place in range(len(old)):
            _compare(old[place], new[place], [*path, place], found)
    elif not is_same(old, new):
        found.append((path, new))


def _compare_position(old: object, new: Position, path: Path,
                      found: Changes) -> None:
    """Compare the state of a stage with a later position of the stage."""
    if not isinstance(old, dict) or len(old['children']) != len(new.children):
        found.append((path, as_state(new)))
        return
    fields = {**position_fields(new), **new.skipped.as_field()}
    for key, value in fields.items():
        # The old state lacks the field if no example had been skipped.
        _compare(old.get(key), value, [*path, key], found)
    _compare(old['children'], new.children, [*path, 'children'], found)


class StateDelta:
    """Differences between an epoch iterator's state and its first state.

    `base`: the first state, or the error that explains why there is none.
    """

    def __init__(self, iterator: DataIterator) -> None:
        self.base = state_of(iterator)
        self._counters: list[Counter] | None = None
        self._streams: list[object] | None = None
        if isinstance(self.base, Exception) or not isinstance(
                iterator, EpochIterator):
            return
        if iterator.only_counts():
            self._counters = find_counters(
                stage_of(iterator.data_stream), iterator.epoch)
        self._streams = _streams_of(iterator.get_position())

    @fault_point('state delta')
    def changes(self, iterator: DataIterator) -> Changes | Exception | None:
        """Return the changes since the first state, or the error that explains
        why they are unknown; None if there is no first state."""
        if isinstance(self.base, Exception):
            return None
        if self._counters is not None:
            counted = _count(self._counters)
            if counted is not None:
                return counted
        try:
            if self._streams is not None:
                position = iterator.get_position()
                if _streams_of(position) == self._streams:
                    return changes(self.base, position)
            return changes(self.base, available(state_of(iterator)))
        except Exception as error:  # noqa: BLE001 - raised if it is wanted
            return without_frames(error)


def state_of(iterator: DataIterator) -> State | Exception:
    """Return the state of an epoch iterator, or the error that explains why
    there is none.

    The state of Fuel's own iterators lacks the fingerprint.
    """
    try:
        return (iterator.present_state() if isinstance(
            iterator, EpochIterator) else iterator.state_dict())
    except Exception as error:  # noqa: BLE001 - raised if it is wanted
        return without_frames(error)


def _streams_of(position: object) -> list[object]:
    """Return the streams of a position and its inputs' positions; [] for a
    state, which does not contain streams."""
    if not isinstance(position, Position):
        return []
    return [position.stream, *(
        stream for child in position.children
        for stream in _streams_of(child))]


def _count(counters: list[Counter]) -> Changes | None:
    """Return the counts of the stages as changes; None if anything else in
    their states has changed."""
    counts = count(counters)
    if counts is None:
        return None
    found: Changes = []
    path: Path = []
    for position, requested in counts:
        found.append(([*path, 'position'], position))
        found.append(([*path, 'requested'], requested))
        path = [*path, 'children', 0]
    return found


class Receipt(NamedTuple):
    """A state: the first state of its epoch, and the changes since then.

    `base`: the first state, or the reason why there is none.
    `changes`: the changes, or a function that returns them, or the reason
        why they are not known.  Defaults to None: there are none.
    """

    base: State | Exception
    changes: Changes | Callable[[], Changes | Exception | None] | None = None

    def state(self) -> State | Exception:
        """Return the state, or the reason why there is none."""
        found = self.changes() if callable(self.changes) else self.changes
        if isinstance(self.base, Exception) or found is None:
            return self.base
        return found if isinstance(found, Exception) else changed(
            self.base, found)


def changed(old: State, steps: Changes) -> State:
    """Return a copy of `old` with the changes applied.

    StateMismatchError is raised if changes, which may come from another
    process or a file, do not fit the state.
    """
    new = old
    try:
        for path, value in steps:
            new = _replaced(new, path, value)
    except DAMAGE as error:
        raise StateMismatchError(
            f'the changes of a state do not fit it ({error!r:.200}): they '
            'are damaged') from error
    return new


def _replaced(old: Any, path: Path, value: object) -> Any:
    if not path:
        return value
    copy = old.copy()
    copy[path[0]] = _replaced(
        old.get(_SKIPPED) if path[0] == _SKIPPED else old[path[0]],
        path[1:], value)
    return copy
