"""Find the stream of a mixture that an item comes from.

:class:`Mixture` finds it for the next item of an epoch that is read,
:class:`MixedOrder` for any item, without reading.
"""
from __future__ import annotations

import copy
import functools
import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, TypeGuard

from numpy.typing import NDArray
import numpy

from fuel.exceptions import StateMismatchError, UnknownOrderError
from fuel.schemes.mixing import MixingRequests, as_thresholds
from fuel.sharding.draws import Draws, FirstEpochs
from fuel.sharding.made import Made
from fuel.sharding.order import ENDLESS, EpochOrder, Kind
from fuel.sharding.places import ItemPlace
from fuel.transformers.mixture.choices import Choices
from fuel.typing import State

#: A number of items of each stream.
Counts: TypeAlias = 'NDArray[numpy.int64]'
Stop: TypeAlias = Literal['first', 'last', 'forever']

# Number of items in the first range that is searched for a mixture's end.
_FIRST_COUNTED = 256
# Number of weights whose choices are kept.
_KEPT_CHOICES = 4


class Mixture:
    """The streams that an epoch mixes, and the position of each stream.

    `points`: the requests of the epoch.
    `taken`: number of items taken of each stream; their sum is the
        position of the next one.
    `restarts`: number of restarts of each stream.
    `lengths`: number of items of each stream's current epoch; None
        until it is needed.
    `ended_at`: position of the mixture at which each stream had no item left;
        None for a stream that has not ended.
    `thresholds`: the end of each stream's interval, among the points of
        the requests; all zero when the mixture is over.
    """

    # The beginnings of the streams in this epoch; None in an older pickle.
    first_epochs: FirstEpochs | None = None

    def __init__(self, points: MixingRequests, stop: Stop) -> None:
        self.points = points
        count = len(self.points.weights)
        self.stop = stop
        self.taken = numpy.zeros(count, numpy.int64)
        self.restarts = [0] * count
        self.lengths: list[Any] = [None] * count
        self.ended_at: list[int | None] = [None] * count
        self.thresholds = as_thresholds(self.points.weights)
        # From this position on no stream has ended or restarted.
        self.since = 0
        self._total: int | None = None
        self.first_epochs = FirstEpochs()

    def choose(self, point: int) -> int:
        """Return the stream whose interval a point lies in.

        Raise StopIteration if the mixture is over.
        """
        place = int(numpy.searchsorted(self.thresholds, point, side='right'))
        if place == len(self.thresholds):
            raise StopIteration
        return place

    def position(self) -> int:
        """Return the number of the next item among those of all ranks."""
        return int(self.taken.sum())

    def counts(self, start: int, stop: int) -> Counts:
        """Return how many items of a range come from each remaining stream."""
        return self.points.counts(start, stop, self.thresholds)

    def first_beyond(self, start: int, stop: int, left: Counts,
                     thresholds: Counts | None = None) -> int:
        """Return the first position in a range whose stream has run out.

        `left`: number of items that each stream has left at `start`.
        """
        if thresholds is None:
            thresholds = self.thresholds
        last = stop - 1
        while start < last:
            middle = (start + last) // 2
            counts = self.points.counts(start, middle + 1, thresholds)
            if (counts > left).any():
                last = middle
            else:
                start, left = middle + 1, left - counts
        return start

    def count_all(self, find_lengths: Callable[[], list[int]]) -> int:
        """Return the number of items of the epoch, if no stream restarts."""
        if self._total is None:
            lengths = find_lengths()
            self.lengths[:] = lengths
            left = numpy.where(self.points.weights > 0, lengths, 0)
            self._total = min(sum(left.tolist()), ENDLESS)
            if self.stop == 'first':
                self._total = self.find_end(
                    0, left, as_thresholds(self.points.weights))
        return self._total

    def find_end(self, start: int, left: Counts, thresholds: Counts) -> int:
        """Return the first position from `start` whose stream has run out.

        `left`: number of items that each stream has left at `start`.
        """
        chosen = numpy.diff(thresholds, prepend=0) > 0
        if (left[chosen] >= ENDLESS).all():
            return ENDLESS
        count = _FIRST_COUNTED
        while not (self.points.counts(
                start, start + count, thresholds) > left).any():
            if count >= ENDLESS:
                # A stream of hardly any weight would end later.
                return ENDLESS
            count *= 2
        return self.first_beyond(start, start + count, left, thresholds)

    def is_over(self) -> bool:
        """Return whether no stream is left."""
        return not self.thresholds[-1]

    def end(self, place: int) -> bool:
        """Record that a stream has ended; return whether to restart it."""
        if self.stop == 'forever':
            return True
        self.since = self.ended_at[place] = self.position()
        self._update()
        return False

    def restart(self, place: int, iterators: Sequence[Any]) -> None:
        """Record that a stream begins its next epoch.

        `iterators`: the current epochs of all streams.
        """
        first = self.first_epochs
        if first is not None and (first.given or not any(self.restarts)):
            first.record(iterators, self.taken.tolist(), place)
        self.restarts[place] += 1
        self.lengths[place] = None
        self.since = self.position()

    def go_back(self, position: int) -> Counts:
        """Go back to an earlier position.

        Returns: how many items each stream has to go back.
        """
        if position < self.since:
            if self.stop == 'forever':
                raise ValueError(
                    "a mixture with stop='forever' cannot go back to items "
                    'that its streams had before: read it in order')
            counts = self.taken.copy()
            self.ended_at[:] = [None] * len(self.ended_at)
            self.since = 0
            self._update()
        else:
            counts = self.counts(position, self.position())
        self.taken -= counts
        return counts

    def _update(self) -> None:
        """Update the thresholds of the streams that are left."""
        ended = [place is not None for place in self.ended_at]
        left = numpy.where(ended, 0, self.points.weights)
        is_over = not left.any() or (self.stop == 'first' and any(ended))
        # In place, since a reader holds the array.
        self.thresholds[:] = 0 if is_over else as_thresholds(left)

    def state(self) -> State:
        """Return the counters as plain data.

        They depend only on the items before the position. So a rank that
        looked for the next item, and found that a stream had ended, has the
        same state as a rank that did not look.
        """
        position = self.position()
        return {'weights': self.points.weights.tolist(),
                'taken': self.taken.tolist(), 'restarts': [*self.restarts],
                'ended': [place is not None and place < position
                          for place in self.ended_at]}

    def load(self, state: State) -> None:
        """Restore the state that :meth:`state` returned."""
        present = self.points.weights.tolist()
        if state['weights'] != present:
            raise StateMismatchError(
                f'the weights of the epoch were {state["weights"]!r:.200} '
                f'when the state was saved, but here they are {present}: '
                'let the function of epochs return the same weights')
        for field, kind in (
                ('taken', int), ('restarts', int), ('ended', bool)):
            values = state[field]
            if type(values) is not list or len(values) != len(present) \
                    or any(type(value) is not kind or value < 0
                           for value in values):
                raise ValueError(
                    f'{field} must be a list with one value for each of the '
                    f'{len(present)} streams, of type {kind.__name__} and '
                    f'not negative, got {values!r:.200}')
        self.taken[:] = state['taken']
        self.restarts[:] = state['restarts']
        # At -1, since it was before the position, wherever that is.
        self.ended_at[:] = [-1 if ended else None for ended in state['ended']]
        self.since = self.position() if any(
            [*state['ended'], *self.restarts]) else 0
        self._update()


