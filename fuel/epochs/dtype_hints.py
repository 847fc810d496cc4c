"""Types that the stage which asks will cast to, told to the one it asks.

Where the one that is asked knows, it writes the type at once, and no batch
is held in another on the way.
"""
from __future__ import annotations

from contextvars import ContextVar
from typing import Any

_wanted: ContextVar[tuple[Any, dict[str, Any]] | None] = ContextVar(
    'wanted', default=None)


class wanted_from:  # noqa: N801 - used as a function
    """Let a stage or a data set know what its data will be cast to.

    Parameters
    ----------
    giver : object
        Who is asked.
    dtypes : dict
        Maps names of sources to types.

    """

    def __init__(self, giver: Any, dtypes: dict[str, Any]) -> None:
        self._told = giver, dtypes

    def __enter__(self) -> None:
        self._token = _wanted.set(self._told)

    def __exit__(self, *_: object) -> None:
        _wanted.reset(self._token)


def wanted_types(giver: Any) -> dict[str, Any]:
    """Return what a stage or a data set was told by :func:`wanted_from`."""
    wanted = _wanted.get()
    return wanted[1] if wanted is not None and wanted[0] is giver else {}
