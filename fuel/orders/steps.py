"""Steps of an optimizer, counted from the first epoch of a stream."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat

from fuel.epochs.past import ALL, DROPPED, runs
from fuel.exceptions import UnknownOrderError
from fuel.orders.facts import StreamFacts
from fuel.orders.rounds import Rounds
from fuel.sharding.far_epochs import MOST_DRAWN
from fuel.sharding.order import ENDLESS, EpochOrder

# A mixture whose epochs are empty so often in turn is taken to have no item.
_MOST_EMPTY = 100


class Steps:
    """The steps of a stream.

    `order`: the order of an epoch of all ranks.
    `facts`: the facts about the stream.
    `of_epoch`: returns the order of an epoch, by its number.
    `accumulate`: number of rounds of a step.
    """

    def __init__(self, order: EpochOrder, facts: StreamFacts,
                 of_epoch: Callable[[int], EpochOrder],
                 accumulate: int) -> None:
        self._facts = facts
        self._of_epoch = of_epoch
        self._accumulate = accumulate
        self._fixed = order if order.has_fixed_length and (
            order.has_fixed_sizes or not facts.shard.splits) else None

    def find(self, number: int) -> tuple[int, int, int]:
        """Return the number of the epoch of a step, its first round, and the
        number of rounds of the epoch that are trained."""
        accumulate, is_fixed = self._accumulate, self._fixed is not None
        if self._facts.past is None:
            self._of_epoch(0)
        epoch = 0
        for name, times in runs(self._facts.past or ''):
            if name == DROPPED:
                raise UnknownOrderError(
                    f'the numbers of items of the first {times} epochs were '
                    'dropped, since many epochs were left before their ends: '
                    'so steps cannot be counted')
            most = ENDLESS if name == ALL else -(
                -int(name) // self._facts.shard.step)
            for alike in alike_epochs(
                    times, is_fixed=name != ALL or is_fixed):
                steps = self._count(epoch, most)
                if number < steps * alike:
                    return (epoch + number // steps,
                            number % steps * accumulate, most)
                number -= steps * alike
                epoch += alike
        empty, first = 0, epoch
        while True:
            steps = self._count(epoch, ENDLESS)
            if is_fixed and steps and not self._facts.begin_of(epoch):
                return (epoch + number // steps, number % steps * accumulate,
                        ENDLESS)
            if number < steps:
                return epoch, number * accumulate, ENDLESS
            empty = 0 if steps else empty + 1
            if (empty and is_fixed) or empty > _MOST_EMPTY:
                raise IndexError(
                    f'epoch {epoch} has no items, so step {number} later '
                    'does not come')
            number -= steps
            epoch += 1
            refuse_many_epochs(epoch - first)

    def _count(self, epoch: int, most: int) -> int:
        """Return the number of steps of an epoch.

        `most`: the largest number of its rounds that are trained.
        """
        order = self._of_epoch(epoch) if self._fixed is None else self._fixed
        count = min(most, Rounds(order, self._facts.shard,
                                 self._facts.begin_of(epoch)).count)
        return -(-count // self._accumulate)


def alike_epochs(times: int, *, is_fixed: bool) -> Iterable[int]:
    """Return the numbers of epochs, one after another, that have the same
    number of rounds.

    `is_fixed`: whether all `times` epochs have the same number.
    """
    if is_fixed:
        return (times,)
    refuse_many_epochs(times)
    return repeat(1, times)


def refuse_many_epochs(times: int) -> None:
    """Refuse to count steps over too many epochs, since each is drawn."""
    if times > MOST_DRAWN:
        raise UnknownOrderError(
            f'steps are not counted over {times} epochs that differ in '
            f'length, at most over {MOST_DRAWN}: name the epoch, as in '
            'order.epoch(k)[n]')
