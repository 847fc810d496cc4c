"""Shared objects by key, which exist as long as they are in use."""
from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from fuel.utils.forks import Step, each_at_fork

Key = TypeVar('Key', bound=Hashable)
Member = TypeVar('Member')


class Registry(Generic[Key, Member]):
    """Shared objects by key, held weakly.

    `lock`: held while an object is made; a forked child gets a new lock.
    `find`: returns the object of a key, None if it is not in use.

    Examples
    --------
    >>> registry = Registry()
    >>> one = registry.get('numbers', set)
    >>> registry.get('numbers', set) is one
    True
    >>> registry.find('letters') is None
    True
    """

    def __init__(self) -> None:
        self._members: weakref.WeakValueDictionary[Key, Member] = (
            weakref.WeakValueDictionary())
        self.find = self._members.get
        self.start_in_child()
        _all.add(self)

    def start_in_child(self) -> None:
        """Make a new lock, for a child made by a fork."""
        self.lock = threading.RLock()

    def members(self) -> list[Member]:
        """Return the objects that are in use."""
        # List the references at once, since other threads may make an object
        # meanwhile.
        return [member for reference in self._members.valuerefs()
                if (member := reference()) is not None]

    def get(self, key: Key, make: Callable[..., Member], *args: Any) -> Member:
        """Return the object of a key; if none is in use, make one.

        `make`: called with `args`; returns a new object.
        """
        with self.lock:
            member = self._members.get(key)
            if member is None:
                member = self._members[key] = make(*args)
            return member


_all: weakref.WeakSet[Registry[Any, Any]] = each_at_fork(
    Step.OWNERSHIP, in_child=Registry.start_in_child)
