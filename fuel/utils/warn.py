"""Warnings that point to the user's line of code."""
from __future__ import annotations

import sys
import warnings
from types import FrameType

_PACKAGE = __name__.partition('.')[0]


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning that points to the innermost line outside of Fuel.

    The number of calls between this line and the caller varies: a user may
    call the class of a data set, or a function that opens any data set.
    """
    level, frame = 1, sys._getframe()
    while True:
        name = str(frame.f_globals.get('__name__', ''))
        above: FrameType | None = frame.f_back
        if name.partition('.')[0] != _PACKAGE or above is None:
            break
        level, frame = level + 1, above
    warnings.warn(text, category, stacklevel=level)
