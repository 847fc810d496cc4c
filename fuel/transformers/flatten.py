"""A stage that makes vectors of examples."""
from __future__ import annotations

import math
from typing import Any, Unpack

import numpy
from numpy.typing import ArrayLike

from fuel.describe.source_types import SourceType
from fuel.transformers.options import SourcewiseOptions
from fuel.transformers.ragged import (as_array, as_matrix, is_ragged,
                                      map_elements)
from fuel.transformers.source_names import labels_of
from fuel.transformers.sourcewise import SourcewiseTransformer
from fuel.typing import StreamLike
from fuel.utils.masked import as_kept


class Flatten(SourcewiseTransformer):
    """Makes a vector of each example, and so a matrix of each batch.

    Parameters
    ----------
    which_sources, iteration_scheme, axis_labels
        See :class:`~fuel.transformers.SourcewiseTransformer`. The axis labels
        default to ``('batch', 'feature')`` or ``('feature',)`` if
        `data_stream` has labels.

    Notes
    -----
    In a ragged batch each example is flattened separately.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(numpy.zeros((4, 2, 3))),
    ...                     iteration_scheme=SequentialScheme(4, 2))
    >>> batch, = next(Flatten(stream).get_epoch_iterator())
    >>> batch.shape
    (2, 6)
    """

    pure = True
    keeps_rows = True
    takes_sparse = False

    def __init__(self, data_stream: StreamLike,
                 **kwargs: Unpack[SourcewiseOptions]) -> None:
        labels = labels_of(data_stream)
        if labels is not None:
            chosen = self._select(data_stream, kwargs.get('which_sources'))
            flat = (('feature',) if data_stream.produces_examples
                    else ('batch', 'feature'))
            kwargs.setdefault('axis_labels', {
                source: flat if part is not None and source in chosen
                else part for source, part in labels.items()})
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)

    def type_after(self, known: SourceType,
                   source_name: str) -> SourceType | None:
        """Return the type of vectors."""
        if known.shape is None:
            return known
        kept = 0 if self.produces_examples else 1
        rest = known.shape[kept:]
        if None in rest:
            return known._replace(shape=(*known.shape[:kept], None))
        length = math.prod([size for size in rest if size is not None])
        return known._replace(shape=(*known.shape[:kept], length))

    def transform_source_example(self, source_example: ArrayLike,
                                 source_name: str) -> Any:
        """Return an example as a vector, shape (feature,)."""
        return as_kept(source_example).flatten()

    def transform_source_batch(self, source_batch: Any,
                               source_name: str) -> Any:
        """Return a batch as a matrix, shape (batch, feature)."""
        if type(source_batch) is numpy.ndarray and source_batch.ndim > 1:
            return as_matrix(source_batch)
        batch = as_array(source_batch)
        if batch.ndim == 1 and is_ragged(batch):
            return map_elements(numpy.ravel, source_batch)
        return as_matrix(batch)
