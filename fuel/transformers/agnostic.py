"""The base of stages that treat examples and batches alike."""
from __future__ import annotations

from typing import Any

from fuel.epochs.epoch import Epoch
from fuel.transformers.base import Transformation, Transformer, missing
from fuel.typing import Batch
from fuel.utils.overrides import calls


class AgnosticTransformer(Transformer):
    """A stage that treats examples and batches alike.

    Subclasses implement :meth:`transform_any`.

    Parameters
    ----------
    **kwargs
        See :class:`Transformer`.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> class Reverser(AgnosticTransformer):
    ...     def transform_any(self, data):
    ...         return data[::-1]
    >>> stream = DataStream(IterableDataset({'x': [1, 2], 'y': [3, 4]}))
    >>> list(Reverser(stream, stream.produces_examples).get_epoch_iterator())
    [(3, 1), (4, 2)]
    """

    def transform_any(self, data: Batch) -> Any:
        """Return an example or a batch, transformed.

        Parameters
        ----------
        data : tuple
            The data of each source.
        """
        raise NotImplementedError(missing(self, 'transform_any'))

    @calls('transform_any')
    def _transformation(self, epoch: Epoch) -> Transformation:
        return type(self).transform_any

    def transform_example(self, example: Batch) -> Any:
        """Return :meth:`transform_any` of an example."""
        return self.transform_any(example)

    def transform_batch(self, batch: Batch) -> Any:
        """Return :meth:`transform_any` of a batch."""
        return self.transform_any(batch)
