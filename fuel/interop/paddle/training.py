"""Train on a data provider: make passes, batches and columns of layers."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, TypeAlias

import numpy

from fuel.interop.paddle.providers import (
    Column,
    Passes,
    Provider,
    iterator_of,
)
from fuel.utils.checks import not_negative, positive
from fuel.utils.signatures import signature_of
from fuel.utils.sparse import require_plain

Entry: TypeAlias = Sequence[Column]
#: Names of layers in the order of the columns, or a dict from each layer to
#: the number of its column.
LayerMapping: TypeAlias = 'Sequence[str] | Mapping[str, int]'


def make_minibatch_generator(reader: Iterable[Entry], minibatch_size: int,
                             ) -> Iterator[list[Entry]]:
    """Yield the entries of an iterable in lists.

    Parameters
    ----------
    reader : iterable
        The result of a data provider: anything that a ``for`` loop takes.
    minibatch_size : int
        Number of entries in a list; the last may have fewer.

    Yields
    ------
    list

    Examples
    --------
    >>> list(make_minibatch_generator([[1], [2], [3]], 2))
    [[[1], [2]], [[3]]]
    """
    positive('minibatch_size', minibatch_size)
    entries = iterator_of(reader, 'reader must be an iterable, such as a '
                          'provider returns when it is called')
    while batch := list(islice(entries, minibatch_size)):
        yield batch


def minibatches(provider: Provider, batch_size: int,
                pass_index: int | None = None) -> Iterator[list[Entry]]:
    """Yield the entries of one pass in lists.

    Parameters
    ----------
    provider : callable
        Returns an iterable of entries. If the provider requires an argument,
        it is called with `pass_index`.
    batch_size : int
        Number of entries in a list; the last may have fewer.
    pass_index : int, optional
        Number of the pass.

    Yields
    ------
    list

    Examples
    --------
    >>> list(minibatches(lambda: [[1], [2], [3]], 2))
    [[[1], [2]], [[3]]]
    """
    positive('batch_size', batch_size)
    yield from make_minibatch_generator(
        Passes(_bound(provider, pass_index)), batch_size)


def train(provider: Provider, mapping: LayerMapping, batch_size: int,
          total_pass: int,
          step: Callable[[list[Entry], dict[str, int]], object]) -> None:
    """Train on the entries of a data provider.

    Parameters
    ----------
    provider : callable
        Returns the entries of a pass, each a list of columns. If it is
        endless, the first pass does not end. If the provider requires an
        argument, it is called with the number of the pass.
    mapping : list of str or dict of str to int
        The layers in the order of their columns, or a dict from each layer
        to the number of its column.
    batch_size : int
        Number of entries in a batch; the last of a pass may have fewer.
    total_pass : int
        Number of passes to make.
    step : callable
        Called with each batch: a list of entries, and a dict from each layer
        to the number of its column. :func:`to_feed` makes arrays of these
        arguments.

    Raises
    ------
    ValueError
        If a layer has no column, or `mapping` is a list and an entry has
        another number of columns.

    Examples
    --------
    >>> def provider():
    ...     yield [0.5, 1]
    ...     yield [0.25, 0]
    >>> def step(batch, mapping):
    ...     print(to_feed(batch, mapping)['label'])
    >>> train(provider, ['image', 'label'], 2, 2, step)
    [1 0]
    [1 0]
    """
    columns = as_columns(mapping)
    for pass_index in range(not_negative('total_pass', total_pass)):
        for batch in minibatches(provider, batch_size, pass_index):
            _check_columns(batch, mapping, columns)
            step(batch, columns)


def to_feed(batch: Sequence[Entry], mapping: LayerMapping) -> dict[str, Any]:
    """Return the columns of a batch under the names of their layers.

    Parameters
    ----------
    batch : list of list
        Entries.
    mapping : list of str or dict of str to int
        See :func:`train`.

    Returns
    -------
    dict
        The data of each layer. Integers become an array of shape (batch,),
        arrays of one shape an array of shape (batch, size). Sequences of
        different lengths stay a list.

    Examples
    --------
    >>> feed = to_feed([[[1, 2], 7], [[3], 8]], ['words', 'label'])
    >>> feed['words'], feed['label']
    ([[1, 2], [3]], array([7, 8]))
    """
    columns = as_columns(mapping)
    _check_columns(batch, mapping, columns)
    feed = {}
    for layer, column in columns.items():
        parts = [entry[column] for entry in batch]
        for part in parts:
            require_plain(part, layer, 'to_feed')
        is_ragged = len({numpy.shape(part) for part in parts}) > 1
        feed[layer] = parts if is_ragged else numpy.array(parts)
    return feed


def as_columns(mapping: LayerMapping) -> dict[str, int]:
    """Check a mapping; return a dict from layers to their column numbers."""
    if isinstance(mapping, str) or not mapping:
        raise ValueError(
            'mapping must be a list with the layer of each column, or a dict '
            f'from layers to numbers of columns, got {mapping!r}')
    if isinstance(mapping, Mapping):
        return {layer: not_negative(f'the column of {layer!r}', column)
                for layer, column in mapping.items()}
    if len(set(mapping)) < len(mapping):
        raise ValueError(f'mapping names a layer twice: {list(mapping)}')
    return {layer: column for column, layer in enumerate(mapping)}


def _check_columns(batch: Sequence[Entry], mapping: LayerMapping,
                   columns: dict[str, int]) -> None:
    """Raise ValueError if an entry does not have the columns of `mapping`."""
    for entry in batch:
        count = len(entry) if isinstance(entry, (list, tuple)) else None
        if count is None or count <= max(columns.values()) or (
                not isinstance(mapping, Mapping) and count != len(columns)):
            raise ValueError(
                f'mapping has the columns of {columns}, but an entry has '
                f'{count} of them: {entry!r:.200}')


def _bound(provider: Provider, pass_index: int | None) -> Provider:
    """Return a provider without arguments.

    If the provider requires an argument, it gets the number of the pass. A
    parameter with a default is left alone: it has another purpose, such as
    the path in ``lambda path=path: ...``.
    """
    if pass_index is None or not callable(provider):
        return provider
    try:
        signature = signature_of(provider)
    except (TypeError, ValueError):
        return provider
    with suppress(TypeError):
        signature.bind()
        return provider
    with suppress(TypeError):
        signature.bind(pass_index)
        takes_index: Callable[[int], Any] = (
            provider)  # type: ignore[assignment]
        return lambda: takes_index(pass_index)
    return provider
