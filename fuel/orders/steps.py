"""Steps of an optimizer, counted from the first epoch of a stream."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
        for epoch, alike, rounds in self._trained():
            steps = self._steps_of(rounds)
            if number < steps * alike:
                return (epoch + number // steps,
                        number % steps * self._accumulate, rounds)
            number -= steps * alike
        raise AssertionError('there are endless epochs')

    def of_epoch(self, number: int) -> tuple[int, int]:
        """Return the number of the first step of an epoch, and the number of
        rounds of the epoch that are trained."""
        first = 0
        for epoch, alike, rounds in self._trained():
            steps = self._steps_of(rounds)
            if number < epoch + alike:
                return first + (number - epoch) * steps, rounds
            first += alike * steps
        raise AssertionError('there are endless epochs')

    def _steps_of(self, rounds: int) -> int:
        """Return the number of steps that some rounds of an epoch are."""
        return -(-rounds // self._accumulate)

    def _trained(self) -> Iterator[tuple[int, int, int]]:
        """Yield the number of an epoch, the number of epochs from it on that
        have equally many rounds, and the number of rounds that are trained
        in each."""
        is_fixed = self._fixed is not None
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
                yield epoch, alike, min(most, self._count(epoch))
                epoch += alike
        empty, first = 0, epoch
        while True:
            rounds = self._count(epoch)
            alike = ENDLESS if is_fixed and rounds and not (
                self._facts.begin_of(epoch)) else 1
            yield epoch, alike, rounds
            empty = 0 if rounds else empty + 1
            if (empty and is_fixed) or empty > _MOST_EMPTY:
                raise IndexError(
                    f'epoch {epoch} has no items, so no step comes after it')
            epoch += alike
            refuse_many_epochs(epoch - first)

    def _count(self, epoch: int) -> int:
        """Return the number of rounds of an epoch."""
        order = self._of_epoch(epoch) if self._fixed is None else self._fixed
        return Rounds(order, self._facts.shard,
                      self._facts.begin_of(epoch)).count


class PassedSteps:
    """A counter of the steps of an epoch that have passed.

    `first`: number of the first step of the epoch.
    `accumulate`: number of rounds of a step.
    `rounds`: the rounds of the epoch.
    `unit`: what the epoch counts as requested; see `unit_of`.
    """

    def __init__(self, first: int, accumulate: int, rounds: Rounds,
                 unit: str) -> None:
        self.first = first
        self.accumulate = accumulate
        self.rounds = rounds
        self.unit = unit

    def last(self, requested: int) -> int:
        """Return the number of the step of the last item that was delivered.

        `requested`: value of :attr:`Epoch.requested`.
        """
        passed = self.rounds.passed(requested, self.unit)
        return self.first + -(-passed // self.accumulate) - 1


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
