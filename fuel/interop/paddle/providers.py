"""Data providers: functions that return the entries of a pass."""
from __future__ import annotations

import importlib
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy
from numpy.typing import NDArray

from fuel.datasets import Dataset, IterableDataset
from fuel.datasets.iterable import imap
from fuel.datasets.options import DatasetOptions
from fuel.transformers import Unpack
from fuel.typing import State, StreamLike
from fuel.utils.checks import as_regular, in_order, not_negative
from fuel.utils.sparse import require_plain

#: Returns the entries of a pass, each a list of columns.
Provider: TypeAlias = Callable[[], Iterable[Any]]
#: One column of an entry: an array, a list of integers or an integer.
Column: TypeAlias = NDArray[Any] | list[int] | int


class StreamReader:
    """A reader over a stream: each call returns the entries of the next pass.

    `stream`: a stream with one source, which has the entries.
    """

    def __init__(self, stream: StreamLike) -> None:
        self.stream: Any = stream

    def __call__(self) -> Iterator[Any]:
        """Return the entries of the next pass."""
        for entry, in self.stream.get_epoch_iterator():
            yield entry

    def state_dict(self) -> State:
        """Return the state of the present pass, as plain data."""
        state: State = self.stream.state_dict()
        return state

    def load_state_dict(self, state: State, **kwargs: Any) -> None:
        """Make the next call resume from a state.

        `kwargs`: further arguments of the stream, such as `accept`.
        """
        self.stream.load_state_dict(state, **kwargs)

    def close(self) -> None:
        """Stop the background workers."""
        self.stream.close()