class Stretch(NamedTuple):
    """A range of items in which no stream ends or restarts.

    `start`: number of the first item of the range.
    `taken`: number of items that each stream has given before the range.
    `begun`: number of these items that came before the stream's current
        epoch.
    `inputs`: the orders of the streams' current epochs.
    `weights`: weights of the streams; 0 for a stream that has ended.
    `before`: number of items before the range that each stream would have
        given by these weights.
    `draws`: the draws of later epochs of the streams.
    """

    start: int
    taken: Counts
    begun: Counts
    inputs: tuple[EpochOrder, ...]
    weights: Any
    before: Counts
    draws: Draws

    @property
    def left(self) -> Counts:
        """The number of items that each stream has left in its epoch."""
        lengths: Counts = numpy.array([len(part) for part in self.inputs])
        return lengths - (self.taken - self.begun)


def _passed(stretch: Stretch, place: int) -> int:
    """Return by how much the number of a stream's item in its epoch is below
    the number that the weights of a stretch alone would give."""
    return int(stretch.before[place] - (
        stretch.taken[place] - stretch.begun[place]))


def _are_consecutive(items: Sequence[int]) -> TypeGuard[range]:
    """Return whether several numbers follow each other."""
    return isinstance(items, range) and items.step == 1 and len(items) > 1


class Span(NamedTuple):
    """A stretch with its end.

    `taken`: number of items that each stream has given at its end.
    """

    stretch: Stretch
    taken: Counts


