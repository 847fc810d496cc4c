"""What iteration schemes have in common."""
from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Never

import numpy

from fuel import config
from fuel.schemes.iteration_scheme import IterationScheme
from fuel.schemes.requests import num_batches
from fuel.typing import RandomGenerator
from fuel.utils import rng_state as rng_state_
from fuel.utils.arguments import unknown_argument
from fuel.utils.checks import countable, not_negative, positive

# The hooks are assigned in each class beside its get_request_iterator,
# not inherited: a subclass with other requests must not pass for exact.

def no_state(self: Any) -> dict[str, Any]:
    """Return the scheme's state: there is none, all epochs are alike."""
    return {}


def load_no_state(self: Any, state: dict[str, Any]) -> None:
    """Take up a state that :meth:`state_dict` returned."""


def rng_state(self: Any) -> dict[str, Any]:
    """Return the state of the generator, ready for JSON."""
    return {'rng': rng_state_.get_state(self.rng)}


def load_rng_state(self: Any, state: dict[str, Any]) -> None:
    """Take up a state that :meth:`state_dict` returned."""
    rng_state_.set_state(self.rng, state['rng'])


def generator_before(self: Any, requests: Any) -> rng_state_.Snapshot:
    """Return the state of the generator before an order was drawn.

    `requests`: what :meth:`get_request_iterator` returned.
    """
    before: rng_state_.Snapshot | None = requests.order.generator_before()
    return rng_state_.take_snapshot(self.rng) if before is None else before


def epoch_state(self: Any) -> dict[str, Any]:
    """Return the number of the next epoch, ready for JSON."""
    return {'epoch': self.epoch}


def load_epoch_state(self: Any, state: dict[str, Any]) -> None:
    """Continue with the epoch that :meth:`state_dict` returned."""
    if type(state['epoch']) is not int or state['epoch'] < 0:
        raise ValueError(
            f'epoch must be a number from 0 on, got {state["epoch"]!r}')
    self.epoch = state['epoch']


def as_examples(examples: object) -> Any:
    """Return `examples` as something to iterate over, checked."""
    if hasattr(examples, 'get_data'):
        raise TypeError(
            'examples must be a number of examples or a list of indices, got '
            f'the {type(examples).__name__} itself: pass its num_examples')
    if isinstance(examples, Iterable) and not (
            isinstance(examples, (str, bytes)) or (isinstance(
                examples, numpy.ndarray) and examples.ndim == 0)):
        if isinstance(examples, range) and examples:
            span = abs(examples[-1] - examples[0]) // abs(examples.step)
            countable('the number of examples', span + 1)
        return examples
    return range(countable('examples', not_negative(
        'examples', examples, 'a number of examples or a list of indices')))


class _Examples:
    """What schemes over a given set of examples share."""

    indices: Any
    _read_once: bool = False

    def __init__(self, examples: int | Iterable[Any],
                 **unknown: Never) -> None:
        if unknown:
            raise unknown_argument(type(self), unknown)
        self.indices = as_examples(examples)

    # Pickles of Fuel 0.2.0 hold the indices alone.
    @functools.cached_property
    def num_examples(self) -> int | None:
        """How many examples there are (int); None for an iterator."""
        return len(self.indices) if isinstance(self.indices, Sized) else None

    def _sequence(self) -> Sequence[Any]:
        """Return the examples as a sequence of plain Python objects."""
        if isinstance(self.indices, (list, range, tuple)):
            return self.indices
        indices = self._iterable()
        if isinstance(indices, numpy.ndarray):
            return list(indices.tolist())
        return list(indices)

    def _iterable(self) -> Any:
        """Return the examples, and refuse to read an iterator twice."""
        if isinstance(self.indices, Iterator):
            if self._read_once:
                raise ValueError(
                    f'examples of {type(self).__name__} is an iterator '
                    f'({type(self.indices).__name__}) and an earlier epoch '
                    'has read it: pass list(examples) or the number of '
                    'examples instead')
            self._read_once = True
        return self.indices


