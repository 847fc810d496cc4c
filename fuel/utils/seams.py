"""Name the points at which tests inject faults."""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Function = TypeVar('Function', bound=Callable[..., object])

#: The functions that are points, by name.
POINTS: dict[str, Callable[..., object]] = {}


def fault_point(name: str) -> Callable[[Function], Function]:
    """Register a function as a point; it is returned as it is, so that it
    costs nothing.

    :func:`fuel.testing.faults.intercept` puts something in its place.
    """
    def register(function: Function) -> Function:
        POINTS[name] = function
        return function

    return register
