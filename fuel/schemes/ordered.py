"""Schemes that visit each example once: in order, shuffled, in folds."""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Never

from fuel.schemes.iteration_scheme import (
    BatchScheme, BatchSizeScheme, DrawnOrder, IndexScheme, IterationScheme,
    generator_before, load_no_state, load_rng_state, no_state,
    num_requests_of, rng_state, scheme_state)
from fuel.schemes.requests import (
    BatchRequests, BatchSizeRequests, ConcatenatedRequests, CountedRequests,
    ExampleRequests, OneShotBatches, PermutedBatches, PermutedExamples,
    ShuffledOrder, draw_order, num_batches, warn_of_no_batch)
from fuel.typing import RandomGenerator
from fuel.utils.checks import not_negative, positive


class ConcatenatedScheme(IterationScheme):
    """The requests of several schemes, one scheme after another.

    Parameters
    ----------
    schemes : list of IterationScheme
        Either all of them request examples, or all request batches.

    Raises
    ------
    ValueError
        If there are no schemes, or schemes of both kinds.

    Examples
    --------
    >>> scheme = ConcatenatedScheme(
    ...     schemes=[SequentialScheme(3, 2), SequentialScheme([9, 8], 2)])
    >>> list(scheme.get_request_iterator())
    [[0, 1], [2], [9, 8]]
    """

    def __init__(self, schemes: Iterable[Any]) -> None:
        self.schemes = list(schemes)
        kinds = {scheme.requests_examples for scheme in self.schemes}
        if len(kinds) != 1:
            raise ValueError(
                'schemes must all request examples or all request batches, '
                'got ' + (', '.join(
                    f'{type(scheme).__name__} (requests_examples='
                    f'{scheme.requests_examples})'
                    for scheme in self.schemes) or 'no scheme at all'))

    @property
    def requests_examples(self) -> bool:  # type: ignore[override]
        """Whether the parts request single examples (bool)."""
        return bool(self.schemes[0].requests_examples)

    @property
    def num_requests(self) -> int | None:
        """Number of requests in an epoch (int), or None if not known."""
        counts = list(map(num_requests_of, self.schemes))
        return None if None in counts else sum(filter(None, counts))

    def get_request_iterator(self) -> Iterator[Any]:
        """Return an iterator over the requests of a new epoch."""
        return ConcatenatedRequests([
            scheme.get_request_iterator() for scheme in self.schemes])

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the parts, ready for JSON."""
        return {'schemes': [scheme_state(scheme)
                            for scheme in self.schemes]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that :meth:`state_dict` returned."""
        for scheme, part in zip(self.schemes, state['schemes'], strict=True):
            scheme.load_state_dict(part)


class ConstantScheme(BatchSizeScheme):
    """Requests of the same batch size, a number of times or without end.

    Parameters
    ----------
    num_examples : int, optional
        Stop when the sizes add up to this; the last size may be smaller.
    times : int, optional
        Stop after this number of requests.
    drop_last : bool, optional
        Leave out a last request that is smaller.  Defaults to False.

    Raises
    ------
    ValueError
        If both `num_examples` and `times` are given, or one is negative.
    TypeError
        If one is not an integer, such as NaN, which is the number of examples
        of a data set of unknown length.

    Examples
    --------
    >>> list(ConstantScheme(4, num_examples=10).get_request_iterator())
    [4, 4, 2]
    >>> list(ConstantScheme(4, times=2).get_request_iterator())
    [4, 4]
    """

    drop_last = False

    def __init__(self, batch_size: int, num_examples: int | None = None,
                 times: int | None = None, *,
                 drop_last: bool = False) -> None:
        if num_examples and times:
            raise ValueError(
                'pass num_examples or times, not both: got '
                f'num_examples={num_examples!r} and times={times!r}')
        self.batch_size = positive('batch_size', batch_size)
        self.num_examples = _limit('num_examples', num_examples)
        self.times = _limit('times', times)
        self.drop_last = drop_last

    @property
    def num_requests(self) -> int | None:
        """Number of requests in an epoch (int), or None if endless."""
        # A limit of zero means that there are no requests; None means that
        # there is no limit.
        if self.times is not None and not (self.num_examples):
            return 0 if self.num_examples == 0 else self.times
        if self.num_examples is None:
            return None
        if self.times == 0:
            return 0
        return num_batches(
            self.num_examples, self.batch_size, self.drop_last)

    def get_request_iterator(self) -> Iterator[int]:
        """Return an iterator over the batch sizes of a new epoch."""
        if self.num_examples and self.times != 0:
            warn_of_no_batch(
                self.num_examples, self.batch_size, self.drop_last)
        return size_requests(self)

    state_dict = no_state
    load_state_dict = load_no_state


