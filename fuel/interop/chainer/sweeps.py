"""Sweeps over a data set: their order, and the position in them."""
from __future__ import annotations

import copy
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.exceptions import StateMismatchError
from fuel.interop.chainer.serialization import (
    Serializer,
    serialize_count,
    serialize_generators,
)
from fuel.schemes import IterationScheme
from fuel.schemes.iteration_scheme import generator_of, load_no_state, no_state
from fuel.schemes.requests import RequestIterator
from fuel.typing import RandomGenerator
from fuel.utils import rng_state

#: Takes the order of a sweep and a position in it; returns the next order.
Sampler: TypeAlias = Callable[[NDArray[Any], int], Any]


class OrderSampler:
    """Base of order samplers.

    Any function with the same arguments can be used instead.
    """

    def __call__(self, current_order: NDArray[Any],
                 current_position: int) -> Any:
        """Return the order of the next sweep.

        Parameters
        ----------
        current_order : numpy.ndarray, shape (examples,)
            The order of the sweep that ends; before the first sweep, the
            order of the data set: 0, 1, ...
        current_position : int
            Place in this order at which the last batch began.

        Returns
        -------
        numpy.ndarray, shape (examples,)
            Indices of the data set.
        """
        raise NotImplementedError(
            f'{type(self).__name__} must implement __call__')


class ShuffleOrderSampler(OrderSampler):
    """Shuffles the order for each sweep.

    Parameters
    ----------
    random_state : numpy.random.RandomState, optional
        Or a :class:`numpy.random.Generator`. Defaults to a new
        ``RandomState(config.default_seed)``, as for Fuel's schemes, so
        iterators that are made in the same way have the same order. Snapshots
        hold its state.
    """

    def __init__(self, random_state: RandomGenerator | None = None) -> None:
        self.random_state: Any = (
            generator_of(None) if random_state is None else random_state)

    def __call__(self, current_order: NDArray[Any],
                 current_position: int) -> NDArray[Any]:
        """Return the indices of all examples in a random order."""
        order: NDArray[Any] = self.random_state.permutation(
            len(current_order))
        return order


def copy_of_sampler(sampler: Sampler | None) -> Sampler | None:
    """Return a copy of a sampler, or the sampler if it cannot be copied.

    Only a :class:`ShuffleOrderSampler` with a generator of its own is copied.
    Any other function may depend on data that change.
    """
    return copy.deepcopy(sampler) if _is_copied(sampler) else sampler


def _is_copied(sampler: Sampler | None) -> bool:
    return (isinstance(sampler, ShuffleOrderSampler)
            and type(sampler).__call__ is ShuffleOrderSampler.__call__
            and rng_state.is_generator(sampler.random_state))


def no_order(current_order: NDArray[Any], current_position: int) -> Any:
    """Raise StopIteration, since the order of the next sweep is not drawn.

    A position that is ahead of the iterator has this function as its sampler.
    """
    raise StopIteration


