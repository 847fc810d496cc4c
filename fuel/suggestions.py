"""Asking whether a known name was meant."""
from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: object, known: Iterable[str],
                 form: str = '{}', cutoff: float = .6) -> str:
    """Return a question for the known name nearest to an unknown one.

    Examples
    --------
    >>> did_you_mean('feature', ['features', 'targets'])
    "did you mean 'features'?"
    >>> did_you_mean('feature', ['features', 'targets'], ' ({})')
    " (did you mean 'features'?)"
    >>> did_you_mean(5, ['features', 'targets'])
    ''
    """
    # Only errors need it.
    import difflib
    matches = difflib.get_close_matches(str(name), known, 1, cutoff)
    return form.format(f'did you mean {matches[0]!r}?') if matches else ''
