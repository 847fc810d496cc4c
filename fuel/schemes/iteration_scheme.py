"""The base classes of schemes, the scheme of a rank, and functions that read
the attributes of schemes of any class."""
from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Never

import numpy

from fuel import config
from fuel.schemes.requests import num_batches
from fuel.schemes.shard import Shard, checked_shard, share_of
from fuel.schemes.sharded_requests import sharded_requests
from fuel.typing import RandomGenerator, SchemeLike, State
from fuel.utils import rng_state as rng_state_
from fuel.utils.arguments import NamedArguments, one_line, unknown_argument
from fuel.utils.checks import countable, not_negative, positive
from fuel.utils.overrides import covers, hook_covers_method

_IMMUTABLE = frozenset({str, int, float, bool, type(None)})


class IterationScheme(NamedArguments):
    """An iteration scheme: decides which requests an epoch makes.

    Subclasses implement :meth:`get_request_iterator`, without which they
    cannot be constructed, and set `requests_examples`.

    Attributes
    ----------
    requests_examples : bool
        Whether requests are for single examples (as opposed to batches).
    order_version : int
        Class attribute: version of the algorithm that makes the order. A
        class that orders the same examples in another way than before
        declares the next number: older states are then refused. Defaults to
        1.

    Notes
    -----
    A scheme may also offer two hooks, which let a stream that uses it save
    its position with :meth:`~fuel.streams.AbstractDataStream.state_dict`:

    ``state_dict()``
        returns, as plain data ready for JSON, the state from which the *next*
        request iterator will be made, such as the state of a generator, and
    ``load_state_dict(state)``
        restores the scheme to that state.

    A restored stream skips the requests that were made before its state was
    saved.  A class that overrides :meth:`get_request_iterator` overrides the
    hooks too, or has none.  Random schemes should not be shared by streams,
    since one stream would then change the order of the other.
    """

    must_override = ('get_request_iterator',)
    requests_examples: bool
    # True if requests say which examples to visit, and not how many.
    chooses_examples = True
    # True if each request of an epoch can be made by its number. The class
    # that defines get_request_iterator declares it: a subclass that overrides
    # the method makes other requests.
    random_access = False
    order_version = 1

    def __repr__(self) -> str:
        return one_line(self)

    def get_request_iterator(self) -> Iterator[Any]:
        """Return an iterator over the requests of a new epoch."""
        raise NotImplementedError(
            f'{type(self).__name__} must implement get_request_iterator')

    def shard(self, rank: int, num_shards: int, by: str = 'batch',
              uneven: str = 'uneven') -> ShardedScheme:
        """Return the scheme of one of several ranks that share the order.

        Parameters
        ----------
        rank : int
            From 0 to below `num_shards`.
        num_shards : int
            Number of ranks that share the order.
        by : {'batch', 'example'}, optional
            Whether a rank takes every n-th request (the default), or its
            part of each batch.
        uneven : {'uneven', 'drop', 'pad'}, optional
            See :meth:`fuel.streams.AbstractDataStream.shard`.

        Returns
        -------
        ShardedScheme

        Raises
        ------
        ValueError
            If `rank` is outside the range, or a batch has fewer examples
            than there are ranks to split it over.
        TypeError
            If the requests do not say which examples to visit.

        Examples
        --------
        >>> from fuel.schemes import SequentialScheme
        >>> for rank in range(2):
        ...     scheme = SequentialScheme(6, 2).shard(rank, 2)
        ...     print(list(scheme.get_request_iterator()))
        [[0, 1], [4, 5]]
        [[2, 3]]
        >>> scheme = SequentialScheme(6, 2).shard(1, 2, by='example')
        >>> list(scheme.get_request_iterator())
        [[1], [3], [5]]
        """
        return ShardedScheme(
            self, checked_shard(rank, num_shards, by, uneven))


