"""Check what a stream promises to the program that iterates over it."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, Protocol

import numpy

from fuel.epochs.stage import stage_of
from fuel.iterator import DataIterator
from fuel.streams import AbstractDataStream, DataStream
from fuel.testing.replay import ReplayProcess, StreamCase, replaying, up_to_end
from fuel.testing.data import (
    Frozen,
    arrays_in,
    freeze,
    freeze_all,
    overwrite,
)
from fuel.testing.promises import Promises, expect, expect_builder, keep
from fuel.testing.resuming import RESUMING_PROMISES
from fuel.transformers import Transformer
from fuel.typing import StreamLike
from fuel.utils.sparse import count_rows, is_sparse


def check_stream(build: Callable[[], StreamLike], *,
                 promises: Iterable[str] | None = None,
                 draws: bool = False,
                 another_process: ReplayProcess | bool = True) -> None:
    """Check that a stream keeps what Fuel promises of every stream.

    Parameters
    ----------
    build : callable
        Makes a new stream.  All streams that it makes are equal: same data,
        same seeds.  An epoch has at least two items.  Ten items are a good
        number: the checks read an epoch a few hundred times.
    promises : iterable of str, optional
        Keys of :data:`STREAM_PROMISES`.  Defaults to all.
    draws : bool, optional
        Whether a stage draws random numbers while an epoch runs, from one
        generator for all epochs.  Two epochs that run at the same time then
        share the generator.  If True, the checks do not test whether such
        epochs interfere.  Defaults to False.
    another_process : bool or ReplayProcess, optional
        The process that resumes from saved positions.  Defaults to True: a
        new process, for which `build` must pickle.  A :class:`ReplayProcess`
        serves several checks.  False: this process.

    Raises
    ------
    BrokenPromiseError
        If a promise is broken; the text names it.

    Examples
    --------
    >>> from functools import partial
    >>> from fuel.datasets import IndexableDataset
    >>> from fuel.schemes import ShuffledScheme
    >>> from fuel.streams import DataStream
    >>> from fuel.transformers import Mapping
    >>> def build():
    ...     return DataStream(IndexableDataset(list(range(7))),
    ...                       iteration_scheme=ShuffledScheme(7, 2))
    >>> check_stream(build, another_process=False)
    >>> kept = []
    >>> def keep(batch):
    ...     kept.append(batch)
    ...     return kept[0]
    >>> check_stream(lambda: Mapping(build(), keep), promises=['ownership'])
    ... # doctest: +ELLIPSIS
    Traceback (most recent call last):
    fuel.testing.promises.BrokenPromiseError: ownership: An item can be ...
    """
    expect_builder(build, 'stream')
    with replaying(another_process) as replay:
        keep(STREAM_PROMISES, promises, StreamCase(build, draws, replay))


class Built(Protocol):
    """An object with a function that makes the stream to check."""

    @property
    def build(self) -> Callable[[], Any]:
        """Function that makes a new stream (callable)."""


def _expect_parts(place: int, data: object, sources: tuple[str, ...]) -> None:
    """Raise an error if an item is neither a tuple nor a list."""
    expect(isinstance(data, (tuple, list)),
           f'Item {place} is of {type(data).__name__}: return a tuple '
           f'with one part for each of {sources}.')


def check_parts(case: Built) -> None:
    """An item is a tuple with one part for each source of the stage."""
    stage: Any = case.build()
    sources = tuple(stage.sources)
    for place, data in enumerate(up_to_end(stage.get_epoch_iterator())):
        _expect_parts(place, data, sources)
        expect(len(data) == len(sources),
               f'The stage gives {len(data)} parts for {len(sources)} '
               f'sources, {sources}, in item {place}: return one for each, '
               'or set sources to the names of those that come.')


def check_items(case: StreamCase) -> None:
    """Each item has one part for each source, equally long in a batch."""
    with case.stream() as stream:
        sources = tuple(stream.sources)
        for place, data in enumerate(up_to_end(stream.get_epoch_iterator())):
            _expect_parts(place, data, sources)
            expect(len(data) == len(sources),
                   f'Item {place} has {len(data)} parts for the sources '
                   f'{sources}.')
            if not stream.produces_examples:
                lengths = [count_rows(part) if isinstance(part, Sized)
                           else None for part in data]
                expect(None not in lengths and len(set(lengths)) <= 1,
                       f'Item {place} has parts of lengths {lengths} for '
                       f'the sources {sources}.')


def check_equal(case: StreamCase) -> None:
    """Streams that are built alike give the same items."""
    epochs = case.epochs
    with case.stream() as stream:
        for number, expected in enumerate(epochs):
            case.expect_epoch(
                expected, freeze_all(stream.get_epoch_iterator()),
                f'In epoch {number} of the second stream that was built '
                '(random numbers come from a generator with a seed)')


def check_types(case: StreamCase) -> None:
    """The arrays of a source have one type in all items."""
    seen: dict[tuple[str, type], object] = {}
    with case.stream() as stream:
        sources = tuple(stream.sources)
        for place, data in enumerate(stream.get_epoch_iterator()):
            for source, part in zip(sources, data, strict=True):
                if is_sparse(part):
                    columns = seen.setdefault((source, int), part.shape[1])
                    expect(columns == part.shape[1],
                           f'Source {source!r} came with {columns} columns, '
                           f'and in item {place} with {part.shape[1]}.')
                    part = part.data  # noqa: PLW2901 - what has the type
                if (isinstance(part, (numpy.ndarray, numpy.generic))
                        and not part.dtype.hasobject):
                    dtype = seen.setdefault((source, type(part)), part.dtype)
                    expect(dtype == part.dtype,
                           f'Source {source!r} came as {dtype}, and in item '
                           f'{place} as {part.dtype}.')


def check_labels(case: StreamCase) -> None:
    """Axis labels, where there are any, name each axis of what comes."""
    with case.stream() as stream:
        labels = stage_of(stream).labels
        for place, data in enumerate(stream.get_epoch_iterator()):
            for source, part in zip(stream.sources, data, strict=True):
                named = labels.get(source)
                # Axes may lack names; arrays of objects hold several shapes.
                if (named is None or not any(named)
                        or not isinstance(part, numpy.ndarray)
                        or part.dtype.hasobject):
                    continue
                expect(len(named) == part.ndim,
                       f'Source {source!r} has the labels {tuple(named)}, '
                       f'but item {place} has {part.ndim} axes.')


def check_names(case: StreamCase) -> None:
    """With ``as_dict`` the same data come, under the names of sources."""
    with case.stream() as stream:
        found = []
        for data in stream.get_epoch_iterator(as_dict=True):
            names = list(data) if isinstance(data, dict) else type(data)
            expect(names == list(stream.sources),
                   f'Expected the names {list(stream.sources)}, got {names}.')
            found.append(freeze(list(data.values())))
    with case.stream() as stream:
        expected = [freeze(list(data))
                    for data in stream.get_epoch_iterator()]
    case.expect_epoch(expected, found, 'In an epoch of dicts')


def check_end(case: StreamCase) -> None:
    """An epoch that ended stays ended, and the next one is whole."""
    with case.stream() as stream:
        for expected in case.epochs:
            epoch = stream.get_epoch_iterator()
            case.expect_epoch(expected, freeze_all(epoch), 'In an epoch')
            for _ in range(2):
                expect(next(epoch, None) is None,
                       'After its end an epoch went on.')


def check_length(case: StreamCase) -> None:
    """A length, where it is known, is the number of items."""
    with case.stream() as stream:
        try:
            length = len(stream)
        except TypeError:
            return
        count = len(case.epochs[0])
        expect(length == count, f'len() is {length}, but {count} came.')


def check_ownership(case: StreamCase) -> None:
    """An item can be overwritten: it changes no other and no later epoch."""
    with case.stream() as stream:
        for number, epoch in enumerate(case.epochs):
            seen = []
            for data in stream.get_epoch_iterator():
                seen.append(freeze(data))
                overwrite(data)
            case.expect_epoch(
                epoch, seen,
                f'In epoch {number}, when each item is overwritten after it '
                'was read')


def check_arrays(case: StreamCase) -> None:
    """Arrays are writable, aligned, of native byte order, and not shared."""
    kept: list[Any] = []
    with case.stream() as stream:
        for place, data in enumerate(stream.get_epoch_iterator()):
            for array in arrays_in(data):
                where = f'in item {place} an array of {array.dtype}'
                expect(array.flags.writeable, f'Read-only {where}.')
                expect(array.flags.aligned, f'Not aligned: {where}.')
                # `isnative` does not look into fields that are arrays.
                expect(array.dtype == array.dtype.newbyteorder('='),
                       f'Foreign byte order {where}.')
                if array.dtype.hasobject:
                    continue
                expect(not any(numpy.shares_memory(array, other)
                               for other in kept),
                       f'Shares memory with an earlier one: {where}.')
                kept.append(array)


def check_interleaved(case: StreamCase) -> None:
    """Two epochs read in turns are those read one after the other."""
    if case.draws:
        return
    with case.stream() as stream:
        epochs = [stream.get_epoch_iterator() for _ in range(2)]
        seen: list[list[Frozen]] = [[], []]
        for _ in range(max(map(len, case.epochs)) + 1):
            for epoch, items in zip(epochs, seen, strict=True):
                items.extend(freeze_all(islice(epoch, 1)))
        for expected, got in zip(case.epochs, seen, strict=True):
            case.expect_epoch(expected, got, 'Read in turns')


def check_threads(case: StreamCase) -> None:
    """Two threads may each read an epoch of one stream."""
    if case.draws:
        return
    with case.stream() as stream:
        epochs = [stream.get_epoch_iterator() for _ in range(2)]
        with ThreadPoolExecutor(2) as threads:
            seen = threads.map(freeze_all, epochs)
        for expected, got in zip(case.epochs, seen, strict=True):
            case.expect_epoch(expected, got, 'Read in a thread')


def check_abandoned(case: StreamCase) -> None:
    """An epoch that is left leaves nothing behind for the next one."""
    if case.draws:
        return
    with case.stream() as stream:
        next(stream.get_epoch_iterator())
        case.expect_epoch(
            case.epochs[1], freeze_all(stream.get_epoch_iterator()),
            'After leaving an epoch')


def check_closing(case: StreamCase) -> None:
    """A stream can be closed at any time, and twice, and read again."""
    for count in (0, 1, len(case.epochs[0]) + 1):
        stream = case.build()
        epoch = stream.get_epoch_iterator()
        for _ in range(count):
            next(epoch, None)
        for _ in range(2):
            stream.close()
        del epoch
        again = freeze_all(stream.get_epoch_iterator())
        stream.close()
        if not case.draws:
            case.expect_epoch(
                case.epochs[1], again,
                f'In the epoch after a stream was closed at item {count}')


def check_by_hand(case: StreamCase) -> None:
    """Each way to iterate gives the same items."""
    for way, name in ((epochs_by_next, 'next()'),
                      (epochs_by_iterate, 'iterate_epochs()'),
                      (epochs_by_iterator, 'DataIterator')):
        with case.stream() as stream:
            for expected, got in zip(case.epochs, way(stream), strict=False):
                case.expect_epoch(expected, got, f'Read by {name}')


def epochs_by_next(stream: AbstractDataStream) -> Iterator[list[Frozen]]:
    """Yield the items of each epoch, read by :func:`next` alone."""
    while True:
        epoch, items = stream.get_epoch_iterator(), []
        expect(iter(epoch) is epoch, 'iter() of an epoch is another object.')
        while True:
            try:
                items.append(freeze(next(epoch)))
            except StopIteration:
                break
        yield items


def epochs_by_iterate(stream: AbstractDataStream) -> Iterator[list[Frozen]]:
    """Return the items of each epoch, read by ``iterate_epochs``."""
    return map(freeze_all, stream.iterate_epochs())


def epochs_by_iterator(stream: Any) -> Iterator[list[Frozen]]:
    """Yield the items of an epoch, read by a `DataIterator` made by hand.

    Nothing is yielded for a stream if an iterator alone cannot begin its
    epochs.
    """
    begins, starts = (type(stream).get_epoch_iterator,
                      type(stream).start_epoch)
    if begins not in (DataStream.get_epoch_iterator,
                      AbstractDataStream.get_epoch_iterator):
        return
    if starts is Transformer.start_epoch and (
            stream.epoch_attributes == Transformer.epoch_attributes):
        stream.child_epoch_iterator = stream.data_stream.get_epoch_iterator()
    elif starts not in (DataStream.start_epoch,
                        AbstractDataStream.start_epoch):
        # Such an epoch has attributes that an iterator alone does not set.
        return
    scheme = stream.iteration_scheme
    yield freeze_all(DataIterator(
        stream, scheme and scheme.get_request_iterator()))


#: A dict from names to the checks of a stream.
STREAM_PROMISES: Promises[StreamCase] = {
    'items': check_items,
    'equal': check_equal,
    'types': check_types,
    'labels': check_labels,
    'names': check_names,
    'end': check_end,
    'length': check_length,
    'ownership': check_ownership,
    'arrays': check_arrays,
    'interleaved epochs': check_interleaved,
    'threads': check_threads,
    'abandoned epoch': check_abandoned,
    'closing': check_closing,
    'by hand': check_by_hand,
    **RESUMING_PROMISES,
}
