"""States of a pipeline, told by what changed since the first."""
from __future__ import annotations

from typing import Any

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


def changed(old: Any, steps: Changes) -> Any:
    """Return a copy of `old` with the changes made; `old` stays.

    Parameters
    ----------
    old : object
    steps : list of (list, object)
        From :func:`changes`.

    Returns
    -------
    object

    """
    for path, value in steps:
        old = _replaced(old, path, value)
    return old


def _replaced(old: Any, path: list[Any], value: Any) -> Any:
    if not path:
        return value
    copy = old.copy()
    copy[path[0]] = _replaced(old[path[0]], path[1:], value)
    return copy
