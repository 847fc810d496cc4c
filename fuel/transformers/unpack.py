"""A stage that makes examples of batches."""
from __future__ import annotations

from typing import Any

import numpy

from fuel.epochs.runtime import runtime_of
from fuel.epochs.state import position_of
from fuel.transformers.base import Transformer
from fuel.transformers.partial_batch import Chunk
from fuel.transformers.source_names import as_labels, labels_of


class Unpack(Transformer):
    """Hands out the examples of batches one by one.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces batches.
    **kwargs
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream` without the first.

    Raises
    ------
    ValueError
        If `data_stream` produces examples.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(IndexableDataset(['a', 'b', 'c']),
    ...                     iteration_scheme=SequentialScheme(3, 2))
    >>> list(Unpack(stream).get_epoch_iterator())
    [('a',), ('b',), ('c',)]

    """

    epoch_attributes = (*Transformer.epoch_attributes, '_chunk')
    _chunk: Chunk | None = None

    def __init__(self, data_stream: Any, **kwargs: Any) -> None:
        if data_stream.produces_examples:
            raise ValueError(
                'Unpack makes examples of batches, but its data stream '
                f'({type(data_stream).__name__}) produces examples already')
        labels = labels_of(data_stream)
        if labels is not None:
            kwargs.setdefault('axis_labels', {
                source: None if part is None else as_labels(part)[1:]
                for source, part in labels.items()})
        super().__init__(data_stream, produces_examples=True, **kwargs)

    def get_epoch_iterator(self, as_dict: bool = False) -> Any:
        """Return an iterator over the examples of a new epoch."""
        with runtime_of(self).lock:
            self._chunk = None
            return super().get_epoch_iterator(as_dict=as_dict)

    def get_data(self, request: Any = None) -> tuple[Any, ...]:
        """Return the next example.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        while self._chunk is None:
            self._fetch()
        chunk, place = self._chunk, self._chunk.used
        example = tuple([_pick(part, place) for part in chunk.parts])
        chunk.used += 1
        if chunk.used == chunk.length:
            self._chunk = None
        return example

    def _fetch(self) -> None:
        """Read a batch."""
        position = position_of(self.child_epoch_iterator)
        chunk = Chunk(self._pull(), self.data_stream.sources, position)
        self._chunk = chunk if chunk.length else None

    def _length(self) -> None:
        # How many examples the batches have is not known before.
        return None

    def get_leftover(self) -> Any:
        """Return how many examples of the child's batch were returned."""
        return None if self._chunk is None else {'used': self._chunk.used}

    def set_leftover(self, leftover: Any) -> None:
        """Read the child's batch again, and leave out what was returned."""
        self._fetch()
        if self._chunk is None:
            raise ValueError('the batch of which examples were left when the '
                             'state was saved is empty now')
        self._chunk.skip(leftover['used'])

    def get_child_position(self) -> Any:
        """Return where the child stood before its last batch."""
        return None if self._chunk is None else self._chunk.position


def _pick(part: Any, place: int) -> Any:
    """Return an example that does not keep the whole batch alive."""
    example = part[place]
    return example.copy() if isinstance(example, numpy.ndarray) else example
