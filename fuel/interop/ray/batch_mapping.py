"""Apply stages of Fuel to the batches of Ray Data."""
from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow
from ray.data.block import BlockAccessor

from fuel.datasets.base import Dataset
from fuel.datasets.rows import own
from fuel.epochs.pipeline import require_one_to_one, skip
from fuel.epochs.stage import stage_of
from fuel.schemes import SequentialScheme
from fuel.streams import DataStream
from fuel.typing import AxisLabels, StreamLike
from fuel.utils.sparse import require_plain

# Number of items in an epoch over one batch; the stages read one of them.
_NUM_ITEMS = 1 << 32

#: Takes a stream of batches, and returns the last stage downstream of it.
Pipeline: TypeAlias = Callable[[StreamLike], StreamLike]


def map_batches(dataset: Any, pipeline: Pipeline,
                batch_size: int | None = None, *,
                axis_labels: AxisLabels | None = None,
                **options: Any) -> Any:
    """Apply a pipeline of stages to the batches of a data set of Ray Data.

    Parameters
    ----------
    dataset : ray.data.Dataset
        Its columns are the sources of the stream that `pipeline` is given.
    pipeline : callable
        Takes a stream of batches and returns the last stage of a pipeline
        that reads the stream: ``lambda stream: Cast(ScaleAndShift(stream, 2,
        0), 'float32')``.  Ray's workers call it for each batch, so compute
        values such as a mean outside of it.
    batch_size : int, optional
        Number of examples in a batch; the last batch of a block may be
        smaller.  Defaults to the size of each block of Ray.
    axis_labels : dict, optional
        Names of the axes of the sources, for the stages that need them.
    **options
        Further arguments of :meth:`ray.data.Dataset.map_batches`, such as
        ``num_cpus``.

    Returns
    -------
    ray.data.Dataset
        A data set whose columns are the sources of the pipeline.  It is
        computed when it is read, like all data sets of Ray Data.

    Raises
    ------
    ValueError
        If the pipeline does not make exactly one batch from each single
        batch.

    Notes
    -----
    The random numbers of a stage depend on its seed and on a checksum of the
    batch.  So a batch that Ray computes again, after a node died, has the
    same values.  All epochs have the same values too: for other random
    numbers, map the data set again with another seed.

    Examples
    --------
    This needs the extra ``ray``.

    >>> import ray.data
    >>> from fuel.transformers import ScaleAndShift
    >>> dataset = map_batches(
    ...     ray.data.range(6), lambda stream: ScaleAndShift(stream, 10, 1))
    >>> sorted(row['id'] for row in dataset.take_all())
    [1, 11, 21, 31, 41, 51]
    """
    names = tuple(dataset.schema().names)
    require_one_to_one(
        pipeline(_stream_of(dict.fromkeys(names), axis_labels)),
        'so it cannot be applied to each batch of Ray Data by itself', ())
    return dataset.map_batches(
        functools.partial(_apply, pipeline, axis_labels),
        batch_size=batch_size, batch_format='numpy', **options)


class _OneBatch(Dataset):
    """A data set that returns the same batch for each request."""

    def __init__(self, columns: dict[str, Any],
                 axis_labels: AxisLabels | None) -> None:
        self.provides_sources = tuple(columns)
        self._batch = tuple(columns.values())
        super().__init__(axis_labels=axis_labels)

    def get_data(self, state: object = None, request: object = None) -> Any:
        """Return the batch."""
        return self._batch


def _stream_of(columns: dict[str, Any],
               axis_labels: AxisLabels | None) -> DataStream:
    return DataStream(_OneBatch(columns, axis_labels),
                      iteration_scheme=SequentialScheme(_NUM_ITEMS, 1))


def _apply(pipeline: Pipeline, axis_labels: AxisLabels | None,
           columns: dict[str, Any]) -> dict[str, Any]:
    """Apply a pipeline to a batch; return the data of each source."""
    # Pass writable arrays, since stages may write into them.
    stage = pipeline(_stream_of({
        name: column if column.flags.writeable and not column.dtype.hasobject
        else own(column) for name, column in columns.items()}, axis_labels))
    epoch: Any = stage.get_epoch_iterator()
    if _draws(stage):
        skip(epoch, _checksum(columns) % _NUM_ITEMS)
    made = dict(zip(stage.sources, next(epoch), strict=True))
    for source, part in made.items():
        require_plain(part, source, 'map_batches')
    return made


def _draws(stream: StreamLike) -> bool:
    stage = stage_of(stream)
    return stage.draws == 'by_seed' or any(map(_draws, stage.inputs))


def _checksum(columns: dict[str, Any]) -> int:
    """Return a checksum of the content of a batch."""
    table = BlockAccessor.batch_to_arrow_block(columns)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return zlib.crc32(sink.getvalue())
