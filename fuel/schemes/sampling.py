"""Schemes that draw random orders: by blocks, by weights, by classes."""
from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Self

import numpy
from numpy.typing import ArrayLike, NDArray

from fuel.schemes.iteration_scheme import (
    BatchScheme, DrawnOrder, check_sized, load_rng_state, rng_state)
from fuel.schemes.inverse import Inverse
from fuel.schemes.requests import PermutedBatches, ShuffledOrder, num_batches
from fuel.typing import RandomGenerator
from fuel.utils.checks import countable, positive
from fuel.utils.other_libraries import is_named_class
from fuel.utils.warn import warn_user


class DrawnScheme(DrawnOrder, BatchScheme):
    """Base of the schemes that draw an order of their own."""

    def _set_drawing(self, rng: RandomGenerator | None, seed: int | None,
                     drop_last: bool, num_examples: int | None) -> None:
        if num_examples is not None:
            self.num_examples = countable(
                'num_examples', positive('num_examples', num_examples))
        self._set_generator(rng, seed)
        self.drop_last = drop_last

    def _order(self, num_examples: int) -> ShuffledOrder:
        """Draw the order of an epoch."""
        raise NotImplementedError

    def get_request_iterator(self) -> Iterator[list[Any]]:
        """Return an iterator over the batches of a new epoch."""
        assert self.num_examples is not None
        return PermutedBatches(
            self._sequence(), self.batch_size, self._order(self.num_examples),
            self.drop_last, num_examples=self.num_examples)

    random_access = True
    state_dict = rng_state
    load_state_dict = load_rng_state


class BlockShuffledScheme(DrawnScheme):
    """Batches in a random order that reads storage block by block.

    For data larger than memory in compressed chunks, where reading any row
    costs decoding its whole chunk. First blocks of neighbouring examples are
    shuffled. Then the examples of a window, which is a few blocks, are
    shuffled among each other. Every example comes exactly once an epoch,
    and each block is needed during one window only (and the batch that
    follows it).

    Parameters
    ----------
    examples : int or iterable of int
        See :class:`BatchScheme`. Blocks are cut in the order given.
    batch_size : int
        See :class:`BatchScheme`.
    block_size : int or sequence of int
        Number of examples in a block, or, in increasing order, the
        places at which blocks other than the first one start. Blocks that
        are the chunks of the file read fastest: see :meth:`aligned`.
    window : int, optional
        Number of blocks shuffled together. Two windows of blocks must fit in
        memory. A window of one block gives the least random order, a window
        of all blocks a full shuffle. Defaults to 8.
    rng : numpy.random.RandomState, optional
        A :class:`numpy.random.Generator` or a :class:`random.Random` is
        accepted too. Defaults to a new ``RandomState(config.default_seed)``.
    drop_last : bool, optional
        Leave out a last batch of fewer examples. Each epoch leaves out
        other examples. Defaults to False.
    seed : int, optional
        Instead of `rng`: begin with a new ``RandomState(seed)``.

    Raises
    ------
    ValueError
        If the starts of blocks are not integers, do not increase, or are not
        from 1 to below the number of examples.

    Examples
    --------
    >>> scheme = BlockShuffledScheme(12, 4, block_size=3, window=2)
    >>> for batch in scheme.get_request_iterator():
    ...     print(batch)
    [9, 10, 7, 6]
    [8, 11, 5, 0]
    [2, 4, 1, 3]
    """

    def __init__(self, examples: int | Iterable[Any], batch_size: int, *,
                 block_size: ArrayLike, window: int = 8,
                 rng: RandomGenerator | None = None,
                 drop_last: bool = False, seed: int | None = None) -> None:
        super().__init__(examples, batch_size)
        num_examples = check_sized(self, examples)
        self.window = positive('window', window)
        self.block_size = block_size
        self._borders = _block_borders(block_size, num_examples)
        self._set_drawing(rng, seed, drop_last, None)

    @property
    def num_blocks(self) -> int:
        """The number of blocks (int)."""
        return len(self._borders) - 1

    @classmethod
    def aligned(cls, dataset: object, batch_size: int, *,
                source: str | None = None,
                window: int = 8, rng: RandomGenerator | None = None,
                drop_last: bool = False, seed: int | None = None) -> Self:
        """Return a scheme whose blocks are the chunks of a data set.

        Parameters
        ----------
        dataset : Dataset
            A data set whose rows are stored in pieces: chunks of HDF5 or Zarr,
            row groups of Parquet, or pieces of a remote file. Each of its
            examples is visited.
        batch_size, window, rng, drop_last, seed
            As for the class.
        source : str, optional
            The source whose pieces become blocks. Defaults to that of
            :meth:`~fuel.datasets.Dataset.chunk_of_examples`: the compressed
            one with the largest examples.

        Raises
        ------
        ValueError
            If the source is not chunked: then all orders are equally fast.
        TypeError
            If the data set does not say how its rows are stored.
        """
        if not hasattr(dataset, 'chunk_of_examples'):
            raise TypeError(
                f'blocks are aligned to the chunks of an H5PYDataset, got '
                f'{type(dataset).__name__}; for other data, pass block_size '
                f'to the class itself')
        chunks = dataset.chunk_of_examples(source)
        order = numpy.argsort(chunks, kind='stable')
        starts = numpy.flatnonzero(numpy.diff(chunks[order])) + 1
        in_order = bool((order[1:] > order[:-1]).all())
        return cls(len(order) if in_order else order.tolist(), batch_size,
                   block_size=starts, window=window, rng=rng,
                   drop_last=drop_last, seed=seed)

    def _order(self, num_examples: int) -> ShuffledOrder:
        return BlockOrder(self._borders, self.window, self.rng)