class StreamProvider(StreamReader):
    """The examples of a stream as entries; see :func:`as_provider`."""

    def __init__(self, stream: StreamLike) -> None:
        super().__init__(
            stream if stream.produces_examples else Unpack(stream))

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the columns, in order (tuple of str)."""
        return tuple(self.stream.sources)

    def __call__(self, pass_index: int | None = None) -> Iterator[list[Any]]:
        """Return the entries of the next epoch of the stream.

        Parameters
        ----------
        pass_index : int, optional
            Has no effect. It is accepted since some training loops pass it.
        """
        sources = self.sources
        for example in self.stream.get_epoch_iterator():
            yield as_entry(sources, example)

    def __repr__(self) -> str:
        return (f'<{type(self).__name__} of {self.sources} over '
                f'{type(self.stream).__name__}>')


def as_provider(stream: StreamLike) -> StreamProvider:
    """Return a stream as a data provider.

    Parameters
    ----------
    stream : AbstractDataStream
        A stream of examples or of batches, which are unpacked.

    Returns
    -------
    callable
        Each call is a pass: it returns the entries of the next epoch. An
        entry is a list with a column for each source. A column is a float32
        array of one dimension, an integer, or a list of integers.

    Notes
    -----
    Floating-point data become float32 arrays of one dimension. An integer,
    or an array of one integer, becomes an integer. A list of integers, or an
    array of several integers, becomes a list. An array of integers with two
    or more axes, such as pixels, becomes a float32 array. Other data raise an
    error when an entry is read.

    Examples
    --------
    >>> import numpy
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import SequentialScheme
    >>> from fuel.streams import DataStream
    >>> dataset = IndexableDataset({
    ...     'image': numpy.ones((3, 2, 2), 'uint8'),
    ...     'label': numpy.array([[7], [8], [9]])})
    >>> provider = as_provider(DataStream(
    ...     dataset, iteration_scheme=SequentialScheme(3, 2)))
    >>> for image, label in provider():
    ...     print(image, label)
    [1. 1. 1. 1.] 7
    [1. 1. 1. 1.] 8
    [1. 1. 1. 1.] 9
    """
    return StreamProvider(stream)


def as_iterable(stream: StreamLike | StreamProvider) -> Any:
    """Return a stream as an ``IterableDataset`` of PaddlePaddle.

    Parameters
    ----------
    stream : AbstractDataStream or callable
        A stream, or a result of :func:`as_provider`.

    Returns
    -------
    paddle.io.IterableDataset
        A data set whose items are entries. The workers of a ``DataLoader``
        share the entries, so each entry comes once. Workers start again for
        each pass and do not know the number of the pass: call
        ``set_pass(number)`` of the data set before each pass.

    Raises
    ------
    ImportError
        If PaddlePaddle is not installed.
    """
    io: Any
    try:
        io = importlib.import_module('paddle.io')
    except ModuleNotFoundError as error:
        raise ImportError(
            'paddle.io is a part of PaddlePaddle, which is not installed: '
            'pip install paddlepaddle') from error
    provider = stream if isinstance(stream, StreamProvider) else (
        as_provider(stream))

    base: Any = io.IterableDataset

    class Entries(base):  # type: ignore[misc]
        """The entries of a stream, divided among workers."""

        def __init__(self) -> None:
            super().__init__()
            self.provider = provider
            self.number = 0

        def set_pass(self, number: int) -> None:
            """Set the number, from 0, of the next pass of the workers."""
            self.number = not_negative('number', number)

        def __iter__(self) -> Iterator[list[Any]]:
            info = io.get_worker_info()
            if info is None:
                return provider()
            # A worker lives for one pass: skip the epochs of earlier passes.
            for _ in range(self.number):
                provider.stream.get_epoch_iterator()
            return islice(provider(), info.id, None, info.num_workers)

    return Entries()


def as_entry(sources: Sequence[str], example: Iterable[Any]) -> list[Column]:
    """Return an example as a list of columns."""
    return [_as_column(source, part)
            for source, part in zip(sources, example, strict=True)]


def _as_column(source: str, part: object) -> Column:
    """Return the data of a source as a column."""
    require_plain(part, source, 'as_provider')
    if isinstance(part, (list, tuple)) and not len(part):
        return []
    try:
        array = as_regular(part)
    except ValueError:
        # Rows of different lengths.
        array = numpy.empty((), object)
    if array.dtype.kind == 'f' or (
            array.dtype.kind in 'iub' and array.ndim > 1):
        return array.astype(numpy.float32, copy=False).ravel()
    if array.dtype.kind not in 'iub':
        raise TypeError(
            f'source {source!r} is not a column for Paddle: expected numbers, '
            f'got {part!r:.80} ({array.dtype}): leave it out with '
            'FilterSources, or encode it')
    if array.size == 1 and not isinstance(part, (list, tuple)):
        return int(array.ravel()[0])
    numbers: list[int] = array.tolist()
    return numbers


def iterator_of(entries: Iterable[Any], expected: str) -> Iterator[Any]:
    """Return an iterator over any object that a ``for`` loop accepts.

    The object may have only ``__getitem__``.

    `expected`: beginning of the text of the error for other objects.
    """
    try:
        return iter(entries)
    except TypeError as error:
        raise TypeError(f'{expected}, got {entries!r:.100}') from error


class Passes:
    """An iterable that calls a provider for each pass."""

    def __init__(self, provider: Provider) -> None:
        if not callable(provider):
            raise TypeError(
                'a data provider is a function without arguments that returns '
                f'an iterable, got {provider!r:.100} '
                f'({type(provider).__name__}): write lambda: ...')
        self.provider = provider
        self._last: Any = None

    def __iter__(self) -> Iterator[Any]:
        entries = self.provider()
        iterator = iterator_of(
            entries, 'a data provider must return an iterable, but of '
            f'{self.provider!r:.100} came another object')
        if iterator is entries and entries is self._last:
            raise ValueError(
                f'the data provider {self.provider!r:.100} returned the '
                'iterator that an earlier pass has read: it must make a new '
                'one at each call')
        self._last = entries
        return iterator

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_last': None}


class ProviderDataset(IterableDataset):
    """The entries of a data provider as a data set.

    Parameters
    ----------
    provider : callable
        A function without arguments that returns an iterable of entries, each
        a list of columns. It is called once per epoch.
    names : tuple of str
        Names of the sources, one for each column.
    sources, axis_labels
        Arguments of :class:`~fuel.datasets.Dataset`, `sources` and
        `axis_labels`.

    Raises
    ------
    TypeError
        If the provider cannot be called, or does not return an iterable.
    ValueError
        If an entry has more or fewer columns than there are names, or the
        provider returns an iterator that was read before.

    Notes
    -----
    The data set is read in order, and may be endless. A state holds the
    number of entries read. Resuming reads that number of entries again,
    without transforming them, and requires that the provider returns the same
    entries.

    Examples
    --------
    >>> def provider():
    ...     for number in range(3):
    ...         yield [number ** 2, number]
    >>> from fuel.streams import DataStream
    >>> stream = DataStream(ProviderDataset(provider, ('square', 'root')))
    >>> list(stream.get_epoch_iterator())
    [(0, 0), (1, 1), (4, 2)]
    """

    def __init__(self, provider: Provider, names: Sequence[str],
                 **kwargs: typing.Unpack[DatasetOptions]) -> None:
        if isinstance(names, str) or not names:
            raise ValueError('names must be a tuple with a name for each '
                             f'column, got {names!r}')
        in_order('names', names)
        self.provides_sources = tuple(names)
        self.iterables = [Passes(provider)]
        Dataset.__init__(self, **kwargs)

    def get_data(self, state: object = None, request: object = None) -> Any:
        """Return the columns of the next entry.

        See :meth:`~fuel.datasets.IterableDataset.get_data`.
        """
        if not isinstance(state, imap) or request is not None:
            return super().get_data(state, request)
        entry, = next(state)
        if not isinstance(entry, (list, tuple)) or len(entry) != len(
                self.provides_sources):
            raise ValueError(
                f'entry {state.position - 1} of the data provider must be a '
                f'list of the columns {self.provides_sources}, got '
                f'{entry!r:.200}')
        return self.filter_sources(entry)
