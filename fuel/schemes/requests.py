"""Request iterators: the requests of an epoch, and the position in it.

An iterator holds its position and the values that the order is computed from,
not the remaining requests.  So its pickle is small for any number of examples,
and it advances in constant time.
"""
from __future__ import annotations

import copy
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.kernels.draws import draw_order as draw_short_order
from fuel.kernels.epoch_reader import RequestPosition
from fuel.schemes.inverse import Inverse
from fuel.typing import RandomGenerator
from fuel.utils.rng_state import Snapshot, is_generator, take_snapshot
from fuel.utils.warn import warn_user

#: Draws the places of an epoch with a generator.
Draw: TypeAlias = 'Callable[[Any], NDArray[Any]]'


class RequestIterator(RequestPosition):
    """Iterator over the requests of one epoch.

    Subclasses implement :meth:`_request`.  One iterator belongs to one
    thread at a time.

    `position`: number of requests that were made.  It is the position of the
        epoch: the epoch's reader checks it before each read.
    `num_requests`: number of requests of the whole epoch; ``math.inf`` if the
        epoch has no end.
    `requests_examples`: whether a request is the index of one example.
    """

    num_requests: float = 0
    requests_examples = False
    # Number of indices of a whole request, None if unknown.
    batch_size: Any = None
    # Number of requests that `skip` has left out.
    num_skipped = 0
    # The last request, kept where requests cannot be made by their numbers.
    last: Any = None
    # The indices that are requested, if they are held, and, from the first
    # question on, where each of them is.
    indices: Sequence[Any]
    _inverse: Inverse | None = None

    # Not inherited from Iterator: isinstance is slow for a subclass of an
    # abstract base class.
    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        position = self.position
        if position >= self.num_requests:
            raise StopIteration
        self.position = position + 1
        return self._request(position)

    def __length_hint__(self) -> int:
        remaining = self.num_requests - self.position
        return NotImplemented if math.isinf(remaining) else int(remaining)

    def _request(self, position: int) -> Any:
        """Return the request that is number `position` of the epoch."""
        raise NotImplementedError

    def _compact(self, position: int) -> Any:
        """Return request number `position`, as an array if possible.

        Users get a list of integers, from :meth:`_request`.
        """
        return self._request(position)

    def next_compact(self) -> Any:
        """Return the next request, as an array if possible."""
        position = self.position
        if position >= self.num_requests:
            raise StopIteration
        self.position = position + 1
        return self._compact(position)

    def request_at(self, position: int) -> Any:
        """Return a request by its number, None after the last."""
        if position >= self.num_requests:
            return None
        return self._request(position)

    def compact_at(self, position: int) -> Any:
        """Return the request of :meth:`request_at`, as an array if
        possible."""
        if position >= self.num_requests:
            return None
        return self._compact(position)

    @property
    def last_position(self) -> int:
        """The position before the request that was made last (int)."""
        return self.position - self.step

    def made_last(self, count: int) -> list[Any] | None:
        """Return the last `count` requests that were made; None if they are
        not known."""
        if not self.is_random_access:
            return None if count > 1 or self.last is None else [self.last]
        last = self.last_position
        first = last - (count - 1) * self.step
        return None if first < 0 else [
            self.request_at(place)
            for place in range(first, last + 1, self.step)]

    def last_compact(self) -> Any:
        """Return the last request that was made, as an array if possible;
        None if it is not known."""
        return (self.compact_at(self.last_position) if self.is_random_access
                else self.last)

    @property
    def is_random_access(self) -> bool:
        """Whether each request can be made by its number (bool)."""
        cls = type(self)
        return (cls.__next__ is RequestIterator.__next__
                and cls._request is not RequestIterator._request)

    def plain_order(self) -> Any:
        """Return all indices of the epoch in order, None if not available."""
        return None

    def places_of(self, index: Any) -> list[tuple[int, int]] | None:
        """Return the places at which the epoch has an index, in order.

        Each is the number of a request, and a number in the request. None if
        only the requests of the whole epoch tell.
        """
        return None

    def _find(self, index: Any) -> Sequence[int]:
        """Return where an index is in `indices`, in order."""
        if self._inverse is None:
            self._inverse = Inverse(self.indices)
        return self._inverse.find(index)

    def _in_batches(self, positions: Sequence[int]) -> list[tuple[int, int]]:
        """Return the places of positions in an epoch of full batches."""
        found = [divmod(position, self.batch_size) for position in positions]
        return [place for place in found if place[0] < self.num_requests]

    def advance(self, count: int) -> None:
        """Leave out the next `count` requests, in constant time."""
        self.position = int(min(self.position + count, self.num_requests))

    def skip(self, count: int) -> None:
        """Leave out the requests of the next `count` steps."""
        before = self.position
        self.advance(count * self.step)
        self.num_skipped += self.position - before

    def copied(self) -> Any:
        """Return a copy from which others may read requests by number."""
        return copy.copy(self)

    def __getstate__(self) -> dict[str, Any]:
        state = {**vars(self), 'position': self.position}
        state.pop('_inverse', None)
        state.pop('num_skipped', None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.position = vars(self).pop('position', 0)


class IndexRequests(RequestIterator):
    """Base of the iterators over single indices."""

    requests_examples = True

    def peek(self, count: int) -> list[Any]:
        """Return up to `count` of the next requests without advancing."""
        raise NotImplementedError


class ExampleRequests(IndexRequests):
    """One index after another."""

    def __init__(self, indices: Sequence[Any]) -> None:
        self.indices = indices
        self.num_requests = len(indices)

    def _request(self, position: int) -> Any:
        return self.indices[position]

    def places_of(self, index: Any) -> list[tuple[int, int]]:
        """Return the places at which the epoch has an index, in order."""
        return [(position, 0) for position in self._find(index)]

    def peek(self, count: int) -> list[Any]:
        """Return the next requests without advancing."""
        return list(self.indices[self.position:self.position + count])

    def plain_order(self) -> range | list[Any] | None:
        """Return the indices."""
        return _as_order(self.indices)


class BatchRequests(RequestIterator):
    """Lists of up to `batch_size` consecutive indices."""

    def __init__(self, indices: Sequence[Any], batch_size: int,
                 drop_last: bool = False) -> None:
        self.indices = indices
        self.batch_size = batch_size
        self.num_requests = num_batches(len(indices), batch_size, drop_last)
        warn_of_no_batch(len(indices), batch_size, drop_last)

    def _request(self, position: int) -> list[Any]:
        return list(self._part(position))

    def places_of(self, index: Any) -> list[tuple[int, int]]:
        """Return the places at which the epoch has an index, in order."""
        return self._in_batches(self._find(index))

    def _part(self, position: int) -> Sequence[Any]:
        start = position * self.batch_size
        return self.indices[start:start + self.batch_size]

    def _compact(self, position: int) -> Any:
        part = self._part(position)
        if not isinstance(part, range):
            return list(part)
        return numpy.arange(
            part.start, part.stop, part.step, dtype=numpy.intp)

    def plain_order(self) -> range | list[Any] | None:
        """Return the indices."""
        order = _as_order(self.indices)
        stop = int(self.num_requests) * self.batch_size
        return order[:stop] if order and stop < len(order) else order


class Order:
    """Base of the orders of an epoch: each is a sequence of places.

    A place is a position in the list of indices.
    """

    def __call__(self, start: int, stop: int) -> NDArray[Any]:
        """Return a part of the order."""
        raise NotImplementedError

    def whole(self) -> NDArray[Any] | None:
        """Return the whole order, None if it is not in memory."""
        return None

    def positions_of(self, place: int) -> Sequence[int] | None:
        """Return where a place is in the order, in order; None if only all of
        the order tells."""
        return None

    def copied(self) -> Any:
        """Return an independent copy of the order, with its draws."""
        return copy.copy(self)


class ShuffledOrder(Order):
    """An order that a function draws with a generator.

    A pickle holds the state of the generator before the epoch, and the order
    is drawn from it again when it is needed. If the state of the generator
    cannot be restored, such as that of ``numpy.random`` itself, the pickle
    holds the order.
    """

    def __init__(self, draw: Draw, rng: RandomGenerator) -> None:
        self._draw_places = draw
        self._inverse: Inverse | None = None
        self._rng_before = _copy_of(rng)
        self._order: NDArray[Any] | None = self._draw(rng)

    def _draw(self, rng: RandomGenerator) -> NDArray[Any]:
        return self._draw_places(rng)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_inverse': None, '_order': (
            self._order if self._rng_before is None else None)}

    def _drawn(self) -> NDArray[Any]:
        """Return the drawn order; draw it again after unpickling."""
        if self._order is None:
            rng = self._rng_before
            if isinstance(rng, dict):
                rng = numpy.random.RandomState(0)
                rng.set_state(self._rng_before)
            self._order = self._draw(copy.deepcopy(rng))
        return self._order

    def generator_before(self) -> Snapshot | None:
        """Return the state of the generator before the epoch."""
        rng = self._rng_before
        if isinstance(rng, dict):
            return Snapshot('numpy.random.RandomState', rng)
        return None if rng is None else take_snapshot(rng)

    def whole(self) -> NDArray[Any] | None:
        """Return the whole order."""
        return self._drawn()

    def copied(self) -> Any:
        """Return an independent copy of the order, with its draws."""
        ours = copy.copy(self)
        vars(ours).update(vars(self))
        return ours

    def __call__(self, start: int, stop: int) -> NDArray[Any]:
        """Return a part of the order."""
        return self._drawn()[start:stop]

    def positions_of(self, place: int) -> Sequence[int]:
        """Return where a place is in the order, in order."""
        if self._inverse is None:
            self._inverse = Inverse(self._drawn())
        return self._inverse.find(place)


