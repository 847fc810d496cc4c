"""Whether a class overrides a method that a faster one relies on."""
from __future__ import annotations

import functools
from collections.abc import Callable


def is_own(cls: type) -> bool:
    """Tell whether a class is part of Fuel."""
    return cls.__module__.partition('.')[0] == 'fuel'


def _defines_together(cls: type, method: str, hook: str) -> bool:
    """Tell whether `hook` knows of `method`.

    It does not if a subclass overrides the method alone: what that does is
    then unknown to the inherited hook.  Fuel's own classes are trusted.
    """
    for base in cls.__mro__:
        if hook in vars(base):
            return True
        if method in vars(base) and not is_own(base):
            return False
    return False


# Asked for every batch, of few classes.
defines_together: Callable[[type, str, str], bool] = functools.lru_cache(512)(
    _defines_together)
