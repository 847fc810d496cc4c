"""A stage that marks the examples that ranks repeat."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fuel.epochs.pipeline import child_streams
from fuel.sharding.planned import padding_of
from fuel.epochs.stage import stage_of
from fuel.transformers.base import Transformer
from fuel.transformers.source_names import labels_of
from fuel.typing import Batch, StreamLike


class MarkPadding(Transformer):
    """Marks the examples that a rank repeats, by a source of booleans.

    Where ranks share an order with ``uneven='pad'``, some repeat examples of
    the start at the end of an epoch. Losses and scores leave those out that
    are marked.

    Parameters
    ----------
    data_stream : AbstractDataStream
    source : str, optional
        Name of the new source, which comes last: a boolean for each example
        of a batch, True if it is a repetition. Defaults to ``'is_padding'``.
    **kwargs
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream`.

    Raises
    ------
    ValueError
        If there is a source of that name, or the stream is made in another
        process.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset([1, 2, 3]), batch_size=1)
    >>> marked = MarkPadding(stream.shard(1, 2, uneven='pad'))
    >>> list(marked.get_epoch_iterator())
    [([2], array([False])), ([1], array([ True]))]
    """

    one_to_one = True
    keeps_rows = True

    def __init__(self, data_stream: StreamLike, source: str = 'is_padding',
                 **kwargs: Any) -> None:
        if source in data_stream.sources:
            raise ValueError(
                f'source must be a new name, but {source!r} is one of '
                f'{tuple(data_stream.sources)}')
        _check_process(data_stream)
        labels: Mapping[str, Any] | None = labels_of(data_stream)
        if labels is not None:
            kwargs.setdefault('axis_labels', {
                **labels, source: (() if data_stream.produces_examples
                                   else ('batch',))})
        super().__init__(data_stream, data_stream.produces_examples,
                         **kwargs)
        self.source = source

    def _get_sources(self) -> tuple[str, ...]:
        return (*self.data_stream.sources, self.source)

    def transform_example(self, example: Batch) -> Batch:
        """Return an example with its mark."""
        return (*example, padding_of(self.child_epoch_iterator, None))

    def transform_batch(self, batch: Batch) -> Batch:
        """Return a batch with a mark for each example."""
        return (*batch, padding_of(
            self.child_epoch_iterator, len(batch[0])))


def _check_process(stream: StreamLike) -> None:
    stage = stage_of(stream)
    if stage.passes_items_on:
        raise ValueError(
            f'MarkPadding cannot see which examples {type(stream).__name__} '
            'repeats, since that prefetches: put it before that stage')
    if stage.depends_on_data and stage.shard_of_inputs is not None:
        raise ValueError(
            f'MarkPadding cannot see which examples {type(stream).__name__} '
            'makes of those that are repeated: put it before that stage')
    for child in child_streams(stream):
        _check_process(child)