class Permuted(RequestIterator):
    """Base of the iterators over indices in another order."""

    def _set_order(self, indices: Sequence[Any], order: Order) -> None:
        self.indices = indices
        self.order = order
        self._is_identity = indices == range(len(indices))

    def copied(self) -> Any:
        """Return a copy from which others may read requests by number."""
        ours = copy.copy(self)
        ours.order = self.order.copied()
        return ours

    def _pick(self, start: int, stop: int) -> list[Any]:
        places: list[int] = self.order(start, stop).tolist()
        if self._is_identity:
            return places
        return [self.indices[place] for place in places]

    def _positions_of(self, index: Any) -> list[int] | None:
        """Return where the epoch has an index, in order, if it is known."""
        found = [self.order.positions_of(place) for place in self._find(index)]
        known = [positions for positions in found if positions is not None]
        return sorted(itertools.chain.from_iterable(known)) if (
            len(known) == len(found)) else None


class PermutedExamples(Permuted, IndexRequests):
    """One index after another, in another order."""

    def __init__(self, indices: Sequence[Any], order: Order) -> None:
        self._set_order(indices, order)
        self.num_requests = len(indices)

    def _request(self, position: int) -> Any:
        return self._pick(position, position + 1)[0]

    def places_of(self, index: Any) -> list[tuple[int, int]] | None:
        """Return the places at which the epoch has an index, in order."""
        positions = self._positions_of(index)
        return None if positions is None else [
            (position, 0) for position in positions]

    def peek(self, count: int) -> list[Any]:
        """Return the next requests without advancing."""
        return self._pick(self.position, self.position + count)

    def plain_order(self) -> NDArray[Any] | None:
        """Return the indices if they are those of a shuffled range."""
        return self.order.whole() if self._is_identity else None


