"""The names of ``chainer.datasets``, to combine and split data sets.

This module itself defines those that split a data set, also for
cross-validation.
"""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy

from fuel.interop.chainer.combining import (
    ConcatenatedDataset, DictDataset, TransformDataset, TupleDataset)
from fuel.interop.chainer.examples import (
    DatasetMixin,
    Example,
    ExampleSet,
    as_place,
    read_examples,
)
from fuel.utils.checks import not_negative, positive

__all__ = ['ConcatenatedDataset', 'DictDataset', 'SubDataset',
           'TransformDataset', 'TupleDataset',
           'get_cross_validation_datasets',
           'get_cross_validation_datasets_random', 'split_dataset',
           'split_dataset_n', 'split_dataset_n_random',
           'split_dataset_random']

#: For each example of a reordered data set, its index in the original data
#: set; None for the original order.
ExampleOrder: TypeAlias = 'Sequence[int] | numpy.ndarray[Any, Any] | None'


class SubDataset(DatasetMixin):
    """A range of the examples of a data set.

    Parameters
    ----------
    dataset : indexable
    start, finish : int
        The first place of the range and the place after its last, counted in
        `order` if it is given.
    order : sequence of int, optional
        Indices of the data set, one for each of its examples, in the order to
        use. Defaults to None: the order of the data set.

    Raises
    ------
    ValueError
        If the range does not lie within the data set, or `order` has
        another length.

    Examples
    --------
    >>> SubDataset('abcdef', 1, 4)[:]
    ['b', 'c', 'd']
    >>> SubDataset('abc', 0, 2, order=[2, 0, 1])[:]
    ['c', 'a']
    """

    def __init__(self, dataset: ExampleSet, start: int, finish: int,
                 order: ExampleOrder = None) -> None:
        if not 0 <= start <= finish <= len(dataset):
            raise ValueError(
                f'start and finish must lie within the {len(dataset)} '
                f'examples, start before finish, got {start} and {finish}')
        if order is not None and len(order) != len(dataset):
            raise ValueError(
                'order must hold one index for each example of the data '
                f'set, {len(dataset)}, got {len(order)}')
        self._dataset = dataset
        self._start = start
        self._size = finish - start
        self._order = order

    def __len__(self) -> int:
        return self._size

    def _index(self, i: int) -> int:
        place = self._start + as_place(i, self._size)
        return place if self._order is None else int(self._order[place])

    def get_example(self, i: int) -> Example:
        """Return an example of the range."""
        return self._dataset[self._index(i)]

    def get_examples(self, indices: Sequence[int]) -> list[Example]:
        """Return several examples of the range."""
        return read_examples(
            self._dataset, [self._index(i) for i in indices])


def split_dataset(dataset: ExampleSet, split_at: int,
                  order: ExampleOrder = None,
                  ) -> tuple[SubDataset, SubDataset]:
    """Split a data set in two at a place.

    Parameters
    ----------
    dataset : indexable
    split_at : int
        Number of examples in the first part.
    order : sequence of int, optional
        See :class:`SubDataset`.

    Returns
    -------
    tuple of SubDataset

    Raises
    ------
    TypeError
        If `split_at` is not an integer.
    ValueError
        If `split_at` does not lie within the data set.

    Examples
    --------
    >>> [part[:] for part in split_dataset('abcd', 1)]
    [['a'], ['b', 'c', 'd']]
    """
    split_at = not_negative('split_at', split_at)
    if split_at > len(dataset):
        raise ValueError(
            f'split_at must be at most {len(dataset)}, the number of '
            f'examples, got {split_at}')
    return (SubDataset(dataset, 0, split_at, order),
            SubDataset(dataset, split_at, len(dataset), order))


def split_dataset_random(dataset: ExampleSet, first_size: int,
                         seed: int | None = None,
                         ) -> tuple[SubDataset, SubDataset]:
    """Split a data set at random into two.

    Parameters
    ----------
    dataset : indexable
    first_size : int
        Number of examples in the first part.
    seed : int, optional
        Seed of the random generator. Defaults to None: another split at each
        call.

    Returns
    -------
    tuple of SubDataset

    Examples
    --------
    >>> [part[:] for part in split_dataset_random('abcd', 1, seed=0)]
    [['c'], ['d', 'b', 'a']]
    """
    return split_dataset(dataset, first_size, _random_order(dataset, seed))


