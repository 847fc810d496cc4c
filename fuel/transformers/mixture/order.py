"""The order in which a mixture takes items from its streams."""
from __future__ import annotations

import copy
import functools
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy

from fuel.schemes.mixing import MixingRequests, as_thresholds
from fuel.sharding.draws import Draws
from fuel.sharding.order import (
    ENDLESS, EpochOrder, Kind, Made, UnknownOrderError)
from fuel.transformers.mixture.position import Counts, Mixture, Stop


class Stretch(NamedTuple):
    """Items between which no stream ends or begins anew.

    `start`: number of the first of them.
    `taken`: how many items each stream has given before.
    `begun`: how many of these were before the epoch that it is in.
    `inputs`: the orders of these epochs.
    `weights`: those of the streams that are left.
    `draws`: what further epochs of the streams are drawn from.
    """

    start: int
    taken: Counts
    begun: Counts
    inputs: tuple[EpochOrder, ...]
    weights: Any
    draws: Draws

    @property
    def left(self) -> Counts:
        """The number of items that each stream has left in its epoch."""
        lengths: Counts = numpy.array([len(part) for part in self.inputs])
        return lengths - (self.taken - self.begun)


class Beginning(NamedTuple):
    """The streams of a mixture as its epoch begins.

    `inputs`: the orders of their epochs.
    `given`: how many items of these each stream has given before.
    `draws`: what their further epochs are drawn from.
    `taken`: how many items of the mixture came of each stream before, where
        its beginning is not known.
    """

    inputs: Sequence[EpochOrder]
    given: Sequence[int]
    draws: Draws
    taken: Sequence[int] | None = None


class MixedOrder(EpochOrder):
    """The items of several inputs, chosen by weights.

    `place`: of what the scheme of the mixture draws.
    `most`: the most items, None if there is no limit.
    """

    takes_share = True
    reads_all = False

    def __init__(self, beginning: Beginning, draws: Draws, place: int,
                 stop: Stop, most: int | None) -> None:
        self.inputs = tuple(beginning.inputs)
        self.draws = draws
        self.place = place
        # Further epochs of the inputs are drawn from this.
        self.later = beginning.draws
        self.stop = stop
        self.most = most
        self.given = list(beginning.given)
        self.taken = list(beginning.taken or [0] * len(self.inputs))
        self.is_single = self.inputs[0].is_single
        self._stretches: list[Stretch] = []
        self._are_all = False

    def __getstate__(self) -> dict[str, Any]:
        kept = {**vars(self), '_stretches': [], '_are_all': False}
        kept.pop('num_items', None)
        return kept

    @property
    def own_kind(self) -> Kind:
        """The way to an item."""
        return 'replayed' if self.stop == 'forever' else 'computed'

    @property
    def goes_on(self) -> bool:
        """True if an input goes on in the next epoch where it stands."""
        return self.stop == 'forever' or super().goes_on

    @property
    def points(self) -> MixingRequests:
        """The points that choose the stream of each item."""
        points: MixingRequests = self.draws.at(self.place)
        return points

    @functools.cached_property
    def num_items(self) -> int:
        """The number of items."""
        most = self.most or ENDLESS
        if self.stop == 'forever':
            return most
        return min(most, Mixture(self.points, self.stop).count_all(
            lambda: [len(part) for part in self.inputs]))

    def _stretch_of(self, item: int) -> Stretch:
        """Return the stretch in which an item is."""
        if not self._stretches:
            taken = numpy.array(self.taken, numpy.int64)
            self._stretches.append(Stretch(
                int(taken.sum()), taken, taken - self.given, self.inputs,
                self.points.weights, self.later))
        while self._stretches[-1].start <= item and not self._are_all:
            following = self._after(self._stretches[-1])
            if following is None:
                self._are_all = True
            else:
                self._stretches.append(following)
        found = bisect_right(self._stretches, item, key=lambda one: one.start)
        if not found:
            raise UnknownOrderError(
                'a stream of the mixture has begun anew before the state was '
                f'saved, so the items before number {self._stretches[0].start}'
                ' are not known any more')
        return self._stretches[found - 1]

    def _after(self, stretch: Stretch) -> Stretch | None:
        """Return the stretch that follows, None if none does."""
        mixture, thresholds = Mixture(self.points, self.stop), as_thresholds(
            stretch.weights)
        end = mixture.find_end(stretch.start, stretch.left, thresholds)
        if end >= min(ENDLESS, self.num_items):
            return None
        taken = stretch.taken + self.points.counts(
            stretch.start, end, thresholds)
        place = self._choose(end, thresholds)
        if self.stop == 'last':
            weights = stretch.weights.copy()
            weights[place] = 0
            return stretch._replace(start=end, taken=taken, weights=weights)
        part = stretch.inputs[place]
        draws = stretch.draws.following(part.draw_places())
        anew = part.following(draws)
        if not len(anew):
            raise UnknownOrderError(
                f'an epoch of the stream number {place} of the mixture is '
                'empty, so it cannot be mixed for ever')
        inputs, begun = list(stretch.inputs), stretch.begun.copy()
        inputs[place], begun[place] = anew, taken[place]
        return Stretch(
            end, taken, begun, tuple(inputs), stretch.weights, draws)

    def _choose(self, item: int, thresholds: Counts) -> int:
        """Return the stream that the point of an item chooses."""
        _, point = self.points.request_at(item)
        return int(numpy.searchsorted(thresholds, point, side='right'))

    def find(self, item: int) -> tuple[int, int, EpochOrder]:
        """Return the stream of an item, the number of the item there, and
        the order of its epoch."""
        stretch = self._stretch_of(item)
        thresholds = as_thresholds(stretch.weights)
        place = self._choose(item, thresholds)
        number = stretch.taken[place] - stretch.begun[place] + (
            self.points.counts(stretch.start, item, thresholds)[place])
        return place, int(number), stretch.inputs[place]

    def make(self, item: int) -> Made:
        """Return what an item is made of."""
        _, number, part = self.find(item)
        return part.make(number)

    def size(self, item: int) -> int:
        """Return how many rows an item has."""
        _, number, part = self.find(item)
        return part.size(number)

    def full_size(self, item: int) -> int | None:
        """Return how many rows a batch of its stream has."""
        _, number, part = self.find(item)
        return part.full_size(number)

    def padded(self, item: int, count: int) -> Made:
        """Return a batch to which rows of the start of its stream are
        added."""
        _, number, part = self.find(item)
        return part.padded(number, count)

    def following(self, draws: Draws) -> EpochOrder:
        """Return the order of the next epoch."""
        inputs, given = self.inputs, [0] * len(self.inputs)
        if self.stop == 'forever':
            if self.most is None:
                raise UnknownOrderError(
                    'no epoch follows one of a mixture that never ends: '
                    'give it an epoch_size')
            stretch = self._stretch_of(self.most - 1)
            inputs = stretch.inputs
            given = (stretch.taken - stretch.begun + self.points.counts(
                stretch.start, self.most,
                as_thresholds(stretch.weights))).tolist()
        else:
            inputs = tuple([part.following(draws) for part in inputs])
        ours = copy.copy(self)
        ours.inputs, ours.draws, ours.given = tuple(inputs), draws, given
        ours.taken = [0] * len(inputs)
        ours.later = draws if self.stop != 'forever' else stretch.draws
        return ours