class PermutedBatches(Permuted):
    """Lists of up to `batch_size` indices, in another order.

    `num_examples`: number of indices of an epoch, if some are repeated or
        left out; None for the length of `indices`.
    """

    def __init__(self, indices: Sequence[Any], batch_size: int, order: Order,
                 drop_last: bool, sorted_indices: bool = False,
                 num_examples: int | None = None) -> None:
        self._set_order(indices, order)
        self.batch_size = batch_size
        self.sorted_indices = sorted_indices
        count = len(indices) if num_examples is None else num_examples
        self.num_requests = num_batches(count, batch_size, drop_last)
        warn_of_no_batch(count, batch_size, drop_last)

    def _request(self, position: int) -> list[Any]:
        start = position * self.batch_size
        batch = self._pick(start, start + self.batch_size)
        if self.sorted_indices:
            batch.sort()
        return batch

    def places_of(self, index: Any) -> list[tuple[int, int]] | None:
        """Return the places at which the epoch has an index, in order."""
        positions = self._positions_of(index)
        if positions is None:
            return None
        places = self._in_batches(positions)
        if not self.sorted_indices:
            return places
        return [(request, number) for request in dict(places)
                for number, other in enumerate(self._request(request))
                if other == index]

    def _compact(self, position: int) -> Any:
        if not self._is_identity:
            return self._request(position)
        start = position * self.batch_size
        batch = self.order(start, start + self.batch_size).astype(numpy.intp)
        if self.sorted_indices:
            batch.sort()
        return batch

    def plain_order(self) -> NDArray[Any] | None:
        """Return the indices if batches are consecutive parts of them."""
        order = self.order.whole() if (
            self._is_identity and not self.sorted_indices) else None
        return None if order is None else (
            order[:int(self.num_requests) * self.batch_size])


