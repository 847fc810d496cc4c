"""How many examples of each class each split gets, by shares or numbers."""
from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from numbers import Integral
from typing import Any

import numpy
from numpy.typing import NDArray


def are_counts(shares: Mapping[str, float | None]) -> bool:
    """Return whether shares are numbers of examples; refuse what is neither
    these nor shares."""
    if not isinstance(shares, Mapping):
        raise TypeError(
            f'shares must be a dict from the name of each split to its share, '
            f"as in {{'train': .8, 'test': .2}}, got {shares!r}")
    known = [share for share in shares.values() if share is not None]
    rests = len(shares) - len(known)
    if rests < 2 and known and max(known) > 1 and all(
            isinstance(share, Integral) and not isinstance(share, bool)
            and share > 0 for share in known):
        return True
    total = sum(known)
    if (not all(0 < share <= 1 for share in known) or rests > 1
            or (total >= 1 if rests else abs(total - 1) > 1e-9)):
        raise ValueError(
            'shares must be from 0 to 1 and add up to 1, or one must be None '
            'for the rest; or all must be positive integers, the numbers of '
            f'examples, one of them above 1: got {dict(shares)}' + (
                ', where an integer of 1 is a share, of all examples; for '
                'one example, give the others their numbers too'
                if 1 in known and max(known) == 1 else ''))
    return False


def rest_last(shares: Mapping[str, float | None]) -> list[str]:
    """Return the names of splits in the order in which parts are cut."""
    return sorted(shares, key=lambda name: shares[name] is None)


def lengths_of_shares(count: int, shares: Mapping[str, float | None]
                      ) -> dict[str, int]:
    """Return how many of so many examples each split gets by its share."""
    *names, last = rest_last(shares)
    found, left = {}, count
    for name in names:
        found[name] = min(round(count * (shares[name] or 0)), left)
        left -= found[name]
    return {**found, last: left}


def fill_counts(shares: Mapping[str, float | None],
                classes: Sequence[Sized], count: int) -> dict[str, int]:
    """Return the number of examples of each split, that of the rest too.

    `count`: how many examples there are, those without a class too.
    """
    left = sum(map(len, classes))
    counts = {name: int(share) for name in rest_last(shares)
              if (share := shares[name]) is not None}
    total, rest = sum(counts.values()), len(counts) < len(shares)
    if total >= left if rest else total != left:
        raise ValueError(
            f'the numbers of examples, {dict(shares)}, add up to {total}, '
            f'and there are {left} examples to split' + (
                f', since the class of {count - left} is missing'
                if left < count else '') + (
                ': none is left for the rest' if rest else
                ': give them other numbers, or None for the rest to one'))
    return {name: counts.get(name, left - total)
            for name in rest_last(shares)}


def apportion(sizes: Sequence[int], counts: Mapping[str, int],
              rng: numpy.random.RandomState) -> list[dict[str, int]]:
    """Return how many examples of each class each split gets.

    Each number is the exact share, rounded up or down, and the sums are the
    sizes of classes and the counts of splits. Up is rounded where the
    remainders are largest, those that are equal in random order.
    """
    totals = numpy.fromiter(counts.values(), 'int64', len(counts))
    found, remainders = numpy.divmod(
        numpy.asarray(sizes, 'int64')[:, None] * totals, totals.sum())
    class_left = (sizes - found.sum(1)).tolist()
    split_left = (totals - found.sum(0)).tolist()
    free = remainders > 0
    extra = numpy.zeros(free.shape, bool)
    if free.any():
        by_size = numpy.lexsort(
            (rng.permutation(remainders.size), -remainders.ravel()))
        for cell in by_size.tolist():
            row, split = divmod(cell, len(counts))
            if class_left[row] and split_left[split] and free[row, split]:
                extra[row, split], free[row, split] = True, False
                class_left[row] -= 1
                split_left[split] -= 1
    for row in numpy.repeat(numpy.arange(len(sizes)), class_left).tolist():
        _round_up(row, extra, free, split_left)
    return [dict(zip(counts, lengths, strict=True))
            for lengths in (found + extra).tolist()]


def _round_up(row: int, extra: NDArray[Any], free: NDArray[Any],
              split_left: list[int]) -> None:
    """Round one number of a class up, where no split that it may have lacks
    one: other classes hand theirs on, along the shortest way to a split
    that does.

    There is such a way, because the exact shares add up.

    `extra`: where numbers are rounded up. `free`: where they may be yet.
    """
    ways = [[(row, split)] for split in numpy.flatnonzero(free[row]).tolist()]
    seen = {way[-1][1] for way in ways}
    for way in ways:
        split = way[-1][1]
        if split_left[split]:
            split_left[split] -= 1
            for place, (cell_row, cell_split) in enumerate(way):
                if place:
                    # This class hands on what it had in the split before.
                    before = way[place - 1][1]
                    extra[cell_row, before], free[cell_row, before] = (
                        False, True)
                extra[cell_row, cell_split], free[cell_row, cell_split] = (
                    True, False)
            return
        for other in range(free.shape[1]):
            rows = numpy.flatnonzero(extra[:, split] & free[:, other])
            if len(rows) and other not in seen:
                seen.add(other)
                ways.append([*way, (int(rows[0]), other)])
