"""Describe each stage of a pipeline, without reading data."""
from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from operator import methodcaller
from typing import Any, NamedTuple

from fuel.describe.source_types import SourceType, SourceTypes, types_of
from fuel.epochs.pipeline import child_streams, length_of
from fuel.epochs.stage import stage_of
from fuel.schemes.iteration_scheme import batch_size_of
from fuel.utils.arguments import is_dataset, one_line, try_call
from fuel.utils.printing import printable

# Most stages that are described: a pipeline may read itself.
MOST_STAGES = 100
HERE = 'this process'

_TYPES = ('known_types', 'type_after', 'keeps')
_MAKERS = (
    'get_data', 'transform_example', 'transform_batch', 'transform_any',
    'transform_source_example', 'transform_source_batch',
    'transform_any_source')


class DescribedSource(NamedTuple):
    """A source: its name, type and the names of its axes."""

    name: str
    type: SourceType | None
    axes: tuple[str, ...] | None


class Described(NamedTuple):
    """The description of a stage, or a data set, of a pipeline.

    `number`: place of the stage in the list of all stages.
    `parent`: number of the stage that reads this stage; None for the
        outermost stage.
    `depth`: number of stages downstream of this stage.
    `items`: text about the items: kind, number, and size of batches.
    `runs_in`: text that says where the stage runs: in this process, in
        threads, in workers or on a server.
    `details`: further facts, as texts.
    `subject`: the stage or data set itself.
    """

    number: int
    parent: int | None
    depth: int
    name: str
    sources: list[DescribedSource]
    items: str
    runs_in: str
    details: list[str]
    subject: Any


def try_method(owner: object, name: str, default: object = None) -> Any:
    """Return what a method returns, or a default if it raises."""
    return try_call(default, methodcaller(name), owner)


def described(stream: object) -> list[Described]:
    """Return descriptions of the stages of a stream, outermost first."""
    found: list[Described] = []
    try_call(None, _describe, stream, None, 0, HERE, found)
    return found


def _describe(stream: Any, parent: int | None, depth: int, runs_in: str,
              found: list[Described]) -> None:
    if len(found) >= MOST_STAGES:
        return
    number = len(found)
    scheme = try_call(None, getattr, stream, 'iteration_scheme')
    here = try_call(None, getattr, stream, 'runs_in') or runs_in
    found.append(Described(
        number, parent, depth, stage_name(stream),
        try_call([], _sources, stream), items_text(stream), here,
        [] if scheme is None else [one_line(scheme)], stream))
    # The stages upstream of a stage of workers or threads run there as well.
    inside = here if here.endswith(
        ('worker', 'workers', 'thread', 'threads')) else runs_in
    for child in try_call(list[Any](), child_streams, stream):
        _describe(child, number, depth + 1, inside, found)
    dataset = try_call(None, lambda: vars(stream).get('dataset'))
    if dataset is not None:
        found.append(dataset_stage(
            dataset, len(found), number, depth + 1, inside))


def stage_name(stream: object) -> str:
    """Return the class name of a stage, and the name of any function."""
    function = try_call(None, lambda: vars(stream).get('mapping'))
    if isinstance(function, partial):
        function = function.func
    name = getattr(function, '__name__', None)
    return type(stream).__name__ + (f'({name})' if name else '')


def dataset_stage(dataset: object, number: int = 0,
                  parent: int | None = None, depth: int = 0,
                  runs_in: str = '') -> Described:
    """Return the description of a data set."""
    count = try_method(dataset, 'known_length')
    return Described(
        number, parent, depth, type(dataset).__name__,
        try_call([], _sources, dataset),
        'examples' if count is None else f'{count} examples', runs_in,
        list(map(str, try_method(dataset, 'details', ()))), dataset)


def _sources(owner: object) -> list[DescribedSource]:
    types: SourceTypes = {}
    if _is_known(type(owner)):
        types = try_call({}, types_of, owner)
    labels = try_call(None, present, owner, 'axis_labels') or {}
    of_examples = is_dataset(owner)
    found = []
    for name in getattr(owner, 'sources', ()):
        axes = try_call(None, _axes, labels, name)
        if axes and of_examples and axes[0] == 'batch':
            axes = axes[1:]
        found.append(DescribedSource(str(name), types.get(name), axes))
    return found


def _is_known(cls: type) -> bool:
    """Return whether a class declares the types of the data that it makes.

    The inherited types may be wrong if a class overrides a method that makes
    data, but does not override a method that declares types.
    """
    for base in cls.__mro__:
        if not vars(base).keys().isdisjoint(_TYPES):
            return True
        if not vars(base).keys().isdisjoint(_MAKERS):
            return False
    return False


