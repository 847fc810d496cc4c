"""Requests that choose one of several streams for each item, by weights.

The weights may differ from epoch to epoch.

The choice is computed from a seed, the epoch and the number of the item, so
it does not need the earlier choices, and any position is reached in constant
time.  The method is counter-based, and of low discrepancy:

Each request is a position and a point below ``2 ** BITS``.  The points of
`BLOCK` items in a row lie at equal distances, and an offset that moves on by
the golden ratio from block to block (a Kronecker sequence) makes the points
of all blocks fill the gaps evenly.  Within a block their order is a random
permutation, drawn by Philox, a counter-based generator, from the key of the
epoch and the number of the chunk of blocks.  A stream is chosen by the
interval that the point lies in.  So in each block, the number of items of a
stream differs by at most one from the number that its weight demands.  The
items of each stream in any range are counted in a number of steps that grows
with the logarithm of the range's length.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.schemes.iteration_scheme import (
    IterationScheme, epoch_state, load_epoch_state)
from fuel.schemes.requests import RequestIterator
from fuel.suggestions import did_you_mean

BITS = 62
# A block has 16 points: the upper 4 bits are the place of a point in its
# block, and the other bits are the offset of the block.
BLOCK_BITS = 4
BLOCK = 2 ** BLOCK_BITS
_OFFSET_BITS = BITS - BLOCK_BITS
_OFFSETS: int = 2 ** _OFFSET_BITS
_GOLDEN = int(_OFFSETS * 0.6180339887498949) | 1
# Number of blocks that are permuted at once.
BLOCKS = 256
CHUNK = BLOCKS * BLOCK
# Keeps these numbers apart from others that are drawn with the same seed.
_PURPOSE = 0x6d6978

Points = NDArray[numpy.int64]


def as_thresholds(weights: NDArray[numpy.float64]) -> Points:
    """Return the end of each stream's interval, in the range up to 2**62.

    A stream of weight 0 has an empty interval.
    """
    borders = numpy.cumsum(weights)
    shares = borders / borders[-1]
    # Each share is an integer times a power of two, so this product is exact.
    return numpy.asarray(shares * 2.0 ** BITS, numpy.int64)


class MixingRequests(RequestIterator):
    """The requests of one epoch: pairs of a position and its point.

    `weights`: the weights of the streams in this epoch.
    """

    def __init__(self, weights: NDArray[numpy.float64], seed: int,
                 epoch: int, num_requests: float) -> None:
        self.weights = weights
        self.num_requests = num_requests
        offset, self._key = numpy.random.SeedSequence(
            (seed, _PURPOSE, epoch)).generate_state(2, numpy.uint64).tolist()
        self._offset = offset % _OFFSETS
        self._chunk: Points | None = None
        self._number = -1

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), '_chunk': None, '_number': -1}

    def _offsets(self, start: int, stop: int) -> Points:
        """Return the offsets of the blocks from `start` to ``stop - 1``."""
        first = (self._offset + start * _GOLDEN) % _OFFSETS
        steps = numpy.arange(stop - start, dtype=numpy.uint64)
        steps *= numpy.uint64(_GOLDEN)
        steps += numpy.uint64(first)
        steps &= numpy.uint64(_OFFSETS - 1)
        return steps.view(numpy.int64)

    def chunk_at(self, position: int) -> Points:
        """Return the points of the chunk that holds a position."""
        number = position // CHUNK
        if self._chunk is None or number != self._number:
            raw = numpy.random.Philox(
                key=self._key, counter=number << 64).random_raw(CHUNK)
            # Draw a random order for each block: sort random numbers that
            # contain the places in their last bits.
            raw = raw.reshape(BLOCKS, BLOCK) >> BLOCK_BITS << BLOCK_BITS
            places = numpy.sort(raw | numpy.arange(
                BLOCK, dtype=numpy.uint64), axis=1) % BLOCK
            offsets = self._offsets(number * BLOCKS, (number + 1) * BLOCKS)
            points = (places.astype(numpy.int64) << _OFFSET_BITS
                      ) + offsets[:, None]
            self._chunk, self._number = points.reshape(-1), number
        return self._chunk

    def _request(self, position: int) -> tuple[int, int]:
        """Return a position and its point."""
        return position, int(self.chunk_at(position)[position % CHUNK])

    def counts(self, start: int, stop: int, thresholds: Points) -> Points:
        """Return the number of items of each stream in a range of
        positions."""
        if 0 < stop - start <= BLOCK and start // CHUNK == (
                stop - 1) // CHUNK:
            return numpy.diff(
                self._count_points(start, stop, thresholds), prepend=0)
        below = numpy.zeros(len(thresholds), numpy.int64)
        first, last = -(-start // BLOCK), stop // BLOCK
        if first > last:
            first = last = stop // BLOCK
            below += self._count_points(start, stop, thresholds)
        else:
            below += self._count_points(start, first * BLOCK, thresholds)
            below += self._count_points(last * BLOCK, stop, thresholds)
        for place, threshold in enumerate(thresholds.tolist()):
            below[place] += self._count_below(first, last, threshold)
        return numpy.diff(below, prepend=0)

    def count_below(self, chunk: int, threshold: int) -> int:
        """Return how many points before a chunk are below a threshold."""
        return self._count_below(0, chunk * BLOCKS, threshold)

    def _count_below(self, first: int, last: int, threshold: int) -> int:
        """Return how many points of a range of blocks are below a
        threshold."""
        # Of each block, `in_each` points are below the threshold, and one more
        # if the block's offset is below `beyond`.
        in_each, beyond = divmod(threshold, _OFFSETS)
        more = count_below(beyond, last - first, int(
            self._offset + first * _GOLDEN)) if beyond else 0
        return (last - first) * in_each + more

    def _count_points(self, start: int, stop: int, thresholds: Points
                      ) -> Points:
        """Return how many points of a range are below each threshold.

        The range lies in one chunk.
        """
        if start >= stop:
            return numpy.zeros(len(thresholds), numpy.int64)
        begin = start % CHUNK
        points = numpy.sort(
            self.chunk_at(start)[begin:begin + stop - start])
        return numpy.searchsorted(points, thresholds).astype(numpy.int64)


def count_below(bound: int, count: int, offset: int) -> int:
    """Return how many of `count` blocks have an offset below a bound.

    `offset`: offset of the first block. It grows by `_GOLDEN` from block to
        block, modulo `_OFFSETS`.
    """
    return (_sum_of_floors(count, _OFFSETS, _GOLDEN, offset)
            - _sum_of_floors(count, _OFFSETS, _GOLDEN, offset - bound))


def _sum_of_floors(count: int, divisor: int, step: int, first: int) -> int:
    """Return the sum of ``(first + number * step) // divisor``.

    The sum is over the numbers below `count`. It takes as many steps as
    Euclid's algorithm.
    """
    total = 0
    while True:
        whole, step = divmod(step, divisor)
        total += whole * (count * (count - 1) // 2)
        whole, first = divmod(first, divisor)
        total += whole * count
        # Points below a line are counted by columns, then by rows.
        count, first = divmod(step * count + first, divisor)
        if not count:
            return total
        step, divisor = divisor, step


class MixingScheme(IterationScheme):
    """Chooses one of several streams for each item of an epoch.

    `weights_of`: function that takes the number of an epoch, from 0 on, and
        returns the weights of that epoch.
    `epoch`: number of the next epoch.
    """

    def __init__(self, weights_of: Callable[[int], NDArray[numpy.float64]],
                 seed: int, num_requests: int | None,
                 requests_examples: bool) -> None:
        self._weights_of = weights_of
        self.seed = seed
        self.num_requests = num_requests
        self.requests_examples = requests_examples
        self.epoch = 0

    def get_request_iterator(self) -> Iterator[Any]:
        """Return an iterator over the points of a new epoch."""
        requests = MixingRequests(
            self._weights_of(self.epoch), self.seed, self.epoch,
            math.inf if self.num_requests is None else self.num_requests)
        self.epoch += 1
        return requests

    state_dict = epoch_state
    load_state_dict = load_epoch_state


#: The weights of one epoch, in the order of the streams or by name.
EpochWeights: TypeAlias = 'Sequence[float] | Mapping[str, float]'
#: One set of weights for all epochs, one for each epoch, or a function that
#: takes the number of an epoch and returns the weights of that epoch.
Weights: TypeAlias = (
    'EpochWeights | Sequence[EpochWeights] | Callable[[int], EpochWeights]')


class MixtureWeights:
    """The checked weights of a mixture's streams.

    Weights that a function returns are checked in each epoch; other weights
    are checked at once.
    """

    def __init__(self, weights: Weights | None,
                 names: tuple[str, ...]) -> None:
        self._names = names
        self._function: Callable[[int], EpochWeights] | None = None
        self._epochs: list[NDArray[numpy.float64]] = []
        if callable(weights):
            self._function = weights
        elif weights is None:
            self._epochs = [numpy.ones(len(names))]
        elif isinstance(weights, Mapping) or not _are_for_epochs(weights):
            self._epochs = [self._checked(weights, 'weights')]
        else:
            self._epochs = [
                self._checked(part, f'weights of epoch {number}')
                for number, part in enumerate(weights)]

    def at(self, epoch: int) -> NDArray[numpy.float64]:
        """Return the weights of an epoch, in the order of the streams."""
        if self._function is None:
            return self._epochs[min(epoch, len(self._epochs) - 1)]
        return self._checked(
            self._function(epoch), f'weights of epoch {epoch}')

    def are_positive(self) -> bool:
        """Return whether every stream has a positive weight in each epoch.

        The result is False if a function returns the weights.
        """
        return self._function is None and all(
            bool((weights > 0).all()) for weights in self._epochs)

    def _checked(self, weights: Any, what: str) -> NDArray[numpy.float64]:
        names = self._names
        if isinstance(weights, Mapping):
            weights = self._by_name(weights, what)
        try:
            checked = numpy.array(weights, numpy.float64)
        except (TypeError, ValueError):
            raise ValueError(
                f'{what} must be numbers, got {weights!r:.200}') from None
        if checked.shape != (len(names),):
            raise ValueError(
                f'{what} must be {len(names)} numbers, one for each of the '
                f'streams {names}, got {weights!r:.200}')
        for name, weight in zip(names, checked.tolist(), strict=True):
            if not 0 <= weight < float('inf'):
                raise ValueError(
                    f'{what} must be numbers from 0 on, but the one of '
                    f'{name!r} is {weight}')
        if not checked.any():
            raise ValueError(
                f'{what} are all 0: give at least one of the streams '
                f'{names} a positive one')
        checked /= checked.max()
        shares = numpy.diff(as_thresholds(checked), prepend=0)
        for name, weight, share in zip(names, checked, shares, strict=True):
            if weight > 0 and share <= 0:
                raise ValueError(
                    f'{what}: that of {name!r} is so small beside the '
                    'others that it would never be chosen: use 0')
        return checked

    def _by_name(self, weights: Mapping[str, float], what: str
                 ) -> list[float]:
        """Return weights in the order of the streams."""
        for name in weights:
            if name not in self._names:
                hint = did_you_mean(str(name), self._names, '{} ')
                raise ValueError(
                    f'{what} name {name!r}, but there is no such stream: '
                    f'{hint}the streams are {self._names}')
        for name in self._names:
            if name not in weights:
                raise ValueError(
                    f'{what} must name all streams, but {name!r} is '
                    'missing: give it 0 to leave it out')
        return [weights[name] for name in self._names]


def _are_for_epochs(weights: Any) -> bool:
    """Return whether weights are a sequence of the weights of epochs."""
    return isinstance(weights, (list, tuple, numpy.ndarray)) and len(
        weights) > 0 and not numpy.isscalar(weights[0])
