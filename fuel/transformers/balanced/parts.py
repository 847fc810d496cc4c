"""Split the examples of a step over ranks and rounds, so that the costs of the
parts are alike.

The results depend only on the arguments, so each rank computes the same.
"""
from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Sequence, Sized
from typing import Any, TypeAlias, cast

import numpy
from numpy.typing import NDArray

from fuel.utils.checks import as_regular

#: The lengths of examples, and their costs.
Lengths: TypeAlias = 'NDArray[numpy.int64]'
Costs: TypeAlias = 'NDArray[numpy.float64]'
#: For each part, the places of its examples.
Parts: TypeAlias = 'list[list[int]]'

# By this number the squared length is divided, in the cost of attention.
DIVISOR = 1000.


def linear(lengths: Lengths) -> Costs:
    """Return the lengths as costs."""
    return lengths.astype(numpy.float64)


def attention(lengths: Lengths, divisor: float = DIVISOR) -> Costs:
    """Return the costs of examples whose items attend to each other."""
    costs = lengths.astype(numpy.float64)
    return costs + costs * costs / divisor


def cost_function(cost: Any) -> Callable[[Lengths], Any]:
    """Return the function that an argument `cost` means."""
    if callable(cost):
        function: Callable[[Lengths], Any] = cost
        return function
    if isinstance(cost, str) and cost == 'linear':
        return linear
    if isinstance(cost, str) and cost == 'attention':
        return attention
    if isinstance(cost, tuple) and len(cost) == 2 and (
            cost[0] == 'attention'):
        if isinstance(cost[1], (
                int, float, numpy.integer, numpy.floating)) and (
                    0 < cost[1] < float('inf')):
            return functools.partial(attention, divisor=float(cost[1]))
        raise ValueError(
            "cost=('attention', divisor) needs a positive number as divisor, "
            f'got {cost[1]!r:.80}')
    raise ValueError(
        "cost must be 'linear', 'attention', ('attention', divisor) or a "
        f'function of an array of lengths, got {cost!r:.80}')


def plain_array(data: object) -> NDArray[Any]:
    """Return data as an array: lists of unequal lengths as one of objects."""
    try:
        return as_regular(data)
    except ValueError:
        found = numpy.empty(len(cast('Sized', data)), object)
        found[:] = data
        return found


def costs_of(cost: Callable[[Lengths], Any], lengths: Lengths) -> list[float]:
    """Return the costs of examples; raise ValueError if they are not costs."""
    # A function may work in place, and the lengths are counted later.
    found = plain_array(cost(lengths.copy()))
    if found.shape != lengths.shape or found.dtype.kind not in 'iuf':
        raise ValueError(
            f'cost must return a number for each of {len(lengths)} lengths, '
            f'got an array of shape {found.shape} and dtype {found.dtype}')
    costs = found.astype(numpy.float64)
    # NaN is not in this range either.
    wrong = numpy.flatnonzero(~((costs >= 0) & (costs < numpy.inf)))
    if len(wrong):
        raise ValueError(
            'cost must return finite numbers that are not negative, got '
            f'{costs[wrong[0]]} for the length {lengths[wrong[0]]}')
    listed: list[float] = costs.tolist()
    return listed


def longest_first(costs: Sequence[float], offsets: Sequence[float],
                  ) -> Parts:
    """Return parts: each example, the costliest first, joins the part with the
    lowest cost.

    `offsets`: for each part, a cost that it has from the beginning.
    """
    heap = [(cost, 0, part) for part, cost in enumerate(offsets)]
    heapq.heapify(heap)
    owners = [0] * len(costs)
    for place in sorted(range(len(costs)), key=costs.__getitem__,
                        reverse=True):
        cost, count, part = heap[0]
        owners[place] = part
        # Of parts with equal costs, one with fewer examples is next.
        heapq.heapreplace(heap, (cost + costs[place], count + 1, part))
    return _as_parts(owners, len(offsets))


def first_fit(lengths: Sequence[int], most: int, num_parts: int) -> Parts:
    """Return parts: each example, the longest first, joins the first part that
    has room for it.

    `most`: largest length of a part. An example without room joins the last
        part.
    """
    room = [most] * num_parts
    owners = [0] * len(lengths)
    for place in sorted(range(len(lengths)), key=lengths.__getitem__,
                        reverse=True):
        length = lengths[place]
        part = next((part for part, left in enumerate(room)
                     if left >= length), num_parts - 1)
        owners[place] = part
        room[part] -= length
    return _as_parts(owners, num_parts)