def _block_borders(block_size: ArrayLike, num_examples: int,
                   ) -> NDArray[numpy.intp]:
    """Return the start of each block, and the end of the last."""
    if numpy.ndim(block_size) == 0:
        # NumPy counts in floating point by a step beyond 64 bits.
        starts = numpy.arange(0, num_examples, min(
            positive('block_size', block_size), max(1, num_examples)))
        return numpy.append(starts, num_examples)
    borders = numpy.concatenate(
        [[0], numpy.asarray(block_size), [num_examples]])
    if borders.dtype.kind not in 'iu' and numpy.size(block_size):
        raise ValueError(f'blocks must start at integers, got {block_size!r}')
    if (numpy.diff(borders) <= 0).any():
        raise ValueError(
            f'blocks must start at increasing places from 1 to '
            f'{num_examples - 1}, got {block_size!r}')
    return borders.astype(numpy.intp)


class WeightedScheme(DrawnScheme):
    """Batches of examples drawn with given weights.

    Parameters
    ----------
    weights : sequence of float
        One weight for each example, not negative. They need not add up to 1.
        An example of twice the weight is drawn twice as often.
    batch_size : int
        See :class:`BatchScheme`.
    num_examples : int, optional
        Number of examples drawn in an epoch. Defaults to the number of
        weights.
    replacement : bool, optional
        Whether an example may be drawn more than once an epoch. If False,
        examples of small weight come late, or not at all. Defaults to True.
    rng, drop_last, seed : optional
        See :class:`BlockShuffledScheme`.

    Raises
    ------
    ValueError
        If a weight is negative or not a number, or if fewer examples have a
        positive weight than must be drawn.

    Examples
    --------
    >>> scheme = WeightedScheme([1, 0, 5, 1], 4, num_examples=8)
    >>> list(scheme.get_request_iterator())
    [[2, 2, 0, 2], [2, 0, 2, 2]]
    >>> scheme = WeightedScheme([1, 0, 5, 1], 2, num_examples=3,
    ...                         replacement=False)
    >>> list(scheme.get_request_iterator())
    [[2, 3], [0]]
    """

    def __init__(self, weights: ArrayLike, batch_size: int, *,
                 num_examples: int | None = None, replacement: bool = True,
                 rng: RandomGenerator | None = None,
                 drop_last: bool = False, seed: int | None = None) -> None:
        self.weights = _checked_weights(weights)
        super().__init__(len(self.weights), batch_size)
        self.replacement = replacement
        self._set_drawing(rng, seed, drop_last, num_examples)
        drawable = int(numpy.count_nonzero(self.weights))
        needed = 1 if replacement else self.num_examples or 0
        if drawable < needed:
            raise ValueError(
                f'{needed} different examples must be drawn, but only '
                f'{drawable} of {len(self.weights)} weights are positive')

    def _order(self, num_examples: int) -> ShuffledOrder:
        return ShuffledOrder(partial(
            draw_weighted, self.weights, num_examples, self.replacement),
            self.rng)


