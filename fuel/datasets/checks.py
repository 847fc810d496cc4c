"""Checks of data sets and of the names of their sources."""
from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fuel.epochs.readers import takes_requests
from fuel.exceptions import NotAStreamError
from fuel.suggestions import did_you_mean
from fuel.utils.arguments import is_dataset
from fuel.utils.checks import in_order
from fuel.utils.other_libraries import (
    class_for, is_labelled, is_table, short_repr)


def is_sequential(dataset: object) -> bool | None:
    """Return whether a data set is read in order; None if not known."""
    known = takes_requests(dataset)
    if known is not None:
        return not known
    missing = object()
    scheme = getattr(dataset, 'example_iteration_scheme', missing)
    return None if scheme is missing else scheme is None


def refuse_dataset(stream: object, reader: str) -> None:
    """Raise NotAStreamError if a function got a data set, not a stream.

    `reader`: name of the function.
    """
    if is_dataset(stream):
        raise _not_a_stream(stream, reader)


def not_a_stream(dataset: object) -> NotAStreamError:
    """Return the error that a stage got a data set, not a stream.

    The name of the stage is found in the calling frames.
    """
    frame = sys._getframe(1)
    stage: Any = None
    while frame.f_back is not None and not hasattr(
            type(stage), 'epoch_attributes'):
        frame = frame.f_back
        stage = frame.f_locals.get('self')
    return _not_a_stream(dataset, type(stage).__name__ if hasattr(
        type(stage), 'epoch_attributes') else 'a stage')


def _not_a_stream(dataset: object, reader: str) -> NotAStreamError:
    name = type(dataset).__name__
    return NotAStreamError(
        f'{reader} reads a stream, and {name} is a data set: put a stream '
        f'between them, DataStream({name}(...), batch_size=128), or '
        'iteration_scheme=...')


def refuse_unknown_sources(sources: Sequence[str],
                           provided: Sequence[str]) -> None:
    """Refuse names of sources that are not provided."""
    if isinstance(sources, str):
        raise ValueError(
            f'sources must be a tuple of names, got the string {sources!r}: '
            f'write ({sources!r},)')
    in_order('sources', sources)
    if not sources:
        raise ValueError('sources must name at least one source, got '
                         f'{sources!r}; available are {tuple(provided)}')
    for source in sources:
        if source not in provided:
            hint = did_you_mean(source, provided, '{} ')
            raise ValueError(
                f'there is no source {source!r}: {hint}available are '
                f'{tuple(provided)}')


def as_named(collections: Any) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the names of sources and their data.

    `collections`: a dict from names to data, or the data of one source, which
        gets the name 'data'.
    """
    if isinstance(collections, Mapping):
        names, parts = tuple(collections), list(collections.values())
    else:
        names, parts = ('data',), [collections]
    for name, part in zip(names, parts, strict=True):
        if is_table(part):
            raise TypeError(
                f'source {name!r} is {short_repr(part)}, which is not indexed '
                f'by numbers of rows: {class_for(part)}')
    return names, parts


def refuse_labels(names: Iterable[str], parts: Iterable[object]) -> None:
    """Raise a TypeError for a Series of pandas whose labels are not the
    numbers of its rows."""
    for name, part in zip(names, parts, strict=True):
        if is_labelled(part):
            raise TypeError(
                f'source {name!r} is a Series, whose rows are taken by the '
                f'labels of its index, and these are not 0, 1, 2 and so on: '
                f'pass series.to_numpy(), or series.reset_index(drop=True)')


def refuse_paths(dataset: object, name: str) -> None:
    """Raise TypeError if a file is given instead of a data set."""
    if isinstance(dataset, (str, os.PathLike)):
        raise TypeError(
            f'{name} needs a data set, got {dataset!r}: open the file first, '
            f'as in {name}(fuel.load({os.fspath(dataset)!r}), ...)')
