"""Registry of the functions in which tests inject faults."""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Function = TypeVar('Function', bound=Callable[..., object])

#: The registered functions, by the name of the fault point.
POINTS: dict[str, Callable[..., object]] = {}


def fault_point(name: str) -> Callable[[Function], Function]:
    """Register a function as a fault point.

    The function itself is returned, so that the registration takes no time
    later. :func:`fuel.testing.faults.intercept` replaces it in tests.
    """
    def register(function: Function) -> Function:
        POINTS[name] = function
        return function

    return register
