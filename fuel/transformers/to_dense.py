"""A stage that converts sparse batches to arrays."""
from __future__ import annotations

from typing import Any, Unpack

from fuel.describe.source_types import SourceType
from fuel.kernels.outputs import empty
from fuel.transformers.options import SourcewiseOptions
from fuel.transformers.source_names import labels_of
from fuel.transformers.sourcewise import SourcewiseTransformer
from fuel.typing import StreamLike
from fuel.utils.sparse import SparseRows, is_sparse, to_dense


class ToDense(SourcewiseTransformer):
    """Converts sparse batches to arrays, which hold the zeros too.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces examples or batches.
    which_sources : tuple of str or str, optional
        The sources to make dense. Defaults to all; data that are not sparse
        pass through.
    iteration_scheme, axis_labels
        See :class:`~fuel.transformers.SourcewiseTransformer`. The axis
        labels default to those of `data_stream`.

    Notes
    -----
    A batch becomes an array of shape (batch, columns), an example an array
    of shape (columns,), of the type of the values. Elements of a row that have
    the same column are added, as in SciPy.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> from scipy.sparse import csr_array
    >>> stream = DataStream(IterableDataset(
    ...     {'x': [csr_array([[0, 2, 0]]), csr_array([[1, 0, 0]])]}))
    >>> list(ToDense(stream))
    [(array([0, 2, 0]),), (array([1, 0, 0]),)]
    """

    pure = True
    keeps_rows = True

    def __init__(self, data_stream: StreamLike,
                 **kwargs: Unpack[SourcewiseOptions]) -> None:
        kwargs.setdefault('axis_labels', labels_of(data_stream))
        super().__init__(
            data_stream, data_stream.produces_examples, **kwargs)

    def type_after(self, known: SourceType, source_name: str) -> SourceType:
        """Return the type and shape, which do not change."""
        return known._replace(is_sparse=False)

    def transform_source_example(self, source_example: Any,
                                 source_name: str) -> Any:
        """Return an example as an array of shape (columns,)."""
        if not is_sparse(source_example):
            return source_example
        return _dense(source_example)[0]

    def transform_source_batch(self, source_batch: Any,
                               source_name: str) -> Any:
        """Return a batch as an array of shape (batch, columns)."""
        return (_dense(source_batch) if is_sparse(source_batch)
                else source_batch)


def _dense(batch: SparseRows) -> Any:
    return to_dense(batch, empty(batch.shape, batch.data.dtype))
