"""Copies of the generators of the modules `random` and `numpy.random`."""
from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy


class ModuleGenerators:
    """States of the generators of the modules `random` and `numpy.random`.

    A user's scheme may draw from these generators. The constructor copies
    their present states.
    """

    def __init__(self) -> None:
        self._states = random.getstate(), numpy.random.get_state()

    @contextmanager
    def drawn_from(self) -> Iterator[None]:
        """Return a context in which the modules draw from these states.

        At its end, the modules' own states are restored.
        """
        before = random.getstate(), numpy.random.get_state()
        self._set(self._states)
        try:
            yield
        finally:
            self._states = random.getstate(), numpy.random.get_state()
            self._set(before)

    def _set(self, states: tuple[Any, Any]) -> None:
        random.setstate(states[0])
        numpy.random.set_state(states[1])
