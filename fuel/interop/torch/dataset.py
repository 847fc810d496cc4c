"""Read a map-style data set of PyTorch as a data set of Fuel."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch.utils.data import TensorDataset

from fuel.datasets.base import Dataset
from fuel.datasets.row_readers import read_collections
from fuel.datasets.rows import as_rows, get_rows
from fuel.epochs.read_options import ReadOptions
from fuel.interop.torch.arrays import as_array, stacked, tensor_as_array
from fuel.schemes import SequentialExampleScheme
from fuel.schemes.requests import RequestIterator
from fuel.typing import AxisLabels, EpochReader, Sources


@runtime_checkable
class MapStyle(Protocol):
    """A map-style data set: a length, and an example for each index."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


class TorchDataset(Dataset):
    """A data set that reads a map-style data set of PyTorch.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Any object with ``__len__`` and ``__getitem__``.  Its
        ``__getitems__`` is used for batches, if it has one.
    names : tuple of str, optional
        The names of the parts of an example, the sources.  Defaults to the
        keys of an example that is a dict, to ``('features', 'targets')`` for
        a pair and to ``('data',)`` for a single part.
    **kwargs
        `sources` and `axis_labels`, for
        :class:`~fuel.datasets.base.Dataset`.

    Attributes
    ----------
    dataset : torch.utils.data.Dataset
    num_examples : int
    example_iteration_scheme : SequentialExampleScheme

    Raises
    ------
    TypeError
        If the data set has no length or takes no indices.
    ValueError
        If it is empty, or the names are not those of the parts.

    Notes
    -----
    Tensors, pictures and numbers become arrays, those of one batch and one
    shape a single array; what has several shapes, and strings, becomes a
    list.  Tensors of bfloat16 become float32.  All of them are the caller's
    own.  A `TensorDataset` is read at the speed of arrays in memory.

    A saved state holds positions only.  A data set that draws random numbers
    in ``__getitem__`` is resumed with others.

    Examples
    --------
    >>> import torch
    >>> from fuel.schemes import SequentialScheme
    >>> pairs = torch.utils.data.TensorDataset(
    ...     torch.arange(6.).reshape(3, 2), torch.tensor([0, 1, 0]))
    >>> dataset = TorchDataset(pairs)
    >>> dataset
    TorchDataset(TensorDataset of 3 examples, sources=('features', 'targets'))
    >>> dataset.get_data(request=[2, 0])
    (array([[4., 5.],
           [0., 1.]], dtype=float32), array([0, 0]))
    """

    def __init__(self, dataset: MapStyle, names: Sequence[str] | None = None,
                 sources: Sources | None = None,
                 axis_labels: AxisLabels | None = None) -> None:
        _check_map_style(dataset)
        self.dataset: Any = dataset
        self.provides_sources = _names_of_parts(
            dataset, dataset[0] if names is None else None, names)
        super().__init__(sources=sources, axis_labels=axis_labels)
        self._select_columns()
        self.example_iteration_scheme = SequentialExampleScheme(
            self.num_examples)

    def __repr__(self) -> str:
        return (f'{type(self).__name__}({type(self.dataset).__name__} of '
                f'{self.num_examples} examples, sources={self.sources})')

    @property
    def sources(self) -> Any:
        """The sources that are returned, in order (tuple of str)."""
        return vars(self).get('_sources', self.provides_sources)

    @sources.setter
    def sources(self, sources: Any) -> None:
        self._sources = sources
        self._select_columns()

    def _select_columns(self) -> None:
        """Look at the tensors of a `TensorDataset` as arrays."""
        self._columns: list[Any] | None = None
        tensors = (self.dataset.tensors
                   if type(self.dataset) is TensorDataset else ())
        if tensors and all(tensor.device.type == 'cpu'
                           and tensor.dtype is not torch.bfloat16
                           for tensor in tensors):
            self._columns = list(self.filter_sources(
                [tensor_as_array(tensor) for tensor in tensors]))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items()
                if name != '_columns'}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._select_columns()

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        return len(self.dataset)

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: Any) -> EpochReader | None:
        """Return a compiled reader of the tensors of a `TensorDataset`."""
        if state is not None or self._columns is None:
            return None
        return read_collections(
            self, requests, options, self._columns, '_columns')

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
        if self._columns is not None:
            return tuple([get_rows(column, request)
                          for column in self._columns])
        rows = as_rows(request, self.num_examples)
        if isinstance(rows, int):
            return self.filter_sources(self._parts(self.dataset[rows]))
        indices = (list(range(*rows.indices(self.num_examples)))
                   if isinstance(rows, slice) else rows.tolist())
        examples = [self._parts(one) for one in self._fetch(indices)]
        return self.filter_sources(
            [stacked(parts) for parts in zip(*examples, strict=True)])

    def _fetch(self, indices: list[int]) -> Sequence[Any]:
        fetch = getattr(self.dataset, '__getitems__', None)
        if fetch is None:
            return [self.dataset[index] for index in indices]
        examples: Sequence[Any] = fetch(indices)
        return examples

    def _parts(self, example: Any) -> list[Any]:
        """Return the parts of an example, in the order of the sources."""
        if isinstance(example, Mapping):
            missing = set(self.provides_sources) - example.keys()
            if missing:
                raise ValueError(
                    f'an example of {type(self.dataset).__name__} lacks '
                    f'{sorted(missing)}, it has {sorted(example)}')
            parts: Sequence[Any] = [
                example[name] for name in self.provides_sources]
        else:
            parts = _as_tuple(example)
        if len(parts) != len(self.provides_sources):
            raise ValueError(
                f'an example of {type(self.dataset).__name__} has '
                f'{len(parts)} parts, but the sources are '
                f'{self.provides_sources}')
        return [as_array(part) for part in parts]


def _check_map_style(dataset: object) -> None:
    name = type(dataset).__name__
    if isinstance(dataset, torch.utils.data.IterableDataset):
        raise TypeError(
            f'{name} is an iterable-style data set, which cannot be indexed: '
            'wrap it in fuel.datasets.IterableDataset, or use its map-style '
            'counterpart')
    if not isinstance(dataset, MapStyle):
        raise TypeError(
            f'a map-style data set has __len__ and __getitem__, got {name}')
    if not len(dataset):
        raise ValueError(f'{name} has no examples')


def _names_of_parts(dataset: object, example: Any,
                    names: Sequence[str] | None) -> Sources:
    if names is not None:
        if isinstance(names, str):
            raise ValueError(f'names must be a tuple of names, got the '
                             f'string {names!r}: write ({names!r},)')
        return tuple(names)
    if isinstance(example, Mapping):
        return tuple(example)
    count = len(_as_tuple(example))
    if count not in (1, 2):
        raise ValueError(
            f'an example of {type(dataset).__name__} has {count} parts: name '
            f'them, TorchDataset(dataset, names=(...))')
    return ('features', 'targets') if count == 2 else ('data',)


def _as_tuple(example: Any) -> Sequence[Any]:
    return example if isinstance(example, (tuple, list)) else (example,)
