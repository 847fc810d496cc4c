"""The epochs of a stream that were begun before the present one.

A stream counts them, so that an example can be found by the number of its
epoch or of its training step.
"""
from __future__ import annotations

import re
from typing import TypeAlias

#: The numbers of items of these epochs, such as 'all*3 17': all items of
#: three epochs, then 17 items of an epoch that was left. '?*5' stands for five
#: epochs whose numbers of items were dropped. None: nothing is known, since a
#: state of an older version was loaded.
Past: TypeAlias = 'str | None'

ALL, DROPPED = 'all', '?'
# Most characters that are kept, since each state has them.
_MOST = 2000
_PAST = re.compile(
    r'((all|\?|0|[1-9][0-9]{0,18})(\*[1-9][0-9]{0,17})?( (?=.)|$))*')
# More epochs than any program begins: states of further epochs can be loaded.
_MOST_EPOCHS = 10 ** 17


def with_epoch(past: Past, num_items: int | None) -> Past:
    """Return the epochs that were begun before an epoch, and this epoch.

    `num_items`: number of items that the epoch delivered; None for all.
    """
    if past is None:
        return None
    count = ALL if num_items is None else str(num_items)
    before, _, last = past.rpartition(' ')
    name, _, times = last.partition('*')
    if name == count:
        found = f'{before} {count}*{int(times or 1) + 1}'.lstrip()
    else:
        found = f'{past} {count}'.lstrip()
    return found if len(found) <= _MOST else _shortened(found)


def runs(past: str) -> list[tuple[str, int]]:
    """Return the numbers of items, and how many consecutive epochs delivered
    so many."""
    return [(name, int(times or 1)) for name, _, times in [
        run.partition('*') for run in past.split()]]


def _shortened(past: str) -> str:
    """Drop the older half of the numbers of items."""
    found = runs(past)
    half = len(found) // 2
    dropped = sum([times for _, times in found[:half]])
    return ' '.join([f'{name}*{times}' for name, times in [
        (DROPPED, dropped), *found[half:]]])


def num_epochs(past: str) -> int:
    """Return the number of epochs."""
    return sum([times for _, times in runs(past)])


def is_past(value: object) -> bool:
    """Return whether a value of a state says which epochs were begun."""
    return isinstance(value, str) and len(value) <= _MOST and (
        _PAST.fullmatch(value) is not None
        and num_epochs(value) < _MOST_EPOCHS)
