"""Integers that floating numbers do not hold exactly."""
from __future__ import annotations

from collections.abc import Iterable

from fuel.utils.warn import warn_user

# Floating numbers hold all integers up to this one, and none above the other.
EXACT, LARGEST = 1 << 53, 1 << 1023


def first_rounded(numbers: Iterable[int]) -> int | None:
    """Return the first of some integers that floating numbers do not hold
    exactly; None if they hold all."""
    return next((number for number in numbers if abs(number) > EXACT and (
        abs(number) > LARGEST or int(float(number)) != number)), None)


def warn_of_rounding(path: str, source: str,
                     number: int | None) -> None:
    """Warn if a floating source, as it was found to be, has an integer that
    floating numbers do not hold exactly, such as an identifier."""
    if number is not None:
        warn_user(
            f'{path}: source {source!r} is float64, since values are '
            f'missing or not whole, and does not hold {number!s:.25} '
            f'exactly: pass masks=({source!r},) if values are missing, or '
            f'dtypes={{{source!r}: ...}}')