def _as_parts(owners: Sequence[int], count: int) -> Parts:
    """Return the places of each part, in ascending order."""
    parts: Parts = [[] for _ in range(count)]
    for place, part in enumerate(owners):
        parts[part].append(place)
    return parts


def _fill_empty(parts: Parts, costs: Sequence[float]) -> Parts:
    """Move an example to each empty part; return the parts."""
    for part in parts:
        if not part:
            # The part whose loss is the greatest relief.
            fullest = max((other for other in parts if len(other) > 1),
                          key=lambda other: sum(costs[one] for one in other))
            least = min(fullest, key=costs.__getitem__)
            fullest.remove(least)
            part.append(least)
    return parts


def _offsets(costs: Sequence[float], ranks: int, rounds: int) -> list[float]:
    """Return the offsets with which all parts of a round end alike, if single
    examples are costlier than the mean part.

    In such a round the other ranks would wait for the rank with that example,
    so they get more, and the other rounds get less.
    """
    largest = sorted(costs, reverse=True)[:ranks * rounds:ranks]
    left = sum(costs) / ranks
    levels: list[float] = []
    for number, cost in enumerate(largest):
        # The level of the rounds that are left, if no example exceeds it.
        level = max(left, 0.) / (rounds - number)
        if cost <= level:
            levels += [level] * (rounds - number)
            break
        levels.append(cost)
        left -= cost
    return [levels[0] - level for level in levels for _ in range(ranks)]


def _by_round(parts: Parts, costs: Sequence[float], ranks: int) -> Parts:
    """Return parts in rounds of similar parts, so that the costs of a round
    are alike on all ranks.

    In each round, the rank whose earlier parts were the cheapest gets the
    costliest part.
    """
    loads = [sum([costs[one] for one in part]) for part in parts]
    order = sorted(range(len(parts)), key=lambda part: -loads[part])
    found: Parts = []
    totals = [0.] * ranks
    for start in range(0, len(order), ranks):
        of_rank = dict(zip(sorted(range(ranks), key=totals.__getitem__),
                           order[start:start + ranks], strict=True))
        for rank in range(ranks):
            totals[rank] += loads[of_rank[rank]]
            found.append(parts[of_rank[rank]])
    return found


def waited(parts: Parts, costs: Sequence[float], ranks: int,
           ) -> tuple[float, float]:
    """Return the cost of a step whose ranks wait for each other in each round,
    and the cost of the costliest part."""
    loads = [sum([costs[one] for one in part]) for part in parts]
    ends = [max(loads[start:start + ranks])
            for start in range(0, len(loads), ranks)]
    return sum(ends), max(ends)


def balance(costs: Sequence[float], ranks: int, rounds: int) -> Parts:
    """Split examples over ranks and rounds of accumulation.

    `costs`: cost of each example; there are at least ``ranks * rounds``.
    Returns: for each round and rank, in this order, the places of the
        examples in `costs`, ascending. No part is empty.
    """
    plain = _by_round(_fill_empty(longest_first(
        costs, [0.] * (ranks * rounds)), costs), costs, ranks)
    offsets = _offsets(costs, ranks, rounds)
    if not any(offsets):
        return plain
    filled = _by_round(_fill_empty(
        longest_first(costs, offsets), costs), costs, ranks)
    total, most = waited(plain, costs, ranks)
    total_filled, most_filled = waited(filled, costs, ranks)
    return (filled if total_filled < total and most_filled <= most
            else plain)


def balance_within(costs: Sequence[float], lengths: Sequence[int], limit: int,
                   ranks: int, rounds: int) -> Parts | None:
    """Split examples as :func:`balance` does, into parts of a limited length;
    return None if no such parts were found.

    `limit`: largest length of a part that has more than one example.
    """
    def fits(parts: Parts) -> bool:
        return all(len(part) == 1 or sum(
            [lengths[one] for one in part]) <= limit for part in parts)

    found = balance(costs, ranks, rounds)
    if fits(found):
        return found
    alone = [place for place, length in enumerate(lengths) if length > limit]
    others = [place for place, length in enumerate(lengths)
              if length <= limit]
    count = ranks * rounds - len(alone)
    if count < bool(others):
        return None
    their_costs = [costs[place] for place in others]
    their_lengths = [lengths[place] for place in others]
    empty = [0.] * count
    for split in (functools.partial(longest_first, their_costs, empty),
                  functools.partial(longest_first, their_lengths, empty),
                  functools.partial(first_fit, their_lengths, limit, count)):
        found = [[place] for place in alone] + [
            [others[one] for one in part]
            for part in _fill_empty(split(), their_costs)]
        if fits(found):
            return _by_round(found, costs, ranks)
    return None
