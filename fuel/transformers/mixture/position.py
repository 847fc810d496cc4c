"""The position of one epoch of a mixture: who has given what, who is left."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.sharding.draws import FirstEpochs
from fuel.sharding.planned import ENDLESS
from fuel.exceptions import StateMismatchError
from fuel.schemes.mixing import MixingRequests, as_thresholds
from fuel.typing import State

#: How many items of each stream.
Counts: TypeAlias = 'NDArray[numpy.int64]'
Stop: TypeAlias = Literal['first', 'last', 'forever']

# How many items are counted first, where the end of a mixture is looked for.
_FIRST_COUNTED = 256


class Mixture:
    """Which streams an epoch mixes, and how far each of them has come.

    `points`: the requests of the epoch.
    `taken`: how many items of each stream were taken; together, that is the
        position of the next one.
    `restarts`: how often each stream has begun anew.
    `lengths`: how many items the present epoch of each stream has; None
        until that is asked.
    `ended_at`: the position at which a stream had nothing left to give, None
        where none was found yet.
    `thresholds`: where the interval of each stream ends, among the points of
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
        # From here on no stream has ended or begun anew.
        self.since = 0
        self._total: int | None = None
        self.first_epochs = FirstEpochs()

    def choose(self, point: int) -> int:
        """Return the stream whose interval a point lies in; StopIteration if
        the mixture is over."""
        place = int(numpy.searchsorted(self.thresholds, point, side='right'))
        if place == len(self.thresholds):
            raise StopIteration
        return place

    def position(self) -> int:
        """Return the number of the next item, of those of all ranks."""
        return int(self.taken.sum())

    def counts(self, start: int, stop: int) -> Counts:
        """Return how many of some items each of the present streams has."""
        return self.points.counts(start, stop, self.thresholds)

    def first_beyond(self, start: int, stop: int, left: Counts,
                     thresholds: Counts | None = None) -> int:
        """Return which position of a range is that of the first item that
        its stream has not, of those that each has left."""
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
        """Return how many items the epoch has, if no stream begins anew."""
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
        """Return which position from `start` on is the first of an item
        that its stream has not, of those that each has left."""
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

        `iterators`: the present epochs of all streams.
        """
        first = self.first_epochs
        if first is not None and (first.given or not any(self.restarts)):
            first.record(iterators, self.taken.tolist(), place)
        self.restarts[place] += 1
        self.lengths[place] = None
        self.since = self.position()

    def go_back(self, position: int) -> Counts:
        """Go back to an earlier position; return how many items each stream
        has to go back."""
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
        """Let the streams that are left share the points."""
        ended = [place is not None for place in self.ended_at]
        left = numpy.where(ended, 0, self.points.weights)
        is_over = not left.any() or (self.stop == 'first' and any(ended))
        # In place: a reader looks at them.
        self.thresholds[:] = 0 if is_over else as_thresholds(left)

    def state(self) -> State:
        """Return the counters as plain data.

        They depend on the items before the position alone: a rank that looked
        for the next one, and found that a stream had ended, has the state of
        one that did not look.
        """
        position = self.position()
        return {'weights': self.points.weights.tolist(),
                'taken': self.taken.tolist(), 'restarts': [*self.restarts],
                'ended': [place is not None and place < position
                          for place in self.ended_at]}

    def load(self, state: State) -> None:
        """Take up what :meth:`state` returned."""
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
                    f'{field} must be {len(present)} values of type '
                    f'{kind.__name__} from 0 on, got {values!r:.200}')
        self.taken[:] = state['taken']
        self.restarts[:] = state['restarts']
        # At -1, since it was before the position, wherever that is.
        self.ended_at[:] = [-1 if ended else None for ended in state['ended']]
        self.since = self.position() if any(
            [*state['ended'], *self.restarts]) else 0
        self._update()