class Sweeps:
    """The position of an iterator: sweep, order, and place in the order.

    `repeat`: whether other sweeps follow the first.
    `sampler`: draws the order of each sweep; None for the order of the data
        set.
    """

    # Orders of the next sweeps, if they were drawn in advance.
    _drawn: tuple[NDArray[Any], ...] = ()

    def __init__(self, num_examples: int, batch_size: int, repeat: bool,
                 sampler: Sampler | None) -> None:
        self.num_examples = num_examples
        self.batch_size = batch_size
        self.repeat = repeat
        self.sampler = sampler
        self.reset()

    def reset(self) -> None:
        """Start again with a first sweep, in a new order."""
        self.position = self.epoch = 0
        self.is_new_epoch = False
        self.previous_epoch_detail: float | None = None
        self.order: NDArray[Any] | None = None
        self._drawn = ()
        if self.sampler is not None:
            self.order = self._checked(self.sampler(
                numpy.arange(self.num_examples), 0), None)

    @property
    def size(self) -> int:
        """Number of examples in a sweep (int)."""
        return self.num_examples if self.order is None else len(self.order)

    @property
    def epoch_detail(self) -> float:
        """Number of sweeps, with the fraction of the present one (float)."""
        return self.epoch + self.position / max(1, self.size)

    @property
    def is_over(self) -> bool:
        """Whether all batches were returned (bool)."""
        return not self.size or (not self.repeat and self.epoch > 0)

    def copy(self) -> Sweeps:
        """Return a copy of the position, which advances independently."""
        other = copy.copy(self)
        other.sampler = copy_of_sampler(self.sampler)
        return other

    def ahead(self) -> Sweeps:
        """Return a copy of the position, for prefetching to advance.

        If a sampler cannot be copied, only one position may call it, when the
        next sweep begins. So the copy ends before the first batch that needs
        another order from such a sampler.
        """
        other = self.copy()
        if self.sampler is not None and not _is_copied(self.sampler):
            other.sampler = no_order
        return other

    def prepare(self) -> None:
        """Draw in advance the orders that the next batch needs."""
        sampler = self.sampler
        if sampler is None or self._drawn or _is_copied(sampler):
            return
        drawn = []

        def draw(order: NDArray[Any], position: int) -> NDArray[Any]:
            # Copy the order: a sampler may return the same array each time.
            drawn.append(numpy.array(sampler(order, position)))
            return drawn[-1]

        trial = copy.copy(self)
        trial.sampler = draw
        trial.advance()
        self._drawn = tuple(drawn)

    def advance(self) -> NDArray[Any]:
        """Return the indices of the next batch, and advance the position.

        Raises StopIteration at the end. An error leaves the position
        unchanged.
        """
        if self.is_over:
            raise StopIteration
        before = dict(vars(self))
        try:
            return self._advance()
        except BaseException:
            vars(self).update(before)
            raise

    def _advance(self) -> NDArray[Any]:
        self.previous_epoch_detail = self.epoch_detail
        first, before, left = self.position, self.epoch, self.batch_size
        parts = []
        while left and not self.is_over:
            stop = min(self.position + left, self.size)
            parts.append(self._indices(self.position, stop))
            left -= stop - self.position
            self.position = stop
            if stop == self.size:
                self._begin_sweep(first)
        self.is_new_epoch = self.epoch > before
        return numpy.concatenate(parts)

    def _indices(self, start: int, stop: int) -> NDArray[Any]:
        if self.order is None:
            return numpy.arange(start, stop)
        return self.order[start:stop]

    def _begin_sweep(self, position: int) -> None:
        self.epoch += 1
        self.position = 0
        if self.order is not None and self.sampler is not None:
            self.order = self._checked(
                self._next_order(self.sampler, self.order, position),
                len(self.order))

    def _next_order(self, sampler: Sampler, order: NDArray[Any],
                    position: int) -> Any:
        if self._drawn:
            drawn, *rest = self._drawn
            self._drawn = tuple(rest)
            return drawn
        return sampler(order.copy(), position)

    def _checked(self, order: object, size: int | None) -> NDArray[Any]:
        """Return a copy of a sampler's order, after a check.

        `size`: number of indices that the order must have; None for any.
        """
        indices = numpy.array(order)
        if indices.ndim != 1 or (indices.size and (
                indices.dtype.kind not in 'iu' or indices.min() < 0
                or indices.max() >= self.num_examples)):
            raise ValueError(
                'order_sampler must return a one-dimensional array of '
                f'integers from 0 to {self.num_examples - 1}, got '
                f'{order!r:.200}')
        if size is not None and len(indices) != size:
            raise ValueError(
                'order_sampler must return as many indices each time, got '
                f'{len(indices)} after {size}')
        return indices.astype(numpy.int64)

    def serialize(self, serializer: Serializer) -> bool:
        """Save or restore the position.

        Returns: whether restoring changed the batches that follow.
        """
        taken = copy.copy(self)
        taken.position = serialize_count(
            serializer, 'current_position', self.position)
        taken.epoch = serialize_count(serializer, 'epoch', self.epoch)
        taken.is_new_epoch = bool(serializer(
            'is_new_epoch', self.is_new_epoch))
        if self.order is not None:
            taken.order = self._serialize_order(serializer, self.order)
        if taken.position >= max(1, taken.size):
            raise StateMismatchError(
                f"'current_position' of the snapshot is {taken.position}, "
                f'but a sweep has {taken.size} examples: build the iterator '
                'over the data set that it was saved with')
        taken.previous_epoch_detail = self._serialize_previous(
            serializer, taken)
        is_drawn_anew = serialize_generators(
            serializer, 'generators', self.sampler)
        is_same = (self.position, self.epoch) == (
            taken.position, taken.epoch) and (
            self.order is None or taken.order is None
            or numpy.array_equal(self.order, taken.order))
        if is_drawn_anew or not is_same:
            taken._drawn = ()
        vars(self).update(vars(taken))
        return is_drawn_anew or not is_same

    def _serialize_order(self, serializer: Serializer,
                         present: NDArray[Any]) -> NDArray[Any]:
        order = present.copy()
        try:
            try:
                order = serializer('order', order)
            except KeyError:
                # The name in snapshots of old versions of Chainer.
                order = serializer('_order', order)
            return self._checked(order, len(present))
        except (KeyError, ValueError) as error:
            raise StateMismatchError(
                "the snapshot has no 'order' of "
                f'{len(present)} of {self.num_examples} examples: build the '
                'iterator over the data set, and with the shuffling, that '
                f'it was saved with ({error})') from error

    def _serialize_previous(self, serializer: Serializer,
                            taken: Sweeps) -> float | None:
        """Write or read `previous_epoch_detail`; None is stored as -1."""
        previous = self.previous_epoch_detail
        try:
            value = float(serializer('previous_epoch_detail', (
                -1. if previous is None else previous)))
        except KeyError:
            # Snapshots of old versions of Chainer lack it.
            value = taken.epoch_detail - self.batch_size / max(1, taken.size)
        return value if value >= 0 else None


class SweepScheme(IterationScheme):
    """An iteration scheme that continues from a position in the sweeps.

    The position itself does not change.
    """

    requests_examples = False

    def __init__(self, sweeps: Sweeps) -> None:
        self.sweeps = sweeps.ahead()

    def get_request_iterator(self) -> SweepRequests:
        """Return an iterator over the batches after the position."""
        return SweepRequests(self.sweeps.ahead())

    state_dict = no_state
    load_state_dict = load_no_state


class SweepRequests(RequestIterator):
    """An iterator over requests: the indices of each batch."""

    def __init__(self, sweeps: Sweeps) -> None:
        self.sweeps = sweeps
        self.num_requests = math.inf

    def __next__(self) -> list[int]:
        indices: list[int] = self.sweeps.advance().tolist()
        self.position += 1
        return indices

    def advance(self, count: int) -> None:
        """Skip a number of requests."""
        with suppress(StopIteration):
            for _ in range(count):
                next(self)
