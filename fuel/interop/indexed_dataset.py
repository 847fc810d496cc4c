"""Bases of data sets that read data sets of other libraries by index."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy
from numpy.typing import NDArray

from fuel.datasets.base import Dataset
from fuel.datasets.rows import as_rows, check_request, own
from fuel.schemes import SequentialExampleScheme
from fuel.transformers.source_names import as_names
from fuel.typing import AxisLabels, Batch, Sources
from fuel.utils.checks import in_order
from fuel.utils.masked import as_kept, stack_kept

# Types of numbers, which become arrays; other parts stay objects.
_NUMBERS = (bool, int, float, complex, numpy.generic)


@runtime_checkable
class Indexed(Protocol):
    """Interface of data sets with a length and an example for each index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class IndexedDataset(Dataset):
    """Base of data sets that read the rows of another library by index."""

    takes_requests = True

    def __init__(self, names: Sources, sources: Sources | None,
                 axis_labels: AxisLabels | None) -> None:
        self.provides_sources = names
        super().__init__(sources=sources, axis_labels=axis_labels)
        self.example_iteration_scheme = SequentialExampleScheme(
            self.num_examples)

    @property
    @abstractmethod
    def num_examples(self) -> int:
        """Number of examples (int)."""

    @abstractmethod
    def read_example(self, index: int) -> Batch:
        """Return an example, the data of `sources`."""

    @abstractmethod
    def read_batch(self, indices: NDArray[numpy.intp]) -> Batch:
        """Return several examples, a column for each of `sources`."""

    def get_data(self, state: object = None, request: object = None) -> Any:
        """Return the examples of a request.

        Parameters
        ----------
        state : None
        request : int, slice, list of int or integer numpy.ndarray
            An integer gives a single example.

        Returns
        -------
        tuple
            For each source an array, or a list.

        Raises
        ------
        ValueError
            If `state` is not None; if `request` is missing, of another kind,
            empty or out of range; or if an example lacks parts.
        """
        check_request(self, state, request)
        rows = as_rows(request, self.num_examples)
        if isinstance(rows, int):
            return self.read_example(rows)
        if isinstance(rows, slice):
            rows = numpy.arange(*rows.indices(self.num_examples))
        return self.read_batch(rows)


class ExamplesDataset(IndexedDataset):
    """A data set that reads another library's examples one by one.

    `names`: names of the parts of an example. Defaults to the names that
        :func:`names_of_parts` finds in the first example.
    """

    # Name of the data set's method that returns several examples at once.
    fetch_method = '__getitems__'
    unsaved_arguments: tuple[str, ...] = ('dataset',)

    def __init__(self, dataset: Indexed, names: Sequence[str] | None = None,
                 sources: Sources | None = None,
                 axis_labels: AxisLabels | None = None) -> None:
        name = type(dataset).__name__
        if not isinstance(dataset, Indexed):
            raise TypeError(
                'dataset must have a length and take indices, by __len__ and '
                f'__getitem__, got {name}')
        if names is None and not len(dataset):
            raise ValueError(
                f'{name} has no examples, so its sources are not known: pass '
                "names=('features', 'targets') or the like")
        self.dataset: Any = dataset
        super().__init__(self.find_names(names), sources, axis_labels)

    def find_names(self, names: Sequence[str] | None) -> Sources:
        """Check and return the names of the parts of an example."""
        return names_of_parts(
            type(self.dataset).__name__,
            self.dataset[0] if names is None else None, names)

    def __repr__(self) -> str:
        return (f'{type(self).__name__}({type(self.dataset).__name__} of '
                f'{self.num_examples} examples, sources={self.sources})')

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        return len(self.dataset)

    def read_example(self, index: int) -> Batch:
        """Return an example, the data of `sources`."""
        parts = self.parts(index, self.dataset[index])
        return tuple([self.as_array(part)
                      for part in self.filter_sources(parts)])

    def read_batch(self, indices: NDArray[numpy.intp]) -> Batch:
        """Return several examples, a column for each of `sources`."""
        numbers = indices.tolist()
        examples = [self.parts(number, example) for number, example in zip(
            numbers, self.fetch(numbers), strict=True)]
        columns = self.filter_sources(list(zip(*examples, strict=True)))
        return tuple([self.as_column(column) for column in columns])

    def fetch(self, indices: list[int]) -> Sequence[Any]:
        """Return the examples of several indices.

        They are read at once if the data set has a method for that.
        """
        fetch = getattr(self.dataset, self.fetch_method, None)
        if fetch is None:
            return [self.dataset[index] for index in indices]
        examples: Sequence[Any] = fetch(indices)
        return examples

    def parts(self, index: int, example: object) -> Sequence[Any]:
        """Return the parts of an example, in the order of the sources."""
        return parts_of(f'example {index} of {type(self.dataset).__name__}',
                        example, self.provides_sources)

    def as_array(self, value: object) -> Any:
        """Return a part of an example as an array that the caller owns."""
        return own_value(value)

    def as_column(self, values: Sequence[Any]) -> Any:
        """Return one part of several examples, as an array if possible."""
        return stacked([self.as_array(value) for value in values])


def names_of_parts(owner: str, example: object,
                   names: Sequence[str] | None) -> Sources:
    """Return the names of the parts of an example.

    `owner`: class of the data set, for errors.
    `names`: names that the user gave. By default they are the keys of a dict,
        ``('features', 'targets')`` for a pair, ``('data',)`` for a single
        part.
    """
    if names is not None:
        in_order('names', names)
        return as_names('names', names)
    if isinstance(example, Mapping):
        return tuple(example)
    count = len(_as_tuple(example))
    if count not in (1, 2):
        raise ValueError(
            f'an example of {owner} has {count} parts: name them, '
            'names=(...)')
    return ('features', 'targets') if count == 2 else ('data',)


def parts_of(which: str, example: object, names: Sources) -> Sequence[Any]:
    """Return the parts of an example in the order of their names.

    `which`: text about the example, for errors.
    """
    if isinstance(example, Mapping):
        missing = set(names) - example.keys()
        if missing:
            raise ValueError(f'{which} lacks '
                             f'{sorted(missing)}, it has {sorted(example)}')
        return [example[name] for name in names]
    parts = _as_tuple(example)
    if len(parts) != len(names):
        raise ValueError(f'{which} has {len(parts)} parts, '
                         f'but the sources are {names}')
    return parts


def _as_tuple(example: object) -> Sequence[Any]:
    return example if isinstance(example, (tuple, list)) else (example,)


def own_value(value: object) -> Any:
    """Return an array, picture or number as an array that the caller owns.

    Other objects are returned unchanged.
    """
    if isinstance(value, _NUMBERS) or hasattr(value, '__array_interface__'):
        return own(as_kept(value))
    return own(value)


def stacked(values: Sequence[Any]) -> Any:
    """Return arrays of one shape as one array, and other values as a list."""
    first = values[0]
    if isinstance(first, numpy.ndarray) and not first.dtype.hasobject and all(
            isinstance(value, numpy.ndarray) and value.shape == first.shape
            for value in values):
        return stack_kept(values)
    return list(values)