def _axes(by_source: Mapping[str, Any], source: str) -> tuple[str, ...] | None:
    labels = by_source[source]
    if labels is None:
        return None
    names = (labels,) if isinstance(labels, str) else tuple(labels)
    return names if any(names) else None


def present(owner: object, name: str) -> Any:
    """Return an attribute; None if only a server knows its value."""
    if name in getattr(type(owner), 'remote_attributes', ()):
        return vars(owner).get(f'_{name}')
    return getattr(owner, name)


def batch_size(stream: Any) -> int | None:
    """Return the number of examples in a batch; None if it is unknown."""
    while stream is not None:
        stage = stage_of(stream)
        size = batch_size_of(
            try_call(None, getattr, stream, 'iteration_scheme'))
        if size is not None:
            return size
        children = try_call(list[Any](), child_streams, stream)
        stream = children[0] if children and (
            stage.passes_items_on or stage.keeps_rows) else None
    return None


def items_text(stream: object) -> str:
    """Return a text about a stream's items: their number and kind."""
    examples = try_call(None, present, stream, 'produces_examples')
    count = try_call(None, length_of, stream)
    number = '' if count is None else f'{count} '
    if examples:
        return f'{number}examples'
    if examples is None:
        return f'{number}items'
    size = batch_size(stream)
    return f'{number}batches' + ('' if size is None else f' of {size}')


def short(subject: object) -> str:
    """Return the short form of a stream or a data set, for errors.

    Examples
    --------
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.streams import DataStream
    >>> from fuel.transformers import Cast
    >>> short(Cast(DataStream(IndexableDataset([1]), batch_size=1), 'f4'))
    'Cast(DataStream(IndexableDataset))'
    """
    return try_call(type(subject).__name__, _nested, subject, MOST_STAGES)


def _nested(subject: object, depth: int) -> str:
    name = type(subject).__name__
    inner = child_streams(subject)
    dataset = vars(subject).get('dataset')
    if dataset is not None:
        inner = [dataset]
    if not inner or not depth:
        return name
    return f'{name}({", ".join(_nested(one, depth - 1) for one in inner)})'


def stream_text(stream: object) -> str:
    """Return a description of a pipeline, with a line for each stage."""
    lines = ['  ' * stage.depth + f'{stage.name}: {_text(stage)}'
             for stage in described(stream)]
    return '\n'.join(lines) or f'<{type(stream).__name__}>'


def dataset_text(dataset: object) -> str:
    """Return a description of a data set in one line."""
    known = try_call('', lambda: f': {_text(dataset_stage(dataset))}')
    return f'<{type(dataset).__name__}{known}>'


def iterator_text(iterator: object) -> str:
    """Return the position of an epoch iterator as a line of text."""
    name = type(iterator).__name__
    return f'<{name}{try_call("", _position, iterator)}>'


def _position(iterator: Any) -> str:
    stream, epoch = iterator.data_stream, iterator.epoch
    count = try_call(None, length_of, stream)
    if getattr(epoch, 'has_own_requests', False):
        count = None
    examples = try_call(None, present, stream, 'produces_examples')
    what = {True: 'example', False: 'batche'}.get(examples, 'item')
    total = '' if count is None else f' of {count}'
    end = ', at its end' if epoch.finished else ''
    return f': {epoch.position}{total} {what}s read{end}; {short(stream)}'


def _text(stage: Described) -> str:
    runs_in = f'in {stage.runs_in}'
    if stage.runs_in.startswith('server'):
        runs_in = f'from {stage.runs_in}'
    sources = ', '.join(map(source_text, stage.sources))
    return printable('; '.join(filter(None, (
        sources, stage.items, *stage.details,
        '' if is_dataset(stage.subject) else runs_in))))


def source_text(source: DescribedSource) -> str:
    """Return the known facts of a source: name, type, shape and axes."""
    parts = [source.name, type_text(source.type)]
    if source.axes:
        parts.append('[' + ', '.join(
            axis or '?' for axis in source.axes) + ']')
    return ' '.join(part for part in parts if part)


def type_text(known: SourceType | None) -> str:
    """Return the type and shape of a source; '' if neither is known."""
    if known is None:
        return ''
    dtype = '' if known.dtype is None else str(known.dtype)
    if known.is_sparse:
        dtype = f'sparse {dtype}'.strip()
    if known.shape is None:
        return dtype
    lengths = ', '.join('?' if length is None else str(length)
                        for length in known.shape)
    comma = ',' if len(known.shape) == 1 else ''
    return f'{dtype} ({lengths}{comma})'.strip()
