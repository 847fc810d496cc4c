"""Limit for orders of far epochs, which are drawn one after another."""
from __future__ import annotations

from fuel.exceptions import UnknownOrderError

# Most epochs that are drawn one after another, to find another epoch.
MOST_DRAWN = 100_000


def epochs_to_draw(count: int) -> range:
    """Return a range of as many epochs, which are drawn one after another to
    find the order of another epoch; refuse too many."""
    if count > MOST_DRAWN:
        raise UnknownOrderError(
            f'the order of this epoch is found by drawing {count} epochs one '
            f'after another, and at most {MOST_DRAWN} are drawn: ask for an '
            'epoch that is nearer')
    return range(count)
