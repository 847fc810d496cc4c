"""Read data sets of Fuel as data sets of Ray Data."""
from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy
import pyarrow
import ray.data
from numpy.typing import NDArray
from ray.data.block import BlockAccessor, BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from fuel.datasets.base import Dataset
from fuel.utils.checks import positive
from fuel.utils.sparse import require_plain

# Bytes of a read task by default: several fit into a small object store.
_TASK_BYTES = 16 << 20


def to_ray(dataset: Dataset, rows_per_task: int | None = None) -> Any:
    """Return a data set of Ray Data that reads a data set of Fuel in parallel.

    Parameters
    ----------
    dataset : Dataset
        A data set with `num_examples`, such as a split of an `H5PYDataset`.
        Its file must exist on every node, or be at a URL.
    rows_per_task : int, optional
        Smallest number of examples in a read task.  Defaults to the number of
        examples that together have 16 MiB.  If rows are stored in chunks of
        HDF5 or Zarr, or in row groups of Parquet, a task ends at the end of a
        chunk or row group.  So no chunk or row group is decoded twice.

    Returns
    -------
    ray.data.Dataset
        A data set with a column for each source, whose rows are in the order
        of the examples.

    Raises
    ------
    ValueError
        If `rows_per_task` is not positive.

    Examples
    --------
    This needs the extra ``ray``.

    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> to_ray(IndexableDataset({'x': numpy.arange(10)})).sum('x')
    45
    """
    if rows_per_task is not None:
        positive('rows_per_task', rows_per_task)
    return ray.data.read_datasource(_Source(dataset, rows_per_task))


class _Source(Datasource):  # type: ignore[misc]
    """Reads ranges of the examples of a data set."""

    def __init__(self, dataset: Dataset, rows_per_task: int | None) -> None:
        super().__init__()
        self.dataset = dataset
        self.num_rows: int = dataset.num_examples
        sample = _block(dataset, 0, min(8, self.num_rows))
        self.schema: pyarrow.Schema = sample.schema
        # Average bytes of a row, estimated from the first rows.
        self.row_bytes = max(1, sample.nbytes // max(1, sample.num_rows))
        self.rows_per_task = rows_per_task or max(
            1, _TASK_BYTES // self.row_bytes)

    def get_name(self) -> str:
        """Return the name of the data source, which Ray shows."""
        return type(self.dataset).__name__

    def estimate_inmemory_data_size(self) -> int:
        """Return an estimate of the bytes of all examples."""
        size: int = self.row_bytes * self.num_rows
        return size

    def get_read_tasks(self, parallelism: int,
                       *arguments: Any, **options: Any) -> list[Any]:
        """Return the tasks that read all examples; each ends with a chunk."""
        ends = _ends_of_chunks(self.dataset, self.num_rows)
        tasks, start = [], 0
        while start < self.num_rows:
            place = numpy.searchsorted(ends, start + self.rows_per_task)
            stop = int(ends[min(int(place), len(ends) - 1)])
            metadata = BlockMetadata(
                num_rows=stop - start, input_files=None, exec_stats=None,
                size_bytes=self.row_bytes * (stop - start))
            tasks.append(ReadTask(
                functools.partial(_read, self.dataset, start, stop),
                metadata, schema=self.schema))
            start = stop
        return tasks


def _ends_of_chunks(dataset: Dataset, num_rows: int) -> NDArray[Any]:
    """Return the numbers of examples after which a chunk ends.

    Without chunks, a task may end after any example.
    """
    every = numpy.arange(1, num_rows + 1)
    try:
        chunks = dataset.chunk_of_examples()
    except (ValueError, TypeError):
        # The data set has no chunks, or does not know them.
        return every
    return numpy.append(numpy.flatnonzero(numpy.diff(chunks)) + 1, num_rows)


def _read(dataset: Dataset, start: int, stop: int) -> Iterator[Any]:
    yield _block(dataset, start, stop)


def _block(dataset: Any, start: int, stop: int) -> Any:
    """Return a range of examples as a block of Ray Data."""
    handle = dataset.open()
    try:
        data = dataset.get_data(handle, slice(start, stop))
    finally:
        dataset.close(handle)
    for source, part in zip(dataset.sources, data, strict=True):
        require_plain(part, source, 'to_ray', '.as_dataset()')
    return BlockAccessor.batch_to_arrow_block(
        dict(zip(dataset.sources, data, strict=True)))
