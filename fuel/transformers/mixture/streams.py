"""Checks of the streams of a mixture, and what their items have in common."""
from __future__ import annotations

from typing import Any

import numpy

from fuel.transformers.source_names import labels_of
from fuel.typing import Batch


def with_origin(count: int, is_example: bool, data: Batch,
                 place: int) -> Batch:
    """Return an item with the number of the stream that it is from."""
    parts = data[:count]
    return (*parts, place if is_example else numpy.full(
        len(parts[0]), place, numpy.int64))


def check_streams(streams: tuple[Any, ...], names: tuple[str, ...],
                  origin_source: str | None) -> None:
    """Refuse streams whose items cannot stand for each other."""
    if not streams:
        raise ValueError('data_streams must hold at least one stream')
    first = tuple(streams[0].sources)
    kind = bool(streams[0].produces_examples)
    for name, stream in zip(names, streams, strict=True):
        if tuple(stream.sources) != first:
            raise ValueError(
                'the streams to mix must have the same sources in the same '
                f'order, but {names[0]!r} has {first} and {name!r} has '
                f'{tuple(stream.sources)}: put Rename or FilterSources '
                'before one of them')
        if bool(stream.produces_examples) is not kind:
            kinds = ('batches', 'examples')
            raise ValueError(
                'the streams to mix must all produce examples or all '
                f'produce batches, but {names[0]!r} produces {kinds[kind]} '
                f'and {name!r} {kinds[not kind]}: put Batch or Unpack '
                'before one of them')
    if origin_source in first:
        raise ValueError(
            f'origin_source cannot be {origin_source!r}, which the streams '
            'have already: choose another name')


def common_labels(streams: tuple[Any, ...]) -> Any:
    """Return the axis labels that all streams agree on."""
    first, *others = [labels_of(stream) or {} for stream in streams]
    return {source: labels for source, labels in first.items()
            if all(other.get(source) == labels for other in others)} or None
