"""Warnings that point to the line of the user."""
from __future__ import annotations

import sys
import warnings
from types import FrameType

_PACKAGE = __name__.partition('.')[0]


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn, at the innermost line that is none of Fuel's.

    How far up that is depends on the way by which a function was reached: a
    data set may be made by its class, or by a function that opens any.
    """
    level, frame = 1, sys._getframe()
    while True:
        name = str(frame.f_globals.get('__name__', ''))
        above: FrameType | None = frame.f_back
        if name.partition('.')[0] != _PACKAGE or above is None:
            break
        level, frame = level + 1, above
    warnings.warn(text, category, stacklevel=level)