class IndexScheme(_Examples, IterationScheme):
    """Schemes whose requests are single indices.

    Parameters
    ----------
    examples : int or iterable of int
        The indices of the examples to visit, or how many to visit from the
        beginning of the data set.

    Attributes
    ----------
    indices : iterable of int
        As given; a range if a number was given.
    num_examples : int or None
        How many there are; None for an iterator.
    """

    requests_examples = True

    @property
    def num_requests(self) -> int | None:
        """Number of requests in an epoch (int), or None if not known."""
        return self.num_examples


class BatchScheme(_Examples, IterationScheme):
    """Schemes whose requests are lists of indices.

    Parameters
    ----------
    examples : int or iterable of int
        The indices of the examples to visit, or how many to visit from the
        beginning of the data set.
    batch_size : int
        Number of indices in a request.  The last request of an epoch has
        fewer if the number of examples is no multiple of it.

    Attributes
    ----------
    indices : iterable of int
        As given; a range if a number was given.
    num_examples : int or None
        How many there are; None for an iterator.
    drop_last : bool
        Whether a last batch of fewer examples is left out.
    """

    requests_examples = False
    drop_last = False

    def __init__(self, examples: int | Iterable[Any], batch_size: int,
                 **unknown: Never) -> None:
        super().__init__(examples, **unknown)
        self.batch_size = positive('batch_size', batch_size)

    @property
    def num_requests(self) -> int | None:
        """Number of requests in an epoch (int), or None if not known."""
        if self.num_examples is None:
            return None
        return num_batches(
            self.num_examples, self.batch_size, self.drop_last)


class BatchSizeScheme(IterationScheme):
    """Schemes whose requests are batch sizes.

    For sources that can only be read in order, so that there is nothing to
    choose but how many examples to take.
    """

    requests_examples = False
    chooses_examples = False


class DrawnOrder:
    """What schemes that draw from a generator share: `rng` or `seed`."""

    rng: Any
    # Pickles of Fuel 0.2.0 hold none.
    seed: int | None = None
    # The state of the generator is saved.
    unsaved_arguments: tuple[str, ...] = ('seed',)
    # The method that a generator of another class needs, if one is enough.
    _draws_by: str | None = None

    def _set_generator(self, rng: RandomGenerator | None,
                       seed: int | None) -> None:
        self.rng = generator_of(rng, seed, self._draws_by)
        self.seed = seed


def generator_of(rng: object, seed: object = None,
                 draws_by: str | None = None) -> Any:
    """Return the generator that is given, or begins with a seed, checked.

    `draws_by`: the method that a generator of another class needs; None if
        no other class will do.
    """
    if rng is None:
        if seed is None:
            return numpy.random.RandomState(config.default_seed)
        number = not_negative('seed', seed)
        if number >= 2 ** 32:
            raise ValueError(f'seed must be below 2 ** 32, got {number}')
        return numpy.random.RandomState(number)
    if seed is not None:
        raise ValueError(
            'rng is a generator, and seed what a new one begins with: pass '
            'one of them')
    if rng_state_.is_generator(rng) or (
            draws_by and hasattr(rng, draws_by)):
        return rng
    raise TypeError(
        'rng must be a numpy.random.RandomState, a numpy.random.Generator or '
        f'a random.Random, got {rng!r:.80} ({type(rng).__name__})'
        + (f': pass seed={rng} for a generator that begins with a number'
           if isinstance(rng, (int, numpy.integer)) else ''))


def check_sized(scheme: BatchScheme | IndexScheme, examples: object) -> int:
    """Return the number of examples; refuse those of which it is unknown."""
    if scheme.num_examples is None:
        raise TypeError(
            f'{type(scheme).__name__} orders a number or a list of examples, '
            f'got {type(examples).__name__}: pass list(examples)')
    return scheme.num_examples
