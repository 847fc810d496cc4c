"""The streams and epoch iterators below a stage of a pipeline."""
from __future__ import annotations

from typing import Any


def child_streams(stream: Any) -> list[Any]:
    """Return the streams that a stream reads."""
    if hasattr(stream, 'data_streams'):
        return list(stream.data_streams)
    return [stream.data_stream] if hasattr(stream, 'data_stream') else []


def child_iterators(stream: Any) -> list[Any]:
    """Return the epoch iterators that a stream shows at present."""
    if hasattr(stream, 'child_epoch_iterators'):
        return list(stream.child_epoch_iterators)
    iterator = getattr(stream, 'child_epoch_iterator', None)
    return [] if iterator is None else [iterator]