def _checked_weights(weights: ArrayLike) -> NDArray[numpy.float64]:
    checked = numpy.array(weights, dtype=numpy.float64)
    if checked.ndim != 1 or not checked.size:
        raise ValueError('weights must be one number for each example, got '
                         f'an array of shape {checked.shape}')
    wrong = numpy.flatnonzero(~(checked >= 0) | numpy.isinf(checked))
    if wrong.size:
        raise ValueError(
            f'weights must be numbers from 0, but the one of example '
            f'{wrong[0]} is {checked[wrong[0]]}')
    with numpy.errstate(over='ignore'):
        if numpy.isinf(checked.sum()):
            raise ValueError('the sum of the weights must be finite: divide '
                             'them by their largest')
    return checked


class BalancedScheme(DrawnScheme):
    """Batches of an epoch in which all classes are equally frequent.

    In an epoch, the examples of a class come in a random order. When all of
    them have come, they come again in another order. Classes are mixed at
    random, so they are equally frequent in an epoch, not in each batch. If
    each batch must be balanced, make a :class:`~fuel.transformers.Batch` of
    a :class:`~fuel.transformers.Mix` of one stream for each class
    (:ref:`class-balance`).

    Parameters
    ----------
    labels : sequence
        The class of each example: integers, strings or the like. An array
        of shape ``(examples, 1)``, which label sources often have, is
        accepted too. Examples whose label is masked, or missing in a
        categorical of pandas or Arrow, are left out, with a warning.
        :meth:`dataset.read_labels <fuel.datasets.Dataset.read_labels>` masks
        the missing labels among codes of categories.
    batch_size : int
        See :class:`BatchScheme`.
    num_examples : int, optional
        Number of examples drawn in an epoch, the same number of each class.
        If they cannot be divided equally, some classes, chosen at random,
        get one more. Defaults to the number of labels that are not left out.
    missing : object, optional
        A label that is not a class, such as -1: its examples are never
        drawn. Defaults to None: in a plain array each label is a class.
    rng, drop_last, seed : optional
        See :class:`BlockShuffledScheme`.

    Attributes
    ----------
    classes : numpy.ndarray
        The distinct labels, sorted.

    Raises
    ------
    ValueError
        If there is not one label for each example, or all are missing.
    TypeError
        If the labels cannot be sorted.

    Examples
    --------
    >>> scheme = BalancedScheme(['cat'] * 9 + ['dog'], 5)
    >>> list(scheme.get_request_iterator())
    [[2, 4, 9, 0, 3], [9, 1, 9, 9, 9]]
    """

    # Pickles that were made before `missing` existed hold no value.
    _num_left_out = 0

    def __init__(self, labels: ArrayLike, batch_size: int, *,
                 num_examples: int | None = None, missing: object = None,
                 rng: RandomGenerator | None = None,
                 drop_last: bool = False, seed: int | None = None) -> None:
        found = numpy.asarray(labels)
        if found.ndim == 2 and found.shape[1] == 1:
            found = found[:, 0]
        if found.ndim != 1 or not found.size:
            raise ValueError('labels must be one for each example, got an '
                             f'array of shape {found.shape}')
        self.missing = missing
        known = find_known(labels, missing)
        examples = numpy.arange(len(found)) if known is None else (
            numpy.flatnonzero(known))
        if not len(examples):
            raise ValueError(
                f'all {len(found)} labels are missing, so that there is no '
                f'class to draw')
        self._num_left_out = len(found) - len(examples)
        found = found[examples]
        super().__init__(len(found), batch_size)
        try:
            self.classes, numbers = numpy.unique(found, return_inverse=True)
        except TypeError:
            kinds = sorted({type(label).__name__ for label in found})
            raise TypeError(
                f'labels must be of one type that can be sorted, got '
                f'{", ".join(kinds)}') from None
        self._members = [examples[numbers == number]
                         for number in range(len(self.classes))]
        self._set_drawing(rng, seed, drop_last, num_examples)

    def kept_arguments(self) -> Mapping[str, object]:
        """Return the arguments that a saved state must fit, by name."""
        # A state that is older than `missing` fits where none is left out.
        return {**super().kept_arguments(), 'missing': None,
                'labels left out': self._num_left_out or None}

    def _order(self, num_examples: int) -> ShuffledOrder:
        return ShuffledOrder(
            partial(draw_balanced, self._members, num_examples), self.rng)