class BatchSizeRequests(RequestIterator):
    """The same batch size over and over; the last may be smaller."""

    def __init__(self, batch_size: int, num_requests: float = math.inf,
                 last_size: int | None = None) -> None:
        self.batch_size = batch_size
        self.num_requests = num_requests
        self.last_size = batch_size if last_size is None else last_size

    def _request(self, position: int) -> Any:
        if position == self.num_requests - 1:
            return self.last_size
        return self.batch_size


def _copy_of(rng: RandomGenerator) -> Any:
    """Return a copy of a generator, None if it cannot be copied.

    A RandomState is returned as the dict of its state.
    """
    if type(rng) is numpy.random.RandomState \
            and type(rng._bit_generator) is numpy.random.MT19937:
        return rng.get_state(legacy=False)
    return copy.deepcopy(rng) if is_generator(rng) else None


def _as_order(indices: Sequence[Any]) -> range | list[Any] | None:
    """Return indices if a compiled reader can read them, else None."""
    if type(indices) is list:
        return indices
    if isinstance(indices, range) and (
            max(abs(indices.start), abs(indices.stop)) < 2 ** 62):
        return indices
    return None


def num_batches(num_examples: int, batch_size: int,
                drop_last: bool = False) -> int:
    """Return the number of batches, only of full batches if `drop_last`."""
    if drop_last:
        return num_examples // batch_size
    return -(-num_examples // batch_size)


def warn_of_no_batch(num_examples: int, batch_size: int,
                     drop_last: bool) -> None:
    """Warn if all examples of an epoch are left out with its last batch."""
    if drop_last and 0 < num_examples < batch_size:
        warn_user(
            f'an epoch has no batch: drop_last leaves out the only one, of '
            f'{num_examples} examples, since batch_size is {batch_size}')


def draw_order(size: int, rng: RandomGenerator) -> NDArray[Any]:
    """Return the numbers below `size` in an order drawn from `rng`.

    The order is the one that ``rng.shuffle`` gives a list of them.
    """
    if type(rng) is numpy.random.RandomState and size < 2 ** 32:
        return draw_short_order(rng._bit_generator, size)
    if isinstance(rng, numpy.random.RandomState):
        # The same draws, the same swaps, without a list of Python objects.
        order = numpy.arange(size, dtype=numpy.int64)
        rng.shuffle(order)
        return order
    indices = list(range(size))
    rng.shuffle(indices)
    return numpy.array(indices, dtype=numpy.int64)


class CountedRequests(RequestIterator):
    """The requests of any iterator, counted."""

    num_requests = math.inf

    def __init__(self, iterator: Iterator[Any]) -> None:
        self.iterator = iterator

    def __next__(self) -> Any:
        self.last = request = next(self.iterator)
        self.position += 1
        return request

    def __length_hint__(self) -> int:
        return operator.length_hint(self.iterator)

    def advance(self, count: int) -> None:
        """Leave out the next `count` requests."""
        for _ in islice(self, count):
            pass


class ConcatenatedRequests(RequestIterator):
    """The requests of several iterators, one iterator after another."""

    num_requests = math.inf

    def __init__(self, parts: list[Iterator[Any]]) -> None:
        self.parts = parts

    def __next__(self) -> Any:
        while self.parts:
            try:
                self.last = request = next(self.parts[0])
            except StopIteration:
                self.parts = self.parts[1:]
            else:
                self.position += 1
                return request
        raise StopIteration

    def advance(self, count: int) -> None:
        """Leave out the next `count` requests."""
        while count and self.parts:
            part = self.parts[0]
            moved = advance(part, count)
            self.position += moved
            count -= moved
            if count:
                self.parts = self.parts[1:]


class OneShotBatches(CountedRequests):
    """Lists of the elements of an iterator that can be read only once."""

    def __init__(self, iterator: Iterator[Any], batch_size: int,
                 drop_last: bool) -> None:
        super().__init__(iterator)
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __next__(self) -> list[Any]:
        request = list(islice(self.iterator, self.batch_size))
        if not request or (
                self.drop_last and len(request) < self.batch_size):
            raise StopIteration
        self.position += 1
        self.last = request
        return request

    def __length_hint__(self) -> int:
        return num_batches(
            super().__length_hint__(), self.batch_size, self.drop_last)


def as_requests(iterator: Iterator[Any]) -> RequestIterator:
    """Return requests that know their position."""
    if isinstance(iterator, RequestIterator):
        return iterator
    return CountedRequests(iterator)


def advance(requests: Iterator[Any], count: int) -> int:
    """Leave out up to `count` requests of any iterator; return how many."""
    if isinstance(requests, RequestIterator):
        before = requests.position
        requests.advance(count)
        return requests.position - before
    return sum(1 for _ in islice(requests, count))
