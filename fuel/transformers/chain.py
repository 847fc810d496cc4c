"""A stream that reads several streams one after the other."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fuel.epochs.epoch import Epoch
from fuel.transformers.plans import ChainedPlan
from fuel.transformers.several import SeveralStreams
from fuel.transformers.source_names import labels_of
from fuel.typing import Request, StreamLike


class Chain(SeveralStreams):
    """Reads several streams one after the other, in each epoch.

    Parameters
    ----------
    data_streams : iterable of AbstractDataStream
        They have the same sources, in the same order, and all produce
        examples, or all batches.
    **kwargs
        See :class:`~fuel.streams.AbstractDataStream`. The axis labels
        default to those of the first stream.

    Raises
    ------
    ValueError
        If the sources differ, or some streams produce examples and others
        batches.

    Examples
    --------
    >>> from fuel.datasets import IterableDataset
    >>> from fuel.streams import DataStream
    >>> easy = DataStream(IterableDataset([1, 2]))
    >>> hard = DataStream(IterableDataset([30]))
    >>> list(Chain([easy, hard]).get_epoch_iterator())
    [(1,), (2,), (30,)]
    """

    epoch_attributes = (*SeveralStreams.epoch_attributes, '_place')
    _place = 0

    def __init__(self, data_streams: Iterable[StreamLike],
                 **kwargs: Any) -> None:
        streams = tuple(data_streams)
        if streams:
            kwargs.setdefault('axis_labels', labels_of(streams[0]))
        super().__init__(streams, **kwargs)
        found = [tuple(stream.sources) for stream in streams]
        if len(set(found)) > 1:
            raise ValueError(
                'the streams that Chain reads must have the same sources, '
                f'got {", ".join(map(str, found))}: use Rename or '
                'FilterSources')
        self.sources = found[0]

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._place = 0
        super().start_epoch()

    def get_data(self, request: Request = None) -> Any:
        """Return the next data of the stream whose turn it is.

        Parameters
        ----------
        request : None
            There are no requests.

        Returns
        -------
        tuple
        """
        self._refuse(request)
        while self._place < len(self.child_epoch_iterators):
            for data in self.child_epoch_iterators[self._place]:
                return data
            self._place += 1
        raise StopIteration

    def open_plan(self, epoch: Epoch) -> ChainedPlan:
        """Return what makes any item of an epoch."""
        return ChainedPlan(epoch.attributes['child_epoch_iterators'])

    def get_leftover(self) -> int:
        """Return which stream has its turn."""
        return self._place

    def set_leftover(self, leftover: int) -> None:
        """Go on with that stream."""
        if not 0 <= leftover <= len(self.data_streams):
            raise ValueError(f'there is no stream number {leftover}')
        self._place = leftover

    def num_items(self) -> int | None:
        """Return how many items an epoch has, None if it is not known."""
        lengths = self._lengths()
        return None if lengths is None else sum(lengths)
