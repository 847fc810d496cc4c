"""Subsets of a data set's examples: a slice or a sorted list of indices."""
from typing import Any

import numpy

from fuel.kernels.rows import as_indices
from fuel.utils import sequences
from fuel.utils.sequences import (IndexArray, IndexList, check_integer,
                                  check_slice, is_integer, plain_slice)


class Subset:
    """A subset of the examples of a data set.

    Parameters
    ----------
    list_or_slice : list of int, integer array or slice
        The examples of the subset. Their order and repetitions are not kept:
        indices are sorted, and repeated ones are removed. Consecutive indices
        become a slice. The step of a slice must be 1 (or None).
    original_num_examples : int
        Number of examples in the whole data set.

    Raises
    ------
    ValueError
        For indices or a slice outside of the data set, for negative indices,
        for booleans and floats, and for a step other than 1.

    Notes
    -----
    A subset does not change, so it may be shared between threads. Its
    indices are kept as one array (8 bytes an index).

    Examples
    --------
    >>> from fuel.utils import Subset
    >>> subset = Subset([7, 2, 4, 2], original_num_examples=10)
    >>> subset.list_or_slice
    [2, 4, 7]
    >>> subset[[2, 0]]
    [7, 2]
    >>> Subset([3, 4, 5], 10).list_or_slice
    slice(3, 6, None)
    """

    def __init__(self, list_or_slice: IndexList | slice,
                 original_num_examples: int) -> None:
        if not is_integer(original_num_examples) or original_num_examples < 0:
            raise ValueError(
                'original_num_examples: expected an integer of at least 0, '
                f'got {original_num_examples!r}')
        self.original_num_examples = int(original_num_examples)
        self._list: list[int] | None = None
        # The slice as it was given; None if the examples are an array.
        self._slice: slice | None = None
        self._examples: range | IndexArray = (
            self._read_slice(list_or_slice)
            if isinstance(list_or_slice, slice)
            else self._read_list(list_or_slice))

    def _read_list(self, indices: IndexList) -> range | IndexArray:
        array = as_indices(
            indices, self.original_num_examples, 'a subset').copy()
        if not sequences.increases(array):
            # numpy.unique hashes first: ten times slower for many indices.
            array.sort()
            first = numpy.append(True, array[1:] != array[:-1])
            array = array[first]
        if array.size and array[-1] - array[0] + 1 == array.size:
            return self._read_slice(slice(int(array[0]), int(array[-1]) + 1))
        array.flags.writeable = False
        return array

    def _read_slice(self, slice_: slice) -> range:
        slice_ = plain_slice(slice_, 'a subset')
        total = self.original_num_examples
        start, stop, step = self.slice_to_numerical_args(slice_, total)
        if step != 1:
            raise ValueError(
                f'subset: expected a step of 1, got {slice_}; for '
                f'examples {step} apart give a list, list(range(...))')
        if start > stop or stop > total or start >= max(total, 1):
            raise ValueError(
                f'subset: {slice_} does not lie within {total} examples; '
                f'expected 0 <= start <= stop <= {total} and start < {total}')
        self._slice = slice_
        return range(start, stop)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Pickles of Fuel 0.2.0 hold the arguments as attributes.
        self.__init__(**state)  # type: ignore[misc]

    def __reduce__(self) -> tuple[Any, ...]:
        content = self._examples if self._slice is None else self._slice
        return type(self), (content, self.original_num_examples)

    def __repr__(self) -> str:
        content = repr(self._slice)
        if self._slice is None:
            content = numpy.array2string(
                self._as_array(), separator=', ', threshold=10)
        return (f'{type(self).__name__}({content}, '
                f'{self.original_num_examples})')

    def __add__(self, other: 'Subset') -> 'Subset':
        """Return the subset of the examples that are in at least one of two
        subsets.

        If both are slices that overlap or touch, the result is a slice.
        Otherwise it is a sorted list.
        """
        if not isinstance(other, Subset):
            return NotImplemented
        total = self.original_num_examples
        if total != other.original_num_examples:
            raise ValueError(
                'trying to add two subsets of different data sets: one of '
                f'{total} examples, one of {other.original_num_examples}')
        mine, others = self._examples, other._examples
        if isinstance(mine, range) and isinstance(others, range) \
                and mine.start <= others.stop and others.start <= mine.stop:
            return Subset(slice(min(mine.start, others.start),
                                max(mine.stop, others.stop), 1), total)
        return Subset(
            numpy.concatenate([self._as_array(), other._as_array()]), total)

    def __getitem__(self, request: object) -> Any:
        """Return a request for the whole data set, from a request within the
        subset.

        Parameters
        ----------
        request : int, slice, list of int or integer array
            Positions within the subset, in any order; they may be repeated.

        Returns
        -------
        int, slice or list of int
            An int for an int; a slice for a slice of a subset that is a slice;
            otherwise a list, in the order of the request. For
            ``slice(None)``, `list_or_slice`.

        Raises
        ------
        ValueError
            If the request is empty, negative or out of range, or if it has
            another type.
        """
        if _is_everything(request):
            return self.list_or_slice
        translated = self.translate(request)
        if isinstance(translated, numpy.ndarray):
            return translated.tolist()
        return translated

    def translate(self, request: Any) -> int | slice | IndexArray:
        """Return the result of ``subset[request]``, with an array instead of a
        list.

        Parameters
        ----------
        request : int, slice, list of int or integer array
            As for ``subset[request]``.

        Returns
        -------
        int, slice or array of intp, shape (length of the request,)
            The array may be read-only.

        Raises
        ------
        ValueError
            As for ``subset[request]``.

        Examples
        --------
        >>> from fuel.utils import Subset
        >>> Subset(slice(10, 20), 100).translate([3, 1])
        array([13, 11])
        """
        if _is_everything(request):
            return self._as_array() if self._slice is None else self._slice
        if isinstance(request, slice):
            part = self._examples[check_slice(request, self.num_examples)]
            return (slice(part.start, part.stop, part.step)
                    if isinstance(part, range) else part)
        if self._is_list(request):
            positions = _checked_list(request, self.num_examples)
            return (positions + self._examples.start
                    if isinstance(self._examples, range)
                    else self._examples[positions])
        return int(self._examples[check_integer(request, self.num_examples)])

    @classmethod
    def subset_of(cls, subset: 'Subset',
                  list_or_slice: IndexList | slice) -> 'Subset':
        """Return a part of a subset, as a subset of the whole data set.

        Parameters
        ----------
        subset : Subset
            The subset from which a part is taken.
        list_or_slice : list of int, integer array or slice
            Positions within `subset`. They must not be empty; only
            ``slice(None)`` may select nothing, from an empty subset.

        Returns
        -------
        Subset
            The part, with the indices of the whole data set.

        Examples
        --------
        >>> from fuel.utils import Subset
        >>> Subset.subset_of(Subset([0, 3, 8], 10), slice(1, 3)).list_or_slice
        [3, 8]
        """
        if is_integer(list_or_slice):
            raise ValueError(
                'list_or_slice: expected a list, an array or a slice, got '
                f'{list_or_slice}; for one example give [{list_or_slice}]')
        translated = subset.translate(list_or_slice)
        assert not isinstance(translated, int)
        return cls(translated, subset.original_num_examples)

    @classmethod
    def empty_subset(cls, original_num_examples: int) -> 'Subset':
        """Return an empty subset of a data set of `original_num_examples`
        examples."""
        return cls([], original_num_examples)

    @property
    def list_or_slice(self) -> list[int] | slice:
        """The subset as a sorted list of unique indices, or as a slice."""
        if self._slice is not None:
            return self._slice
        if self._list is None:
            self._list = self._as_array().tolist()
        return self._list

    @property
    def is_list(self) -> bool:
        """Whether the subset is a list, not a slice (bool)."""
        return self._slice is None

    @property
    def num_examples(self) -> int:
        """Number of examples in the subset."""
        return len(self._examples)

    @property
    def is_empty(self) -> bool:
        """Whether the subset has no examples (bool)."""
        return self.num_examples == 0

    def _as_array(self) -> IndexArray:
        if isinstance(self._examples, range):
            return numpy.arange(self._examples.start, self._examples.stop,
                                dtype=numpy.intp)
        return self._examples

    def get_list_representation(self) -> list[int]:
        """Return the indices of the subset's examples as a new list."""
        return (list(self._examples) if isinstance(self._examples, range)
                else self._examples.tolist())

    def index_within_subset(self, indexable: Any, subset_request: Any,
                            sort_indices: bool = False) -> Any:
        """Return rows of an object, by positions within this subset.

        Parameters
        ----------
        indexable : indexable object
            Object with the rows of the whole data set: an array, an HDF5 data
            set, a list, ...
        subset_request : int, slice, list of int or integer array
            Positions within this subset, in any order; they may be repeated.
        sort_indices : bool, optional
            Whether to read a list in ascending order, and to put the rows in
            the requested order afterwards. An HDF5 data set is always read in
            this way, since it supports no other. Defaults to False.

        Returns
        -------
        object
            The rows in the order of the request. For an int or a slice, the
            result of indexing `indexable`, which may be a view.

        Raises
        ------
        ValueError
            If the subset is empty, or the request is invalid for it.

        Examples
        --------
        >>> from fuel.utils import Subset
        >>> Subset([0, 2, 4], 5).index_within_subset('abcde', [2, 1])
        ['e', 'c']
        """
        if self.is_empty:
            raise ValueError(
                'trying to index with an empty subset (of '
                f'{self.original_num_examples} examples): it has no examples')
        request = self.translate(subset_request)
        if not isinstance(request, numpy.ndarray):
            return indexable[request]
        if sort_indices or sequences.reads_ascending_only(indexable):
            return self.sorted_fancy_indexing(indexable, request)
        if not isinstance(indexable, numpy.ndarray):
            request = request.tolist()
        return sequences.iterable_fancy_indexing(indexable, request)

    sorted_fancy_indexing = staticmethod(sequences.sorted_fancy_indexing)

    @staticmethod
    def slice_to_numerical_args(slice_: slice,
                                num_examples: int) -> tuple[int, int, int]:
        """Return the attributes of a slice as numbers.

        Parameters
        ----------
        slice_ : slice
            The slice.
        num_examples : int
            The value of `stop` if it is None in the slice.

        Returns
        -------
        start, stop, step : int
            The attributes of the slice, with 0, `num_examples` and 1 in place
            of None.

        Examples
        --------
        >>> from fuel.utils import Subset
        >>> Subset.slice_to_numerical_args(slice(2, None), 10)
        (2, 10, 1)
        """
        return (0 if slice_.start is None else slice_.start,
                num_examples if slice_.stop is None else slice_.stop,
                1 if slice_.step is None else slice_.step)

    @staticmethod
    def _is_list(list_or_slice: object) -> bool:
        """Return whether a request is a list or an array of indices."""
        return isinstance(list_or_slice, (list, tuple, range, numpy.ndarray))

    @staticmethod
    def _list_request_sanity_check(indices: IndexList,
                                   num_examples: int) -> None:
        """Raise ValueError for an empty, negative or too large request."""
        _checked_list(indices, num_examples)

    @staticmethod
    def _slice_request_sanity_check(slice_: slice, num_examples: int) -> None:
        """Raise ValueError for an empty, negative or too large request."""
        check_slice(slice_, num_examples)


def _checked_list(indices: IndexList, num_examples: int) -> IndexArray:
    array = as_indices(indices, num_examples)
    if not array.size:
        raise ValueError(
            'a request must name at least one index, got an empty list')
    return array


def _is_everything(request: object) -> bool:
    return isinstance(request, slice) and request == slice(None)


# Pickles and error texts name the public path.
Subset.__module__ = 'fuel.utils'
