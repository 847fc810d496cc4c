"""Data sets of Ray Data as data sets of Fuel."""
from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy
import ray
from numpy.typing import NDArray
from ray.data.block import BlockAccessor

from fuel.interop.indexed_dataset import IndexedDataset
from fuel.typing import AxisLabels, Batch, Sources

# Most blocks that a process keeps between two requests.
_MOST_BLOCKS = 4


class RayDataset(IndexedDataset):
    """A data set that reads a data set of Ray Data, in any order.

    Parameters
    ----------
    dataset : ray.data.Dataset
        The data set to read.  It is computed once, in its own order, into
        Ray's object store, which moves objects to disk if it is full.
    sources, axis_labels
        `sources` and `axis_labels`, for
        :class:`~fuel.datasets.base.Dataset`.

    Attributes
    ----------
    num_examples : int
    example_iteration_scheme : SequentialExampleScheme

    Raises
    ------
    ValueError
        If the data set has no examples.

    Notes
    -----
    Examples have numbers, so epochs, shuffling, shards and states work as for
    any other data set.  Another process can resume from a state if the data
    set is computed there with the same rows in the same order.

    Examples
    --------
    This needs the extra ``ray``.

    >>> import ray.data
    >>> dataset = RayDataset(ray.data.range(10))
    >>> dataset.get_data(request=[7, 2])
    (array([7, 2]),)
    """

    unsaved_arguments = ('dataset',)

    def __init__(self, dataset: object, sources: Sources | None = None,
                 axis_labels: AxisLabels | None = None) -> None:
        computed = _computed_in_order(dataset)
        self._blocks: list[Any] = []
        counts = []
        for bundle in computed.iter_internal_ref_bundles():
            for block, metadata in ((entry.ref, entry.metadata)
                                    for entry in bundle.blocks):
                if metadata.num_rows:
                    self._blocks.append(block)
                    counts.append(metadata.num_rows)
        if not counts:
            raise ValueError('the data set of Ray Data has no examples')
        self._ends: NDArray[Any] = numpy.cumsum(counts)
        self._near: OrderedDict[int, dict[str, Any]] = OrderedDict()
        super().__init__(
            tuple(computed.schema().names), sources, axis_labels)

    @property
    def num_examples(self) -> int:
        """Number of examples (int)."""
        return int(self._ends[-1])

    def read_example(self, index: int) -> Batch:
        """Return an example, the data of `sources`."""
        return tuple([part[0] for part in self._read(numpy.array([index]))])

    def read_batch(self, indices: NDArray[numpy.intp]) -> Batch:
        """Return several examples, as an array for each of `sources`."""
        return tuple(self._read(indices))

    def _read(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Return rows of each source, in arrays that the caller owns."""
        places = numpy.searchsorted(self._ends, rows, side='right')
        order = numpy.argsort(places, kind='stable')
        used, starts = numpy.unique(places[order], return_index=True)
        runs = numpy.split(order, starts[1:])
        parts: list[list[Any]] = [[] for _ in self.sources]
        for number, run in zip(used.tolist(), runs, strict=True):
            first = self._ends[number - 1] if number else 0
            columns = self._columns(number)
            for part, source in zip(parts, self.sources, strict=True):
                part.append(columns[source][rows[run] - first])
        back = numpy.argsort(order, kind='stable')
        return [numpy.concatenate(part)[back] for part in parts]

    def _columns(self, number: int) -> dict[str, Any]:
        """Return the columns of a block; the blocks used last are kept."""
        columns = self._near.pop(number, None)
        if columns is None:
            block = ray.get(self._blocks[number])
            columns = BlockAccessor.for_block(block).to_numpy(
                list(self.provides_sources))
        self._near[number] = columns
        if len(self._near) > _MOST_BLOCKS:
            self._near.popitem(last=False)
        return columns

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_near': OrderedDict()}


def _computed_in_order(dataset: Any) -> Any:
    """Compute a data set, keeping the rows in the order of its inputs."""
    # The context of the data set, which may differ from the present context.
    options = dataset.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        return dataset.materialize()
    finally:
        options.preserve_order = before
