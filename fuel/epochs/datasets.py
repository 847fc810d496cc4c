"""The members that a data set may have: each is asked for here alone.

See :class:`~fuel.typing.DatasetLike` for those that it must have.
"""
from __future__ import annotations

from typing import Any

from fuel.describe.source_types import SourceTypes
from fuel.epochs.read_options import ReadOptions
from fuel.epochs.readers import RequestReader
from fuel.epochs.state import Unavailable
from fuel.schemes.iteration_scheme import num_examples_of
from fuel.schemes.requests import RequestIterator
from fuel.typing import DatasetLike, EpochReader
from fuel.utils.overrides import covers, defines_together


def known_length(dataset: object) -> int | None:
    """Return the number of examples, None if it is not known."""
    count = num_examples_of(dataset)
    return count if isinstance(count, int) else None


def types_in(dataset: DatasetLike) -> SourceTypes:
    """Return what is known of the examples of each source."""
    known: SourceTypes = getattr(dataset, 'known_types', dict)()
    return known


def takes_requests(dataset: object) -> bool | None:
    """Return whether a data set needs requests; None if it is not known.

    The class that overrides `get_data` says so.
    """
    if covers(dataset, 'takes_requests', ('get_data',)):
        known: bool | None = getattr(dataset, 'takes_requests', None)
        return known
    return None


def takes_positions(dataset: DatasetLike) -> bool:
    """Return whether a data set can be opened at a saved position."""
    return hasattr(dataset, 'open_at')


def position_in(dataset: Any, state: object) -> object:
    """Return the position that a data set's state has, or why it has none."""
    if state is None:
        return None
    if not (hasattr(dataset, 'get_position')
            and defines_together(type(dataset), 'open', 'get_position')):
        return Unavailable(TypeError(
            f'the position within the data set {type(dataset).__name__} '
            'cannot be saved as plain data: give the class the hooks '
            'get_position(state) and open_at(position), or pickle the '
            'epoch iterator instead'))
    return dataset.get_position(state)


def close_state(dataset: object, state: object) -> None:
    """Close a state of a data set, if there is something to close."""
    close = getattr(dataset, 'close', None)
    if close is not None:
        close(state)


def open_reader(dataset: DatasetLike, requests: RequestIterator | None,
                options: ReadOptions, state: object) -> EpochReader:
    """Return the reader of an epoch of a data set of any class."""
    open_epoch = getattr(dataset, 'open_epoch', None)
    reader: EpochReader = (
        RequestReader(dataset, requests, state) if open_epoch is None
        else open_epoch(requests, options, state))
    return reader
