"""Names of sources, as arguments of stages."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fuel.suggestions import did_you_mean
from fuel.typing import StreamLike
from fuel.utils.arguments import labels_in, try_call


def as_names(argument: str, names: object) -> tuple[str, ...]:
    """Return names of sources as a tuple."""
    if isinstance(names, str):
        raise ValueError(
            f'{argument} must be a tuple of names, got the string {names!r}: '
            f'write ({names!r},)')
    if not isinstance(names, Iterable):
        raise ValueError(
            f'{argument} must be a tuple of names, got {names!r} '
            f'({type(names).__name__})')
    return tuple(names)


def as_tuple_of_names(names: object) -> Any:
    """Return a bare string as a tuple of one name, other names unchanged."""
    return (names,) if isinstance(names, str) else names


def check_known(argument: str, names: Iterable[str],
                available: Iterable[str],
                error: type[Exception] = ValueError) -> None:
    """Raise an error for names of sources that a stream does not have."""
    available = tuple(available)
    for name in names:
        if name not in available:
            hint = did_you_mean(name, available, '{} ')
            raise error(
                f'{argument!r} asks for {name!r}, but the stream has no such '
                f'source: {hint}its sources are {available}')


def labels_of(data_stream: StreamLike) -> Any:
    """Return a copy of a stream's axis labels, for a stage that keeps them."""
    labels = labels_in(data_stream)
    return None if labels is None else {
        source: None if as_labels(part) is None else part
        for source, part in labels.items()}


def labels_of_batches(data_stream: StreamLike) -> Any:
    """Return the axis labels of batches made of a stream's examples."""
    labels = labels_of(data_stream)
    return None if labels is None else {
        source: None if part is None else ('batch', *(as_labels(part) or ()))
        for source, part in labels.items()}


def as_labels(labels: Sequence[str] | None) -> Any:
    """Return the labels of one source as a tuple; None if not known.

    A file without labels has an empty label for each axis; that means None.
    """
    if labels is None:
        return None
    found = (labels,) if isinstance(labels, str) else tuple(labels)
    return None if found and not any(found) else found


def item_of(stream: StreamLike, accepts: type = list) -> str:
    """Return a text about the items of a stream that a function gets."""
    item = try_call('item', lambda: 'example' if stream.produces_examples
                    else 'batch')
    names = try_call(tuple[str, ...](), lambda: tuple(stream.sources))
    if accepts is dict:
        return f'each {item}, a dict of {names}'
    return (f'each {item}, a tuple ({", ".join(map(str, names))}'
            f'{"," * (len(names) == 1)})')
