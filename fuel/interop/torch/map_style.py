"""Read a data set of Fuel as a map-style data set of PyTorch."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.utils.data

from fuel.describe.source_types import types_of
from fuel.interop.examples_by_index import ExamplesByIndex
from fuel.interop.torch.callers import warn_of_repeated_examples
from fuel.interop.torch.sent_data import received, send
from fuel.interop.torch.tensors import as_tensor, expect_sparse
from fuel.typing import Batch, DatasetLike, NamedBatch
from fuel.utils.masked import require_unmasked
from fuel.utils.sparse import is_sparse


def as_map(dataset: DatasetLike, as_dict: bool = False) -> MapStyleDataset:
    """Return a data set of Fuel as a map-style data set of PyTorch.

    Samplers of PyTorch then choose the examples, instead of an iteration
    scheme.

    Parameters
    ----------
    dataset : Dataset
        A data set with `num_examples` that takes indices as requests.
    as_dict : bool, optional
        Whether examples are dicts from source names to data rather than
        tuples.  Defaults to False.

    Returns
    -------
    MapStyleDataset

    Raises
    ------
    TypeError
        If the data set has no number of examples.

    Examples
    --------
    This needs the extra ``torch``.

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


class MapStyleDataset(ExamplesByIndex, torch.utils.data.Dataset[Any]):
    """A map-style data set of PyTorch over a data set of Fuel.

    :func:`as_map` makes it.  An index returns an example, and a list of
    indices returns a batch.  The object can be pickled and used in any
    process: each process opens the data set for itself.  Sparse batches and
    examples are tensors of `torch.sparse_csr_tensor`.  PyTorch does not
    collate such tensors: let a sampler choose batches.
    """

    function = 'as_map'
    instead = 'as_iterable()'

    def __init__(self, dataset: DatasetLike, as_dict: bool = False) -> None:
        super().__init__(dataset, as_dict)
        expect_sparse(types_of(dataset))

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), 'dataset': send(self.dataset)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, dataset=received(state['dataset']))

    def __len__(self) -> int:
        """Return the number of examples."""
        count = super().__len__()
        warn_of_repeated_examples(count)
        return count

    def _named(self, data: Batch) -> Batch | NamedBatch:
        parts = []
        for part, source in zip(data, self.dataset.sources, strict=True):
            require_unmasked(part, source, 'as_map')
            parts.append(as_tensor(part, source) if is_sparse(part) else part)
        return super()._named(tuple(parts))

    def __getitems__(self, indices: Sequence[int]
                     ) -> list[Batch | NamedBatch]:
        """Return several examples as a list, read in one request.

        `DataLoader` calls this method with the indices of a batch.
        """
        return self.fetch(indices)
