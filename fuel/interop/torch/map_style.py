"""Read a data set of Fuel as a map-style data set of PyTorch."""
from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import Any

import numpy
import torch
import torch.utils.data

from fuel.typing import Batch, DatasetLike, Indices, NamedBatch


def as_map(dataset: DatasetLike, as_dict: bool = False) -> MapStyleDataset:
    """Return a data set of Fuel as a map-style data set of PyTorch.

    Samplers of PyTorch choose the examples then, and a `DataLoader` needs no
    iteration scheme.

    Parameters
    ----------
    dataset : Dataset
        It has `num_examples` and takes indices as requests.
    as_dict : bool, optional
        Whether examples are dicts by name of source rather than tuples.
        Defaults to False.

    Returns
    -------
    MapStyleDataset

    Raises
    ------
    TypeError
        If the data set has no number of examples.

    Examples
    --------
    >>> import numpy
    >>> from torch.utils.data import BatchSampler, DataLoader, RandomSampler
    >>> from fuel.datasets import IndexableDataset
    >>> examples = as_map(IndexableDataset({
    ...     'features': numpy.arange(6.).reshape(3, 2),
    ...     'targets': numpy.array([0, 1, 0])}))
    >>> examples[1]
    (array([2., 3.]), np.int64(1))
    >>> for features, targets in DataLoader(examples, batch_size=2):
    ...     print(targets)
    tensor([0, 1])
    tensor([0])

    A sampler that yields lists of indices fetches whole batches at once,
    which is the fastest way:

    >>> batches = BatchSampler(RandomSampler(examples), 3, drop_last=False)
    >>> for features, targets in DataLoader(
    ...         examples, sampler=batches, batch_size=None):
    ...     print(features.shape, sorted(targets.tolist()))
    torch.Size([3, 2]) [0, 0, 1]
    """
    return MapStyleDataset(dataset, as_dict)


class MapStyleDataset(torch.utils.data.Dataset[Any]):
    """A map-style data set of PyTorch over a data set of Fuel.

    :func:`as_map` makes it.  An index gives an example, and a list of
    indices a batch.  It may be used in any process and pickled: a process
    opens the data set for itself.
    """

    def __init__(self, dataset: DatasetLike, as_dict: bool = False) -> None:
        if not isinstance(getattr(dataset, 'num_examples', None), int):
            raise TypeError(
                f'{type(dataset).__name__} has no number of examples, so a '
                'sampler cannot choose among them: use as_iterable() of a '
                'stream')
        self.dataset: Any = dataset
        self.as_dict = as_dict
        self._opened: tuple[int, Any] | None = None

    def __repr__(self) -> str:
        return (f'as_map({type(self.dataset).__name__} of {len(self)} '
                f'examples, sources={tuple(self.dataset.sources)})')

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_opened': None}

    def __len__(self) -> int:
        """Return the number of examples."""
        return int(self.dataset.num_examples)

    def __getitem__(self, index: int | Indices) -> Batch | NamedBatch:
        """Return an example, or the batch of several.

        Parameters
        ----------
        index : int, slice, or list, array or tensor of int
            Negative numbers count from the end.

        Returns
        -------
        tuple or dict
            An array for each source.

        Raises
        ------
        IndexError
            If there is no such example.
        """
        return self._named(self._read(self._as_request(index)))

    def __getitems__(self, indices: Sequence[int]
                     ) -> list[Batch | NamedBatch]:
        """Return examples that were read in one request, as a list.

        `DataLoader` calls it for the indices of a batch.
        """
        if not len(indices):
            return []
        data = self._read(self._as_request(list(indices)))
        return [self._named(example)
                for example in zip(*data, strict=True)]

    def close(self) -> None:
        """Release files and the like; the next index opens them again."""
        if self._opened is not None and self._opened[0] == os.getpid():
            self.dataset.close(self._opened[1])
        self._opened = None

    def _read(self, request: Any) -> Batch:
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), self.dataset.open()
        data: Batch = self.dataset.get_data(self._opened[1], request)
        return data

    def _as_request(self, index: Any) -> Any:
        if isinstance(index, slice):
            index = range(*index.indices(len(self)))
        if isinstance(index, (torch.Tensor, numpy.ndarray)):
            index = index.tolist()
        if isinstance(index, (list, tuple, range)):
            return [self._checked(one) for one in index]
        return self._checked(index)

    def _checked(self, index: Any) -> int:
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(
                f'there is no example {number}: '
                f'{type(self.dataset).__name__} has {len(self)}')
        return number % len(self)

    def _named(self, data: Batch) -> Batch | NamedBatch:
        if not self.as_dict:
            return data
        return dict(zip(self.dataset.sources, data, strict=True))