def size_requests(scheme: ConstantScheme) -> BatchSizeRequests:
    """Return the requests of an epoch; do not warn if there are none."""
    count, last_size = scheme.num_requests, scheme.batch_size
    if scheme.num_examples and not scheme.drop_last:
        last_size = scheme.num_examples % scheme.batch_size or last_size
    return BatchSizeRequests(
        scheme.batch_size, math.inf if count is None else count, last_size)


class SequentialScheme(BatchScheme):
    """Batches of the examples in order.

    Parameters
    ----------
    examples : int or iterable of int
        See :class:`BatchScheme`.
    batch_size : int
        See :class:`BatchScheme`.
    drop_last : bool, optional
        Leave out a last batch of fewer examples.  Defaults to False.

    Examples
    --------
    >>> list(SequentialScheme(5, 2).get_request_iterator())
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, examples: int | Iterable[Any], batch_size: int, *,
                 drop_last: bool = False, **unknown: Never) -> None:
        super().__init__(examples, batch_size, **unknown)
        self.drop_last = drop_last

    def get_request_iterator(self) -> Iterator[list[Any]]:
        """Return an iterator over the batches of a new epoch."""
        if isinstance(self.indices, Iterator):
            return OneShotBatches(
                self._iterable(), self.batch_size, self.drop_last)
        return BatchRequests(
            self._sequence(), self.batch_size, self.drop_last)

    random_access = True
    state_dict = no_state
    load_state_dict = load_no_state


class ShuffledScheme(DrawnOrder, BatchScheme):
    """Batches of the examples in a new random order each epoch.

    Parameters
    ----------
    examples : int or iterable of int
        See :class:`BatchScheme`.
    batch_size : int
        See :class:`BatchScheme`.
    sorted_indices : bool, optional
        Sort the indices within each batch.  Defaults to False.
    rng : numpy.random.RandomState, optional
        Generator of the order; a :class:`numpy.random.Generator`, a
        :class:`random.Random` or any object with a method ``shuffle`` is
        accepted too.  Defaults to a new ``RandomState(config.default_seed)``,
        so two schemes with the same arguments give the same order.
    drop_last : bool, optional
        Leave out a last batch of fewer examples.  Each epoch leaves out
        other examples.  Defaults to False.
    seed : int, optional
        Instead of `rng`: begin with a new ``RandomState(seed)``.

    Raises
    ------
    ValueError
        If both `rng` and `seed` are given.
    TypeError
        If `rng` is not a generator, such as a number.

    Notes
    -----
    The order is that of a list of the examples after ``rng.shuffle``.  It
    takes 4 bytes of memory for each example while an epoch runs.

    Examples
    --------
    >>> list(ShuffledScheme(8, 4).get_request_iterator())
    [[7, 2, 1, 6], [0, 4, 3, 5]]
    >>> list(ShuffledScheme(8, 3, seed=5, drop_last=True)
    ...      .get_request_iterator())
    [[7, 2, 4], [1, 0, 5]]
    """

    _draws_by = 'shuffle'

    def __init__(self, examples: int | Iterable[Any], batch_size: int, *,
                 sorted_indices: bool = False,
                 rng: RandomGenerator | None = None,
                 drop_last: bool = False, seed: int | None = None,
                 **unknown: Never) -> None:
        super().__init__(examples, batch_size, **unknown)
        self.sorted_indices = sorted_indices
        self.drop_last = drop_last
        self._set_generator(rng, seed)

    def get_request_iterator(self) -> Iterator[list[Any]]:
        """Return an iterator over the batches of a new epoch."""
        indices = self._sequence()
        return PermutedBatches(
            indices, self.batch_size,
            ShuffledOrder(partial(draw_order, len(indices)), self.rng),
            self.drop_last, self.sorted_indices)

    random_access = True
    state_dict = rng_state
    load_state_dict = load_rng_state
    generator_before = generator_before


class SequentialExampleScheme(IndexScheme):
    """Single examples in order.

    Parameters
    ----------
    examples : int or iterable of int
        See :class:`IndexScheme`.

    Examples
    --------
    >>> list(SequentialExampleScheme(3).get_request_iterator())
    [0, 1, 2]
    """

    def get_request_iterator(self) -> Iterator[Any]:
        """Return an iterator over the indices of a new epoch."""
        if isinstance(self.indices, Iterator):
            return CountedRequests(self._iterable())
        return ExampleRequests(self._sequence())

    random_access = True
    state_dict = no_state
    load_state_dict = load_no_state


class ShuffledExampleScheme(DrawnOrder, IndexScheme):
    """Single examples in a new random order each epoch.

    Parameters
    ----------
    examples : int or iterable of int
        See :class:`IndexScheme`.
    rng : numpy.random.RandomState, optional
        See :class:`ShuffledScheme`.
    seed : int, optional
        See :class:`ShuffledScheme`.

    Examples
    --------
    >>> list(ShuffledExampleScheme(8).get_request_iterator())
    [7, 2, 1, 6, 0, 4, 3, 5]
    """

    _draws_by = 'shuffle'

    def __init__(self, examples: int | Iterable[Any], *,
                 rng: RandomGenerator | None = None, seed: int | None = None,
                 **unknown: Never) -> None:
        super().__init__(examples, **unknown)
        self._set_generator(rng, seed)

    def get_request_iterator(self) -> Iterator[Any]:
        """Return an iterator over the indices of a new epoch."""
        indices = self._sequence()
        order = ShuffledOrder(partial(draw_order, len(indices)), self.rng)
        return PermutedExamples(indices, order)

    random_access = True
    state_dict = rng_state
    load_state_dict = load_rng_state
    generator_before = generator_before


def _limit(name: str, value: object) -> int | None:
    """Return a checked limit; None if there is none."""
    return None if value is None else not_negative(
        name, value, 'an integer, or None if there is no limit')


def cross_validation(scheme_class: Any, num_examples: int, num_folds: int,
                     strict: bool = True, **kwargs: Any) -> Iterator[Any]:
    """Yield a pair of schemes for each fold of a cross-validation.

    Parameters
    ----------
    scheme_class : subclass of IndexScheme or BatchScheme
        Called with a list of indices and `kwargs`.
    num_examples : int
        Number of examples in the data set.
    strict : bool, optional
        Whether `num_examples` must be a multiple of `num_folds`, so that
        all validation sets have the same size.  Defaults to True.
    **kwargs
        Other arguments of `scheme_class`.

    Yields
    ------
    fold : tuple
        The training scheme and the validation scheme; if `strict` is False
        also the size of the validation set.

    Raises
    ------
    ValueError
        At the first fold, if `strict` is True and the folds would differ
        in size.

    Examples
    --------
    >>> for train, valid in cross_validation(
    ...         SequentialExampleScheme, 4, 2):
    ...     print(list(train.get_request_iterator()),
    ...           list(valid.get_request_iterator()))
    [2, 3] [0, 1]
    [0, 1] [2, 3]
    """
    positive('num_folds', num_folds)
    if strict and num_examples % num_folds != 0:
        raise ValueError(
            f'num_examples ({num_examples}) must be a multiple of num_folds '
            f'({num_folds}); pass strict=False for folds of different size')
    for fold in range(num_folds):
        begin = num_examples * fold // num_folds
        end = num_examples * (fold + 1) // num_folds
        train = scheme_class(
            [*range(begin), *range(end, num_examples)], **kwargs)
        valid = scheme_class(list(range(begin, end)), **kwargs)
        yield (train, valid) if strict else (train, valid, end - begin)
