"""Streams that read several others."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fuel.epochs.runtime import runtime_of
from fuel.streams import AbstractDataStream
from fuel.typing import AxisLabels, StreamLike, returns_epochs


class SeveralStreams(AbstractDataStream):
    """Base of the streams that read several others, each in its own epoch.

    Parameters
    ----------
    data_streams : iterable of AbstractDataStream
        All produce examples, or all batches.
    axis_labels : dict, optional
        See :class:`~fuel.streams.AbstractDataStream`.

    Raises
    ------
    ValueError
        If there is none, or if some produce examples and others batches.
    """

    epoch_attributes: tuple[str, ...] = ('child_epoch_iterators',)
    data_streams: Any
    child_epoch_iterators: Any

    def __init__(self, data_streams: Iterable[StreamLike],
                 axis_labels: AxisLabels | None = None) -> None:
        streams = tuple(data_streams)
        if not streams:
            raise ValueError('data_streams must hold at least one stream')
        kinds = [stream.produces_examples for stream in streams]
        if len(set(map(bool, kinds))) > 1:
            described = ', '.join('examples' if kind else 'batches'
                                  for kind in kinds)
            raise ValueError(
                f'the streams that {type(self).__name__} reads must all '
                'produce examples or all produce batches, but they produce '
                f'{described}: put Batch or Unpack before some')
        super().__init__(axis_labels=axis_labels)
        self.produces_examples = kinds[0]
        self.data_streams = streams

    @returns_epochs
    def get_epoch_iterator(self, as_dict: bool = False) -> Any:
        """Return an iterator over the data of a new epoch.

        See :meth:`~fuel.streams.AbstractDataStream.get_epoch_iterator`.
        """
        with runtime_of(self).lock:
            self._start_epoch()
            self._release_children()
            resumed = self._pending_running()
            iterators = []
            for place, stream in enumerate(self.data_streams):
                if resumed:
                    # Only now, for one stream may be there twice.
                    stream._load_checked(resumed['children'][place])
                iterators.append(stream.get_epoch_iterator())
            self.child_epoch_iterators = iterators
            return super().get_epoch_iterator(as_dict=as_dict)

    def _start_epoch(self) -> None:
        """Set what belongs to a new epoch, except the children's
        iterators."""

    def close(self) -> None:
        """Close all streams."""
        for stream in self.data_streams:
            stream.close()

    def reset(self) -> None:
        """Reset all streams."""
        for stream in self.data_streams:
            stream.reset()

    def next_epoch(self) -> None:
        """Switch all streams to the next epoch."""
        for stream in self.data_streams:
            stream.next_epoch()