class ShardedScheme(IterationScheme):
    """The share of a scheme's order that one of several ranks takes.

    :meth:`IterationScheme.shard` returns it. Its state is the state of the
    whole scheme, so any number of ranks can restore it.

    Parameters
    ----------
    scheme : IterationScheme
        The scheme whose order is shared.
    sharding : Shard
        The rank, and the number of ranks.

    Attributes
    ----------
    scheme : IterationScheme
    sharding : Shard
    """

    unsaved_arguments = ('sharding',)

    def __init__(self, scheme: Any, sharding: Shard) -> None:
        _check_shardable(scheme, sharding)
        self.scheme = scheme
        self.sharding = sharding
        self.requests_examples = scheme.requests_examples

    def __getattr__(self, name: str) -> Any:
        if name.startswith('_') or name == 'scheme':
            raise AttributeError(name)
        return getattr(self.scheme, name)

    @property
    def num_requests(self) -> int | None:
        """Number of requests of the rank (int), or None if not known."""
        total = num_requests_of(self.scheme)
        if total is None:
            return None
        size = batch_size_of(self.scheme)
        examples = num_examples_of(self.scheme)
        last = None if size is None or not isinstance(examples, int) else (
            examples - (total - 1) * size)
        return share_of(total, self.sharding, last, size or 0)

    def get_request_iterator(self) -> Iterator[Any]:
        """Return an iterator over the rank's requests of a new epoch."""
        return sharded_requests(
            self.scheme.get_request_iterator(), self.sharding,
            self.requests_examples)

    def state_dict(self) -> State:
        """Return the state of the whole scheme."""
        state: State = scheme_state(self.scheme)
        return state

    def load_state_dict(self, state: State) -> None:
        """Restore a state of the whole scheme."""
        self.scheme.load_state_dict(state)


def scheme_state(scheme: Any) -> Any:
    """Return ``scheme.state_dict()``; raise TypeError if it lacks the hooks.

    The result is a copy, since the scheme may change its own dict later.
    """
    if not hook_covers_method(type(scheme), 'get_request_iterator',
                              'state_dict'):
        raise TypeError(
            f'the position of the iteration scheme {type(scheme).__name__} '
            'cannot be saved as plain data: give the class the hooks '
            'state_dict() and load_state_dict(state), or pickle the epoch '
            'iterator instead')
    return copied_plain(scheme.state_dict())


# Each optional attribute of schemes is read only by one function here.

def keeps_generator_before(scheme: object) -> bool:
    """Return whether an epoch's requests contain the state that the scheme had
    before the epoch.

    That state is the state of the scheme's generator.
    """
    return covers(scheme, 'generator_before',
                  ('get_request_iterator', 'state_dict'))


def num_requests_of(scheme: Any) -> int | None:
    """Return the number of requests of an epoch of a scheme, if known."""
    if 'num_requests' not in vars(scheme) and not hook_covers_method(
            type(scheme), 'get_request_iterator', 'num_requests'):
        return None
    count: int | None = scheme.num_requests
    return count


def is_scheme(candidate: object) -> bool:
    """Return whether an object is an iteration scheme, of any class."""
    return hasattr(candidate, 'get_request_iterator') and not isinstance(
        candidate, type)


def num_examples_of(owner: object) -> Any:
    """Return `num_examples` of a scheme or a data set, None if it has none.

    In a class of a user, the attribute may be of any type.
    """
    return getattr(owner, 'num_examples', None)


def order_version_of(scheme: object) -> Any:
    """Return the version of the algorithm that makes a scheme's order.

    In a class of a user, the attribute may be of any type.
    """
    return getattr(type(scheme), 'order_version', 1)


def seed_of(scheme: object) -> object:
    """Return the seed of a scheme, or of the scheme that ranks share; None if
    it has none."""
    whole = scheme.scheme if isinstance(scheme, ShardedScheme) else scheme
    return None if whole is None else vars(whole).get('seed')


def batch_size_of(scheme: object) -> int | None:
    """Return the batch size of a scheme, None if it is unknown.

    Only the last batch of an epoch may have fewer examples.
    """
    size = getattr(scheme, 'batch_size', None)
    return size if isinstance(size, int) else None


def is_random_access(scheme: Any) -> bool:
    """Return whether each request of an epoch can be made by its number."""
    return covers(scheme, 'random_access', ('get_request_iterator',)) and (
        scheme.random_access is True)


def chooses_examples(scheme: object) -> bool:
    """Return whether requests say which examples to visit, not how many."""
    return bool(getattr(scheme, 'chooses_examples', True))


def parts_of_scheme(scheme: object) -> list[SchemeLike]:
    """Return the schemes that a scheme is made of."""
    parts = getattr(scheme, 'schemes', ())
    # A user's scheme may have another attribute of this name.
    return list(parts) if isinstance(parts, list | tuple) and all(
        map(is_scheme, parts)) else []


def shard_of(scheme: object) -> Shard | None:
    """Return the share that a scheme takes, None if it is not sharded."""
    return scheme.sharding if isinstance(scheme, ShardedScheme) else None


