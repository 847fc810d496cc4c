"""Orders of the schemes that draw: blocks, weights, classes."""
from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy
from numpy.typing import NDArray

from fuel.schemes.requests import ShuffledOrder, num_batches
from fuel.typing import RandomGenerator

# Windows of which the order is kept: those of the present request and of the
# one that is looked at beforehand, each of which may lie in two.
KEPT_WINDOWS = 4


def uniforms(rng: Any, size: int) -> NDArray[numpy.float64]:
    """Draw numbers from 0 to 1, without 1."""
    if isinstance(rng, random.Random):
        return numpy.array([rng.random() for _ in range(size)])
    if isinstance(rng, numpy.random.Generator):
        return rng.random(size)
    drawn: NDArray[numpy.float64] = rng.random_sample(size)
    return drawn


def draw_weighted(weights: NDArray[numpy.float64], size: int,
                  replacement: bool, rng: RandomGenerator
                  ) -> NDArray[numpy.intp]:
    """Draw places with given weights.

    Without replacement each place gets a time from an exponential
    distribution whose rate is its weight; the first ones are taken. That is
    the same as drawing one after another from those that are left.
    """
    if replacement:
        borders = numpy.cumsum(weights)
        drawn = uniforms(rng, size) * borders[-1]
        # Rounding can bring a product up to the last border; and a weight
        # of zero must not be drawn there.
        last = int(numpy.flatnonzero(weights)[-1])
        places = numpy.searchsorted(borders, drawn, side='right')
        return numpy.asarray(numpy.minimum(places, last), numpy.intp)
    with numpy.errstate(divide='ignore', over='ignore', invalid='ignore'):
        times = -numpy.log1p(-uniforms(rng, len(weights))) / weights
    # The time of a tiny weight can be infinite, but it comes before zeros.
    return numpy.lexsort((times, weights == 0))[:size]


def draw_balanced(members: Sequence[NDArray[numpy.intp]], size: int,
                  rng: RandomGenerator) -> NDArray[numpy.intp]:
    """Draw as many places of each class, one more of some."""
    share, rest = divmod(size, len(members))
    lucky = set(numpy.argsort(uniforms(rng, len(members)))[:rest].tolist())
    drawn = []
    for number, places in enumerate(members):
        count = share + (number in lucky)
        rounds = [
            places[numpy.argsort(uniforms(rng, len(places)), kind='stable')]
            for _ in range(num_batches(count, len(places)))]
        if rounds:
            drawn.append(numpy.concatenate(rounds)[:count])
    order = numpy.concatenate(drawn) if drawn else numpy.empty(0, numpy.intp)
    mixed: NDArray[numpy.intp] = order[
        numpy.argsort(uniforms(rng, size), kind='stable')]
    return mixed


class BlockOrder(ShuffledOrder):
    """The order of examples out of windows of blocks.

    An epoch draws the order of the blocks, and one number. A window's own
    order is drawn from that number and the window's, so that any window can
    be had without those before it.
    """

    def __init__(self, borders: NDArray[numpy.intp], window: int,
                 rng: RandomGenerator) -> None:
        self._borders = borders
        self._window = window
        super().__init__(partial(uniforms, size=len(borders)), rng)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), '_windows': {}, '_starts': None}

    def _draw(self, rng: RandomGenerator) -> NDArray[Any]:
        """Return the order of the blocks, then the number."""
        drawn = super()._draw(rng)
        order = numpy.argsort(drawn[:-1], kind='stable')
        lengths = numpy.diff(self._borders)[order]
        ends = numpy.cumsum(lengths)
        # Where each window starts in the epoch, and where the last one ends.
        self._starts = numpy.append(
            0, numpy.append(ends[self._window - 1::self._window],
                            ends[-1:]))
        self._seed = int(drawn[-1] * 2 ** 32)
        self._windows: dict[int, NDArray[numpy.intp]] = {}
        return order

    def copied(self) -> Any:
        """Return an order that another may ask, with what was drawn."""
        ours = super().copied()
        ours._windows = {}
        return ours

    def whole(self) -> None:
        """Return None: windows are drawn when they are needed."""

    def _window_order(self, number: int) -> NDArray[numpy.intp]:
        """Return the places in one window, in the order of the epoch."""
        places = self._windows.pop(number, None)
        if places is None:
            blocks = self._drawn()[
                number * self._window:(number + 1) * self._window]
            places = numpy.concatenate([
                numpy.arange(self._borders[block], self._borders[block + 1])
                for block in blocks])
            numpy.random.RandomState([self._seed, number]).shuffle(places)
            if len(self._windows) == KEPT_WINDOWS:
                del self._windows[next(iter(self._windows))]
        # The one that was used last is the last.
        self._windows[number] = places
        return places

    def __call__(self, start: int, stop: int) -> NDArray[numpy.intp]:
        """Return a part of the order."""
        stop = min(stop, int(self._borders[-1]))
        self._drawn()
        number = int(numpy.searchsorted(self._starts, start, 'right')) - 1
        parts = []
        while start < stop:
            first = int(self._starts[number])
            part = self._window_order(number)[start - first:stop - first]
            parts.append(part)
            start += len(part)
            number += 1
        return parts[0] if len(parts) == 1 else numpy.concatenate(parts)
