"""Items of an order that are left out of the epochs of a stream."""
from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from fuel.epochs.past import Past, num_epochs
from fuel.exceptions import UnknownOrderError

#: For each range of items of all ranks: the number of the epoch, the first
#: item, and the item after the last one. The ranges ascend and do not overlap.
Omitted: TypeAlias = tuple[tuple[int, int, int], ...]


def union(one: Omitted, other: Iterable[tuple[int, int, int]]) -> Omitted:
    """Return the items of both."""
    found: list[tuple[int, int, int]] = []
    for epoch, first, stop in sorted([*one, *other]):
        if found and found[-1][0] == epoch and first <= found[-1][2]:
            found[-1] = epoch, found[-1][1], max(stop, found[-1][2])
        else:
            found.append((epoch, first, stop))
    return tuple(found)


def is_omitted(value: object) -> bool:
    """Return whether a value of a state names items that are left out."""
    return isinstance(value, list) and all(
        isinstance(part, list) and len(part) == 3
        and all(type(number) is int and 0 <= number < 2 ** 63
                for number in part) and part[1] < part[2]
        for part in value) and [list(part) for part in union(
            (), [tuple(part) for part in value])] == value


def of_plain(value: Iterable[Iterable[int]]) -> Omitted:
    """Return the items that a state names."""
    return tuple([(epoch, first, stop) for epoch, first, stop in value])


def omitted_in(omitted: Omitted, past: Past) -> list[tuple[int, int]]:
    """Return the items that are left out of the epoch after some epochs."""
    if past is None:
        raise UnknownOrderError(
            'the stream leaves out steps, but the number of its epoch is not '
            'known: the state that was loaded was saved by an older version '
            'of Fuel')
    number = num_epochs(past)
    return [(first, stop) for epoch, first, stop in omitted
            if epoch == number]
