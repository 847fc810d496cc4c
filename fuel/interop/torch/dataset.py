"""Read a map-style data set of PyTorch as a data set of Fuel."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
import torch
from torch.utils.data import IterableDataset, TensorDataset

from fuel.datasets.epoch_readers import read_collections
from fuel.datasets.rows import get_rows
from fuel.epochs.read_options import ReadOptions
from fuel.interop.indexed_dataset import ExamplesDataset, Indexed
from fuel.schemes.requests import RequestIterator
from fuel.typing import AxisLabels, EpochReader, Sources


class TorchDataset(ExamplesDataset):
    """A data set that reads a map-style data set of PyTorch.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Any object with ``__len__`` and ``__getitem__``.  If it has a method
        ``__getitems__``, that method reads batches.
    names : tuple of str, optional
        Names of the sources, one for each part of an example.  Defaults to the
        keys of an example that is a dict, to ``('features', 'targets')`` for
        a pair and to ``('data',)`` for a single part.
    sources, axis_labels
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
        If the data set is empty and `names` is not given, or an example has
        other parts than the first.

    Notes
    -----
    Tensors, pictures and numbers become arrays.  In a batch, arrays of one
    shape become a single array; arrays of several shapes, and strings, become
    a list.  Tensors of bfloat16 become float32.  The arrays are copies, which
    the caller owns.  A `TensorDataset` is read at the speed of arrays in
    memory.

    A saved state holds only positions.  If a data set draws random numbers in
    ``__getitem__``, they differ after resuming.

    Examples
    --------
    This needs the extra ``torch``.

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

    def __init__(self, dataset: Indexed, names: Sequence[str] | None = None,
                 sources: Sources | None = None,
                 axis_labels: AxisLabels | None = None) -> None:
        if isinstance(dataset, IterableDataset):
            raise TypeError(
                f'{type(dataset).__name__} is an iterable-style data set, '
                'which cannot be indexed: wrap it in '
                'fuel.datasets.IterableDataset, or use its map-style '
                'counterpart')
        super().__init__(dataset, names, sources, axis_labels)
        self._use_sources()

    def _use_sources(self) -> None:
        """Keep an array over the tensor of each source, if tensors have one.

        This is done for a `TensorDataset` in the memory of the host, without
        bfloat16.
        """
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
        self._use_sources()

    def make_reader(self, requests: RequestIterator | None,
                    options: ReadOptions, state: object) -> EpochReader | None:
        """Return a compiled reader of the tensors of a `TensorDataset`."""
        if state is not None or self._columns is None:
            return None
        return read_collections(
            self, requests, options, self._columns, '_columns')

    def get_data(self, state: object = None, request: object = None) -> Any:
        """Return the examples of a request.

        See :meth:`~fuel.datasets.IndexableDataset.get_data`.
        """
        if self._columns is None or state is not None or request is None:
            return super().get_data(state, request)
        return tuple([get_rows(column, request)
                      for column in self._columns])

    def as_array(self, value: object) -> Any:
        """Return a part of an example as an array that the caller owns."""
        if isinstance(value, torch.Tensor):
            return numpy.array(tensor_as_array(value))
        return super().as_array(value)


def tensor_as_array(tensor: torch.Tensor) -> numpy.ndarray[Any, Any]:
    """Return a tensor as an array, which shares its memory if possible.

    Tensors of bfloat16, which NumPy does not have, become float32.
    """
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.float()
    array: numpy.ndarray[Any, Any] = tensor.numpy()
    return array