# Number of windows whose order is kept: those of the current request and of
# the request that is read in advance. Each request may lie in two.
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
    distribution whose rate is its weight; the places with the earliest times
    are taken. This is the same as drawing one place after another from the
    places that are left.
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
    """Draw the same number of places of each class, or one more of some."""
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
    """The order of examples that are shuffled within windows of blocks.

    An epoch draws the order of the blocks, and a seed. The order within a
    window is drawn from this seed and the number of the window, so that a
    window does not depend on the draws of earlier windows.
    """

    def __init__(self, borders: NDArray[numpy.intp], window: int,
                 rng: RandomGenerator) -> None:
        self._borders = borders
        self._window = window
        super().__init__(partial(uniforms, size=len(borders)), rng)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), '_windows': {}, '_starts': None}

    def _draw(self, rng: RandomGenerator) -> NDArray[Any]:
        """Return the order of the blocks, and draw the windows' seed."""
        drawn = super()._draw(rng)
        order = numpy.argsort(drawn[:-1], kind='stable')
        lengths = numpy.diff(self._borders)[order]
        ends = numpy.cumsum(lengths)
        # The start of each window in the epoch, and the end of the last one.
        self._starts = numpy.append(
            0, numpy.append(ends[self._window - 1::self._window],
                            ends[-1:]))
        self._seed = int(drawn[-1] * 2 ** 32)
        self._windows: dict[int, NDArray[numpy.intp]] = {}
        return order

    def copied(self) -> Any:
        """Return an independent copy of the order, with its draws."""
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
        # The most recently used window comes last.
        self._windows[number] = places
        return places

    def __call__(self, start: int, stop: int) -> NDArray[numpy.intp]:
        """Return a part of the order."""
        stop = min(stop, int(self._borders[-1]))
        self._drawn()
        number = int(self._starts.searchsorted(start, 'right')) - 1
        parts = []
        while start < stop:
            first = int(self._starts[number])
            part = self._window_order(number)[start - first:stop - first]
            parts.append(part)
            start += len(part)
            number += 1
        return parts[0] if len(parts) == 1 else numpy.concatenate(parts)

    def positions_of(self, place: int) -> Sequence[int]:
        """Return where a place is in the order."""
        drawn = self._drawn()
        if self._inverse is None:
            self._inverse = Inverse(drawn)
        turn, = self._inverse.find(
            int(self._borders.searchsorted(place, 'right')) - 1)
        number = turn // self._window
        within, = numpy.flatnonzero(self._window_order(number) == place)
        return int(self._starts[number] + within),


def find_known(labels: Any, missing: object = None) -> NDArray[Any] | None:
    """Return a mask of the labels that stand for a class, None if all do.

    A label is missing if it is masked in a masked array, or has no value in a
    categorical of pandas or Arrow. A warning says that such labels are left
    out.

    `missing`: a label that does not stand for a class either.
    Returns: array of the shape of the labels.
    """
    known = ~_find_unsaid(labels)
    left_out = int(known.size - numpy.count_nonzero(known))
    if left_out:
        warn_user(
            f'{left_out} of {known.size} labels are missing, and their '
            f'examples are left out: give them a class of their own to keep '
            f'them')
    if missing is not None:
        found = numpy.ma.getdata(numpy.asarray(labels))
        # A label that differs from itself is NaN.
        known &= (found == found if missing != missing
                  else numpy.asarray(found != missing))
    return None if known.all() else known


def _find_unsaid(labels: Any) -> NDArray[Any]:
    """Return a mask of the examples without a label."""
    if isinstance(labels, numpy.ma.MaskedArray):
        return numpy.ma.getmaskarray(labels)
    if is_named_class(labels, (
            'Series', 'Categorical', 'CategoricalIndex'), 'pandas') and (
            str(labels.dtype) == 'category'):
        return numpy.asarray(labels.isna())
    if is_named_class(labels, (
            'DictionaryArray', 'ChunkedArray'), 'pyarrow') and (
            str(labels.type).startswith('dictionary')):
        return numpy.asarray(labels.cast(labels.type.value_type).is_null())
    return numpy.zeros(numpy.shape(labels), bool)