class Beginning(NamedTuple):
    """The streams of a mixture as its epoch begins.

    `inputs`: the orders of the streams' epochs.
    `given`: number of items of its epoch that each stream has given.
    `draws`: the draws of later epochs of the streams.
    `taken`: number of items that the mixture has taken of each stream, if the
        beginning of the mixture's epoch is not known.
    """

    inputs: Sequence[EpochOrder]
    given: Sequence[int]
    draws: Draws
    taken: Sequence[int] | None = None


class MixedOrder(EpochOrder):
    """The items of several inputs, chosen by weights.

    `place`: the place of the mixture scheme's draws.
    `most`: largest number of items, None if there is no limit.
    """

    takes_share = True
    reads_all = False

    def __init__(self, beginning: Beginning, draws: Draws, place: int,
                 stop: Stop, most: int | None) -> None:
        self.inputs = tuple(beginning.inputs)
        self.draws = draws
        self.place = place
        # Later epochs of the inputs are drawn from this.
        self.later = beginning.draws
        self.stop = stop
        self.most = most
        self.given = list(beginning.given)
        self.taken = list(beginning.taken or [0] * len(self.inputs))
        self.is_single = self.inputs[0].is_single
        self._stretches: list[Stretch] = []
        self._are_all = False
        self._choices: dict[bytes, Choices] = {}

    def __getstate__(self) -> dict[str, Any]:
        kept = {**super().__getstate__(), '_stretches': [],
                '_are_all': False, '_choices': {}}
        kept.pop('num_items', None)
        return kept

    @property
    def own_kind(self) -> Kind:
        """The method that finds the stream of an item (Kind)."""
        return 'replayed' if self.stop == 'forever' else 'computed'

    @property
    def goes_on(self) -> bool:
        """True if an input continues from its position in the next epoch."""
        return self.stop == 'forever' or super().goes_on

    @property
    def has_fixed_length(self) -> bool:
        """Whether all epochs have the same number of items (bool)."""
        return self.stop == 'forever' or (
            self.stop == 'last' and super().has_fixed_length)

    @property
    def has_fixed_sizes(self) -> bool:
        """Whether items are single examples: draws decide which batch has
        which number (bool)."""
        return self.is_single

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
        """Return the stretch that holds an item."""
        if not self._stretches:
            taken = numpy.array(self.taken, numpy.int64)
            weights, start = self.points.weights, int(taken.sum())
            self._stretches.append(Stretch(
                start, taken, taken - self.given, self.inputs, weights,
                self._before(start, weights), self.later))
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
        counts = self.points.counts(stretch.start, end, thresholds)
        taken, before = stretch.taken + counts, stretch.before + counts
        place = int(self._choices_of(stretch).streams(end, end + 1)[0])
        if self.stop == 'last':
            weights = stretch.weights.copy()
            weights[place] = 0
            return stretch._replace(start=end, taken=taken, weights=weights,
                                    before=self._before(end, weights))
        part = stretch.inputs[place]
        draws = stretch.draws.following(part.draw_places())
        anew = part.following(draws)
        if not len(anew):
            raise UnknownOrderError(
                f'stream number {place} of the mixture has an empty epoch, '
                "which stop='forever' would restart without end: leave the "
                "stream out, or use stop='last'")
        inputs, begun = list(stretch.inputs), stretch.begun.copy()
        inputs[place], begun[place] = anew, taken[place]
        return Stretch(end, taken, begun, tuple(inputs), stretch.weights,
                       before, draws)

    def _before(self, start: int, weights: Any) -> Counts:
        """Return the number of items before a number that each stream would
        have given by some weights."""
        return self.points.counts(0, start, as_thresholds(
            weights)) if weights.any() else numpy.zeros(
                len(weights), numpy.int64)

    def _choices_of(self, stretch: Stretch) -> Choices:
        """Return the streams of the items of a stretch."""
        key = stretch.weights.tobytes()
        found = self._choices.pop(key, None)
        if found is None:
            found = Choices(self.points, as_thresholds(stretch.weights))
            while len(self._choices) >= _KEPT_CHOICES:
                # The one that was used first.
                del self._choices[next(iter(self._choices))]
        self._choices[key] = found
        return found

    def find(self, item: int) -> tuple[int, int, EpochOrder]:
        """Return the stream of an item, and where the item is in it.

        Returns: number of the stream, number of the item in the stream's
            epoch, and the order of that epoch.
        """
        stretch = self._stretch_of(item)
        choices = self._choices_of(stretch)
        place = int(choices.streams(item, item + 1)[0])
        return (place, choices.count(place, item) - _passed(stretch, place),
                stretch.inputs[place])

    def make_all(self, items: Sequence[int]) -> list[Made]:
        """Return the rows of several items."""
        if not _are_consecutive(items):
            return super().make_all(items)
        found: list[Any] = [None] * len(items)
        start, stop = items[0], items[-1] + 1
        while start < stop:
            stretch = self._stretch_of(start)
            # Another stretch may begin at any item.
            end = stop if self._stretch_of(stop - 1) is stretch else start + 1
            streams = self._choices_of(stretch).streams(start, end)
            for place in numpy.unique(streams).tolist():
                where = numpy.flatnonzero(streams == place) + (
                    start - items[0])
                _, number, part = self.find(items[where[0]])
                for one, made in zip(where.tolist(), part.make_all(
                        range(number, number + len(where))), strict=True):
                    found[one] = made
            start = end
        return found

    def make(self, item: int) -> Made:
        """Return the rows of an item."""
        _, number, part = self.find(item)
        return part.make(number)

    def places_of(self, dataset: int, row: object, stop: int = ENDLESS,
                  ) -> Iterator[ItemPlace]:
        """Yield the places at which an example comes, in order."""
        stop = min(stop, self.num_items)
        if not stop:
            return iter(())
        # It raises an error unless the first items are known.
        self._stretch_of(0)
        return heapq.merge(*[
            self._places_from(place, dataset, row, stop)
            for place, part in enumerate(self.inputs)
            if part.has_dataset(dataset)])

    def _places_from(self, place: int, dataset: int, row: object, stop: int
                     ) -> Iterator[ItemPlace]:
        """Yield the places at which an example comes from an input."""
        number, span = 0, self._span(0)
        while span is not None and span.stretch.start < stop:
            begun, part = span.stretch.begun[place], span.stretch.inputs[place]
            limit = ENDLESS if part.ends or stop >= ENDLESS else int(
                self._taken_to(stop)[place] - begun)
            for found in part.places_of(dataset, row, limit):
                # The number of the item among all that the input has given.
                wanted = found.item + int(begun)
                while span is not None and span.taken[place] <= wanted:
                    number += 1
                    span = self._span(number)
                if span is None:
                    return
                earlier = int(span.stretch.taken[place])
                if wanted >= earlier:
                    yield ItemPlace(self._item_of(
                        span.stretch, place, wanted - earlier), found.offset)
            while span is not None and span.stretch.begun[place] == begun:
                number += 1
                span = self._span(number)

    def _taken_to(self, stop: int) -> Counts:
        """Return how many items each input has given before an item."""
        stretch = self._stretch_of(stop - 1)
        return stretch.taken + self.points.counts(
            stretch.start, stop, as_thresholds(stretch.weights))

    def _span(self, number: int) -> Span | None:
        """Return a stretch with its end, by its number; None after the
        last."""
        while len(self._stretches) <= number + 1 and not self._are_all:
            self._stretch_of(self._stretches[-1].start)
        found = self._stretches[number:number + 2]
        if len(found) == 2:
            return Span(found[0], found[1].taken)
        return Span(found[0], found[0].taken + self.points.counts(
            found[0].start, self.num_items,
            as_thresholds(found[0].weights))) if found else None

    def _item_of(self, stretch: Stretch, place: int, number: int) -> int:
        """Return the item that an input gives to a stretch, by its number
        among these."""
        return self._choices_of(stretch).find(
            place, number + int(stretch.before[place]))

    def size(self, item: int) -> int:
        """Return the number of rows of an item."""
        _, number, part = self.find(item)
        return part.size(number)

    def full_size(self, item: int) -> int | None:
        """Return the number of rows of a full batch of an item's stream."""
        _, number, part = self.find(item)
        return part.full_size(number)

    def padded(self, item: int, count: int) -> Made:
        """Return a batch, padded with rows from the start of its stream."""
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
            given = (self._taken_to(self.most) - stretch.begun).tolist()
        else:
            inputs = tuple([part.following(draws) for part in inputs])
        ours = copy.copy(self)
        ours.inputs, ours.draws, ours.given = tuple(inputs), draws, given
        ours.taken = [0] * len(inputs)
        ours.later = draws if self.stop != 'forever' else stretch.draws
        return ours
