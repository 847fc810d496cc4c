"""Data sets made of other data sets, as in ``chainer.datasets``."""
from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from fuel.datasets.rows import check_equal_lengths
from fuel.interop.chainer.examples import (
    DatasetMixin,
    Example,
    ExampleSet,
    as_place,
    check_index,
    read_examples,
)
from fuel.utils.overrides import covers


class SideBySide(DatasetMixin):
    """Base of data sets that combine the examples of several data sets.

    Subclasses choose whether an example is a tuple or a dict.

    `datasets`: a dict from places or names to data sets of one length.
    """

    def __init__(self, datasets: dict[Any, ExampleSet]) -> None:
        if not datasets:
            raise ValueError('at least one data set is needed, got none')
        lengths = {name: len(dataset) for name, dataset in datasets.items()}
        check_equal_lengths(lengths, map(range, lengths.values()),
                            'data sets')
        self._length = next(iter(lengths.values()))
        self._datasets = datasets

    def __len__(self) -> int:
        return self._length

    def make_example(self, parts: Sequence[Example]) -> Example:
        """Return one example, made of an example from each data set."""
        raise NotImplementedError

    def __getitem__(self, index: object) -> Any:
        """Return an example, or a list of examples.

        A slice is passed on to each data set, which may read slices in a way
        of its own.

        Parameters
        ----------
        index : int, slice, list of int or numpy.ndarray
        """
        if not isinstance(index, slice) or not covers(
                self, '__getitem__', ('get_example', 'get_examples')):
            return super().__getitem__(index)
        return self._side_by_side(
            [dataset[index] for dataset in self._datasets.values()])

    def get_example(self, i: int) -> Example:
        """Return one example, made of an example from each data set."""
        check_index(i, self._length)
        return self.make_example(
            [dataset[i] for dataset in self._datasets.values()])

    def get_examples(self, indices: Sequence[int]) -> list[Example]:
        """Return several examples."""
        for i in indices:
            check_index(i, self._length)
        return self._side_by_side([
            read_examples(dataset, indices)
            for dataset in self._datasets.values()])

    def _side_by_side(self, columns: Sequence[Sequence[Example]],
                      ) -> list[Example]:
        return [self.make_example(parts)
                for parts in zip(*columns, strict=True)]


class TupleDataset(SideBySide):
    """Several data sets in parallel: an example is a tuple of examples.

    Parameters
    ----------
    *datasets : indexable
        Data sets, lists or arrays of one length.

    Raises
    ------
    ValueError
        If no data set is given, or the lengths differ.

    Examples
    --------
    >>> pairs = TupleDataset([3, 4, 5], 'abc')
    >>> pairs[1], pairs[:2]
    ((4, 'b'), [(3, 'a'), (4, 'b')])
    """

    def __init__(self, *datasets: ExampleSet) -> None:
        super().__init__(dict(enumerate(datasets)))

    def make_example(self, parts: Sequence[Example]) -> tuple[Example, ...]:
        """Return a tuple of one example from each data set."""
        return tuple(parts)


class DictDataset(SideBySide):
    """Several named data sets in parallel: an example is a dict of examples.

    Parameters
    ----------
    **datasets : indexable
        As for :class:`TupleDataset`.

    Examples
    --------
    >>> DictDataset(x=[3, 4, 5], y='abc')[1]
    {'x': 4, 'y': 'b'}
    """

    def __init__(self, **datasets: ExampleSet) -> None:
        super().__init__(datasets)

    def make_example(self, parts: Sequence[Example]) -> dict[str, Example]:
        """Return a dict of one example from each data set."""
        return dict(zip(self._datasets, parts, strict=True))


class TransformDataset(DatasetMixin):
    """A data set with a function applied to each example.

    Parameters
    ----------
    dataset : indexable
    transform : callable
        Takes an example and returns one.

    Examples
    --------
    >>> TransformDataset([1, 2, 3], lambda example: 10 * example)[1:]
    [20, 30]
    """

    def __init__(self, dataset: ExampleSet,
                 transform: Callable[[Any], Any]) -> None:
        if not callable(transform):
            raise TypeError('transform must be a function of an example, '
                            f'got {transform!r}')
        self._dataset = dataset
        self._transform = transform

    def __len__(self) -> int:
        return len(self._dataset)

    def get_example(self, i: int) -> Example:
        """Return the result of the function for an example."""
        return self._transform(self._dataset[check_index(i, len(self))])

    def get_examples(self, indices: Sequence[int]) -> list[Example]:
        """Return several examples."""
        for i in indices:
            check_index(i, len(self))
        return [self._transform(example)
                for example in read_examples(self._dataset, indices)]


class ConcatenatedDataset(DatasetMixin):
    """Several data sets one after the other.

    Parameters
    ----------
    *datasets : indexable

    Examples
    --------
    >>> ConcatenatedDataset([1, 2], [3])[1:]
    [2, 3]
    """

    def __init__(self, *datasets: ExampleSet) -> None:
        self._datasets = datasets
        self._ends = list(itertools.accumulate(map(len, datasets)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def get_example(self, i: int) -> Example:
        """Return an example, from the data set that has the index."""
        place = as_place(i, len(self))
        number = bisect.bisect_right(self._ends, place)
        start = self._ends[number - 1] if number else 0
        return self._datasets[number][place - start]
