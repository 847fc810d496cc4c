"""Data sets of examples that are indexed, as Chainer defines them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy

from fuel.utils.overrides import covers

#: An example: an array or a number, or a tuple or a dict of them.
Example: TypeAlias = object


class ExampleSet(Protocol):
    """Interface of Chainer's data sets, which lists and arrays have too."""

    def __len__(self) -> int:
        """Return the number of examples."""

    def __getitem__(self, index: object, /) -> Any:
        """Return an example."""


class DatasetMixin:
    """Base of data sets indexed by integers, slices and lists of integers.

    Subclasses implement :meth:`get_example` and ``__len__``. A subclass may
    override ``__getitem__`` in addition, or instead of :meth:`get_example`:
    iterators, and the data sets of this package, read examples by indexing.

    Examples
    --------
    >>> class Squares(DatasetMixin):
    ...     def __len__(self):
    ...         return 5
    ...     def get_example(self, i):
    ...         return i ** 2
    >>> squares = Squares()
    >>> squares[3], squares[1:3], squares[[4, 0]]
    (9, [1, 4], [16, 0])
    """

    def __getitem__(self, index: Any) -> Any:
        """Return an example, or a list of examples.

        Parameters
        ----------
        index : int, slice, list of int or numpy.ndarray
            An array has one dimension and holds integers.

        Returns
        -------
        object
            For an integer the example, otherwise a list of examples.
        """
        if isinstance(index, slice):
            indices: Sequence[int] = range(*index.indices(len(self)))
        elif isinstance(index, (list, numpy.ndarray)):
            indices = as_integers(index)
        else:
            return self.get_example(index)
        if covers(self, 'get_examples', ('get_example',)):
            return self.get_examples(indices)
        return [self.get_example(i) for i in indices]

    def __len__(self) -> int:
        raise NotImplementedError(
            f'{type(self).__name__} must implement __len__')

    def get_example(self, i: int) -> Example:
        """Return an example.

        Parameters
        ----------
        i : int

        Raises
        ------
        IndexError
            If the data set has no example of this index.
        """
        raise NotImplementedError(
            f'{type(self).__name__} must implement get_example')

    def get_examples(self, indices: Sequence[int]) -> list[Example]:
        """Return several examples.

        Override this method if reading several examples at once is faster
        than reading them one by one. It is not called if a subclass overrides
        ``__getitem__`` or :meth:`get_example`, but not this method.

        Parameters
        ----------
        indices : sequence of int
        """
        return [self.get_example(i) for i in indices]


def as_integers(index: object) -> list[int]:
    """Return a list or an array of indices as a list of int."""
    array = numpy.asarray(index)
    if not array.size and array.ndim == 1:
        return []
    if array.ndim != 1 or array.dtype.kind not in 'iu':
        raise IndexError(
            'examples are indexed by an integer, a slice, or a list or '
            'one-dimensional array of integers, got '
            f'{index!r:.100} ({array.ndim} dimensions of {array.dtype}); of '
            'a mask, take numpy.flatnonzero(mask)')
    integers: list[int] = array.tolist()
    return integers


def read_examples(dataset: ExampleSet, indices: Sequence[int],
                  ) -> list[Example]:
    """Return examples of any data set, read at once if possible.

    The examples equal those that indexing returns. So `get_examples` is not
    called if a subclass overrides indexing, but not `get_examples`.
    """
    try:
        if isinstance(dataset, DatasetMixin) and covers(
                dataset, 'get_examples', ('get_example', '__getitem__')):
            return dataset.get_examples(indices)
        return [dataset[i] for i in indices]
    except StopIteration as error:
        raise RuntimeError(
            f'{type(dataset).__name__} raised StopIteration, which would end '
            'the iteration too early: an index that is not there is an '
            'IndexError') from error


def check_index(i: int, length: int) -> int:
    """Return an index, or raise IndexError if it is out of range.

    A negative index counts from the end.
    """
    if not -length <= i < length:
        raise IndexError(
            f'index {i} is out of range: there are {length} examples')
    return i


def as_place(i: int, length: int) -> int:
    """Return an index counted from 0, given one that may be negative."""
    return check_index(i, length) + (length if i < 0 else 0)
