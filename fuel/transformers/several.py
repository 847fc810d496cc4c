"""Streams that read several others."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fuel.epochs.stage import stage_of
from fuel.describe.source_types import SourceTypes
from fuel.epochs.runtime import runtime_of
from fuel.sharding.pipeline import can_seek
from fuel.epochs.state import RUNNING
from fuel.streams import AbstractDataStream
from fuel.epochs.pipeline import length_of
from fuel.transformers.base import common_types
from fuel.typing import AxisLabels, Request, SchemeLike, StreamLike


class SeveralStreams(AbstractDataStream):
    """Base of the streams that read several others, each in its own epoch."""

    epoch_attributes: tuple[str, ...] = ('child_epoch_iterators',)
    data_streams: Any
    child_epoch_iterators: Any

    def __init__(self, data_streams: Iterable[StreamLike],
                 axis_labels: AxisLabels | None = None,
                 iteration_scheme: SchemeLike | None = None) -> None:
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
        super().__init__(iteration_scheme, axis_labels)
        if iteration_scheme is None:
            self.produces_examples = kinds[0]
        self.data_streams = streams

    def start_epoch(self) -> None:
        """Set the attributes that belong to a new epoch."""
        self._release_children()
        self.child_epoch_iterators = self._open_children()
        super().start_epoch()

    def _open_children(self) -> list[Any]:
        """Return the epoch iterators of the streams that are read."""
        pending = runtime_of(self).pending
        iterators = []
        for place, stream in enumerate(self.data_streams):
            part = pending and pending['children'][place]
            if part and part['epoch'] == RUNNING:
                # Only now, for one stream may be there twice.
                stage_of(stream).load(part)
            iterators.append(stream.get_epoch_iterator())
        return iterators

    def _refuse(self, request: Request) -> None:
        if request is not None:
            raise ValueError(
                f'{type(self).__name__} reads its data streams in order and '
                f'takes no requests, got {request!r}')

    def known_types(self) -> SourceTypes:
        """Return the types that all streams have."""
        return common_types(self.data_streams)

    @property
    def can_plan(self) -> bool:
        """Whether any item can be made without those before it (bool)."""
        return all(map(can_seek, self.data_streams))

    def _lengths(self) -> list[int] | None:
        """Return the lengths of all streams, None if one is not known."""
        found = [length_of(stream) for stream in self.data_streams]
        known = [length for length in found if length is not None]
        return known if len(known) == len(found) else None

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