def copied_plain(value: Any) -> Any:
    """Return a copy of plain data."""
    if type(value) in _IMMUTABLE:
        return value
    if type(value) is not dict:
        return copy.deepcopy(value)
    copied = value.copy()
    for key, part in value.items():
        if type(part) not in _IMMUTABLE:
            copied[key] = copied_plain(part)
    return copied


def _check_shardable(scheme: Any, shard: Shard) -> None:
    name = type(scheme).__name__
    if isinstance(scheme, ShardedScheme):
        raise ValueError(
            f'the {type(scheme.scheme).__name__} is sharded already, as '
            f'{tuple(scheme.sharding)}: shard it once, by the number of all '
            'ranks')
    if not chooses_examples(scheme):
        raise TypeError(
            f'{name} says how many examples to take, not which: shard the '
            'stream that it is for, with shard()')
    if shard.splits:
        shard.check_split(f'{name} requests', scheme.requests_examples,
                          batch_size_of(scheme))


# Each class assigns the hooks next to its get_request_iterator, and does not
# inherit them: otherwise a subclass that makes other requests would seem to
# save exact states.

def no_state(self: Any) -> dict[str, Any]:
    """Return the empty state: all epochs are alike."""
    return {}


def keeps_state(scheme: object) -> bool:
    """Return whether a scheme has a state, from which it makes its epochs."""
    return getattr(type(scheme), 'state_dict', no_state) is not no_state


def load_no_state(self: Any, state: dict[str, Any]) -> None:
    """Restore a state that :meth:`state_dict` returned."""


def rng_state(self: Any) -> dict[str, Any]:
    """Return the state of the generator, ready for JSON."""
    return {'rng': rng_state_.get_state(self.rng)}


def load_rng_state(self: Any, state: dict[str, Any]) -> None:
    """Restore a state that :meth:`state_dict` returned."""
    rng_state_.set_state(self.rng, state['rng'])


def generator_before(self: Any, requests: Any) -> rng_state_.Snapshot:
    """Return the state of the generator before an order was drawn.

    `requests`: the requests of :meth:`get_request_iterator`.
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
    """Check `examples`, and return an iterable of the examples."""
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
    """Base of the schemes over a given set of examples."""

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
        """The number of examples (int); None for an iterator."""
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
                    f'{type(self).__name__} was given an iterator of examples '
                    f'({type(self.indices).__name__}), which has been read '
                    'in an earlier epoch: pass list(examples) or the number '
                    'of examples instead')
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
        Their number; None for an iterator.
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
        fewer if the number of examples is not a multiple of it.

    Attributes
    ----------
    indices : iterable of int
        As given; a range if a number was given.
    num_examples : int or None
        Their number; None for an iterator.
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

    They are for sources that can only be read in order: the only choice is how
    many examples to read at a time.
    """

    requests_examples = False
    chooses_examples = False


class DrawnOrder:
    """Base of the schemes that draw from a random generator, `rng`."""

    rng: Any
    # Pickles of Fuel 0.2.0 do not contain a seed.
    seed: int | None = None
    # The state of the generator is saved.
    unsaved_arguments: tuple[str, ...] = ('seed',)
    # Name of a method: an object of any class that has it is accepted as a
    # generator. None if only the known classes are accepted.
    _draws_by: str | None = None

    def _set_generator(self, rng: RandomGenerator | None,
                       seed: int | None) -> None:
        self.rng = generator_of(rng, seed, self._draws_by)
        self.seed = seed


def generator_of(rng: object, seed: object = None,
                 draws_by: str | None = None) -> Any:
    """Return the given generator, or a new one that begins with a seed.

    `draws_by`: name of a method; an object of any class that has it is
        accepted as a generator. None if only the known classes are accepted.
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
            'rng is a generator, and seed is for a new one: pass one of '
            'them')
    if rng_state_.is_generator(rng) or (
            draws_by and hasattr(rng, draws_by)):
        return rng
    raise TypeError(
        'rng must be a numpy.random.RandomState, a numpy.random.Generator or '
        f'a random.Random, got {rng!r:.80} ({type(rng).__name__})'
        + (f': pass seed={rng} for a generator that begins with a number'
           if isinstance(rng, (int, numpy.integer)) else ''))


def check_sized(scheme: BatchScheme | IndexScheme, examples: object) -> int:
    """Return the number of examples; raise TypeError if it is unknown."""
    if scheme.num_examples is None:
        raise TypeError(
            f'{type(scheme).__name__} orders a number or a list of examples, '
            f'got {type(examples).__name__}: pass list(examples)')
    return scheme.num_examples
