"""Decorators of readers, implemented as stages of Fuel.

A reader is a function without arguments that returns an iterable of entries.
A decorated reader reads a stream with a single source. So several decorators
make one pipeline, whose position can be saved.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fuel.datasets import IterableDataset
from fuel.interop.paddle.providers import (
    Passes,
    Provider,
    StreamProvider,
    StreamReader,
    as_entry,
)
from fuel.schemes import ConstantScheme
from fuel.streams import DataStream
from fuel.transformers import (
    Batch,
    Chain,
    Mapping,
    Merge,
    MultiProcessing,
    Take,
    Transformer,
)
from fuel.transformers.shuffling import ShuffleBuffer
from fuel.typing import StreamLike
from fuel.utils.checks import positive

SOURCE = 'entry'


def map_readers(func: Callable[..., Any], *readers: Provider) -> StreamReader:
    """Return a reader that applies a function to the entries of readers.

    Parameters
    ----------
    func : callable
        Takes an entry of each reader, and returns an entry.
    *readers : callable
        Readers that are read in parallel, up to the end of the shortest.

    Returns
    -------
    callable

    Examples
    --------
    >>> list(map_readers(max, lambda: [1, 5], lambda: [3, 4])())
    [3, 5]
    """
    return StreamReader(_mapped(_side_by_side(readers, False), Apply(func)))


def shuffle(reader: Provider, buf_size: int,
            seed: int | None = None) -> StreamReader:
    """Return a reader that shuffles entries through a buffer.

    Parameters
    ----------
    reader : callable
    buf_size : int
        Number of entries in the buffer; see
        :class:`~fuel.transformers.shuffling.ShuffleBuffer`.
    seed : int, optional
        Defaults to ``config.default_seed``. Each pass has another order.

    Returns
    -------
    callable

    Examples
    --------
    >>> sorted(shuffle(lambda: range(5), 3)())
    [0, 1, 2, 3, 4]
    """
    return StreamReader(ShuffleBuffer(
        stream_of(reader), positive('buf_size', buf_size), seed=seed))


def chain(*readers: Provider) -> StreamReader:
    """Return a reader that reads several readers one after the other.

    Parameters
    ----------
    *readers : callable

    Returns
    -------
    callable

    Examples
    --------
    >>> list(chain(lambda: [1, 2], lambda: [3])())
    [1, 2, 3]
    """
    return StreamReader(Chain([stream_of(reader) for reader in readers]))


def compose(*readers: Provider, check_alignment: bool = True,
            ) -> StreamReader:
    """Return a reader whose entries have the columns of several readers.

    Parameters
    ----------
    *readers : callable
        Readers that are read in parallel. A tuple is an entry with several
        columns; any other entry is one column.
    check_alignment : bool, optional
        Whether readers of different lengths raise ValueError. Defaults to
        True. If False, the pass ends with the shortest reader.

    Returns
    -------
    callable

    Examples
    --------
    >>> list(compose(lambda: [(1, 2), (3, 4)], lambda: 'ab')())
    [(1, 2, 'a'), (3, 4, 'b')]
    """
    return StreamReader(_mapped(
        _side_by_side(readers, check_alignment), join_columns))


def firstn(reader: Provider, n: int) -> StreamReader:
    """Return a reader of the first `n` entries of a reader.

    Parameters
    ----------
    reader : callable
        A reader, which may be endless.
    n : int
        Number of entries.

    Returns
    -------
    callable

    Examples
    --------
    >>> list(firstn(lambda: range(100), 3)())
    [0, 1, 2]
    """
    return StreamReader(Take(stream_of(reader), n))


def buffered(reader: Provider, size: int) -> StreamReader:
    """Return a reader that prefetches entries in another process.

    Parameters
    ----------
    reader : callable
    size : int
        Number of entries that may be prefetched; see
        :class:`~fuel.transformers.MultiProcessing`.

    Returns
    -------
    callable
        Its method ``close`` ends the process.

    Examples
    --------
    >>> reader = buffered(lambda: range(4), 2)
    >>> list(reader())
    [0, 1, 2, 3]
    >>> reader.close()
    """
    return StreamReader(MultiProcessing(
        stream_of(reader), positive('size', size)))


def batch(reader: Provider, batch_size: int,
          drop_last: bool = False) -> StreamReader:
    """Return a reader of lists of entries.

    Parameters
    ----------
    reader : callable
    batch_size : int
        Number of entries in a list.
    drop_last : bool, optional
        Whether to leave out a last list with fewer entries. Defaults to
        False.

    Returns
    -------
    callable

    Examples
    --------
    >>> list(batch(lambda: range(5), 2)())
    [[0, 1], [2, 3], [4]]
    """
    batches = Batch(
        _mapped(stream_of(reader), Entry), ConstantScheme(
            positive('batch_size', batch_size)), strictness=int(drop_last))
    return StreamReader(EntryLists(batches))


def stream_of(reader: Provider) -> StreamLike:
    """Return the stream of the entries of a reader."""
    if isinstance(reader, StreamProvider):
        return _mapped(reader.stream, AsEntry(reader.sources))
    if isinstance(reader, StreamReader):
        stream: StreamLike = reader.stream
        return stream
    return DataStream(IterableDataset({SOURCE: Passes(reader)}))


def _mapped(stream: StreamLike, function: Callable[..., Any]) -> Mapping:
    """Return a stream with one source: the results of a function."""
    stage = Mapping(stream, One(function))
    stage.sources = (SOURCE,)
    return stage


def _side_by_side(readers: tuple[Provider, ...], strict: bool) -> StreamLike:
    streams = [stream_of(reader) for reader in readers]
    if len(streams) == 1:
        return streams[0]
    return Merge(streams, [f'{SOURCE}_{place}' for place in range(
        len(streams))], strict=strict)


class One:
    """Wraps a function of entries for a stage, whose items are tuples."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, data: tuple[Any, ...]) -> tuple[Any]:
        """Return the function's result for the entries, in a tuple."""
        return (self.function(*data),)


class Apply(One):
    """Wraps a user's function, whose result is an entry."""

    def __call__(self, *entries: Any) -> Any:
        """Return the function's result for the entries."""
        return self.function(*entries)


class AsEntry:
    """Makes an entry from the data of several sources."""

    def __init__(self, sources: tuple[str, ...]) -> None:
        self.sources = sources

    def __call__(self, *data: Any) -> list[Any]:
        """Return the data as a list of columns."""
        return as_entry(self.sources, data)


class Entry:
    """Wraps an entry, so that a batch keeps it unchanged."""

    def __init__(self, entry: object) -> None:
        self.entry = entry


class EntryLists(Transformer):
    """Turns each batch of entries into one entry: a list of the entries."""

    def __init__(self, data_stream: StreamLike) -> None:
        super().__init__(data_stream, produces_examples=True)

    def get_data(self, request: object = None) -> tuple[list[Any]]:
        """Return the next batch as a list."""
        self._refuse(request)
        entries, = self._pull()
        return ([each.entry for each in entries],)

    def get_leftover(self) -> None:
        """Return None: this stage keeps no entries between batches."""


def join_columns(*entries: Any) -> tuple[Any, ...]:
    """Return the columns of several entries as one tuple."""
    return tuple([column for entry in entries for column in (
        entry if isinstance(entry, tuple) else (entry,))])
