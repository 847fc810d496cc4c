"""The base of data sets that read those of other libraries by index."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from fuel.datasets.base import Dataset
from fuel.datasets.rows import as_rows
from fuel.interop.parts import (
    as_array,
    names_of_parts,
    parts_of,
    stacked,
)
from fuel.schemes import SequentialExampleScheme
from fuel.typing import AxisLabels, Sources


@runtime_checkable
class Indexed(Protocol):
    """A length, and an example for each index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class IndexedDataset(Dataset):
    """A data set that reads the examples of another library by index.

    Parameters
    ----------
    dataset : object
        It has ``__len__`` and ``__getitem__``.
    names : tuple of str, optional
        The names of the parts of an example.
    **kwargs
        `sources` and `axis_labels`, for
        :class:`~fuel.datasets.base.Dataset`.
    """

    def __init__(self, dataset: Indexed, names: Sequence[str] | None = None,
                 sources: Sources | None = None,
                 axis_labels: AxisLabels | None = None) -> None:
        self.dataset: Any = dataset
        if not len(dataset):
            raise ValueError(f'{type(dataset).__name__} has no examples')
        self.provides_sources = names_of_parts(
            type(dataset).__name__, dataset[0] if names is None else None,
            names)
        super().__init__(sources=sources, axis_labels=axis_labels)
        self.example_iteration_scheme = SequentialExampleScheme(
            self.num_examples)

    def __repr__(self) -> str:
        return (f'{type(self).__name__}({type(self.dataset).__name__} of '
                f'{self.num_examples} examples, sources={self.sources})')

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        return len(self.dataset)

    def get_data(self, state: Any = None, request: Any = None) -> Any:
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
            If there is a state, or the request is missing, of another kind,
            empty or out of range, or an example lacks parts.
        """
        if state is not None or request is None:
            raise ValueError(
                f'{type(self).__name__} needs a request and has no state, '
                f'got state {state!r} and request {request!r}')
        rows = as_rows(request, self.num_examples)
        if isinstance(rows, int):
            return self.filter_sources(self._parts(self.dataset[rows]))
        indices = (list(range(*rows.indices(self.num_examples)))
                   if isinstance(rows, slice) else rows.tolist())
        examples = [self._parts(one) for one in self.fetch(indices)]
        return self.filter_sources(
            [stacked(parts) for parts in zip(*examples, strict=True)])

    def fetch(self, indices: list[int]) -> Sequence[Any]:
        """Return the examples of several indices."""
        return [self.dataset[index] for index in indices]

    def as_array(self, value: Any) -> Any:
        """Return a part of an example as an array of its own."""
        return as_array(value)

    def _parts(self, example: Any) -> list[Any]:
        """Return the parts of an example, in the order of the sources."""
        return [self.as_array(part) for part in parts_of(
            type(self.dataset).__name__, example, self.provides_sources)]
