"""A stage that makes examples of batches."""
from __future__ import annotations

from functools import partial
from typing import Any

from fuel.describe.source_types import SourceTypes, types_of
from fuel.epochs.epoch import Epoch
from fuel.sharding.pipeline import can_seek_rows
from fuel.epochs.state import position_of
from fuel.transformers.base import Transformer
from fuel.transformers.cache import PartialBatch
from fuel.transformers.plans import ExamplesOfRows
from fuel.transformers.source_names import as_labels, labels_of
from fuel.typing import Request, StreamLike


class Unpack(Transformer):
    """Makes examples of batches, one by one.

    Parameters
    ----------
    data_stream : AbstractDataStream
        Produces batches.
    **kwargs
        See :class:`~fuel.transformers.Transformer`. The axis labels default
        to those of `data_stream` without the first.

    Attributes
    ----------
    data : iterator or None
        The examples of the last batch that are still to come. Advancing it
        leaves examples out.

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

    epoch_attributes = (*Transformer.epoch_attributes, 'data')
    data: Any = None

    def __init__(self, data_stream: StreamLike, **kwargs: Any) -> None:
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

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self.data = None
        super().start_epoch()

    def known_types(self) -> SourceTypes:
        """Return the types of examples."""
        return {source: known.example() for source, known
                in types_of(self.data_stream).items()}

    def get_data(self, request: Request = None) -> tuple[Any, ...]:
        """Return the next example.

        See :meth:`~fuel.transformers.Transformer.get_data`.
        """
        self._refuse(request)
        while True:
            if self.data is None:
                self.data = self._fetch()
            example: tuple[Any, ...]
            for example in self.data:
                return example
            self.data = None

    @property
    def can_plan(self) -> bool:
        """Whether any example is known without those before it (bool)."""
        return can_seek_rows(self.data_stream)

    def open_plan(self, epoch: Epoch) -> ExamplesOfRows:
        """Return what makes any example of an epoch."""
        return ExamplesOfRows(
            epoch.attributes['child_epoch_iterator'], epoch.step,
            partial(PartialBatch, sources=self.data_stream.sources,
                    position=None))

    def _fetch(self) -> PartialBatch:
        """Read a batch."""
        position = position_of(self.child_epoch_iterator)
        return PartialBatch(self._pull(), self.data_stream.sources, position)

    def get_leftover(self) -> Any:
        """Return how many examples of the child's batch were returned."""
        if self.data is None:
            return None
        if not isinstance(self.data, PartialBatch):
            raise TypeError(
                'the position of an Unpack whose data were assigned cannot '
                'be saved as plain data: pickle the epoch iterator instead')
        return {'used': self.data.used} if self.data.is_partial() else None

    def set_leftover(self, leftover: dict[str, Any]) -> None:
        """Read the child's batch again, and leave out what was returned."""
        self.data = self._fetch()
        if not self.data.length:
            raise ValueError('the batch of which examples were left when the '
                             'state was saved is empty now')
        self.data.skip(leftover['used'])

    def get_child_position(self) -> Any:
        """Return where the child stood before its last batch."""
        if isinstance(self.data, PartialBatch) and self.data.is_partial():
            return self.data.position
        return None
