"""Objects of Fuel as text."""
from __future__ import annotations

from typing import Any

from fuel.utils.arguments import is_dataset
from fuel.epochs.pipeline import length_of
from fuel.describe.pipeline import (
    Described, Source, dataset_stage, described, present,
    short)
from fuel.utils.arguments import safely
from fuel.describe.source_types import SourceType


def stream_text(stream: object) -> str:
    """Return a pipeline, one stage a line, each reading the next."""
    lines = [_line(stage) for stage in described(stream)]
    return '\n'.join(lines) or f'<{type(stream).__name__}>'


def dataset_text(dataset: object) -> str:
    """Return a data set in one line."""
    sources = safely('', _dataset_line, dataset)
    return f'<{type(dataset).__name__}{sources}>'


def _dataset_line(dataset: object) -> str:
    return ': ' + '; '.join(_parts(dataset_stage(dataset)))


def iterator_text(iterator: object) -> str:
    """Return an epoch iterator in one line: where it stands."""
    name = type(iterator).__name__
    return f'<{name}{safely("", _position, iterator)}>'


def _position(iterator: Any) -> str:
    stream, epoch = iterator.data_stream, iterator.epoch
    count = safely(None, length_of, stream)
    if getattr(epoch, 'has_own_requests', False):
        count = None
    examples = safely(None, present, stream, 'produces_examples')
    what = {True: 'example', False: 'batche'}.get(examples, 'item')
    where = f'{epoch.position} {what}s read'
    if count is not None:
        where = f'{epoch.position} of {count} {what}s read'
    end = ', at its end' if epoch.finished else ''
    return f': {where}{end}; {short(stream)}'


def _line(stage: Described) -> str:
    return '  ' * stage.depth + f'{stage.name}: ' + '; '.join(_parts(stage))


def _parts(stage: Described) -> list[str]:
    runs_in = f'in {stage.runs_in}'
    if stage.runs_in.startswith('server'):
        runs_in = f'from {stage.runs_in}'
    is_stream = not is_dataset(stage.subject)
    sources = ', '.join(map(source_text, stage.sources))
    return [part for part in (
        sources, stage.items, *stage.details,
        runs_in if is_stream else '') if part]


def source_text(source: Source) -> str:
    """Return name, type, shape and axes of a source, as far as known."""
    parts = [source.name, type_text(source.type)]
    if source.axes is not None:
        parts.append('[' + ', '.join(
            axis or '?' for axis in source.axes) + ']')
    return ' '.join(part for part in parts if part)


def type_text(known: SourceType | None) -> str:
    """Return type and shape of a source, '' where neither is known."""
    if known is None:
        return ''
    dtype = '' if known.dtype is None else str(known.dtype)
    if known.shape is None:
        return dtype
    lengths = ', '.join('?' if length is None else str(length)
                        for length in known.shape)
    comma = ',' if len(known.shape) == 1 else ''
    return f'{dtype} ({lengths}{comma})'.strip()