def split_dataset_n(dataset: ExampleSet, n: int,
                    order: ExampleOrder = None) -> list[SubDataset]:
    """Split a data set into parts of one size.

    Parameters
    ----------
    dataset : indexable
    n : int
        Number of parts. The last examples are left out if they do not fill
        all parts equally.
    order : sequence of int, optional
        See :class:`SubDataset`.

    Returns
    -------
    list of SubDataset

    Examples
    --------
    >>> [part[:] for part in split_dataset_n('abcde', 2)]
    [['a', 'b'], ['c', 'd']]
    """
    size = len(dataset) // positive('n', n)
    return [SubDataset(dataset, part * size, (part + 1) * size, order)
            for part in range(n)]


def split_dataset_n_random(dataset: ExampleSet, n: int,
                           seed: int | None = None) -> list[SubDataset]:
    """Split a data set at random into parts of one size.

    Parameters
    ----------
    dataset : indexable
    n : int
        See :func:`split_dataset_n`.
    seed : int, optional
        See :func:`split_dataset_random`.

    Returns
    -------
    list of SubDataset

    Examples
    --------
    >>> [part[:] for part in split_dataset_n_random('abcd', 2, seed=0)]
    [['c', 'd'], ['b', 'a']]
    """
    return split_dataset_n(dataset, n, _random_order(dataset, seed))


def get_cross_validation_datasets(
        dataset: ExampleSet, n_folds: int | None = None,
        order: ExampleOrder = None, **kwargs: int,
        ) -> list[tuple[SubDataset, SubDataset]]:
    """Return the training and the validation set of each fold.

    Parameters
    ----------
    dataset : indexable
    n_folds : int
        Number of folds. It may also be passed as ``n_fold``.
    order : sequence of int, optional
        See :class:`SubDataset`.

    Returns
    -------
    list of (SubDataset, SubDataset)
        The two sets of each fold. In the first fold, the last part of the
        data set is the validation set.

    Examples
    --------
    >>> [(train[:], valid[:])
    ...  for train, valid in get_cross_validation_datasets('abcd', 2)]
    [(['a', 'b'], ['c', 'd']), (['c', 'd'], ['a', 'b'])]
    """
    count = positive('n_folds', _n_folds(n_folds, kwargs))
    whole = range(len(dataset)) if order is None else order
    borders = [len(whole) * part // count for part in range(count + 1)]
    folds = []
    for part in reversed(range(count)):
        begin, end = borders[part], borders[part + 1]
        # The examples after the validation set, then those before it.
        rotated = [*whole[end:], *whole[:end]]
        size = len(whole) - (end - begin)
        folds.append((SubDataset(dataset, 0, size, rotated),
                      SubDataset(dataset, size, len(whole), rotated)))
    return folds


def get_cross_validation_datasets_random(
        dataset: ExampleSet, n_folds: int | None = None,
        seed: int | None = None, **kwargs: int,
        ) -> list[tuple[SubDataset, SubDataset]]:
    """Return the training and the validation set of each random fold.

    Parameters
    ----------
    dataset : indexable
    n_folds : int
        See :func:`get_cross_validation_datasets`.
    seed : int, optional
        See :func:`split_dataset_random`.

    Returns
    -------
    list of (SubDataset, SubDataset)

    Examples
    --------
    >>> folds = get_cross_validation_datasets_random('abcd', 2, seed=0)
    >>> [valid[:] for _, valid in folds]
    [['b', 'a'], ['c', 'd']]
    """
    return get_cross_validation_datasets(
        dataset, _n_folds(n_folds, kwargs), _random_order(dataset, seed))


def _n_folds(n_folds: int | None, others: dict[str, int]) -> int:
    """Return the number of folds, passed as `n_folds` or as `n_fold`."""
    if n_folds is None:
        n_folds = others.pop('n_fold', None)
    if others or n_folds is None:
        raise TypeError(
            'the number of folds must be given, as n_folds=' + (
                f', got {", ".join(map(repr, sorted(others)))} too'
                if others else ''))
    return operator.index(n_folds)


def _random_order(dataset: ExampleSet,
                  seed: int | None) -> numpy.ndarray[Any, Any]:
    return numpy.random.RandomState(seed).permutation(len(dataset))
